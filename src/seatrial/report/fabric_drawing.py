"""The fabric as a drawing: switches in rows, nodes below leafs, bad cables in colour.

The size is bounded: parallel sound links are one line, all sound ones one path.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import escape

from seatrial.report.fabric_layout import BOX, LEFT, WIDTH, Layout, Point
from seatrial.report.fabric_links import AMONG, COUNTED, LOCATED, BadLink
from seatrial.report.render import text
from seatrial.report.render.text import short

MOST_LINES = 8000
"""Pairs of switches whose sound links are drawn."""

MOST_BAD = 300
"""Bad links that are drawn; all are in the table."""

_FONT = 'font-family="Libertinus Serif, system-ui, sans-serif"'
_SIZE, _SMALL = 11, 7.0  # px of text
_WIDE = 0.56  # width of a character beside its height
_PLACES = (0.5, 0.36, 0.64, 0.24, 0.76, 0.43, 0.57, 0.3, 0.7, 0.16, 0.84)
_ROWS = 4  # rows of labels below the nodes
_LABEL = 14  # characters


@dataclass(frozen=True)
class Style:
    """Colour, sign and dashes of a bad link; `sign` stands before its number."""

    colour: str
    sign: str
    words: str
    dashes: str = ""
    width: float = 2.2


STYLES = {
    "absent": Style(
        "var(--fail)", "\N{MULTIPLICATION SIGN}", "absent: planned, and no link", "7 4"
    ),
    "drift": Style("var(--fail)", "≠", "not as planned"),
    "unknown": Style("var(--undecided)", "?", "unknown: no answer", "2 3"),
    LOCATED: Style("var(--not-shown)", "*", "explains slow pairs", "", 4.5),
    AMONG: Style("var(--not-shown)", "*?", "one of these explains slow pairs"),
    COUNTED: Style("var(--undecided)", "+", "counted errors in the run"),
}
"""By verdict: colour, sign and dashes, so that colour is never alone."""

_LEGEND = 20  # px
_LEVELS = ("leafs", "spines", "cores")


def drawing(layout: Layout, links: Sequence[BadLink], title: str) -> str:
    """Draw a fabric as SVG in CSS variables of the page."""
    labels = _Labels()
    parts = [*_sound(layout), *_bad(layout, links, labels)]
    floor = max([layout.floor, *(y for _, y, _ in labels.taken)]) + 12
    shown = [one for one in STYLES if any(link.verdict == one for link in links)]
    described = "; ".join(
        f"{one.verdict}: {', '.join(one.cables[:3]) or one.ends[0]}"
        for one in links[:20]
    )
    height = floor + _LEGEND * bool(shown)
    return "".join(
        (
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" ',
            'aria-labelledby="fabric-title fabric-desc" ',
            f'viewBox="0 0 {WIDTH} {height:.0f}">',
            f'<title id="fabric-title">{_clean(title)}</title>',
            f'<desc id="fabric-desc">{_clean(described or "no bad link")}</desc>',
            *parts,
            *_legend(shown, floor),
            "</svg>",
        )
    )


def _clean(words: str) -> str:
    return str(escape(text.clean(words)))


def _sound(layout: Layout) -> Iterator[str]:
    """Draw what is sound: links, switches with their names, nodes, names of rows."""
    if len(layout.pairs) <= MOST_LINES:
        lines = "".join(_line(layout, *pair) for pair in sorted(layout.pairs))
        yield (
            f'<path fill="none" stroke="var(--rule)" stroke-width=".7" d="{lines}"/>'
        )
    boxes = "".join(_box(layout, name) for name in layout.switches)
    rim = min([0.6, *(0.15 * half for half in layout.half.values())])
    look = f'fill="var(--heat-0)" stroke="var(--muted)" stroke-width="{rim:.2f}"'
    yield f'<path {look} d="{boxes}"/>'
    mark = layout.mark
    marks = "".join(
        f"M{x:.0f} {y:.0f}h{mark}v{mark}h-{mark}z" for x, y in layout.marks.values()
    )
    yield f'<path fill="var(--quiet)" d="{marks}"/>'
    yield f'<g fill="var(--ink)" font-size="{_SIZE}" {_FONT}>'
    for number, row in enumerate(layout.rows):
        level = len(layout.rows) - 1 - number
        noun = _LEVELS[level] if level < len(_LEVELS) else "switches"
        y = layout.switches[row[0]][1] + 4 if row else 0
        yield f'<text x="0" y="{y:.0f}">{text.exact(len(row))} {noun}</text>'
        yield from _names(layout, row)
    if layout.marks:
        y = max(y for _, y in layout.marks.values()) + mark
        nodes = len({node for _, node in layout.marks})
        yield f'<text x="0" y="{y:.0f}">{text.exact(nodes)} nodes</text>'
    yield "</g>"


def _names(layout: Layout, row: Sequence[str]) -> Iterator[str]:
    """Write the names of a row of switches if they fit into their boxes."""
    room = 2 * layout.half[row[0]] if row else 0
    longest = max((len(name) for name in row), default=1)
    size = min(_SIZE, room / (longest * _WIDE))
    if size < _SMALL:
        return
    yield f'<g text-anchor="middle" font-size="{size:.1f}">'
    for name in row:
        x, y = layout.switches[name]
        yield f'<text x="{x:.0f}" y="{y + size / 3:.0f}">{_clean(name)}</text>'
    yield "</g>"


def _box(layout: Layout, name: str) -> str:
    x, y = layout.switches[name]
    half = layout.half[name]
    return f"M{x - half:.1f} {y - BOX / 2:.0f}h{2 * half:.1f}v{BOX}h-{2 * half:.1f}z"


def _line(layout: Layout, a: str, b: str) -> str:
    """Return the path between two devices; an arc within a row; '' without a place."""
    start, end = layout.end(a, b), layout.end(b, a)
    if start is None or end is None:
        return ""
    bend = _bend(start, end)
    curve = f"Q{bend[0]:.0f} {bend[1]:.0f} " if bend else "L"
    return f"M{start[0]:.0f} {start[1]:.0f}{curve}{end[0]:.0f} {end[1]:.0f}"


def _bend(start: Point, end: Point) -> Point | None:
    """Return the control point of an arc between switches of a row, else None."""
    if abs(start[1] - end[1]) > 1:
        return None
    return (start[0] + end[0]) / 2, start[1] - 16 - 0.12 * abs(start[0] - end[0])


class _Labels:
    """Labels that do not overlap; a label without room is left out."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, float, float]] = []

    def place(self, label: str, points: Sequence[Point]) -> Point | None:
        """Return the first free point, the middle of the label."""
        half = (len(label) * _WIDE * _SIZE + 6) / 2
        for x, y in points:
            x = min(max(x, half), WIDTH - half)
            if all(
                abs(y - other) > _SIZE + 3 or abs(x - at) > half + wide
                for at, other, wide in self.taken
            ):
                self.taken.append((x, y, half))
                return x, y
        return None


