"""The kernel of the lab's virtual machines: Debian's own, with an initrd.

It is downloaded with the machine's own apt configuration and unpacked, not installed.
"""

import gzip
import lzma
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.lab.shell import run

PACKAGE = "linux-image-amd64"
BUSYBOX = Path("/bin/busybox")

MODULES = (
    *("virtio_pci", "virtio_net", "virtio_rng"),
    *("9p", "9pnet_virtio", "overlay"),
    *("crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm", "ib_umad"),
    *("sch_netem", "sch_tbf"),
)
"""Modules that a machine loads; it can load no others."""

INIT = """\
#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "/lib/$module"; done </lib/order
! grep -q seatrial.probe /proc/cmdline || poweroff -f
mount -t sysfs sysfs /sys
index=-1
for device in $(ls /sys/class/net | grep ^eth); do
    name=rail$index
    [ $index -ge 0 ] || name=host0
    ip link set "$device" name "$name"
    index=$((index + 1))
done
options=trans=virtio,version=9p2000.L,msize=262144
for layer in image node; do
    mount -t 9p -o ro,cache=loose,$options $layer /$layer || poweroff -f
done
mount -t tmpfs -o mode=0755 tmpfs /own
mkdir /own/upper /own/work
layers=lowerdir=/node:/image,upperdir=/own/upper,workdir=/own/work
mount -t overlay -o "$layers" overlay /root || poweroff -f
mount -t 9p -o cache=mmap,$options home /root/home || poweroff -f
mount -t devtmpfs devtmpfs /root/dev
umount /sys /dev /proc
exec switch_root /root /sbin/init
"""
"""First program of a machine. Its root: image, files of the node, then memory."""


@dataclass(frozen=True)
class Kernel:
    """Files of a kernel, for QEMU."""

    image: Path
    initrd: Path


def ensure_kernel(cache: Path) -> Kernel:
    """Return the kernel in the folder `cache`; download and unpack it if missing.

    Raises SeatrialError if apt knows no kernel, or a module is missing.
    """
    depends = run("apt-cache", "depends", PACKAGE)
    match = re.search(r"Depends: (linux-image-\S+)", depends)
    if match is None:
        raise SeatrialError(
            f"apt knows no {PACKAGE}; run `apt-get update` on a Debian machine first"
        )
    recipe = sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    folder = cache / f"kernel-{match[1].removeprefix('linux-image-')}-{recipe}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="kernel.partial.") as name:
            _build(Path(name), match[1])
            Path(name, "kernel").rename(folder)
    return Kernel(folder / "vmlinux", folder / "initrd")


def _build(folder: Path, package: str) -> None:
    """Create the folder `kernel` below `folder`."""
    download = (
        f"cd {folder} && apt-get -qq -o APT::Sandbox::User=root download {package}"
    )
    run("sh", "-c", download)
    (archive,) = folder.glob("*.deb")
    run("dpkg-deb", "--extract", str(archive), str(folder / "unpacked"))
    (modules,) = folder.glob("unpacked/lib/modules/*")
    (image,) = folder.glob("unpacked/boot/vmlinuz-*")
    tree = folder / "initrd"
    for name in ("bin", "dev", "home", "image", "lib", "node", "own", "proc", "root"):
        (tree / name).mkdir(parents=True)
    (tree / "sys").mkdir()
    shutil.copy(BUSYBOX, tree / "bin")
    (tree / "init").write_text(INIT)
    (tree / "init").chmod(0o755)
    files = module_files(modules)
    order = load_order(files, built_in(modules), MODULES)
    for name, content in order.items():
        (tree / "lib" / f"{name}.ko").write_bytes(content)
    (tree / "lib" / "order").write_text("".join(f"{name}.ko\n" for name in order))
    (folder / "kernel").mkdir()
    archive = folder / "initrd.cpio"
    run("sh", "-c", f"cd {tree} && find . | {BUSYBOX} cpio -o -H newc >{archive}")
    packed = gzip.compress(archive.read_bytes(), compresslevel=1, mtime=0)
    (folder / "kernel" / "initrd").write_bytes(packed)
    (folder / "kernel" / "vmlinux").write_bytes(uncompressed(image.read_bytes()))


def uncompressed(image: bytes) -> bytes:
    """Return the kernel inside its image; the image, if it is not compressed by xz.

    QEMU boots either. A machine without KVM needs 4 s to unpack it.
    """
    start = image.find(b"\xfd7zXZ\0")
    return image if start < 0 else lzma.LZMADecompressor().decompress(image[start:])


def module_files(folder: Path) -> dict[str, Path]:
    """Return the modules of a kernel by their names, which have no hyphen."""
    files = (*folder.rglob("*.ko"), *folder.rglob("*.ko.xz"))
    return {_name(file.name): file for file in files}


def built_in(folder: Path) -> set[str]:
    """Return the names of what a kernel needs no module for."""
    lines = (folder / "modules.builtin").read_text().splitlines()
    return {_name(Path(line).name) for line in lines}


def load_order(
    files: Mapping[str, Path], builtin: set[str], wanted: Sequence[str]
) -> dict[str, bytes]:
    """Return the content of modules by name, each after those that it depends on.

    Raises SeatrialError if the kernel does not have one.
    """
    order: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in order or name in builtin:
            return
        if name not in files:
            raise SeatrialError(
                f"{PACKAGE} has no module {name}; expected Debian's standard kernel"
            )
        content = _content(files[name])
        for dependency in dependencies(content):
            add(dependency)
        order[name] = content

    for name in wanted:
        add(name)
    return order


def dependencies(content: bytes) -> list[str]:
    """Return the names of the modules that a module depends on."""
    match = re.search(rb"\0depends=([^\0]*)\0", content)
    names = match[1].decode().split(",") if match else []
    return [_name(name) for name in names if name]


def _name(file: str) -> str:
    return file.partition(".")[0].replace("-", "_")


def _content(file: Path) -> bytes:
    content = file.read_bytes()
    return lzma.decompress(content) if file.suffix == ".xz" else content
