"""Message sizes as labels, and the one conversion between bandwidth units.

Data hold integer bytes and MB/s of 10^6 B/s (as OSU, IMB and fabtests print);
B, KiB and MiB appear in labels for people and in ReFrame's flat metric names only.
"""

import re

_LABELS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_LABEL = re.compile(r"(\d+)(B|KiB|MiB|GiB)")

MB_PER_S = {
    "MB/s": 1.0,
    "MiB/s": 1.048576,
    "GB/s": 1000.0,
    "Gbit/s": 125.0,
}


def size_label(size_bytes: int) -> str:
    """Name a message size: 8 -> '8B', 4194304 -> '4MiB', 1000 -> '1000B'."""
    for label, factor in _LABELS:
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor}{label}"
    return f"{size_bytes}B"


def parse_size(label: str) -> int:
    """Turn a size label back into bytes; ValueError if it is none."""
    match = _LABEL.fullmatch(label)
    if match is None:
        raise ValueError(f"not a message size: {label!r}, expected e.g. 8B or 4MiB")
    return int(match[1]) * dict(_LABELS).get(match[2], 1)


def to_mb_per_s(value: float, unit: str) -> float:
    """Convert a bandwidth to MB/s (10^6 B/s); ValueError on an unknown unit."""
    if unit not in MB_PER_S:
        raise ValueError(
            f"unknown bandwidth unit {unit!r}, expected one of {sorted(MB_PER_S)}"
        )
    return value * MB_PER_S[unit]
