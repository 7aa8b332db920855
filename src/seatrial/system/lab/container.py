"""A node of the lab: a systemd-nspawn container over the base image.

Its file system is an overlay (image below, the node's own changes above). It has a user
namespace: its root is an ordinary user of this machine, who can set neither the clock
nor other settings of the kernel, but owns the node's own network. It has a cgroup of
its own in every hierarchy, to find and kill all of its processes.
"""

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.lab import fabric
from seatrial.system.lab.node_files import write_node_files
from seatrial.system.lab.shell import run, succeeds
from seatrial.system.lab.state import RUN, LabState

FORBIDDEN = "CAP_SYS_TIME,CAP_SYS_MODULE,CAP_SYS_BOOT,CAP_SYS_RAWIO"
CGROUP = "seatrial-lab"
STOP_SECONDS = 10.0
_CPU_PERIOD_US = 20_000
"""Short, so that a program of seconds feels its limit all the time."""


def ensure_running(state: LabState, node: str, image: Path) -> bool:
    """Start a node unless it runs; True if it was started."""
    if is_running(node):
        return False
    end_processes(node)  # the rest of a container that lost its first process
    root = _mount_root(state, node, image)
    write_node_files(state, node, root)
    command = [
        "nsenter",
        f"--net={fabric.NAMESPACES / fabric.FABRIC}",
        "systemd-nspawn",
        "--quiet",
        f"--directory={root}",
        "--boot",
        "--register=no",
        "--keep-unit",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        "--console=pipe",
        f"--hostname={node}",
        f"--machine={node}",
        f"--network-bridge={fabric.BRIDGE}",
        f"--private-users={owner_of_root(image)}:65536",
        "--private-users-ownership=off",
        f"--drop-capability={FORBIDDEN}",
        f"--bind={Path(state.home, 'home')}:/home",
    ]
    start(node, command)
    return True


def start(node: str, command: Sequence[str], files: Sequence[int] = ()) -> None:
    """Start the process of a node, in cgroups of its own, with its open files."""
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
            pass_fds=files,
            preexec_fn=enter_cgroups,
        )
    Path(RUN, f"{node}.pid").write_text(str(process.pid))


def owner_of_root(image: Path) -> int:
    """Return the user id of root in the image's user namespace."""
    return image.stat().st_uid


def leader(node: str) -> int:
    """Return the id that a node's first process has on this machine."""
    nspawn = int(Path(RUN, f"{node}.pid").read_text())
    children = Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split()
    if not children:
        raise SeatrialError(f"node {node} does not run")
    return int(children[0])


def is_running(node: str) -> bool:
    """Return True if the container's own process is alive and in the node's cgroup."""
    pid_file = Path(RUN, f"{node}.pid")
    if not pid_file.exists():
        return False
    return int(pid_file.read_text()) in _processes(node)


def wait_reachable(state: LabState, seconds: float) -> None:
    """Wait until every node answers on its ssh port; SeatrialError names the others."""
    deadline = time.monotonic() + seconds
    waiting = dict(state.nodes)
    while waiting:
        for node, address in tuple(waiting.items()):
            if not is_running(node):
                log = Path(RUN, f"{node}.log")
                tail = log.read_text(errors="replace").strip().splitlines()[-5:]
                raise SeatrialError(
                    f"node {node}: container exited at start-up: {tail}"
                )
            if answers_ssh(address):
                del waiting[node]
        if waiting and time.monotonic() > deadline:
            raise SeatrialError(
                f"no ssh on {', '.join(waiting)} after {seconds:.0f} s; what they "
                f"printed at boot is in {RUN}/NODE.log"
            )
        time.sleep(0.1 if waiting else 0)


def answers_ssh(address: str) -> bool:
    """Return True if an address of the lab accepts connections on the ssh port.

    A helper enters the network namespace: the machine has no route to the lab.
    """
    namespace = f"--net={fabric.NAMESPACES / fabric.FABRIC}"
    return succeeds("nsenter", namespace, "nc", "-z", "-w", "1", address, "22")


