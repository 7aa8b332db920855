"""What lies below MPI: numbers of verbs, beside those of MPI and beside each other.

Every number is the median over all allocations and places of its statistic. A table is
there if the run measured both of its sides.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from seatrial.model.derived import connections_per_nic, send_queues_mib
from seatrial.model.metrics import judged_statistic
from seatrial.report.content import Chapter
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.runs.closed_run import Run

VERBS = (
    "VerbsLatency",
    "VerbsAtomics",
    "VerbsBandwidth",
    "MultiPairVerbs",
    "WindowBandwidth",
    "Connections",
)
"""Checks below MPI that move data."""

_MPI_LATENCY = ("OsuLatency", "PairSweep")
_MPI_BANDWIDTH = ("OsuBandwidth", "PairSweep")
"""Checks of MPI between two nodes; the first that was measured counts."""

_MPI = {*_MPI_LATENCY, *_MPI_BANDWIDTH}

_JUMP_BYTES = 4096
"""The largest size of a jump with the payload; above it a message takes packets."""

_COLUMNS = (
    *("check", "case", "environment", "partition", "metric", "size_bytes"),
    *("statistic", "value", "parameters", "hca", "source", "destination"),
)
_PARAMETERS = ("policy", "pairs", "qps", "buffers")
_WHERE = ("environment", "partition")
_INTRO = (
    "Adapters without MPI, by RDMA verbs: what is slow here is adapter, cable, switch "
    "or PCIe; what is slow only above is MPI or its settings. Medians over all "
    "allocations and places."
)


def below_mpi_chapter(run: Run) -> tuple[Chapter, ...]:
    """Build the chapter; none if the run has no number of verbs."""
    table = run.columns(*_COLUMNS)
    checks = pl.col("check").cast(pl.String)
    verbs = table.filter(checks.is_in(VERBS)).collect()
    if verbs.is_empty():
        return ()
    both = table.filter(checks.is_in((*VERBS, *_MPI))).collect()
    rows = _with_parameters(both)
    tables = (
        ("What MPI adds to an RDMA write", overheads(rows)),
        ("Bandwidth of MPI beside that of one rail", shares(rows)),
        ("Two ports beside one", striping(rows)),
        ("Largest step of the latency when the payload doubles", jumps(rows)),
        ("Connections if all ranks talk to all", connections(run, verbs)),
    )
    return (
        Chapter(
            "below-mpi",
            "Below MPI",
            _INTRO,
            tables=tuple((title, table) for title, table in tables if table.rows),
        ),
    )


def overheads(rows: pl.DataFrame) -> Table:
    """Compare latencies of MPI with those of an RDMA write, in us, by rail and size.

    As in Rashti and Afsahi 2007: latency of MPI less that of the user level.
    """
    mpi = _first_of(rows, _MPI_LATENCY, "latency")
    verbs = _plain(rows, "VerbsLatency", "write_latency")
    return Table(
        ("environment", "rail", "size", "MPI (us)", "verbs (us)", "MPI adds", "share"),
        tuple(
            (
                *(_where(row), row["hca"], text.size(row["size_bytes"])),
                *(text.measured(row["mpi"]), text.measured(row["verbs"])),
                text.quantity(text.measured(row["mpi"] - row["verbs"], digits=3), "us"),
                f"{100 * (row['mpi'] / row['verbs'] - 1):.3g} % of verbs",
            )
            for row in _beside(mpi, verbs)
        ),
    )


def shares(rows: pl.DataFrame) -> Table:
    """Compare bandwidths of MPI with those of RDMA writes, in MB/s, by rail and size.

    More than 100 %: MPI takes several rails.
    """
    table = []
    for metric, words in (("bw", "one way"), ("bibw", "both ways")):
        mpi = _first_of(rows, _MPI_BANDWIDTH, metric)
        verbs = _plain(rows, "VerbsBandwidth", metric)
        table += [
            (
                *(_where(row), row["hca"], words, text.size(row["size_bytes"])),
                *(text.measured(row["mpi"]), text.measured(row["verbs"])),
                f"{100 * row['mpi'] / row['verbs']:.3g} %",
            )
            for row in _beside(mpi, verbs)
        ]
    heads = ("environment", "rail", "direction", "size", "MPI (MB/s)", "verbs (MB/s)")
    return Table((*heads, "MPI of verbs"), tuple(table))


def striping(rows: pl.DataFrame) -> Table:
    """Compare what two ports carry together with the better one alone, in MB/s."""
    window = rows.filter(check="WindowBandwidth")
    window = _medians(window, "case", "policy", "metric")
    keys = ["case", *_WHERE, "metric", "size_bytes"]
    alone = (
        window.filter(pl.col("policy").is_null())
        .group_by(keys, maintain_order=True)
        .agg(alone=pl.col("value").max())
    )
    both = window.filter(pl.col("policy").is_not_null()).join(alone, on=keys)
    return Table(
        ("check", "use of both", "direction", "size", "both (MB/s)", "one", "gain"),
        tuple(
            (
                *(row["case"], row["policy"]),
                "both ways" if row["metric"] == "bibw" else "one way",
                text.size(row["size_bytes"]),
                *(text.measured(row["value"]), text.measured(row["alone"])),
                f"{100 * (row['value'] / row['alone'] - 1):+.3g} %",
            )
            for row in both.iter_rows(named=True)
        ),
    )


def jumps(rows: pl.DataFrame) -> Table:
    """Find where the latency of an RDMA write grows most when its payload doubles.

    As in Sur et al. 2007: beyond some size the adapter fetches the data by DMA, which
    costs more with several pairs.
    """
    latency = rows.filter(check="MultiPairVerbs", metric="write_latency")
    latency = _medians(latency, "pairs")
    steps = (
        latency.sort("size_bytes")
        .with_columns(
            pl.col("size_bytes", "value")
            .shift()
            .over(*_WHERE, "hca", "pairs")
            .name.suffix("_before")
        )
        .filter(
            pl.col("size_bytes") <= _JUMP_BYTES,
            pl.col("size_bytes") == 2 * pl.col("size_bytes_before"),
        )
        .with_columns(factor=pl.col("value") / pl.col("value_before"))
        .sort("factor", descending=True)
        .group_by(*_WHERE, "hca", "pairs", maintain_order=True)
        .first()
        .sort(*_WHERE, "hca", "pairs", nulls_last=True)
    )
    return Table(
        ("environment", "rail", "pairs", "from", "to", "us before", "us after", "x"),
        tuple(
            (
                *(_where(row), row["hca"], str(row["pairs"] or "all cores")),
                text.size(row["size_bytes_before"]),
                text.size(row["size_bytes"]),
                *(text.measured(row["value_before"]), text.measured(row["value"])),
                f"{row['factor']:.3g}",
            )
            for row in steps.iter_rows(named=True)
        ),
    )


def connections(run: Run, verbs: pl.DataFrame) -> Table:
    """Count the connections that an adapter holds if every rank talks to every other.

    With 1, 2, 4 and so on ranks on each delivered node, up to its cores.
    """
    nodes = run.manifest["nodes"]
    cores = min((node["facts"].get("cores") or 1 for node in nodes), default=1)
    rails = verbs["hca"].drop_nulls().unique()
    adapters = {rail.partition(":")[0] for rail in rails if "," not in rail}
    ranks = [2**power for power in range(cores.bit_length()) if 2**power < cores]
    counts = [
        (each, connections_per_nic(len(nodes), each, max(len(adapters), 1)))
        for each in (*ranks, cores)
        if len(nodes) > 1
    ]
    return Table(
        ("nodes", "ranks of a node", "connections of an adapter", "send queues"),
        tuple(
            (
                *(text.exact(len(nodes)), text.exact(each), text.exact(count)),
                text.quantity(text.measured(send_queues_mib(count), digits=3), "MiB"),
            )
            for each, count in counts
        ),
    )


def _first_of(rows: pl.DataFrame, checks: tuple[str, ...], metric: str) -> pl.DataFrame:
    """Return the medians of a metric of MPI between two nodes, without its rails."""
    between = rows.filter(pl.col("source") != pl.col("destination"))
    between = between.with_columns(hca=pl.lit(None, pl.String))
    found = (_plain(between, check, metric) for check in checks)
    return next((part for part in found if not part.is_empty()), _medians(rows.clear()))


def _plain(rows: pl.DataFrame, check: str, metric: str) -> pl.DataFrame:
    """Return the medians of a metric with one queue pair and one buffer."""
    plain = pl.col("qps").is_null() & (
        pl.col("buffers").fill_null("single") == "single"
    )
    return _medians(rows.filter(plain, check=check, metric=metric))


def _with_parameters(rows: pl.DataFrame) -> pl.DataFrame:
    """Add a column for each parameter that a table needs; texts as such."""
    kinds = rows.select("parameters").unique()
    written = kinds["parameters"].cast(pl.String).to_list()
    known = [text.parameters(each) for each in written]
    columns = {name: [each.get(name) for each in known] for name in _PARAMETERS}
    types = dict.fromkeys(_PARAMETERS, pl.String) | {
        "pairs": pl.Int64,
        "qps": pl.Int64,
    }
    added = pl.DataFrame(columns, schema=types)
    kinds = kinds.hstack(added)
    return rows.join(kinds, on="parameters").with_columns(
        pl.col(pl.Categorical).cast(pl.String)
    )


def _medians(rows: pl.DataFrame, *more: str) -> pl.DataFrame:
    """Return the median of the judged statistic by size, rail and `more`."""
    if not rows.is_empty():
        judged = judged_statistic(rows["statistic"].unique())
        rows = rows.filter(pl.col("statistic") == judged)
    return (
        rows.filter(pl.col("size_bytes") > 0)
        .group_by(*_WHERE, "hca", "size_bytes", *more, maintain_order=True)
        .agg(pl.col("value").median())
    )


def _beside(mpi: pl.DataFrame, verbs: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows of sizes that both have, by rail."""
    keys = [*_WHERE, "size_bytes"]
    return (
        verbs.rename({"value": "verbs"})
        .join(mpi.select(*keys, mpi="value"), on=keys)
        .sort(*_WHERE, "hca", "size_bytes")
        .iter_rows(named=True)
    )


def _where(row: dict[str, Any]) -> str:
    return f"{row['environment']} on {row['partition']}"
