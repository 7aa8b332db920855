"""Parse `ethtool -S`: the counters of a network interface by the driver's own names.

Source of the format: do_gstats in ethtool.c of ethtool.
"""

import re

from seatrial.parsers.errors import ParseError

_TITLE = "NIC statistics:"
_COUNTER = re.compile(r"\s+(\S.*?): (\d+)")


def parse_ethtool_counters(text: str) -> dict[str, int]:
    """Return all counters; a name that is there twice has the sum.

    Raises ParseError if a line is no counter, or the last one is cut off.
    """
    lines = text.split("\n")
    if lines[0] != _TITLE:
        raise ParseError(1, f"{lines[0]!r}; expected {_TITLE!r}")
    if lines[-1]:
        raise ParseError(len(lines), f"cut off in {lines[-1]!r}")
    counters: dict[str, int] = {}
    for number, line in enumerate(lines[1:-1], 2):
        match = _COUNTER.fullmatch(line)
        if match is None:
            raise ParseError(number, f"{line!r} is no counter of ethtool -S")
        counters[match[1]] = counters.get(match[1], 0) + int(match[2])
    if not counters:
        raise ParseError(1, "no counter; expected some")
    return counters
