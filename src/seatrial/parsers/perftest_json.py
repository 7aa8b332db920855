"""The file that perftest writes with `--out_json --out_json_file=FILE`.

Until January 2024 (Debian 12 and Ubuntu 22.04 have such versions) it is not JSON: no
name is quoted, few texts are, and a comma follows the last entry. Later ones are JSON,
but for `sl` of a QoS test and `--output=bandwidth`. Every version writes one entry per
line, so lines are read here.

The file has one row, of the last report: with `-a` the largest size, and with
`--report-both` what the other side sent. It does not name the unit of bandwidth, so
the caller does; message rate and size prove it.
"""

import re

from seatrial.parsers.errors import ParseError
from seatrial.parsers.perftest_rows import (
    BandwidthRow,
    LatencyRow,
    bandwidth_row,
    latency_row,
)

_SECTION = re.compile(r'"?(test_info|results)"?: \{')
_TEXT = re.compile(r'"[^"{}]+"|[^"{}]+')
_COLUMNS = {
    "MsgSize": "#bytes",
    "n_iterations": "#iterations",
    "BW_peak": "BW peak",
    "BW_average": "BW average",
    "MsgRate": "MsgRate",
    "t_min": "t_min",
    "t_max": "t_max",
    "t_typical": "t_typical",
    "t_avg": "t_avg",
    "percentile_99": "99%",
    "percentile_99.9": "99.9%",
}
_BANDWIDTH = ("MsgSize", "n_iterations", "BW_peak", "BW_average", "MsgRate")
_LATENCY = (
    "MsgSize",
    "n_iterations",
    "t_min",
    "t_max",
    "t_typical",
    "t_avg",
    "percentile_99",
    "percentile_99.9",
)
_NOT_READ = ("t_stdev", "CPU_util", "sl")


def parse_perftest_json_bw(
    text: str, test: str, size: int, unit: str, iterations: int | None = None
) -> BandwidthRow:
    """Read the result of a `_bw` program; `test` is its title: `RDMA_Write BW`.

    `unit` is `Gbit/s` if `--report_gbits` was given, else `MiB/s`. Raises ParseError
    unless the file is whole, of this test, size and (if not None) iterations, and its
    numbers are finite and positive and agree with each other and with the unit.
    """
    line, values = _results(text, test, size, _BANDWIDTH)
    return bandwidth_row(line, values, unit, iterations)


def parse_perftest_json_lat(
    text: str, test: str, size: int, iterations: int | None = None
) -> LatencyRow:
    """Read the result of a `_lat` program; `test` is its title: `Send Latency`.

    Raises ParseError as `parse_perftest_json_bw` does. The file of `-D` has no median
    and is refused: give `-n`.
    """
    line, values = _results(text, test, size, _LATENCY)
    return latency_row(line, values, test, iterations)


def _results(
    text: str, test: str, size: int, needed: tuple[str, ...]
) -> tuple[int, dict[str, str]]:
    """Return the line of the results and their values by the column of the table."""
    sections = _sections(text)
    line, info = sections["test_info"]
    named = info.get("test", "nothing")
    if named.replace("_", " ") != f"{test} Test".replace("_", " "):
        raise ParseError(line, f"test is {named}, expected {test} Test")
    line, results = sections["results"]
    if missing := [name for name in needed if name not in results]:
        raise ParseError(line, f"no {missing[0]} in the results (-D or --output?)")
    if unknown := [name for name in results if name not in (*needed, *_NOT_READ)]:
        raise ParseError(line, f"unknown result {unknown[0]}")
    if results["MsgSize"] != str(size):
        raise ParseError(line, f"MsgSize is {results['MsgSize']}, expected {size}")
    return line, {_COLUMNS[name]: results[name] for name in needed}


def _sections(text: str) -> dict[str, tuple[int, dict[str, str]]]:
    """Read both sections, each with the line in which it begins."""
    lines = text.rstrip().splitlines()
    sections: dict[str, tuple[int, dict[str, str]]] = {}
    entries: dict[str, str] | None = None
    for number, line in enumerate(lines, start=1):
        bare = line.strip()
        if number in (1, len(lines)):
            brace = "{" if number == 1 else "}"
            if bare != brace or entries is not None:
                raise ParseError(number, f"{bare!r}, expected {brace!r}")
        elif entries is None and (match := _SECTION.fullmatch(bare)):
            if match[1] in sections:
                raise ParseError(number, f"a second {match[1]}")
            entries = {}
            sections[match[1]] = (number, entries)
        elif entries is not None and bare in ("}", "},"):
            entries = None
        elif entries is not None and bare:
            name, value = _entry(number, bare)
            if name in entries:
                raise ParseError(number, f"a second {name}")
            entries[name] = value
        elif bare:
            raise ParseError(number, f"{bare[:80]!r}, expected a section")
    if missing := {"test_info", "results"} - sections.keys():
        raise ParseError(len(lines), f"no {sorted(missing)[0]} in {len(lines)} lines")
    return sections


def _entry(number: int, line: str) -> tuple[str, str]:
    name, _, value = line.removesuffix(",").partition(":")
    parts = name.strip(), value.strip()
    if not all(_TEXT.fullmatch(part) for part in parts):
        raise ParseError(number, f"{line[:80]!r}, expected a name and a value")
    return parts[0].strip('"'), parts[1].strip('"')
