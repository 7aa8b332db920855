"""Files of a node of the lab that differ from those of the base image."""

import resource
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.lab import fabric
from seatrial.system.lab.beneath import write_beneath
from seatrial.system.lab.state import LabState

_DROP_IN = "etc/systemd/system/{}.service.d/{}.conf"


def write_node_files(
    state: LabState, node: str, root: Path, more: Mapping[str, str] | None = None
) -> None:
    """Set a node's name, address, neighbours, root's key, limits, and `more` files.

    Raises SeatrialError if a folder of the node is not what it should be.
    """
    hosts = ["127.0.0.1 localhost"]
    hosts += [f"{address} {name}" for name, address in state.nodes.items()]
    address = f"{state.nodes[node]}/{fabric.PREFIX_LENGTH}"
    limits = "[Service]\n"
    for name in ("NOFILE", "MEMLOCK", "STACK"):
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
        text = "infinity" if hard == resource.RLIM_INFINITY else hard
        limits += f"Limit{name}={text}\n"
    files = {
        "etc/hosts": "\n".join(hosts) + "\n",
        "etc/hostname": f"{node}\n",
        "root/.ssh/authorized_keys": Path(state.home, "id_ed25519.pub").read_text(),
        "etc/seatrial-lab.env": f"ADDRESS={address}\n",
    }
    for service in ("slurmctld", "slurmd", "slurmd@", "slurmdbd", "mariadb"):
        files[_DROP_IN.format(service, "seatrial-lab")] = limits
    if state.machines:
        files |= _munge_files(Path(state.home, "munge.key"))
    files |= more or {}
    uid = root.stat().st_uid
    try:
        for name, text in files.items():
            write_beneath(root, name, text, uid)
    except OSError as error:
        raise SeatrialError(
            f"node {node}: {error.filename or root}: cannot be written: "
            f"{error.strerror}; remove the node's files: `seatrial lab down`"
        ) from error


def machine_files(state: LabState, node: str) -> dict[str, str]:
    """Return the further files of a virtual machine.

    They make its RDMA devices when it boots, and start its slurmd, which asks the head
    for its configuration: without KVM, Ansible would take minutes to provision it.
    """
    rails = ["[Service]"]
    for index, rail in enumerate(fabric.RAILS):
        address = rail.address(state.nodes[node])
        rails += [
            f"ExecStart=ip link set {rail.device} up",
            f"ExecStart=ip addr replace {address} dev {rail.device}",
            f"ExecStart=rdma link add rxe{index} type rxe netdev {rail.device}",
        ]
    slurmd = [
        "[Unit]",
        "ConditionPathExists=",
        "StartLimitIntervalSec=0",
        "[Service]",
        f'Environment="SLURMD_OPTIONS=--conf-server {state.login}"',
        "Restart=on-failure",
        "RestartSec=1",
        "LimitMEMLOCK=infinity",
    ]
    return {
        _DROP_IN.format("seatrial-lab-network", "rails"): "\n".join(rails) + "\n",
        _DROP_IN.format("slurmd", "seatrial-machine"): "\n".join(slurmd) + "\n",
    }


def _munge_files(kept: Path) -> dict[str, str]:
    """Return the key of all nodes, as the role munge leaves it; make it once."""
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text(secrets.token_hex(64))
    key = kept.read_text()
    owned = "chown --recursive munge: /etc/munge && chmod --recursive go= /etc/munge"
    return {
        "etc/munge/munge.key": key,
        "etc/munge/seatrial.sha256": f"{sha256(key.encode()).hexdigest()}  munge.key\n",
        _DROP_IN.format("munge", "seatrial-lab"): (
            f"[Service]\nExecStartPre=+sh -c '{owned}'\n"
        ),
    }
