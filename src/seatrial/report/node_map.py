"""The node map: a square for every delivered node, with what became of it."""

import math
from collections.abc import Sequence

from seatrial.judge.judge import Judgement, NodeVerdict
from seatrial.names import natural_key
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.text import few, short
from seatrial.report.render.vega import (
    Row,
    calculate,
    channel,
    keep,
    mark,
    specification,
    tips,
)

STATES = (
    ("pass", "", "var(--heat-0)", "var(--ink)"),
    ("fail", "✕", "var(--fail)", "var(--paper)"),
    ("not shown", "!", "var(--not-shown)", "var(--paper)"),
    ("undecided", "?", "var(--undecided)", "var(--paper)"),
    ("absent", "\N{EN DASH}", "var(--ink)", "var(--paper)"),
    ("worth a look", "○", "var(--heat-1)", "var(--ink)"),
)
"""States of a node: name, symbol, colour of its square and of its symbol."""

_SIZES = ((100, 26, 13), (1000, 17, 11), (math.inf, 9, 8))
# Most nodes, and the height of a square and of its symbol in px.
_LEAST_CELL = 6  # px
_NAMED = 10
"""Squares of a row up to which each has its own name in it."""

_MOST_REASONS = 300
_MOST_NAMES = 100
_REASON = 160  # characters


def node_map(judgement: Judgement) -> Figure:
    """Draw all nodes in natural order, in rows of a handy width."""
    nodes, states = node_states(judgement)
    names = [name for name, *_ in STATES]
    shown = [short(node.name) for node in nodes]
    named = by_state(shown, states)
    counts = ", ".join(f"{text.exact(len(own))} {name}" for name, own in named.items())
    reasons = [
        (str(number), short(node.reason, _REASON))
        for number, node in enumerate(nodes)
        if node.reason
    ]
    spec = _spec(
        shown,
        [names.index(state) for state in states],
        dict(reasons[:_MOST_REASONS]),
        f"Map of {text.exact(len(nodes))} nodes in the order of their names: {counts}.",
    )
    return Figure(
        name="node-map",
        title="All delivered nodes",
        detail=counts,
        spec=spec,
        table=Table(
            ("state", "nodes", "names"),
            tuple(
                (name, text.exact(len(own)), ", ".join(few(own, _MOST_NAMES)))
                for name, own in named.items()
            ),
        ),
        wide=True,
    )


def node_states(judgement: Judgement) -> tuple[list[NodeVerdict], list[str]]:
    """Return the delivered nodes in natural order, and the state of each."""
    nodes = sorted(judgement.nodes, key=lambda node: natural_key(node.name))
    looks = {place.rpartition(" (")[0] or place for place in judgement.worth_a_look}

    def state(node: NodeVerdict) -> str:
        if node.state != "present":
            return "absent"
        passes = node.verdict == "pass" and node.name in looks
        return "worth a look" if passes else node.verdict

    return nodes, [state(node) for node in nodes]


def by_state(names: Sequence[str], states: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of nodes by their state, in the order of `STATES`."""
    pairs = list(zip(names, states, strict=True))
    groups = {name: [node for node, own in pairs if own == name] for name, *_ in STATES}
    return {name: own for name, own in groups.items() if own}


def columns_for(count: int) -> int:
    """Return the squares of a row: 10, 20, 50, ..."""
    fitting = [
        width for width in (10, 20, 25, 50, 100, 200) if width * width <= 4 * count
    ]
    return min(count, fitting[-1] if fitting else 10)


def _spec(
    names: list[str], states: list[int], reasons: dict[str, str], description: str
) -> Row:
    width = columns_for(len(names))
    rows = math.ceil(len(names) / width)
    height, symbol = next((h, s) for most, h, s in _SIZES if len(names) <= most)
    place = _place(rows, width, height)
    given = {
        "names": names,
        "states": states,
        "reasons": reasons,
        "words": [name for name, *_ in STATES],
        "said": [f"{sign} {name}".strip() for name, sign, *_ in STATES],
        "signs": [sign for _, sign, *_ in STATES],
    }
    return specification(
        [_squares(sorted(set(states)), height, place), _symbols(width, symbol, place)],
        {},
        height * rows,
        description,
        data={"sequence": {"start": 0, "stop": len(names), "as": "i"}},
        transform=calculate(
            row=f"floor(datum.i / {width})",
            column=f"datum.i % {width}",
            state="states[datum.i]",
            name="names[datum.i]",
            verdict="words[states[datum.i]]",
            reason="reasons['' + datum.i] || ''",
        ),
        resolve={"scale": {"color": "independent", "fill": "independent"}},
        usermeta={"least_width": width * _LEAST_CELL},
        params=[{"name": name, "value": value} for name, value in given.items()],
    )


def _place(rows: int, width: int, height: int) -> Row:
    """Return the axes; the name of its first node labels a row."""
    every = math.ceil(rows * height / 600) if height < 13 else 1
    every = max(every, math.ceil(13 / height))
    first_of_row = {
        "labelExpr": f"names[datum.value * {width}]",
        "values": list(range(0, rows, every)),
        "labelColor": "var(--ink)",
        "labelLimit": 150,
        "labelOverlap": False,
        "ticks": False,
        "domain": False,
    }
    axis = None if width <= _NAMED else first_of_row
    y = {"title": None, "scale": {"domain": list(range(rows))}, "axis": axis}
    x = {"scale": {"domain": list(range(width))}, "axis": None}
    return {
        "y": channel("row:O", sort=None, **y),
        "x": channel("column:O", sort=None, **x),
    }


def _squares(present: list[int], height: int, place: Row) -> Row:
    """Draw a square per node in the colour of its state."""
    thin = 1 if height > 10 else 0.5
    legend = {"title": None, "values": present, "symbolType": "square"}
    legend["labelExpr"] = "said[datum.value]"
    titles = (("name:N", "node"), ("verdict:N", "verdict"), ("reason:N", "reason"))
    return {
        "mark": mark("rect", aria=False, stroke="var(--paper)", strokeWidth=thin),
        "encoding": {
            **place,
            "fill": channel("state:O", scale=_colours(2), legend=legend),
            "tooltip": tips(*titles),
        },
    }


def _symbols(width: int, size: int, place: Row) -> Row:
    """Write the sign of each state that is not a pass; in wide squares the name too."""
    named = width <= _NAMED
    sign = "signs[datum.state]"
    if named:
        sign = f"trim({sign} + ' ' + names[datum.i])"
    marked = [] if named else [keep("datum.state > 0")]
    weight = "normal" if named else "bold"
    look = {"fontSize": size, "fontWeight": weight, "baseline": "middle", "limit": 110}
    colour = channel("state:O", scale=_colours(3), legend=None)
    return {
        "transform": [*marked, *calculate(sign=sign)],
        "mark": mark("text", aria=False, **look),
        "encoding": {**place, "text": channel("sign:N"), "color": colour},
    }


def _colours(part: int) -> Row:
    """Return the scale of states with one of their colours in `STATES`."""
    return {
        "domain": list(range(len(STATES))),
        "range": [str(state[part]) for state in STATES],
    }
