"""Start, stop and check the whole lab."""

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.lab import container, fabric, machine, state
from seatrial.system.lab.kernel import ensure_kernel
from seatrial.system.lab.shell import run
from seatrial.system.lab.state import LabState

REACHABLE_SECONDS = 120.0
"""Virtual machines on a busy machine without KVM took 50 s."""


@dataclass(frozen=True)
class NodeStatus:
    """One node as `seatrial lab status` shows it."""

    node: str
    address: str
    running: bool
    ssh: bool
    slurm: str
    link: str


def up(
    home: Path,
    image: Path,
    nodes: dict[str, str],
    user: str,
    machines: Sequence[str] = (),
    scale: int = 0,
) -> list[str]:
    """Start the nodes (name -> address) that do not run; return the names of changes.

    `machines` are the nodes that are virtual machines; their kernel is kept beside the
    image. `scale` is the number of Slurm nodes that containers carry. Raises
    SeatrialError, with nothing changed, if a lab of other nodes runs or the lab's
    namespace is not its own.
    """
    with state.locked():
        lab = state.load() or LabState(home=str(home), boot=state.boot_id())
        wanted = replace(lab, nodes=nodes, machines=list(machines), scale=scale)
        lab.refuse_another(wanted)
        fabric.refuse_foreign(lab)
        lab = wanted
        lab.save()
        changes = _ensure_access(home, image, nodes, user)
        if fabric.ensure_fabric(lab):
            changes.append("bridge")
        if machines:
            changes += _start_machines(lab, image)
        for node in nodes:
            if node not in machines and container.ensure_running(lab, node, image):
                changes.append(f"node {node}")
        container.wait_reachable(lab, REACHABLE_SECONDS)
        return changes


def down(home: Path) -> list[str]:
    """Remove everything that the lab created on this machine, and its folder."""
    with state.locked():
        lab = state.load() or LabState(home=str(home), boot=state.boot_id())
        nodes = {*lab.nodes, *(path.name for path in Path(lab.home, "nodes").glob("*"))}
        changes = [f"node {node}" for node in nodes if container.remove(lab, node)]
        container.remove_cgroup_roots()
        if fabric.remove(lab):
            changes.append("bridge")
        if Path(lab.home).exists():
            shutil.rmtree(lab.home)
            changes.append("files")
        if state.RUN.exists():
            shutil.rmtree(state.RUN)
        return changes


def status() -> list[NodeStatus]:
    """Return the state of every node; SeatrialError if the lab is down."""
    lab = state.require()
    slurm = _slurm_states(lab) if container.is_running(lab.login) else {}
    return [
        NodeStatus(
            node=node,
            address=address,
            running=container.is_running(node),
            ssh=container.answers_ssh(address),
            slurm=slurm.get(node, "-"),
            link=lab.slow.get(node, "full rate"),
        )
        for node, address in lab.nodes.items()
    ]


def slow_link(node: str, rate: str | None) -> None:
    """Limit a node's link to `rate` in both directions; None lifts the limit."""
    with state.locked():
        lab = state.require()
        lab.check_node(node)
        if node in lab.machines:
            raise SeatrialError(
                f"node {node} is a virtual machine: `seatrial selftest` plants faults "
                "in it"
            )
        fabric.limit_rate(node, container.leader(node), rate)
        lab.slow.pop(node, None)
        lab.slow |= {} if rate is None else {node: rate}
        lab.save()


def ssh_config(home: Path) -> Path:
    """Return the OpenSSH configuration that reaches the lab's nodes by name."""
    return home / "ssh_config"


def ssh(lab: LabState, node: str, command: str) -> tuple[str, ...]:
    """Return the command that runs a line in the shell of a node."""
    config = str(ssh_config(Path(lab.home)))
    return ("ssh", "-F", config, "-o", "ConnectTimeout=10", node, command)


def _start_machines(lab: LabState, image: Path) -> list[str]:
    """Start the virtual machines that do not run; return the names of changes."""
    kernel = ensure_kernel(image.parent)
    if not lab.accelerator:
        owner = container.owner_of_root(image)
        lab.accelerator = machine.accelerator(kernel, owner)
        lab.save()
    fabric.ensure_rails()
    return [
        f"node {node}"
        for node in lab.machines
        if machine.ensure_running(lab, node, image, kernel)
    ]


def _ensure_access(
    home: Path, image: Path, nodes: dict[str, str], user: str
) -> list[str]:
    """Create the shared home, the ssh key and the ssh configuration."""
    key = home / "id_ed25519"
    if not key.exists():
        shutil.copytree(image / "home", home / "home", dirs_exist_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(key))
        folder = home / "home" / user / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
        for part in ("home", f"home/{user}"):
            owner = (image / part).stat()
            run("chown", "-R", f"{owner.st_uid}:{owner.st_gid}", str(home / part))
    host_key = (image / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    known_hosts = home / "known_hosts"
    lines = [
        *(f"Host {node}\n  HostName {address}" for node, address in nodes.items()),
        "Host *",
        "  ServerAliveInterval 10",  # a connection to a node that is gone ends
        f"  User {user}",
        f"  IdentityFile {key}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {known_hosts}",
        f"  ProxyCommand nsenter --net={fabric.NAMESPACES / fabric.FABRIC} nc %h %p",
    ]
    files = {
        known_hosts: [
            f"{node},{address} {' '.join(host_key)}" for node, address in nodes.items()
        ],
        ssh_config(home): lines,
    }
    changes = []
    for path, wanted in files.items():
        text = "\n".join(wanted) + "\n"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            changes.append(path.name)
    return changes


def _slurm_states(lab: LabState) -> dict[str, str]:
    """Return Slurm's states by host; a host may carry many nodes."""
    try:
        lines = run(*ssh(lab, lab.login, "sinfo -a -h -N -o '%n %N %T'")).splitlines()
    except SeatrialError:
        return {}
    states: dict[str, dict[str, str]] = {}
    for line in lines:
        host, node, word = line.split(maxsplit=2)
        states.setdefault(host, {})[node] = word
    return {host: _summary(of_nodes) for host, of_nodes in states.items()}


def _summary(states: dict[str, str]) -> str:
    """Return the state of a node, or how many nodes of a host are in each."""
    counts = Counter(states.values())
    if len(states) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {word}" for word, count in counts.most_common())
