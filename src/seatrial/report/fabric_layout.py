"""Places of the devices of a fabric in a drawing: a row for each level of switches."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from seatrial.fabric.plan import Cable, Plan
from seatrial.fabric.records import Fabric, Link
from seatrial.names import natural_key

WIDTH, LEFT = 1000, 76
"""Width of the drawing, and of its left margin, in px."""

BOX = 14
"""Height of a switch in px."""

_TOP, _GAP, _ARC = 16, 150, 60
_BELOW = 12  # px between a leaf and its nodes
_MARKS = (7, 6, 5, 4, 3, 2)  # px of a node
_DEEPEST = 120  # px of all nodes of a leaf

Point = tuple[float, float]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Layout:
    """The places of all devices; `rows` are the levels of switches, the highest first.

    `switches` has the middle of each switch, `half` half of its width; `marks` has the
    upper left corner of each node below a leaf, by leaf and node, and `mark` their
    size. `pairs` are switches with a link between them; `floor` is below all nodes.
    """

    rows: tuple[tuple[str, ...], ...]
    switches: Mapping[str, Point]
    level: Mapping[str, int]
    half: Mapping[str, float]
    marks: Mapping[Pair, Point]
    mark: int
    pairs: frozenset[Pair]
    floor: float
    leafs: Mapping[str, str] = field(default_factory=dict)

    def end(self, device: str, far: str) -> Point | None:
        """Return where a line from a device to another ends; None if it has no place.

        A node is below the leaf `far`, if it has a mark there, else below its own.
        """
        if device in self.switches:
            x, y = self.switches[device]
            above = self.level.get(far, -1) >= self.level[device]
            return x, y - BOX / 2 if above else y + BOX / 2
        own = self.marks.get((far, device)) or self.marks.get(
            (self.leafs.get(device, ""), device)
        )
        return own and (own[0] + self.mark / 2, own[1] + self.mark / 2)


def layout_of(fabric: Fabric, plan: Plan | None) -> Layout:
    """Place all devices, found and planned ones; switches stand in natural order."""
    inside = {one.name for one in fabric.devices if one.kind == "aggregation"}
    hosts = {one.name for one in fabric.devices if one.kind == "host"}
    if plan:
        hosts |= {name for name, kind in plan.kinds.items() if kind == "host"}
    cables: tuple[Cable, ...] = plan.cables if plan else ()
    found, planned = _pairs(fabric.links, inside), _pairs(cables, inside)
    below = _nodes_below(found, planned, hosts)
    pairs = {pair for pair in found if not hosts & {*pair}}
    wanted = {pair for pair in planned if not hosts & {*pair}}
    level = _levels(pairs | wanted, below)
    rows = [
        tuple(sorted((n for n in level if level[n] == step), key=natural_key))
        for step in sorted({*level.values()}, reverse=True)
    ]
    arcs = {level[a] for a, b in pairs if level[a] == level[b]}
    switches: dict[str, Point] = {}
    half: dict[str, float] = {}
    y = float(_TOP)
    for row in rows:
        y += _ARC if level[row[0]] in arcs else 0
        step = (WIDTH - LEFT) / max(len(row), 1)
        for number, name in enumerate(row):
            switches[name] = (LEFT + (number + 0.5) * step, y + BOX / 2)
            half[name] = min(32.0, max(0.42 * step, 0.8))
        y += _GAP
    y += BOX + _BELOW - _GAP
    marks, mark, depth = _marks(below, switches, half, y)
    leafs = {node: leaf for leaf, node in marks}
    return Layout(
        tuple(rows),
        switches,
        level,
        half,
        marks,
        mark,
        frozenset(pairs),
        y + depth,
        leafs,
    )


def _pairs(links: Iterable[Link | Cable], inside: set[str]) -> set[Pair]:
    """Return connected devices, each pair in one order; none inside of a switch."""
    found = set()
    for link in links:
        a, b = sorted((link.a.device, link.b.device))
        if not {a, b} & inside:
            found.add((a, b))
    return found


def _nodes_below(
    found: set[Pair], planned: set[Pair], hosts: set[str]
) -> dict[str, list[str]]:
    """Return the nodes of each leaf; one without any link is where it is planned."""
    below: dict[str, set[str]] = defaultdict(set)
    linked: set[str] = set()
    for pairs in (found, planned):
        new: set[str] = set()
        for pair in pairs:
            for node, leaf in (pair, pair[::-1]):
                if node in hosts and leaf not in hosts and node not in linked:
                    below[leaf].add(node)
                    new.add(node)
        linked |= new
    return {leaf: sorted(below[leaf], key=natural_key) for leaf in below}


def _levels(pairs: set[Pair], leafs: Iterable[str]) -> dict[str, int]:
    """Return the distance of each switch from the leafs; 1 if there is no way."""
    near: dict[str, set[str]] = defaultdict(set)
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    level = dict.fromkeys(leafs, 0)
    front = [*level]
    while front:
        further = []
        for name in front:
            for other in near[name]:
                if other not in level:
                    level[other] = level[name] + 1
                    further.append(other)
        front = further
    return {**dict.fromkeys(near, 1), **level}


def _marks(
    below: Mapping[str, Sequence[str]],
    switches: Mapping[str, Point],
    half: Mapping[str, float],
    y: float,
) -> tuple[dict[Pair, Point], int, float]:
    """Place the nodes below their leafs; return their size and the depth of all."""
    most = max(map(len, below.values()), default=0)
    least = min((half[leaf] for leaf in below), default=1.0)
    for mark in _MARKS:
        pitch = mark + (1.5 if mark > 3 else 1)
        columns = max(1, int((2 * least + 1) / pitch))
        rows = math.ceil(most / columns)
        columns = math.ceil(most / max(rows, 1)) or 1  # all rows are alike
        depth = rows * pitch
        if depth <= _DEEPEST and pitch <= 2 * least + 2:
            break
    marks = {}
    for leaf, nodes in below.items():
        across = min(columns, len(nodes))
        left = switches[leaf][0] - (across * pitch - (pitch - mark)) / 2
        for number, node in enumerate(nodes):
            row, column = divmod(number, columns)
            marks[leaf, node] = (left + column * pitch, y + row * pitch)
    return marks, mark, depth
