"""Output of IOR 3.3, 4.0 and 4.1 with `-O summaryFormat=JSON`.

The JSON text goes from the first line that begins with `{` to the last that begins with
`}`; what stands around it is passed over. Foreign lines within it are refused.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from seatrial.model.units import MB_PER_S
from seatrial.parsers.errors import ParseError

_MIB_DIGITS, _SECOND_DIGITS = 0.5e-4, 0.5e-4
"""Largest errors of bandwidths and times: IOR prints four decimals."""


@dataclass(frozen=True)
class IorRun:
    """A run with one repetition; bandwidths in 10^6 B/s, None if it had no such part.

    Each of `ranks` ranks wrote or read `block_bytes` by transfers of `transfer_bytes`,
    in a file of its own (`file_per_process`) or in one that all share. With
    `reordered`, ranks read what those of another node wrote. `verified`: what was read
    was compared with what was written.
    """

    version: str
    nodes: int
    ranks: int
    block_bytes: int
    transfer_bytes: int
    file_per_process: bool
    reordered: bool
    verified: bool
    write_mb_per_s: float | None
    read_mb_per_s: float | None


def parse_ior(text: str) -> IorRun:
    """Read the output of one run; ParseError if it is not complete and consistent.

    IOR itself compares contents: it ends with a status other than 0 if they differ.
    """
    whole = _json_of(text)
    try:
        if "Finished" not in whole:
            raise ParseError(0, "the run has no end")
        (test,) = whole["tests"]
        settings, setup = test["Parameters"], test["Options"]
        if settings["repetitions"] != 1 or settings["segmentCount"] != 1:
            raise ParseError(0, "expected one repetition and one segment")
        rates: dict[str, float] = {}
        for row in whole["summary"]:
            kind = row["operation"]
            if kind in rates or kind not in ("write", "read"):
                raise ParseError(0, f"an operation {kind!r} too many")
            rates[kind] = _rate(row, settings, setup["tasks"])
        wanted = {kind for kind in ("write", "read") if settings[f"{kind}File"]}
        if rates.keys() != wanted or not wanted:
            raise ParseError(0, f"results of {', '.join(rates) or 'nothing'}")
        return IorRun(
            version=str(whole["Version"]),
            nodes=_count(settings["nodes"]),
            ranks=_count(setup["tasks"]),
            block_bytes=_count(settings["blockSize"]),
            transfer_bytes=_count(settings["transferSize"]),
            file_per_process=settings["filePerProc"] == 1,
            reordered=settings["reorderTasks"] == 1,
            verified=settings["checkRead"] == 1,
            write_mb_per_s=rates.get("write"),
            read_mb_per_s=rates.get("read"),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(0, f"not the results of IOR: {error!r}") from None


def _json_of(text: str) -> dict[str, Any]:
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("{")), None)
    ends = [i for i, line in enumerate(lines) if line.startswith("}")]
    if first is None or not ends:
        raise ParseError(0, f"no results of IOR in {len(lines)} lines")
    try:
        whole = json.loads("\n".join(lines[first : ends[-1] + 1]))
    except (ValueError, RecursionError) as error:
        line = first + getattr(error, "lineno", 1)
        raise ParseError(line, f"not the JSON of IOR: {error}") from None
    if not isinstance(whole, dict):
        raise ParseError(first + 1, "not the JSON of IOR")
    return whole


def _rate(row: dict[str, Any], settings: dict[str, Any], tasks: Any) -> float:
    """Return the bandwidth of an operation, which its size and time must confirm."""
    for name, value in (
        ("numTasks", tasks),
        ("blockSize", settings["blockSize"]),
        ("transferSize", settings["transferSize"]),
        ("filePerProc", settings["filePerProc"]),
    ):
        if row[name] != value:
            raise ParseError(0, f"{name} {row[name]!r}, expected {value!r}")
    mib, rate, seconds = (
        float(row[name]) for name in ("xsizeMiB", "bwMeanMIB", "MeanTime")
    )
    if not (math.isfinite(rate) and rate > 0 and math.isfinite(seconds)):
        raise ParseError(0, f"{row['operation']}: bandwidth {rate} in {seconds} s")
    expected = _count(tasks) * _count(settings["blockSize"]) / 2**20
    if abs(mib - expected) > _MIB_DIGITS:
        raise ParseError(0, f"{row['operation']}: {mib} MiB, expected {expected}")
    error = rate * _SECOND_DIGITS + (seconds + _SECOND_DIGITS) * _MIB_DIGITS
    if abs(rate * seconds - mib) > error * (1 + 1e-9):
        raise ParseError(
            0, f"{row['operation']}: {mib} MiB in {seconds} s are not {rate} MiB/s"
        )
    return rate * MB_PER_S["MiB/s"]


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ParseError(0, f"{value!r} is not a number of at least 1")
    return value
