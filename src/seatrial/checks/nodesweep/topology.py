"""The topology of a node, from its kernel: sockets, cores, caches, memory.

All functions take the root of the file system; that of tests is a folder.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_CPUS = "sys/devices/system/cpu"
_KIB = re.compile(r"(\d+)K")


@dataclass(frozen=True)
class Topology:
    """The CPUs of a node that are online, and its memory.

    `sockets` holds for each socket the first CPU of each of its cores, `packages`
    its number in the kernel. Sockets count from 0 in the order of `packages`. Of every
    CPU `socket_of` has the socket, and `core_of` the first CPU of its core.
    `cache_bytes` is the sum of all last-level caches, 0 if unknown.
    """

    sockets: tuple[tuple[int, ...], ...]
    packages: tuple[int, ...]
    socket_of: dict[int, int]
    core_of: dict[int, int]
    cache_bytes: int
    memory_bytes: int
    available_bytes: int


def read_topology(root: Path) -> Topology:
    """Read the topology; OSError or ValueError if the kernel does not have it."""
    cpus = root / _CPUS
    online = parse_list((cpus / "online").read_text())
    package, core = {}, {}
    for cpu in online:
        folder = cpus / f"cpu{cpu}" / "topology"
        number = int((folder / "physical_package_id").read_text())
        package[cpu] = max(0, number)  # -1 if the firmware does not name it
        siblings = parse_list((folder / "thread_siblings_list").read_text())
        core[cpu] = min({cpu, *siblings} & {*online})
    packages = sorted({*package.values()})
    memory = _memory(root)
    return Topology(
        sockets=tuple(
            tuple(cpu for cpu in online if core[cpu] == cpu and package[cpu] == number)
            for number in packages
        ),
        packages=tuple(packages),
        socket_of={cpu: packages.index(package[cpu]) for cpu in online},
        core_of=core,
        cache_bytes=_cache_bytes(cpus, online),
        memory_bytes=memory["MemTotal"],
        available_bytes=memory.get("MemAvailable", memory["MemTotal"]),
    )


def read_allowed(root: Path) -> list[int]:
    """Return the CPUs that this process may use; OSError if the kernel has none."""
    text = (root / "proc/self/status").read_text()
    lists = re.findall(r"^Cpus_allowed_list:\s*(\S+)$", text, re.MULTILINE)
    return parse_list(lists[0]) if lists else []


def parse_list(text: str) -> list[int]:
    """Convert the kernel's `0-3,8` to numbers; ValueError if it is something else."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        numbers += range(int(low), int(high or low) + 1)
    return numbers


def _cache_bytes(cpus: Path, online: Iterable[int]) -> int:
    """Add up the last-level caches, each once, however many CPUs share it."""
    sizes: dict[str, int] = {}
    for cpu in online:
        last = (0, "", 0)
        for folder in (cpus / f"cpu{cpu}" / "cache").glob("index*"):
            try:
                level = int((folder / "level").read_text())
                size = _KIB.match((folder / "size").read_text())
                shared = (folder / "shared_cpu_list").read_text().strip()
            except (OSError, ValueError):
                continue
            if size:
                last = max(last, (level, shared, int(size[1]) * 1024))
        sizes[last[1]] = last[2]
    return sum(sizes.values())


def _memory(root: Path) -> dict[str, int]:
    """Return the entries of /proc/meminfo in bytes."""
    lines = (root / "proc/meminfo").read_text().splitlines()
    pairs = (line.partition(":") for line in lines if line.endswith("kB"))
    memory = {key: int(value.split()[0]) * 1024 for key, _, value in pairs}
    if "MemTotal" not in memory:
        raise ValueError("/proc/meminfo has no MemTotal")
    return memory
