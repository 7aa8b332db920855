"""Message sizes as labels, and units: which there are, and how they convert.

Data hold integer bytes and MB/s of 10^6 B/s (as OSU, IMB and fabtests print);
B, KiB and MiB appear in labels for people and in ReFrame's flat metric names only.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

_LABELS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_LABEL = re.compile(r"(\d+)(B|KiB|MiB|GiB)")
_LEAST_PLAIN, _MOST_PLAIN = 1e-6, 1e15
"""Numbers between these are written without a power of ten."""

MB_PER_S = {
    "MB/s": 1.0,
    "MiB/s": 1.048576,
    "GB/s": 1000.0,
    "Gbit/s": 125.0,
    "B/s": 1e-6,
    "kB/s": 1e-3,
    "KiB/s": 1024e-6,
    "GiB/s": 1073.741824,
    "TB/s": 1e6,
    "TiB/s": 1099511.627776,
    "bit/s": 0.125e-6,
    "kbit/s": 0.125e-3,
    "Mbit/s": 0.125,
    "Tbit/s": 125e3,
}

_FACTORS: dict[str, dict[str, float]] = {
    "bandwidth": MB_PER_S,
    "time": {
        **{"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
        **{"min": 60.0, "h": 3600.0, "d": 86400.0},
    },
    "operations": {
        **{"flop/s": 1.0, "kflop/s": 1e3, "Mflop/s": 1e6, "Gflop/s": 1e9},
        **{"Tflop/s": 1e12, "Pflop/s": 1e15, "Eflop/s": 1e18},
    },
    "Mop/s": {"op/s": 1e-6, "Mop/s": 1.0, "Gop/s": 1e3},
    "GUP/s": {"MUP/s": 1e-3, "GUP/s": 1.0},
    "messages": {"msg/s": 1.0, "Mmsg/s": 1e6},
    "jobs": {"job/s": 1.0},
    "events": {"1/s": 1.0},
    "files": {"IOPS": 1.0, "kIOPS": 1e3},
    "simulated time": {"ns/day": 1.0},
    "frequency": {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "size": {
        **{"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
        **{"KiB": 1024.0, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    },
    "ratio": {"1": 1.0, "%": 0.01},
    "count": {"count": 1.0},
    "data": {"bit": 1.0},
    "error rate": {"1/bit": 1.0},
    "power": {"W": 1.0, "kW": 1e3, "MW": 1e6},
    "energy": {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "kWh": 3.6e6},
    "temperature": {"degC": 1.0},
    "operations per energy": {"Gflop/J": 1.0},
    "Mop/J": {"Mop/J": 1.0},
    "events per energy": {"1/J": 1.0},
}
"""Units of each kind with what one of them is in a common one."""

_NO_RATE = {
    "size",
    "ratio",
    "count",
    "data",
    "error rate",
    "power",
    "energy",
    "temperature",
}

_SPELLINGS = {
    "s": "sec secs second seconds",
    "ms": "msec msecs millisecond milliseconds",
    "us": "usec usecs microsecond microseconds \u00b5s \u03bcs",
    "ns": "nsec nsecs nanosecond nanoseconds",
    "min": "mins minute minutes",
    "h": "hr hrs hour hours",
    "d": "day days",
    "bit/s": "b/s bps bits/s",
    "kbit/s": "kb/s kbps kbits/s",
    "Mbit/s": "Mb/s Mbps Mbits/s",
    "Gbit/s": "Gb/s Gbps Gbits/s",
    "Tbit/s": "Tb/s Tbps Tbits/s",
    **{f"{p}B/s": f"{p}B/sec {p}Bps {p}Bytes/s {p}bytes/s" for p in ("", *"kMGT")},
    **{f"{p}iB/s": f"{p}iB/sec {p}iBps" for p in "KMGT"},
    **{
        f"{p}flop/s": f"{p}flops {p}flops/s {p}flop/sec {p}FLOPS {p}FLOPs {p}FLOP/s "
        f"{p}FLOPS/s {p}FLOPs/s {p}Flops {p}Flop/s {p}Flops/s"
        for p in ("", *"kMGTPE")
    },
    "Mop/s": "Mops Mops/s MOPS",
    "GUP/s": "GUPS GUPs GUPs/s",
    "msg/s": "msgs/s message/s messages/s",
    "Mmsg/s": "Mmsgs/s",
    "1/s": "/s",
    "IOPS": "iops IOps IO/s",
    "kIOPS": "kiops KIOPS",
    "B": "byte bytes",
    "%": "percent",
    "degC": "\u00b0C Celsius",
}


@dataclass(frozen=True)
class Unit:
    """A unit that is known: what it measures, and its size among others of the kind.

    `better` says which values are better, where the kind alone tells.
    """

    name: str
    kind: str
    factor: float

    @property
    def better(self) -> Literal["higher", "lower"] | None:
        """Rates are better when higher, times when lower."""
        if self.kind in _NO_RATE:
            return None
        return "lower" if self.kind == "time" else "higher"


UNITS = {
    name: Unit(name, kind, factor)
    for kind, factors in _FACTORS.items()
    for name, factor in factors.items()
}
"""All units by the one name under which data hold them."""

_BY_SPELLING = {
    **UNITS,
    **{
        word: UNITS[name]
        for name, words in _SPELLINGS.items()
        for word in words.split()
    },
}


def find_unit(text: str) -> Unit | None:
    """Find a unit by any of its spellings: `Gflops`, `usec`; None if it is unknown.

    Capitals matter: Mb/s are bits, MB/s bytes.
    """
    return _BY_SPELLING.get(text.strip())


def conversion(source: Unit, target: Unit) -> float:
    """Return the factor from one unit to another; ValueError if their kinds differ."""
    if source.kind != target.kind:
        kinds = f"a unit of {source.kind}, {target.name} of {target.kind}"
        raise ValueError(f"{source.name} is {kinds}")
    return source.factor / target.factor


def rounded(value: float, digits: int = 4) -> str:
    """Write a number for people: 0.01234, 97.21, 12,050.

    Only what is below 1e-6 or from 1e15 on has a power of ten.
    """
    short = f"{value:.{digits}g}"
    if value and not _LEAST_PLAIN <= abs(value) < _MOST_PLAIN:
        return short
    return f"{Decimal(short):,f}"


def counted(count: int, noun: str) -> str:
    """Format a number of things: `1 node`, `1,024 nodes`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def size_label(size_bytes: int) -> str:
    """Format a message size: 8 -> '8B', 4194304 -> '4MiB', 1000 -> '1000B'."""
    for label, factor in _LABELS:
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor}{label}"
    return f"{size_bytes}B"


def parse_size(label: str) -> int:
    """Convert a size label to bytes; ValueError if it is none."""
    match = _LABEL.fullmatch(label)
    if match is None:
        raise ValueError(f"not a message size: {label!r}, expected e.g. 8B or 4MiB")
    return int(match[1]) * dict(_LABELS).get(match[2], 1)


def to_mb_per_s(value: float, unit: str) -> float:
    """Convert a bandwidth to MB/s (10^6 B/s); ValueError on an unknown unit."""
    if unit not in MB_PER_S:
        expected = f"expected one of {sorted(MB_PER_S)}"
        raise ValueError(f"unknown bandwidth unit {unit!r}, {expected}")
    return value * MB_PER_S[unit]
