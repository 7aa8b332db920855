"""Counters of RAPL and of power limits, as hand-made files below /sys."""

from pathlib import Path

from fake_node import CPUS, fake_node, write

SPAN_UJ = 262_143_328_850
"""Where a counter begins at 0 again, on many processors."""

_ZONES = "sys/class/powercap"


def counter(zone: str) -> str:
    """Return the file of a zone: `0` is a package, `0:0` a part of it."""
    return f"{_ZONES}/intel-rapl:{zone}/energy_uj"


def energy_node(root: Path, packages: int = 2) -> Path:
    """Build a node with RAPL: each package has a core zone and a DRAM zone.

    All counters stand at 1 J. A zone of the platform, and a second interface to the
    first package, are there too; they do not count.
    """
    fake_node(root, sockets=packages)
    zones = {"psys": "psys"}
    for package in range(packages):
        zones |= {f"{package}": f"package-{package}"}
        zones |= {f"{package}:0": "core", f"{package}:1": "dram"}
    files: dict[str, object] = {}
    for zone, name in zones.items():
        folder = f"{_ZONES}/intel-rapl:{zone}"
        files |= {f"{folder}/name": name, f"{folder}/energy_uj": 1_000_000}
        files[f"{folder}/max_energy_range_uj"] = SPAN_UJ
    files[f"{_ZONES}/intel-rapl-mmio:0/name"] = "package-0"
    files[f"{_ZONES}/intel-rapl-mmio:0/energy_uj"] = 5
    for cpu in range(2 * packages):
        files[f"{CPUS}/cpu{cpu}/thermal_throttle/core_power_limit_count"] = 3
        files[f"{CPUS}/cpu{cpu}/thermal_throttle/package_power_limit_count"] = 4
    write(root, files)
    return root
