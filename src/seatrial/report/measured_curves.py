"""Curves: metrics over message size or over a parameter."""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import polars as pl

from seatrial.judge.judge import Judgement
from seatrial.model.metrics import flat_name
from seatrial.model.places import PLACE, several_rails, with_place
from seatrial.names import natural_key
from seatrial.report.curves import MAX_LINES, MAX_PLACES, Curve, LimitPoint, Line, Point
from seatrial.report.measured_rows import judged_rows, on_most_nodes
from seatrial.report.render import text
from seatrial.report.render.text import short
from seatrial.runs.closed_run import Run
from seatrial.runs.row_parts import parts

_LABEL = 80  # characters of the name of a line

COLUMNS = (
    "repeat",
    "partition",
    "environment",
    "check",
    "case",
    "parameters",
    *PLACE,
    "metric",
    "size_bytes",
    "statistic",
    "value",
    "unit",
    "direction",
)
"""Columns of the measurements that curves are made of."""

KIND = ("parameters", "environment", "partition")
"""Columns that identify a line."""


def curves(run: Run, judgement: Judgement) -> list[Curve]:
    """Find every curve of a run, in the order of checks and metrics."""
    collected: list[Curve] = []
    placed = pl.any_horizontal(pl.col("node", "source").is_not_null())
    several = _several_kinds(run)
    for key, load in parts(run.columns(*COLUMNS, "nodes"), "check", "metric"):
        if key not in several:
            continue
        rows = judged_rows(load())
        whole = on_most_nodes(rows.filter(~placed))
        rows = pl.concat([rows.filter(placed), whole])
        over = _abscissa(rows)
        if over is None:
            continue
        rows = _drawn_over(over, rows)
        for _, part in _groups(rows.filter(placed), *KIND):
            collected.append(_places(part, judgement, over))
        collected += whole_curves(rows.filter(~placed), judgement, over)
    return collected


def _several_kinds(run: Run) -> set[tuple[str, str]]:
    """Return checks and metrics with several parameters or sizes: others need no curve.

    The metrics of a sweep over pairs have millions of rows.
    """
    kinds = run.columns("check", "metric", "parameters", "size_bytes").unique()
    known = kinds.group_by("check", "metric").len().collect(engine="streaming")
    several = known.filter(pl.col("len") > 1)
    return {(check, metric) for check, metric, _ in several.iter_rows()}


def _groups(
    frame: pl.DataFrame, *keys: str
) -> Iterable[tuple[tuple[Any, ...], pl.DataFrame]]:
    return frame.group_by(*keys, maintain_order=True)


def _abscissa(rows: pl.DataFrame) -> str | None:
    """Choose what a curve goes over, as in `Curve.over`; None if nothing varies."""
    sizes = rows["size_bytes"].filter(rows["size_bytes"] > 0).n_unique()
    values: dict[str, set[float]] = defaultdict(set)
    for parameters in rows["parameters"].unique():
        for key, value in text.parameters(parameters).items():
            if type(value) in (int, float):
                values[key].add(value)
    for key in sorted(values, key=lambda key: (-len(values[key]), key)):
        if len(values[key]) > max(1, sizes):
            return key
    return "" if sizes > 1 else None


