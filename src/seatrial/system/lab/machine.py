"""A node of the lab with RDMA: a virtual machine with soft-RoCE devices.

Its file system is the base image, read-only, with files of the node and memory above
it. It has the network of the containers, and a cable per rail. QEMU runs in the user
namespace of the containers: root of a node is an ordinary user of this machine.
"""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.lab import container, fabric
from seatrial.system.lab.kernel import Kernel
from seatrial.system.lab.node_files import machine_files, write_node_files
from seatrial.system.lab.shell import run
from seatrial.system.lab.state import LabState

MEMORY_MIB = 1280
"""Slurm's configuration rounds the memory of a node down to full GiB."""

PROBE_SECONDS = 10.0

_SLOTS = ("x-speed=8,x-width=8", "x-speed=8,x-width=4")
"""PCIe slots of the rails: GT/s and lanes. They differ, for the audit.

Their cards are of conventional PCI: QEMU's PCIe cards always run at x1.
"""

_MASKED = (
    *("dev-hugepages.mount", "dev-mqueue.mount", "systemd-modules-load.service"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount"),
    *(f"modprobe@{name}.service" for name in ("configfs", "dm_mod", "drm")),
    *(f"modprobe@{name}.service" for name in ("efi_pstore", "fuse", "loop")),
    *("systemd-random-seed.service", "systemd-update-utmp.service"),
    *("systemd-update-utmp-runlevel.service", "systemd-remount-fs.service"),
    *("systemd-sysusers.service", "systemd-journal-flush.service"),
    "proc-sys-fs-binfmt_misc.automount",
)
"""Units that a node does not need, and that take seconds without KVM."""

_ACCELERATORS = {
    "kvm": ("kvm", "host"),
    "tcg": ("tcg,thread=multi,tb-size=512", "Nehalem"),  # boots faster than `max`
}
"""QEMU's accelerator and processor."""

_KVM = Path("/dev/kvm")
_KVM_GROUP = 65536
"""The group of /dev/kvm in the user namespace."""

_TUNSETIFF = 0x400454CA
_TAP_FLAGS = 0x0002 | 0x1000 | 0x4000
"""IFF_TAP, IFF_NO_PI and IFF_VNET_HDR of linux/if_tun.h."""


def ensure_running(state: LabState, node: str, image: Path, kernel: Kernel) -> bool:
    """Start a node unless it runs; True if it was started."""
    if container.is_running(node):
        return False
    container.end_processes(node)
    owner = container.owner_of_root(image)
    files = Path(state.home, "nodes", node, "files")
    files.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chown(files, owner, owner)
    write_node_files(state, node, files, machine_files(state, node))
    folders = {"image": image, "node": files, "home": Path(state.home, "home")}
    with _user_namespace(owner) as namespace, ExitStack() as stack:
        taps = [stack.enter_context(_tap(node, network)) for network in fabric.NETWORKS]
        command = (
            *_enter(namespace),
            *_qemu(kernel, state.accelerator),
            *_devices(int(state.nodes[node].rpartition(".")[2]), folders, taps),
        )
        container.start(node, command, (namespace, *taps))
    return True


def accelerator(kernel: Kernel, owner: int) -> str:
    """Return `kvm` if a machine boots with it in 10 s, else `tcg`, which emulates.

    A /dev/kvm that opens may still not run a kernel. Debian lets its group open it.
    """
    if not _KVM.exists():
        return "tcg"
    with _user_namespace(owner) as namespace:
        probe = (*_enter(namespace), *_qemu(kernel, "kvm", "seatrial.probe"))
        try:
            done = subprocess.run(
                probe,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=PROBE_SECONDS,
                pass_fds=(namespace,),
            )
        except subprocess.TimeoutExpired:
            return "tcg"
    return "tcg" if done.returncode else "kvm"


def _qemu(kernel: Kernel, accelerator: str, *arguments: str) -> tuple[str, ...]:
    """Return the command of a machine without devices; `arguments` are its kernel's."""
    accel, cpu = _ACCELERATORS[accelerator]
    line = ["console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable"]
    line += [f"systemd.mask={unit}" for unit in _MASKED]
    line += ["systemd.wants=munge.service", "systemd.wants=slurmd.service"]
    return (
        "qemu-system-x86_64",
        *("-M", "q35", "-accel", accel, "-cpu", cpu, "-smp", "1"),
        *("-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-no-reboot"),
        *("-kernel", str(kernel.image), "-initrd", str(kernel.initrd)),
        *("-append", " ".join((*line, *arguments)), "-serial", "stdio"),
    )


def _devices(
    number: int, folders: Mapping[str, Path], taps: list[int]
) -> Iterator[str]:
    """Yield QEMU's options for the devices of a node with a number from 1 to 254."""
    for tag, folder in folders.items():
        mode = "" if tag == "home" else ",readonly=on"
        share = f"local,path={folder},mount_tag={tag},security_model=none"
        yield from ("-virtfs", f"{share},multidevs=remap{mode}")
    for index, (network, tap) in enumerate(zip(fabric.NETWORKS, taps, strict=True)):
        yield from ("-netdev", f"tap,id={network.device},fd={tap}")
        card = f"virtio-net-pci,netdev={network.device},romfile=,host_mtu={network.mtu}"
        if network in fabric.RAILS:
            slot = f"id=slot{index},chassis={index},{_SLOTS[index - 1]}"
            yield from ("-device", f"pcie-root-port,{slot}")
            card += f",bus=slot{index},x-disable-pcie=on"
        yield from ("-device", f"{card},mac=52:54:00:00:{index:02x}:{number:02x}")
    yield from ("-device", "virtio-rng-pci")


@contextmanager
def _user_namespace(owner: int) -> Iterator[int]:
    """Yield a file that is the user namespace of the nodes.

    It maps 65536 ids from `owner` on, and the group that may open /dev/kvm.
    """
    holder = subprocess.Popen(
        ("unshare", "--user", "sh", "-c", "echo; exec sleep 60"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        if not holder.stdout or not holder.stdout.readline():
            raise SeatrialError("this machine does not make user namespaces")
        proc = Path("/proc", str(holder.pid))
        (proc / "uid_map").write_text(f"0 {owner} 65536\n")
        kvm = f"{_KVM_GROUP} {group} 1\n" if (group := _kvm_group()) else ""
        (proc / "gid_map").write_text(f"0 {owner} 65536\n{kvm}")
        namespace = os.open(proc / "ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        holder.kill()
        holder.communicate()
    try:
        yield namespace
    finally:
        os.close(namespace)


def _enter(namespace: int) -> tuple[str, ...]:
    """Return the command that runs another one as root of a user namespace."""
    enter = ("nsenter", f"--user=/proc/self/fd/{namespace}", "--setuid=0", "--setgid=0")
    groups = f"--groups={_KVM_GROUP}" if _kvm_group() else "--clear-groups"
    return (*enter, "setpriv", groups)


def _kvm_group() -> int:
    """Return the group of this machine that may open /dev/kvm; 0 if there is none."""
    return _KVM.stat().st_gid if _KVM.exists() else 0


@contextmanager
def _tap(node: str, network: fabric.Network) -> Iterator[int]:
    """Yield a file that is the node's end of a cable to a bridge.

    The cable lasts as long as a process has this file open.
    """
    name = f"{node}-{network.device}"
    request = struct.pack("16sH22x", name.encode(), _TAP_FLAGS)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tap, _TUNSETIFF, request)
        run("ip", "link", "set", name, "netns", fabric.FABRIC)
        there = ("ip", "-n", fabric.FABRIC, "link", "set", name)
        run(*there, "mtu", str(network.mtu), "master", network.bridge, "up")
        yield tap
    finally:
        os.close(tap)
