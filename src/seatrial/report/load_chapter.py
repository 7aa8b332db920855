"""Power, temperature and throttling of the nodes beside the loads, as a chapter."""

from collections.abc import Iterable, Iterator

import polars as pl

from seatrial.model.energy import SOURCES, WORK, per_joule
from seatrial.model.metrics import METRICS
from seatrial.names import natural_key, node_set
from seatrial.parsers.load_sensors import COUNTERS
from seatrial.report.content import Chapter
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import few, short
from seatrial.runs.closed_run import Run

MAX_ROWS = 50
_CASE = ("case", "environment", "partition")
_COLUMNS = (
    *(*_CASE, "session", "nodes", "node", "metric", "statistic", "value", "start_time"),
)
_POWER = [
    name
    for source in SOURCES
    for name in (
        f"{source}_energy",
        f"{source}_power",
        *(per_joule(work, source) for work in WORK),
    )
]
_CAUSES = {"throttle_events": "heat", "power_limit_events": "a power limit"}
_INTRO = (
    "Read on the nodes of each load while it ran. The quantities differ in what they "
    "are of, and are never added or compared: RAPL counts processor packages and DRAM "
    "only, the board whole nodes, Slurm what its energy plugin reads."
)


def load_chapter(run: Run) -> tuple[Chapter, ...]:
    """Build the chapter; none if the run had no load, or its version read no sensor."""
    absent = _absent(run)
    names = [*_POWER, "temperature_max", *COUNTERS]
    rows = _numbers(run, names)
    if rows.is_empty() and not absent:
        return ()
    tables = (
        ("Energy and power", energies(rows)),
        ("Highest temperature", hottest(rows)),
        ("Nodes that were slowed", slowed(rows)),
    )
    return (
        Chapter(
            "loads",
            "Power, temperature and throttling",
            "" if rows.is_empty() else _INTRO,
            tables=tuple((title, table) for title, table in tables if table.rows),
            notes=() if rows.is_empty() else absent,
            empty=f"No sensor was read. {' '.join(absent)}",
        ),
    )


def throttling(run: Run) -> str:
    """Describe the nodes that heat or a power limit slowed during a load; '' if none.

    Without a criterion that holds their counters to a limit, they fail nothing.
    """
    rows = _numbers(run, COUNTERS).filter(pl.col("value") > 0)
    words = []
    for metric, cause in _CAUSES.items():
        own = rows.filter(metric=metric)
        if not own.is_empty():
            nodes = node_set(own["node"].unique().to_list())
            cases = sorted({case.split()[0] for case in own["case"]})
            words.append(f"{cause} slowed {short(nodes)} in {', '.join(few(cases, 4))}")
    return "; ".join(words)


def energies(rows: pl.DataFrame) -> Table:
    """List energy, power and results per joule of each case, a row for each quantity.

    Medians over the jobs; the highest power is that of any node in any job.
    """
    table = []
    for case, own in _by_case(rows):
        for source, of in SOURCES.items():
            energy = own.filter(metric=f"{source}_energy")
            power = own.filter(metric=f"{source}_power")
            if energy.is_empty() and power.is_empty():
                continue
            means, peaks = power.filter(statistic="mean"), power.filter(statistic="max")
            watts = means["value"]
            if source == "slurm":  # of all nodes of the job together
                watts = (
                    means["value"] / means["nodes"].str.split(" ").list.len()
                ).rename("value")
            table.append(
                (
                    *case,
                    f"{source}: {of}",
                    _median(energy["value"], 1e-3),
                    _median(watts),
                    _highest(peaks),
                    _work(own, source),
                )
            )
    heads = ("case", "environment", "class", "quantity", "energy (kJ)")
    power_heads = ("mean power of a node (W)", "highest (W)", "result per joule")
    return Table((*heads, *power_heads), tuple(table))


def hottest(rows: pl.DataFrame) -> Table:
    """List the median and the highest temperature of the nodes of each case."""
    table = []
    for case, own in _by_case(rows.filter(metric="temperature_max")):
        of_nodes = own.group_by("node").agg(pl.col("value").max())
        table.append((*case, _median(of_nodes["value"]), _highest(own)))
    heads = ("case", "environment", "class", "median of nodes (degC)", "highest (degC)")
    return Table(heads, tuple(table))


def slowed(rows: pl.DataFrame) -> Table:
    """List the nodes whose counters of throttling grew, those that grew most first."""
    grown = rows.filter(pl.col("metric").is_in(COUNTERS), pl.col("value") > 0)
    total = grown.group_by("node", *_CASE, "metric").agg(
        pl.col("value").sum(), jobs=pl.len()
    )
    ordered = sorted(
        total.iter_rows(named=True),
        key=lambda row: (-row["value"], natural_key(row["node"]), row["case"]),
    )
    return Table(
        ("node", "case", "environment", "slowed by", "events", "jobs"),
        tuple(
            (
                *(short(row["node"]), row["case"], row["environment"]),
                *(_CAUSES[row["metric"]], text.exact(row["value"])),
                text.exact(row["jobs"]),
            )
            for row in ordered[:MAX_ROWS]
        ),
    )


def _numbers(run: Run, names: Iterable[str]) -> pl.DataFrame:
    wanted = pl.col("metric").is_in([*names])
    return run.measurements.filter(wanted).select(_COLUMNS).collect()


def _by_case(rows: pl.DataFrame) -> Iterator[tuple[tuple[str, ...], pl.DataFrame]]:
    for (case, environment, partition), own in rows.group_by(
        *_CASE, maintain_order=True
    ):
        names = (case, environment, str(partition).rpartition(":")[2])
        yield tuple(map(str, names)), own


def _median(values: pl.Series, factor: float = 1.0) -> str:
    middle = values.median()
    return text.measured(None if middle is None else float(middle) * factor)  # type: ignore[arg-type]


def _highest(rows: pl.DataFrame) -> str:
    if rows.is_empty():
        return text.measured(None)
    row = rows.sort("value", descending=True).row(0, named=True)
    return f"{text.measured(row['value'])} ({short(row['node'])})"


def _work(rows: pl.DataFrame, source: str) -> str:
    """Format the results per joule; of steps of an atom, also the joules of one."""
    words = []
    for work in WORK:
        name = per_joule(work, source)
        middle = rows.filter(metric=name)["value"].median()
        if not isinstance(middle, float):
            continue
        if work == "atom_steps":
            words.append(f"{text.measured(1e6 / middle)} uJ per atom and step")
        else:
            words.append(text.quantity(text.measured(middle), METRICS[name].unit))
    return ", ".join(words) or text.measured(None)


def _absent(run: Run) -> tuple[str, ...]:
    """Return the reasons for readings that are missing, each once."""
    reasons: dict[str, str] = {}
    for session in run.manifest.get("sessions", ()):
        known = session.get("absent_sensors")
        reasons |= known if isinstance(known, dict) else {}
    return tuple(
        f"Not read{f' on {short(str(nodes))}' if nodes else ''}: {reason}."
        for reason, nodes in sorted(reasons.items())
    )