def _drawn_over(over: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the column `x`; a parameter that is x is no longer a parameter."""
    if not over:
        return rows.filter(pl.col("size_bytes") > 0).with_columns(x="size_bytes")
    kinds = rows.select("parameters", "size_bytes").unique()
    several = kinds["size_bytes"].n_unique() > 1
    x, rest = [], []
    for parameters, size_bytes in kinds.iter_rows():
        known = text.parameters(parameters)
        x.append(known.pop(over, None))
        if several and size_bytes is not None:
            known["size"] = text.size(size_bytes)
        rest.append(json.dumps(known))
    table = kinds.with_columns(
        pl.Series("x", x, pl.Float64, strict=False), pl.Series("rest", rest)
    )
    return (
        rows.join(
            table.drop_nulls("x"), on=["parameters", "size_bytes"], nulls_equal=True
        )
        .with_columns(parameters="rest")
        .drop("rest")
    )


def _places(rows: pl.DataFrame, judgement: Judgement, over: str) -> Curve:
    table = _table(rows, *PLACE)
    named = [pl.col(name).is_in(judgement.convicted) for name in PLACE[:3]]
    lower_is_better = rows["direction"][0] == "lower"
    places = (
        table.group_by(*PLACE, maintain_order=True)
        .agg(pl.col("value").last())
        .with_columns(convicted=pl.any_horizontal(named).fill_null(False))
        .sort(
            "convicted",
            "value",
            descending=[True, lower_is_better],
            maintain_order=True,
        )
    )
    most = MAX_PLACES - 1 if places.height > MAX_PLACES else MAX_PLACES
    chosen = with_place(places.head(most), several_rails(rows))
    points: dict[str, list[Point]] = defaultdict(list)
    for place, *numbers in (
        table.join(chosen.drop("value"), on=PLACE, nulls_equal=True)
        .select("place", "x", "value", "low", "high")
        .iter_rows()
    ):
        points[place].append(Point(*numbers))
    lines = [
        Line(short(place, _LABEL), tuple(points[place]), convicted)
        for place, convicted in chosen.select("place", "convicted").iter_rows()
    ]
    note = ""
    if places.height > most:
        note = (
            f"{places.height:,} places: drawn are those at nodes named as cause, the "
            f"worst at the largest {over or 'size'}, and the median of all."
        )
        lines.append(Line(f"median of {places.height}", _points(rows), median=True))
    else:
        lines.sort(key=lambda line: natural_key(line.label))
    return _curve(rows, judgement, over, lines, note)


def whole_curves(rows: pl.DataFrame, judgement: Judgement, over: str) -> list[Curve]:
    """Put all lines over the column `x` on one curve, or on several if they are many.

    `over` names what `x` is, as in `Curve.over`.
    """
    collected = []
    for part in _parts(rows):
        common = _common(part)
        lines = [
            Line(_label(line, common), _points(line))
            for _, line in _groups(part, *KIND)
        ]
        lines.sort(key=lambda line: natural_key(line.label))
        for start in range(0, len(lines), MAX_LINES):
            chosen = lines[start : start + MAX_LINES]
            collected.append(_curve(part, judgement, over, chosen))
    return collected


def _parts(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Split rows until no part has too many lines: by case, then by environment."""
    parts = [rows] if rows.height else []
    for keys in (("case",), ("case", "environment")):
        if all(part.select(KIND).n_unique() <= MAX_LINES for part in parts):
            break
        parts = [part for _, part in _groups(rows, *keys)]
    return parts


def _curve(
    rows: pl.DataFrame,
    judgement: Judgement,
    over: str,
    lines: list[Line],
    note: str = "",
) -> Curve:
    first = rows.row(0, named=True)
    convicted = any(line.convicted for line in lines)
    return Curve(
        check=first["check"],
        detail=", ".join(
            text.said(key, value)
            for key, value in _common(rows).items()
            if key != "partition"
        ),
        metric=first["metric"],
        unit=first["unit"],
        direction=first["direction"],
        statistic=first["statistic"],
        repeats=rows["repeat"].n_unique(),
        over=over,
        places=first["node"] is not None or first["source"] is not None,
        convicted=judgement.convicted if convicted else (),
        lines=tuple(lines),
        limits=() if over else _limits(rows, judgement),
        note=note,
    )


def _limits(rows: pl.DataFrame, judgement: Judgement) -> tuple[LimitPoint, ...]:
    cases = set(rows.select("case", "environment").iter_rows())
    metric = rows["metric"][0]
    points = {
        LimitPoint(
            finding.size_bytes,
            finding.limit,
            f"{'at most' if finding.direction == 'lower' else 'at least'} "
            + text.quantity(text.exact(finding.limit), finding.unit),
        )
        for finding in judgement.findings
        if finding.kind in ("limit", "node")
        and finding.limit
        and finding.size_bytes
        and (finding.case, finding.environment) in cases
        and finding.metric == flat_name(metric, finding.size_bytes)
    }
    return tuple(sorted(points, key=lambda point: (point.x, point.value)))


def _table(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return median, lowest and highest value of each key and x, in the order of x."""
    value = pl.col("value")
    return (
        rows.group_by(*keys, "x", maintain_order=True)
        .agg(value.median(), low=value.min(), high=value.max())
        .sort("x", maintain_order=True)
    )


def _points(rows: pl.DataFrame) -> tuple[Point, ...]:
    return tuple(Point(*row) for row in _table(rows).iter_rows())


def _identity(parameters: str, environment: str, partition: str) -> dict[str, Any]:
    """Return what distinguishes lines, in the order of a label."""
    return {
        **text.parameters(parameters),
        "environment": environment,
        "partition": partition,
    }


def _common(rows: pl.DataFrame) -> dict[str, Any]:
    """Return the parts of the identity that all rows share."""
    kinds = [_identity(*kind) for kind in rows.select(KIND).unique().iter_rows()]
    return {
        key: value
        for key, value in kinds[0].items()
        if all(key in kind and kind[key] == value for kind in kinds)
    }


def _label(rows: pl.DataFrame, common: dict[str, Any]) -> str:
    """Name a line by the parts of its identity that others do not share."""
    own = _identity(*rows.select(KIND).row(0))
    parts = [text.said(key, value) for key, value in own.items() if key not in common]
    return short(", ".join(parts or [str(own["environment"])]), _LABEL)
