"""The node map in small, for page one: a square per delivered node, and bad names."""

import math
from collections.abc import Iterator, Sequence

from markupsafe import escape

from seatrial.judge.findings import Judgement
from seatrial.report.content import SmallMap
from seatrial.report.node_map import STATES, by_state, columns_for, node_states
from seatrial.report.render import text
from seatrial.report.render.text import few, short

WIDTH = 300
"""Width of the picture in px."""

_NAMED = 24
"""Nodes up to which a square has its name in it."""

_NAMED_COLUMNS, _NAMED_HEIGHT, _NAME = 4, 26, 10  # squares, px, characters
_TALLEST = 24  # px of a square without a name
_MOST_NAMES = 10
_LEAST, _RARE = 5.0, 20
"""Least side in px of a node that does not pass, where at most one of 20 is so."""

_FONT = 'font-family="Libertinus Serif, system-ui, sans-serif"'


def small_map(judgement: Judgement) -> SmallMap | None:
    """Draw all nodes in natural order; None if none was delivered.

    Each state is one path, so that 10,000 nodes take no more than 200 kB.
    """
    nodes, states = node_states(judgement)
    if not nodes:
        return None
    names = [text.clean(node.name) for node in nodes]
    named = by_state(names, states)
    words = ", ".join(f"{text.exact(len(own))} {state}" for state, own in named.items())
    return SmallMap(
        svg="".join(_svg(names, states)),
        words=f"{text.exact(len(nodes))} nodes: {words}",
        groups=tuple(
            (state, len(own), ", ".join(few(map(short, own), _MOST_NAMES)))
            for state, own in named.items()
            if state != "pass"
        ),
    )


def _svg(names: Sequence[str], states: Sequence[str]) -> Iterator[str]:
    count = len(names)
    named = count <= _NAMED
    columns = min(count, _NAMED_COLUMNS) if named else columns_for(count)
    cell = WIDTH / columns if named else min(_TALLEST, WIDTH / columns)
    height = _NAMED_HEIGHT if named else cell
    gap = 1.5 if height > 8 else height / 8
    rows = math.ceil(count / columns)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * cell:.5g} '
        f'{rows * height:.5g}" width="{columns * cell:.5g}" '
        f'height="{rows * height:.5g}">'
    )
    at = [
        ((number % columns) * cell, number // columns * height)
        for number in range(count)
    ]
    for state, sign, fill, ink in STATES:
        own = [number for number in range(count) if states[number] == state]
        if not own:
            continue
        few_of_many = state != "pass" and len(own) * _RARE < count
        least = _LEAST if few_of_many else 0.0  # a bad node is seen among thousands
        width, tall = max(cell - gap, least), max(height - gap, least)
        square = f"h{width:.4g}v{tall:.4g}h-{width:.4g}z"
        path = "".join(f"M{at[n][0]:.5g} {at[n][1]:.5g}{square}" for n in own)
        yield f'<path fill="{fill}" d="{path}"/>'
        if height < 8 or not (named or sign):
            continue
        size = 12 if named else height * 0.7
        yield (f'<g fill="{ink}" font-size="{size:.3g}" text-anchor="middle" {_FONT}>')
        for number in own:
            x, y = at[number]
            label = f"{sign} {short(names[number], _NAME)}" if named else sign
            yield (
                f'<text x="{x + (cell - gap) / 2:.5g}" '
                f'y="{y + height / 2 + size * 0.33:.5g}">{escape(label.strip())}</text>'
            )
        yield "</g>"
    yield "</svg>"