def remove(state: LabState, node: str) -> bool:
    """End a node and remove its processes, mounts, cgroups and files."""
    folder = Path(state.home, "nodes", node)
    changed = folder.exists() or bool(_processes(node))
    end_processes(node)
    while folder / "root" in _mounts():
        run("umount", "--lazy", str(folder / "root"))
    for group in _below_hierarchies(f"{CGROUP}/{node}"):
        for path, _, _ in os.walk(group, topdown=False):
            Path(path).rmdir()
    shutil.rmtree(folder, ignore_errors=True)
    for suffix in ("pid", "log"):
        Path(RUN, f"{node}.{suffix}").unlink(missing_ok=True)
    return changed


def limit_cpu(node: str, cores: float | None) -> None:
    """Limit a node's processor time to a number of cores; None lifts the limit.

    Works with cgroups of version 1 and 2; SeatrialError if neither can limit it.
    """
    quota = None if cores is None else str(round(_CPU_PERIOD_US * cores))
    limited = False
    for group in _below_hierarchies(f"{CGROUP}/{node}"):
        newer, older = group / "cpu.max", group / "cpu.cfs_quota_us"
        if newer.exists():
            newer.write_text(f"{quota or 'max'} {_CPU_PERIOD_US}")
        elif older.exists():
            (group / "cpu.cfs_period_us").write_text(str(_CPU_PERIOD_US))
            older.write_text(quota or "-1")
        else:
            continue
        limited = True
    if not limited:
        raise SeatrialError(
            f"node {node}: no cgroup of it has cpu.max or cpu.cfs_quota_us; the kernel "
            "of this machine cannot limit processor time"
        )


def remove_cgroup_roots() -> None:
    """Remove the folders that held the nodes' cgroups."""
    for root in _below_hierarchies(CGROUP):
        root.rmdir()


def _mount_root(state: LabState, node: str, image: Path) -> Path:
    folder = Path(state.home, "nodes", node)
    for part in ("upper", "work", "root"):
        (folder / part).mkdir(parents=True, exist_ok=True)
        os.chown(folder / part, owner_of_root(image), owner_of_root(image))
    root = folder / "root"
    if root not in _mounts():
        layers = f"lowerdir={image},upperdir={folder}/upper,workdir={folder}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, str(root))
    return root


def _mounts() -> dict[Path, str]:
    """Return the types of all mounted file systems by their mount points."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {Path(line.split()[1]): line.split()[2] for line in mounts}


def _below_hierarchies(name: str) -> list[Path]:
    """Return the folders of a name in all cgroup hierarchies, of version 1 and 2."""
    kinds = _mounts().items()
    folders = (path / name for path, kind in kinds if kind in ("cgroup", "cgroup2"))
    return [folder for folder in folders if folder.exists()]


def _make_cgroups(node: str) -> list[Path]:
    """Create the node's cgroup in every hierarchy; a cpuset must be filled first."""
    groups = [folder / CGROUP / node for folder in _below_hierarchies(".")]
    for group in groups:
        group.mkdir(parents=True, exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            source = group.parents[1] / name
            if source.exists():
                for folder in (group.parent, group):
                    (folder / name).write_text(source.read_text())
    return groups


def _processes(node: str) -> set[int]:
    """Return the process ids in the node's cgroups and below.

    systemd of the node removes cgroups meanwhile: those have no processes.
    """
    found: set[int] = set()
    for group in _below_hierarchies(f"{CGROUP}/{node}"):
        for path, _, _ in os.walk(group):
            try:
                text = Path(path, "cgroup.procs").read_text()
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENODEV):
                    raise
            else:
                found.update(map(int, text.split()))
    return found


def end_processes(node: str) -> None:
    """Kill all processes in the node's cgroups."""
    deadline = time.monotonic() + STOP_SECONDS
    while processes := _processes(node):
        if time.monotonic() > deadline:
            raise SeatrialError(f"node {node}: processes {processes} do not end")
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
