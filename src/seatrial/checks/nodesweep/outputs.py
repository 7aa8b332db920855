"""Convert the output of the programs on a node to rows of the file."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from seatrial.checks.hpcc_input import process_grid
from seatrial.model.units import to_mb_per_s
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fixedwork import parse_fixedwork
from seatrial.parsers.hpcc import parse_hpcc
from seatrial.parsers.memlat import parse_memlat
from seatrial.parsers.nodesweep_rows import MemlatRow

Row = dict[str, Any]

_KERNELS = ("Copy", "Scale", "Add", "Triad")
_RATES = (
    "HPL_Tflops",
    "StarDGEMM_Gflops",
    "SingleDGEMM_Gflops",
    *(f"StarSTREAM_{kernel}" for kernel in _KERNELS),
    "SingleSTREAM_Triad",
    "STREAM_VectorSize",
)
_MESSAGES = {
    "latency_min_us": "MinPingPongLatency_usec",
    "latency_mean_us": "AvgPingPongLatency_usec",
    "latency_max_us": "MaxPingPongLatency_usec",
    "bw_min_mb_per_s": "MinPingPongBandwidth_GBytes",
    "bw_mean_mb_per_s": "AvgPingPongBandwidth_GBytes",
    "bw_max_mb_per_s": "MaxPingPongBandwidth_GBytes",
    "ring_latency_us": "RandomlyOrderedRingLatency_usec",
    "ring_bw_mb_per_s": "RandomlyOrderedRingBandwidth_GBytes",
}

_OURS = ("type", "node", "socket", "start_time")
_MEMLAT = [key.name for key in fields(MemlatRow) if key.name not in _OURS]
"""Keys of a row that memlat itself prints."""


def node_row(text: str) -> Row | None:
    """Return the row `node` of `sensors`; None until it is written."""
    return next((row for row in _whole_rows(text) if row.get("type") == "node"), None)


def sensors_rows(text: str) -> list[Row]:
    """Return all other rows of `sensors`."""
    return [row for row in _whole_rows(text) if row.get("type") not in ("node", None)]


def _whole_rows(text: str) -> Iterator[Row]:
    """Decode complete lines; skip the output of a site's prologue."""
    for line in text.splitlines(keepends=True):
        if line.startswith("{") and line.endswith("\n"):
            with suppress(ValueError):
                yield json.loads(line)


def hpcc_row(folder: Path, ranks: int, n: int, block: int) -> Row:
    """Read hpccoutf.txt of one node; ParseError if it is of another run.

    HPCC's Star numbers are means over the ranks while all work: sums here. A single
    rank sends no messages.
    """
    try:
        text = (folder / "hpccoutf.txt").read_text(errors="replace")
    except OSError as error:
        raise ParseError(0, f"hpccoutf.txt: {error.strerror}") from None
    names = (*_RATES, *(_MESSAGES.values() if ranks > 1 else ()))
    result = parse_hpcc(text, names, ranks, n, block, process_grid(ranks))
    row: Row = {
        "ranks": ranks,
        "n": n,
        "block": block,
        "hpl_gflops": 1e3 * result["HPL_Tflops"],
        "dgemm_gflops": ranks * result["StarDGEMM_Gflops"],
        "dgemm_single_gflops": result["SingleDGEMM_Gflops"],
    }
    for kernel in _KERNELS:
        rate = ranks * result[f"StarSTREAM_{kernel}"]
        row[f"stream_{kernel.lower()}_gb_per_s"] = rate
    row["stream_triad_single_gb_per_s"] = result["SingleSTREAM_Triad"]
    row["stream_bytes"] = 3 * 8 * ranks * int(result["STREAM_VectorSize"])
    for key, name in _MESSAGES.items():
        factor = to_mb_per_s(1, "GB/s") if name.endswith("_GBytes") else 1
        row[key] = factor * result[name] if name in names else None
    return row


def memlat_rows(text: str, sizes: tuple[int, int]) -> Iterator[Row]:
    """Read the output of memlat; ParseError if it has other sizes."""
    rows = parse_memlat(text)
    low, high = rows[0].size_bytes, rows[-1].size_bytes
    if (low, high) != sizes:
        raise ParseError(0, f"sizes from {low} to {high}")
    for row in rows:
        if row.validation != "pass":
            raise ParseError(row.row, "the cycle was not validated")
        yield {name: getattr(row, name) for name in _MEMLAT}


def fixedwork_row(text: str, cores: int, time_ms: int) -> Row:
    """Sum up the cores of a node; ParseError if it is another run."""
    rows = parse_fixedwork(text)
    if (len(rows), rows[0].time_ms) != (cores, time_ms):
        shown = f"{len(rows)} cores for {rows[0].time_ms} ms"
        raise ParseError(0, f"{shown}, expected {cores} for {time_ms} ms")
    if any(row.validation != "pass" for row in rows):
        raise ParseError(0, "the results of the work were not validated")
    first = sum(row.first_per_s for row in rows)
    last = sum(row.last_per_s for row in rows)
    return {
        "cores": len(rows),
        "seconds": max(row.seconds for row in rows),
        "gflops": sum(row.gflops for row in rows),
        "slowest_gflops": min(row.gflops for row in rows),
        "kept_percent": 100 * last / first,
        "cpu_share_percent": 100 * min(row.cpu_seconds / row.seconds for row in rows),
        "longest_us": max(row.max_us for row in rows),
        "n": sum(row.n for row in rows),
    }
