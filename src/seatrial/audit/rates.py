"""Rates of HCAs by part number, in Gbit/s.

Sources: NVIDIA, Linux Kernel Upstream Release Notes v5.18, "Uplink Speed", and the user
manuals of ConnectX-7 and BlueField-3. Speed letters: part numbers of the user manuals.
"""

import re

RATES = (10, 20, 25, 40, 50, 56, 100, 200, 400, 800)
"""Rates of ports of InfiniBand and Ethernet."""

_SERIES = (
    (r"MCX3", 56),  # ConnectX-3
    (r"MCX4\d{3}[A-Z]", 50),  # ConnectX-4 Lx
    (r"MCX4", 100),
    (r"MCX5", 100),
    (r"MCX631", 50),  # ConnectX-6 Lx
    (r"MCX6", 200),
    (r"MCX7", 400),
    (r"MBF1", 100),  # BlueField
    (r"MBF2", 200),
    (r"900-9D3", 400),  # BlueField-3
)
"""Highest rate by the beginning of a part number."""

_LETTERS = {
    **dict.fromkeys("X", 10),
    **dict.fromkeys("A", 25),
    **dict.fromkeys("QT", 40),
    **dict.fromkeys("G", 50),
    **dict.fromkeys("BF", 56),
    **dict.fromkeys("CE", 100),
    **dict.fromkeys("HV", 200),
    **dict.fromkeys("NW", 400),
}
"""Rate by the letter after the hyphen: MCX653105A-ECAT is HDR100, -HDAT is HDR."""


def highest_rate(part: str) -> int:
    """Return the highest rate of a part number; that of all if it is unknown."""
    for pattern, rate in _SERIES:
        if re.match(pattern, part):
            letter = part.partition("-")[2][:1] if part.startswith("M") else ""
            return min(rate, _LETTERS.get(letter, rate))
    return max(RATES)
