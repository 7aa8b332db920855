"""Which numbers of a run form a curve over message size, and which lines it has.

A check that measures the whole allocation gives one curve per metric, with a line
per environment and parameter; a check that measures places (nodes, or pairs of
nodes) gives one curve per environment, with a line per place.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from seatrial.criteria import STATISTICS
from seatrial.judge import Judgement
from seatrial.metrics import flat_name
from seatrial.report import text
from seatrial.results import SCHEMA, Run

MAX_LINES = 6
"""Lines with a colour of their own; more are spread over several curves."""

MAX_PLACES = 16
"""Places drawn one by one; of more, the suspects, the worst and the median."""


@dataclass(frozen=True)
class Point:
    """The median over the repeats at one size, with the lowest and highest of them."""

    size_bytes: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """The points of one environment or place.

    `suspect`: the place is at a named node; `median`: it stands for all places.
    """

    label: str
    points: tuple[Point, ...]
    suspect: bool = False
    median: bool = False


@dataclass(frozen=True)
class LimitPoint:
    """What the reference demands at one size: 'at least 60 MB/s'."""

    size_bytes: int
    value: float
    label: str


@dataclass(frozen=True)
class Curve:
    """One metric of one check over message size; `places`: lines are places."""

    check: str
    detail: str
    metric: str
    unit: str
    direction: str
    statistic: str
    repeats: int
    places: bool
    suspects: tuple[str, ...]
    lines: tuple[Line, ...]
    limits: tuple[LimitPoint, ...]
    note: str = ""


_COLUMNS = [
    name for name in SCHEMA if name not in ("run", "system", "nodes", "start_time")
]
_KIND = ("parameters", "environment", "partition")


def curves(run: Run, judgement: Judgement) -> list[Curve]:
    """Find every curve of a run, in the order of checks and metrics."""
    place = pl.coalesce(pl.concat_str("source", "destination", separator=" - "), "node")
    frame = run.measurements.filter(pl.col("size_bytes") > 0).with_columns(place=place)
    found: list[Curve] = []
    for _, rows in _groups(frame, "check", "metric"):
        statistics = rows["statistic"].unique().to_list()
        statistic = min(statistics, key=_rank)
        rows = rows.filter(pl.col("statistic") == statistic)
        if rows["size_bytes"].n_unique() < 2:
            continue
        placed = pl.col("place").is_not_null()
        for _, part in _groups(rows.filter(placed), *_KIND):
            found.append(_places(part, judgement))
        found += _whole(rows.filter(~placed), judgement)
    return found


def _rank(statistic: str) -> tuple[int, str]:
    known = STATISTICS
    return (known.index(statistic) if statistic in known else len(known), statistic)


def _groups(
    frame: pl.DataFrame, *keys: str
) -> Iterable[tuple[tuple[Any, ...], pl.DataFrame]]:
    return frame.group_by(*keys, maintain_order=True)


def _places(rows: pl.DataFrame, judgement: Judgement) -> Curve:
    suspects = set(judgement.suspects)
    ends = rows.select("place", "node", "source", "destination").unique()
    spoilt = {place for place, *names in ends.iter_rows() if suspects & set(names)}
    lines = [
        Line(place, points, suspect=place in spoilt)
        for place, points in _points_by_place(rows).items()
    ]
    lines.sort(key=lambda line: text.natural_key(line.label))
    note = ""
    if len(lines) > MAX_PLACES:
        note = (
            f"{len(lines)} places: drawn are those of the suspects, the worst at the "
            "largest size, and the median of all."
        )
        lines = _most_telling(lines, rows)
    return _curve(rows, judgement, lines, note)


def _most_telling(lines: list[Line], rows: pl.DataFrame) -> list[Line]:
    lower_is_better = rows["direction"][0] == "lower"

    def badness(line: Line) -> tuple[bool, float]:
        last = line.points[-1].value
        return (not line.suspect, -last if lower_is_better else last)

    worst = sorted(lines, key=badness)[: MAX_PLACES - 1]
    return [*worst, Line(f"median of {len(lines)}", _points(rows), median=True)]


def _whole(rows: pl.DataFrame, judgement: Judgement) -> list[Curve]:
    """Put all lines on one curve, or on one per parameter set if they are many."""
    if rows.select(_KIND).n_unique() > MAX_LINES:
        parts = [part for _, part in _groups(rows, "parameters")]
    else:
        parts = [rows] if rows.height else []
    found = []
    for part in parts:
        common = _common(part)
        lines = [
            Line(_label(line, common), _points(line))
            for _, line in _groups(part, *_KIND)
        ]
        lines.sort(key=lambda line: text.natural_key(line.label))
        for start in range(0, len(lines), MAX_LINES):
            chosen = lines[start : start + MAX_LINES]
            found.append(_curve(part, judgement, chosen))
    return found


def _curve(
    rows: pl.DataFrame, judgement: Judgement, lines: list[Line], note: str = ""
) -> Curve:
    first = rows.row(0, named=True)
    suspect = any(line.suspect for line in lines)
    return Curve(
        check=first["check"],
        detail=", ".join(
            str(value) for key, value in _common(rows).items() if key != "partition"
        ),
        metric=first["metric"],
        unit=first["unit"],
        direction=first["direction"],
        statistic=first["statistic"],
        repeats=rows["repeat"].n_unique(),
        places=first["place"] is not None,
        suspects=judgement.suspects if suspect else (),
        lines=tuple(lines),
        limits=_limits(rows, judgement),
        note=note,
    )


def _limits(rows: pl.DataFrame, judgement: Judgement) -> tuple[LimitPoint, ...]:
    cases = set(rows.select("case", "environment").iter_rows())
    metric = rows["metric"][0]
    found = {
        LimitPoint(
            finding.size_bytes,
            finding.limit,
            f"{'at most' if finding.direction == 'lower' else 'at least'} "
            f"{text.exact(finding.limit)} {finding.unit}",
        )
        for finding in judgement.findings
        if finding.kind == "limit"
        and finding.limit
        and finding.size_bytes
        and (finding.case, finding.environment) in cases
        and finding.metric == flat_name(metric, finding.size_bytes)
    }
    return tuple(sorted(found, key=lambda point: (point.size_bytes, point.value)))


def _points(rows: pl.DataFrame) -> tuple[Point, ...]:
    (points,) = _points_by_place(rows.with_columns(place=pl.lit(""))).values()
    return points


def _points_by_place(rows: pl.DataFrame) -> dict[str, tuple[Point, ...]]:
    value = pl.col("value")
    table = (
        rows.group_by("place", "size_bytes")
        .agg(value.median().alias("mid"), low=value.min(), high=value.max())
        .sort("size_bytes")
    )
    found: dict[str, list[Point]] = {}
    for place, *numbers in table.iter_rows():
        found.setdefault(place, []).append(Point(*numbers))
    return {place: tuple(points) for place, points in found.items()}


def _parameters(text_: str) -> dict[str, Any]:
    try:
        found = json.loads(text_ or "{}")
    except ValueError:
        return {"parameters": text_}
    return found if isinstance(found, dict) else {"parameters": found}


def _identity(parameters: str, environment: str, partition: str) -> dict[str, Any]:
    """Give what tells one line from another, in the order to say it."""
    return {
        **_parameters(parameters),
        "environment": environment,
        "partition": partition,
    }


def _common(rows: pl.DataFrame) -> dict[str, Any]:
    """Give the parts of the identity that all rows share."""
    kinds = [_identity(*kind) for kind in rows.select(_KIND).unique().iter_rows()]
    return {
        key: value
        for key, value in kinds[0].items()
        if all(key in kind and kind[key] == value for kind in kinds)
    }


def _label(rows: pl.DataFrame, common: dict[str, Any]) -> str:
    """Name a line by the parts of its identity that others do not share."""
    own = _identity(*rows.select(_KIND).row(0))
    parts = [str(value) for key, value in own.items() if key not in common]
    return ", ".join(parts or [str(own["environment"])])
