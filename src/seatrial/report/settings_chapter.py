"""Settings as a chapter: what deviates, what changed, and all of them by class."""

from collections import Counter, defaultdict
from collections.abc import Iterator

import polars as pl

from seatrial.audit.deviations import deviations, untold
from seatrial.audit.rows import Row
from seatrial.judge.judge import Judgement
from seatrial.report.content import Chapter
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import short
from seatrial.runs.closed_run import Run
from seatrial.runs.settings_table import told

MAX_ROWS = 100
_MOST_VALUES = 4
_TITLE = "Settings of nodes and HCAs"
_INTRO = (
    "Read on all nodes before the first and after the last session, and compared with "
    "the declaration of the inventory (hardware.yml) and with the nodes of the same "
    "class. What is not declared is never held to a constant of Seatrial; `odd` is "
    "what most nodes of the class have otherwise."
)


def settings_chapter(run: Run, judgement: Judgement) -> Chapter:
    """Build the chapter: deviations first, then changes, then each class."""
    if run.settings is None or run.settings.is_empty():
        return Chapter(
            "settings",
            _TITLE,
            "",
            empty="This run has no settings of its nodes.",
        )
    table = told(run.settings).unique(
        ["node", "subject", "key", "actual", "pending", "verdict"],
        keep="first",
        maintain_order=True,
    )
    rows = [*_rows(table.filter(pl.col("verdict") != "ok"), table)]
    lines = deviations(rows)
    heads = ("verdict", "nodes", "of", "key", "declared", "actual", "class", "peers")
    wrong = tuple(
        (
            *(line.verdict, short(line.nodes), short(line.subject), short(line.key)),
            *(short(line.declared), short(line.found), short(line.node_class)),
            short(line.peers),
        )
        for line in lines[:MAX_ROWS]
    )
    changed = tuple(
        (short(finding.place), finding.metric, finding.reason)
        for finding in judgement.findings
        if finding.kind == "declared" and not finding.criterion
    )[:MAX_ROWS]
    tables = [("Deviations", Table(heads, wrong))] if wrong else []
    if changed:
        parts = Table(("node", "setting", "change"), changed)
        tables.append(("Changed during the run", parts))
    tables += [*_classes(table)]
    return Chapter(
        "settings",
        _TITLE,
        f"{_INTRO} {_counts(table)}",
        tables=tuple(tables),
        notes=tuple(_notes(len(lines), untold(rows))),
    )


def _rows(rows: pl.DataFrame, table: pl.DataFrame) -> Iterator[Row]:
    """Yield rows with the values of their peers."""
    place = ["node_class", "subject", "key"]
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    wanted = table.join(rows.select(place).unique(), on=place, how="semi")
    shares = wanted.unique([*place, "node"]).group_by(*place, "actual").agg(pl.len())
    for name, subject, key, actual, count in shares.iter_rows():
        counts[name, subject, key][actual or "unknown"] = count
    peers = {of: dict(_ordered(values)) for of, values in counts.items()}
    for row in rows.drop("moment").iter_rows(named=True):
        yield Row(**row, peers=peers[row["node_class"], row["subject"], row["key"]])


def _ordered(values: Counter[str]) -> list[tuple[str, int]]:
    """Return values and numbers of nodes, the most frequent first."""
    return sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))


def _counts(table: pl.DataFrame) -> str:
    """Summarise: '412 of 420 declared settings of 4 nodes are as declared.'"""
    declared = table.filter(pl.col("declared").is_not_null())
    if declared.is_empty():
        return "Nothing is declared for this system."
    places = declared.unique(["node", "subject", "key"])
    wrong = declared.filter(pl.col("verdict") != "ok").unique(
        ["node", "subject", "key"]
    )
    right = places.height - wrong.height
    return (
        f"{text.exact(right)} of {text.exact(places.height)} declared settings of "
        f"{text.exact(places['node'].n_unique())} nodes are as declared."
    )


def _classes(table: pl.DataFrame) -> Iterator[tuple[str, Table]]:
    """Yield a table for each class: every setting with its values, most nodes first.

    Undeclared values of the flash are left out: there are hundreds.
    """
    shown = table.filter(
        ~pl.col("key").str.starts_with("nvconfig.") | pl.col("declared").is_not_null()
    ).drop_nulls("actual")
    heads = ("of", "key", "values", "declared", "read by")
    for (name,), of_class in shown.group_by("node_class", maintain_order=True):
        rows = []
        places = of_class.sort("subject", "key").group_by(
            "subject", "key", maintain_order=True
        )
        for (subject, key), own in places:
            nodes = own.unique("node")
            values = _ordered(Counter(nodes["actual"]))
            texts = [
                f"{value} on {count}" if len(values) > 1 else str(value)
                for value, count in values[:_MOST_VALUES]
            ]
            more = [f"{len(values) - _MOST_VALUES} more"][: len(values) > _MOST_VALUES]
            declared = own["declared"].drop_nulls()
            tools = sorted({tool for tool in own["tool"] if tool})
            rows.append(
                (
                    *(short(str(subject)), short(str(key))),
                    short(", ".join([*texts, *more])),
                    short(declared[0]) if len(declared) else "",
                    ", ".join(tools),
                )
            )
        yield f"Class {name}", Table(heads, tuple(rows))


def _notes(lines: int, silent: str) -> Iterator[str]:
    if lines > MAX_ROWS:
        yield (
            f"The table has {MAX_ROWS} of {text.exact(lines)} deviations, the worst "
            "first; settings.parquet of the run has all."
        )
    if silent:
        yield f"Not declared, and unknown: {silent}."
