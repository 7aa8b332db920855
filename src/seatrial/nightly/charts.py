"""A metric of an alarm over the nights, as a picture that needs no script."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import vl_convert

from seatrial.history.records import Alarm, Loss, Visits
from seatrial.report.render.vega import Row, channel, layer, mark, specification

WIDTH, HEIGHT = 600, 200
_MOST_NIGHTS, _NIGHTS_AFTER = 120, 30
"""Nights of a chart, and those of them after the night of the alarm."""

_OTHERS = "other nodes"


def chart(visits: Visits, alarm: Alarm, loss: Loss) -> str:
    """Draw a metric of an alarm as SVG; '' if no number of it is there.

    Dots are the node, or the median of the nodes of a larger alarm; the line is the
    median of the other nodes of the class. The nights of the onset are shaded.
    """
    column = visits.metrics.index(loss.metric)
    end = int(np.searchsorted(visits.nights, alarm.night)) + _NIGHTS_AFTER
    shown = slice(max(end - _MOST_NIGHTS, 0), end)
    values = visits.values[shown, :, column].astype(np.float64)
    nights = visits.nights[shown]
    own = [visits.nodes.index(node) for node in alarm.nodes if node in visits.nodes]
    classes = {visits.classes[index] for index in own}
    others = [
        index
        for index, name in enumerate(visits.classes)
        if name in classes and index not in own
    ]
    rows = _rows(nights, values[:, own], "the node" if len(own) == 1 else "the nodes")
    rows += _rows(nights, values[:, others], _OTHERS)
    if not rows:
        return ""
    spec = _specification(rows, nights, alarm, loss)
    drawn = vl_convert.vegalite_to_svg({**spec, "width": WIDTH}, allowed_base_urls=[])
    return str(drawn)


def _rows(nights: Any, values: Any, name: str) -> list[Row]:
    """Return the median of some nodes in each night that has one."""
    rows = []
    for night, row in zip(nights, values, strict=True):
        known = row[~np.isnan(row)]
        if known.size:
            rows.append({"t": str(night), "y": float(np.median(known)), "of": name})
    return rows


def _specification(rows: Sequence[Row], nights: Any, alarm: Alarm, loss: Loss) -> Row:
    x = {
        **channel("t:Q", title="night", scale={"nice": False}),
        "type": "temporal",
        "axis": {"format": "%Y-%m-%d", "tickCount": 5, "grid": False},
    }
    unit = "" if loss.metric.unit == "1" else f" in {loss.metric.unit}"
    title = f"{loss.metric.metric}{unit}"
    y = channel("y:Q", title=title, scale={"zero": False}, axis={"tickCount": 5})
    names = list(dict.fromkeys(row["of"] for row in rows))
    colours = ["var(--line-1)" if of == _OTHERS else "var(--fail)" for of in names]
    scale = {"domain": names, "range": colours}
    colour = channel("of:N", title=None, scale=scale)
    first = max(alarm.onset[0] - np.timedelta64(1, "D"), nights[0])
    shade = {"t": str(first), "end": str(max(first, alarm.onset[1]))}
    ends = {"x": x, "x2": {"field": "end", "type": "temporal"}}
    layers = [
        layer("onset", mark("rect", color="var(--undecided)", opacity=0.25), **ends),
        layer(
            "rows",
            mark("line", strokeWidth=1, opacity=0.6),
            x=x,
            y=y,
            color=colour,
        ),
        layer("rows", mark("point", filled=True, size=28), x=x, y=y, color=colour),
    ]
    data = {"rows": [*rows], "onset": [shade]}
    words = f"{title} over the nights; the shaded nights are the onset of {alarm.name}."
    return specification(layers, data, HEIGHT, words)