def _bad(layout: Layout, links: Sequence[BadLink], labels: _Labels) -> Iterator[str]:
    """Draw bad links, and their labels above all lines."""
    texts = []
    for link in links[:MOST_BAD]:
        style = STYLES.get(link.verdict, STYLES["drift"])
        title = f"{link.verdict}: {' '.join(link.cables[:3])} {link.finding}"
        yield f"<g><title>{_clean(title)}</title>{_shape(layout, link, style)}</g>"
        label = link.cables[0] if link.cables and link.is_cable else link.ends[0].device
        label = f"{style.sign} {short(label, _LABEL)}"
        if place := labels.place(label, _points(layout, link)):
            texts.append(_text(label, place, style))
    yield "".join(texts)


def _shape(layout: Layout, link: BadLink, style: Style) -> str:
    """Return the lines of a link, and the outlines of a device or node."""
    first = link.ends[0].device
    others = {spot.device for spot in link.ends[1:]}
    lines = "".join(_line(layout, first, far) for far in sorted(others))
    dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
    for spot in link.ends if link.is_cable else link.ends[:1]:
        at = layout.end(spot.device, "")
        if spot.device in layout.switches:
            lines += "" if link.is_cable else _box(layout, spot.device)
        elif at:
            r = layout.mark / 2 + 1.5
            lines += f"M{at[0] - r:.1f} {at[1] - r:.1f}h{2 * r}v{2 * r}h-{2 * r}z"
    return (
        f'<path fill="none" stroke="{style.colour}" stroke-width="{style.width}"'
        f'{dashes} d="{lines}"/>'
    )


def _points(layout: Layout, link: BadLink) -> list[Point]:
    """Return places of a label: along the line, below a node, beside a device."""
    first, last = link.ends[0].device, link.ends[-1].device
    start, end = layout.end(first, last), layout.end(last, first)
    if not (first in layout.switches and last in layout.switches):
        node = first if first not in layout.switches else last
        at = layout.end(node, last if node == first else first)
        if at is None or not link.ends[1:]:
            at = at or (LEFT, layout.floor)
        x = at[0]
        return [
            (x + shift, layout.floor + 12 + 14 * row)
            for row in range(_ROWS)
            for shift in (0, 24, -24)
        ]
    if start is None or end is None or not link.is_cable:
        x, y = layout.switches[first]
        return [(x, y - 18), (x, y + 18), (x + 40, y - 18), (x - 40, y - 18)]
    bend = _bend(start, end)
    if bend:
        return [(bend[0], (start[1] + bend[1]) / 2 - 14 * row) for row in range(3)]
    return [
        (start[0] + t * (end[0] - start[0]), start[1] + t * (end[1] - start[1]))
        for t in _PLACES
    ]


def _text(label: str, at: Point, style: Style) -> str:
    """Return a label on a ground of its own, so that lines do not cross it."""
    x, y = at
    half = (len(label) * _WIDE * _SIZE + 6) / 2
    return (
        f'<rect x="{x - half:.1f}" y="{y - 7.5:.1f}" width="{2 * half:.1f}" '
        f'height="14" rx="2" fill="var(--paper)" stroke="{style.colour}" '
        f'stroke-width=".8"/><text x="{x:.1f}" y="{y + 3.5:.1f}" fill="{style.colour}" '
        f'text-anchor="middle" font-size="{_SIZE}" {_FONT}>{_clean(label)}</text>'
    )


def _legend(shown: Sequence[str], y: float) -> Iterator[str]:
    """Explain the styles that are there."""
    x = float(LEFT)
    for name in shown:
        style = STYLES[name]
        words = f"{style.sign} {style.words}"
        dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
        yield (
            f'<path stroke="{style.colour}" stroke-width="{style.width}"{dashes} '
            f'd="M{x:.0f} {y + 8:.0f}h34"/><text x="{x + 40:.0f}" y="{y + 12:.0f}" '
            f'font-size="{_SIZE}" fill="var(--ink)" {_FONT}>{words}</text>'
        )
        x += 60 + len(words) * _WIDE * _SIZE
