"""Sensors and counters of a node, and the reason where one has no value.

Sources: Documentation/admin-guide/pm/cpufreq.rst, hwmon/sysfs-interface.rst,
driver-api/thermal/sysfs-api.rst, admin-guide/RAS of Linux; the folder
thermal_throttle of x86 CPUs (drivers/thermal/intel/therm_throt.c). Functions take the
root of the file system, as those of `topology` do.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from seatrial.checks.nodesweep.topology import Topology, parse_list

_CPUS = "sys/devices/system/cpu"
_MHZ = re.compile(r"^processor\s*:\s*(\d+)$|^cpu MHz\s*:\s*([\d.]+)$", re.MULTILINE)
_MACHINE_CHECKS = re.compile(r"^ *MCE:((?: +\d+)*)", re.MULTILINE)
_STOPS = re.compile(r"^nr_throttled (\d+)$", re.MULTILINE)
_PACKAGE = re.compile(r"Package id (\d+)")
_CPU_CHIPS = ("coretemp", "k10temp", "zenpower", "altra_hwmon", "cpu_thermal")
_CPU_ZONE = re.compile(r"x86_pkg_temp|cpu|soc", re.IGNORECASE)
_PLAUSIBLE_C = (-20.0, 150.0)


class AbsentError(Exception):
    """A node lacks a sensor or counter; the message names the files searched."""


def read_clocks(root: Path) -> dict[int, float]:
    """Return the clock of each CPU in GHz now; AbsentError if the kernel has none."""
    clocks = {}
    for file in (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        khz = _number(file)
        if khz:
            clocks[int(file.parts[-3].removeprefix("cpu"))] = khz / 1e6
    if clocks:
        return clocks
    cpu = -1
    for processor, mhz in _MHZ.findall(_text(root / "proc/cpuinfo")):
        if processor:
            cpu = int(processor)
        elif cpu >= 0 and float(mhz) > 0:
            clocks[cpu] = float(mhz) / 1e3
    if not clocks:
        raise AbsentError(
            "no cpufreq in /sys/devices/system/cpu, no MHz in /proc/cpuinfo"
        )
    return clocks


def read_temperatures(root: Path, topology: Topology) -> dict[int | None, float]:
    """Return the hottest reading of each socket in degrees Celsius.

    On nodes with several sockets, None is the key of sensors of an unknown one.
    Raises AbsentError if no sensor of a processor is there, or none can be read.
    """
    hottest: dict[int | None, float] = {}
    sensors = _sensors(root, topology)
    if not sensors:
        names = (root / "sys/class/hwmon").glob("hwmon*/name")
        chips = {_text(file) or "a chip" for file in names}
        raise AbsentError(
            "no sensor of a processor: /sys/class/hwmon has "
            f"{', '.join(sorted(chips)) or 'nothing'}, and "
            "/sys/class/thermal no zone of one"
        )
    for file, socket in sensors.items():
        milli = _number(file)
        if milli is None or not _PLAUSIBLE_C[0] < milli / 1e3 < _PLAUSIBLE_C[1]:
            continue
        hottest[socket] = max(milli / 1e3, hottest.get(socket, -273.15))
    if not hottest:
        raise AbsentError(f"none of {len(sensors)} sensors can be read")
    return hottest


def read_throttling(root: Path, topology: Topology) -> int:
    """Count the times that heat has slowed a core or a package since boot."""
    return _slowed(root, topology, "throttle")


def read_power_limits(root: Path, topology: Topology) -> int:
    """Count the times that a power limit has slowed a core or a package since boot."""
    return _slowed(root, topology, "power_limit")


def _slowed(root: Path, topology: Topology, cause: str) -> int:
    """Add up the counters of a cause: each core and each package counts once."""
    cores: dict[int, float] = defaultdict(float)
    packages: dict[int, float] = defaultdict(float)
    for folder in (root / _CPUS).glob("cpu[0-9]*/thermal_throttle"):
        cpu = int(folder.parts[-2].removeprefix("cpu"))
        for level, place, counts in (
            ("core", topology.core_of.get(cpu), cores),
            ("package", topology.socket_of.get(cpu), packages),
        ):
            count = _number(folder / f"{level}_{cause}_count")
            if count is not None and place is not None:
                counts[place] = max(counts[place], count)
    if not cores and not packages:
        what = "thermal_throttle" if cause == "throttle" else f"*_{cause}_count"
        raise AbsentError(f"no {what} in /sys/devices/system/cpu/cpu*")
    return int(sum(cores.values()) + sum(packages.values()))


def read_memory_errors(root: Path, kind: str) -> int:
    """Count the memory errors since boot; kind is ce (corrected) or ue (not)."""
    folder = root / "sys/devices/system/edac/mc"
    numbers = [_number(file) for file in folder.glob(f"mc[0-9]*/{kind}_count")]
    counts = [int(number) for number in numbers if number is not None]
    if not counts:
        raise AbsentError(
            "no memory controller in /sys/devices/system/edac/mc: no EDAC driver is "
            "loaded, or memory has no ECC"
        )
    return sum(counts)


def read_machine_checks(root: Path) -> int:
    """Count the machine check exceptions of all CPUs since boot."""
    match = _MACHINE_CHECKS.search(_text(root / "proc/interrupts"))
    if not match:
        raise AbsentError("no line MCE in /proc/interrupts")
    return sum(map(int, match[1].split()))


def read_quota_stops(root: Path) -> int:
    """Count the periods in which a CPU quota stopped this process or its node.

    A quota may be set on the process's control group or on any group above it, up to
    the root that the node sees (of a container: its own). Versions 1 and 2, see
    Documentation/scheduler/sched-bwc.rst. Raises AbsentError if no group counts.
    """
    groups = _cpu_groups(root)
    texts = [text for g in groups for text in _STOPS.findall(_text(g / "cpu.stat"))]
    if not texts:
        raise AbsentError(
            "no nr_throttled in cpu.stat of any control group of this process"
        )
    return sum(map(int, texts))


COUNTERS: dict[str, Callable[[Path, Topology], int]] = {
    "throttle_events": read_throttling,
    "quota_stops": lambda root, _: read_quota_stops(root),
    "ecc_corrected": lambda root, _: read_memory_errors(root, "ce"),
    "ecc_uncorrected": lambda root, _: read_memory_errors(root, "ue"),
    "machine_checks": lambda root, _: read_machine_checks(root),
}
"""Readers of the counters of events since boot, by metric."""


def _number(file: Path) -> float | None:
    """Read a number; None if it is not there: sensors may refuse at any time."""
    try:
        return float(file.read_text())
    except (OSError, ValueError):
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _cpu_groups(root: Path) -> Iterator[Path]:
    """List the control groups of this process that share out processor time."""
    mounts = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            top = mounts / controllers
            top = top if top.is_dir() else mounts / "cpu"
        elif not controllers:
            top = mounts if (mounts / "cgroup.procs").exists() else mounts / "unified"
        else:
            continue
        group = PurePosixPath(path.lstrip("/"))
        for inside in (group, *group.parents) if group.name else (group,):
            yield top / inside


def _sensors(root: Path, topology: Topology) -> dict[Path, int | None]:
    """Find the sensors of processors, of hwmon or else of thermal zones: their socket.

    On a node with one socket that is known.
    """
    only = 0 if len(topology.sockets) == 1 else None
    sensors: dict[Path, int | None] = {}
    for chip in (root / "sys/class/hwmon").glob("hwmon*"):
        if _text(chip / "name") not in _CPU_CHIPS:
            continue
        socket = only
        for label in chip.glob("temp*_label"):
            package = _PACKAGE.match(_text(label))
            if package and int(package[1]) in topology.packages:
                socket = topology.packages.index(int(package[1]))
        if socket is None:
            socket = _socket_of_device(root, chip / "device", topology)
        sensors |= dict.fromkeys(chip.glob("temp*_input"), socket)
    zones = (root / "sys/class/thermal").glob("thermal_zone*")
    return sensors or {
        zone / "temp": only for zone in zones if _CPU_ZONE.search(_text(zone / "type"))
    }


def _socket_of_device(root: Path, device: Path, topology: Topology) -> int | None:
    """Return the socket by the NUMA node that a PCI device belongs to."""
    number = _number(device / "numa_node")
    if number is None or number < 0:
        return None
    node = root / f"sys/devices/system/node/node{int(number)}"
    try:
        cpus = parse_list(_text(node / "cpulist"))
    except ValueError:
        return None
    sockets = {topology.socket_of[cpu] for cpu in cpus if cpu in topology.socket_of}
    return sockets.pop() if len(sockets) == 1 else None
