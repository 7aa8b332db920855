"""A node of the lab: a systemd-nspawn container over the base image.

Its root is an overlay (image below, the node's own changes above), its network a
namespace of its own, and it lives in a cgroup of its own in every hierarchy, so that
one write ends all of it. It cannot set the clock, load modules or change the kernel.
"""

import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.lab import fabric
from seatrial.lab.shell import run
from seatrial.lab.state import RUN, LabState

FORBIDDEN = "CAP_SYS_TIME,CAP_SYS_MODULE,CAP_SYS_BOOT,CAP_SYS_RAWIO"
CGROUP = "seatrial-lab"
STOP_SECONDS = 10.0


def ensure_running(state: LabState, node: str, image: Path, user: str) -> bool:
    """Start a node unless it runs; True if it was started."""
    if is_running(node):
        return False
    _end_processes(node)  # the rest of a container that lost its first process
    root = _mount_root(state, node, image)
    _write_node_files(state, node, root, user)
    command = [
        *("systemd-nspawn", "--quiet", "--directory", str(root), "--boot"),
        *("--register=no", "--keep-unit", "--link-journal=no"),
        *("--resolv-conf=off", "--timezone=off", "--console=pipe"),
        f"--network-namespace-path=/run/netns/{fabric.namespace(node)}",
        *(f"--hostname={node}", f"--machine={node}"),
        f"--drop-capability={FORBIDDEN}",
        "--capability=CAP_NET_ADMIN",  # of its own network namespace
        f"--bind={Path(state.home, 'home')}:/home",
    ]
    groups = _make_cgroups(node)

    def enter_cgroups() -> None:
        for group in groups:
            Path(group, "cgroup.procs").write_text(str(os.getpid()))

    with Path(RUN, f"{node}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=enter_cgroups,
            # Without this, sysctl net.* fails inside the container.
            env=os.environ | {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"},
        )
    Path(RUN, f"{node}.pid").write_text(str(process.pid))
    return True


def is_running(node: str) -> bool:
    """Whether the container's own process is alive and in the node's cgroup."""
    pid_file = Path(RUN, f"{node}.pid")
    if not pid_file.exists():
        return False
    return int(pid_file.read_text()) in _processes(node)


def wait_reachable(state: LabState, seconds: float) -> None:
    """Wait until every node answers on its ssh port; SeatrialError names who does not.

    Network namespaces are entered by a helper process, as the machine has no route to
    the lab.
    """
    deadline = time.monotonic() + seconds
    waiting = dict(state.nodes)
    while waiting:
        for node, address in tuple(waiting.items()):
            if not is_running(node):
                log = Path(RUN, f"{node}.log")
                tail = log.read_text(errors="replace").strip().splitlines()[-5:]
                raise SeatrialError(f"node {node} ended at its start: {tail}")
            if answers_ssh(address):
                del waiting[node]
        if waiting and time.monotonic() > deadline:
            raise SeatrialError(
                f"no ssh on {', '.join(waiting)} after {seconds:.0f} s; what they "
                f"printed at boot is in {RUN}/NODE.log"
            )
        time.sleep(0.1 if waiting else 0)


def answers_ssh(address: str) -> bool:
    """Whether an address of the lab accepts connections on the ssh port."""
    probe = ("nc", "-z", "-w", "1", address, "22")
    done = subprocess.run(
        ["nsenter", f"--net=/run/netns/{fabric.FABRIC}", *probe],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def remove(state: LabState, node: str) -> bool:
    """End a node and remove its processes, mounts, cgroups and files."""
    folder = Path(state.home, "nodes", node)
    changed = folder.exists() or bool(_processes(node))
    _end_processes(node)
    while _is_mount(folder / "root"):
        run("umount", "--lazy", str(folder / "root"))
    for group in _cgroups(node):
        for path, _, _ in os.walk(group, topdown=False):
            Path(path).rmdir()
    shutil.rmtree(folder, ignore_errors=True)
    for suffix in ("pid", "log"):
        Path(RUN, f"{node}.{suffix}").unlink(missing_ok=True)
    return changed


def remove_cgroup_roots() -> None:
    """Remove the folders that held the nodes' cgroups."""
    for hierarchy in _hierarchies():
        root = hierarchy / CGROUP
        if root.exists():
            root.rmdir()


def _mount_root(state: LabState, node: str, image: Path) -> Path:
    folder = Path(state.home, "nodes", node)
    for part in ("upper", "work", "root"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    root = folder / "root"
    if not _is_mount(root):
        layers = f"lowerdir={image},upperdir={folder}/upper,workdir={folder}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, str(root))
    return root


def _write_node_files(state: LabState, node: str, root: Path, user: str) -> None:
    """Give a node its name, its neighbours, and limits that this machine allows."""
    hosts = ["127.0.0.1 localhost"]
    hosts += [f"{address} {name}" for name, address in state.nodes.items()]
    (root / "etc/hosts").write_text("\n".join(hosts) + "\n")
    (root / "etc/hostname").write_text(f"{node}\n")
    limits = "".join(
        f"{name}={'infinity' if hard == resource.RLIM_INFINITY else hard}\n"
        for name, hard in (
            ("LimitNOFILE", resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
            ("LimitMEMLOCK", resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]),
            ("LimitSTACK", resource.getrlimit(resource.RLIMIT_STACK)[1]),
        )
    )
    for service in ("slurmctld", "slurmd", "slurmdbd", "mariadb"):
        folder = root / f"etc/systemd/system/{service}.service.d"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "seatrial-lab.conf").write_text(f"[Service]\n{limits}")


def _is_mount(path: Path) -> bool:
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return any(line.split()[1] == str(path) for line in mounts)


def _hierarchies() -> list[Path]:
    """Mount points of all cgroup hierarchies, of version 1 and 2."""
    mounts = (line.split() for line in Path("/proc/self/mounts").open())
    return [Path(m[1]) for m in mounts if m[2] in ("cgroup", "cgroup2")]


def _cgroups(node: str) -> list[Path]:
    groups = (hierarchy / CGROUP / node for hierarchy in _hierarchies())
    return [group for group in groups if group.exists()]


def _make_cgroups(node: str) -> list[Path]:
    """Make the node's cgroup in every hierarchy; a cpuset must be filled first."""
    groups = []
    for hierarchy in _hierarchies():
        group = hierarchy / CGROUP / node
        group.mkdir(parents=True, exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            source = hierarchy / name
            if source.exists():
                for folder in (group.parent, group):
                    (folder / name).write_text(source.read_text())
        groups.append(group)
    return groups


def _processes(node: str) -> set[int]:
    """Process ids in the node's cgroups and below."""
    found: set[int] = set()
    for group in _cgroups(node):
        for path, _, _ in os.walk(group):
            found |= {
                int(pid) for pid in Path(path, "cgroup.procs").read_text().split()
            }
    return found


def _end_processes(node: str) -> None:
    """End everything in the node's cgroups: throw-away nodes need no goodbye."""
    deadline = time.monotonic() + STOP_SECONDS
    while processes := _processes(node):
        if time.monotonic() > deadline:
            raise SeatrialError(f"node {node}: processes {processes} do not end")
        for pid in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
