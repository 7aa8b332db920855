"""Plans from a few numbers: fat trees, dragonflies, tori."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from seatrial.errors import SeatrialError
from seatrial.fabric.plan import Cable
from seatrial.fabric.records import End

KINDS = ("fat-tree-2", "fat-tree-3", "dragonfly", "dragonfly+", "torus")

_Wire = tuple[str, int, str, int]
"""Device and port of both ends; the host or lower switch first."""


@dataclass(frozen=True)
class Shape:
    """The numbers of a plan.

    `radix` is the number of ports of a switch, `blocking` that of hosts for one up-link
    of a leaf, `dims` the switches of a torus by dimension. Each of the `rails` is a
    fabric of its own, with one HCA of each host.
    """

    kind: str
    hosts: int
    radix: int = 40
    blocking: int = 1
    dims: tuple[int, ...] = ()
    rails: int = 1
    prefix: str = "cn"
    width: int = 4
    speed: str = "HDR"


def generate(shape: Shape) -> tuple[Cable, ...]:
    """Return the cables of a plan; SeatrialError if the numbers do not fit together.

    Sources: Al-Fares et al. 2008 (fat tree), Kim et al. 2008 (dragonfly), Shpiner
    et al. 2017 (dragonfly+).
    """
    if shape.kind not in _WIRES:
        raise SeatrialError(f"kind {shape.kind!r}: expected one of {', '.join(KINDS)}")
    if shape.hosts < 1 or shape.radix < 3 or shape.rails < 1 or shape.blocking < 1:
        raise SeatrialError(
            "expected at least 1 host, 3 ports of a switch, 1 rail and a blocking of 1"
        )
    digits = len(str(shape.hosts))
    cables: list[Cable] = []
    for rail in range(shape.rails):
        before = f"r{rail}-" if shape.rails > 1 else ""

        def end(name: str, port: int, before: str = before, rail: int = rail) -> End:
            if name.startswith("host:"):
                number = int(name.removeprefix("host:")) + 1
                return End(f"{shape.prefix}{number:0{digits}}", f"mlx5_{rail}:{port}")
            return End(before + name, str(port))

        for a, a_port, b, b_port in _WIRES[shape.kind](shape):
            cables.append(
                Cable(
                    end(a, a_port),
                    end(b, b_port),
                    shape.width,
                    shape.speed,
                    f"c{len(cables) + 1:05}",
                    a_rail=f"rail{rail}" if a.startswith("host:") else "",
                    line=len(cables) + 2,
                )
            )
    return tuple(cables)


def _fat_tree_2(shape: Shape) -> Iterator[_Wire]:
    """Yield leafs, each with all its up-links spread evenly over the spines."""
    down = _down(shape)
    up = shape.radix - down
    leafs = math.ceil(shape.hosts / down)
    if leafs > shape.radix:
        raise _too_many(shape, shape.radix * down)
    leaf = _Namer("leaf", leafs)
    yield from _hosts(shape.hosts, down, leaf)
    if leafs == 1:
        return
    spines = _fewest(up, leafs, shape.radix)
    spine = _Namer("spine", spines)
    share = up // spines
    for index in range(leafs):
        for link in range(up):
            port = index * share + link // spines + 1
            yield leaf(index), down + link + 1, spine(link % spines), port


def _fat_tree_3(shape: Shape) -> Iterator[_Wire]:
    """Yield pods of leafs and spines, and cores above them."""
    down, half = _down(shape), shape.radix // 2
    up = shape.radix - down
    leafs = math.ceil(shape.hosts / down)
    pods = math.ceil(leafs / half)
    if pods > shape.radix:
        raise _too_many(shape, shape.radix * half * down)
    leaf, spine = _Namer("leaf", leafs), _Namer("spine", pods * up)
    yield from _hosts(shape.hosts, down, leaf)
    for index in range(leafs):
        pod, place = divmod(index, half)
        for link in range(up):
            yield leaf(index), down + link + 1, spine(pod * up + link), place + 1
    if pods == 1:
        return
    cores = _fewest(half, pods, shape.radix)
    core, share = _Namer("core", up * cores), half // cores
    for pod, link, upper in product(range(pods), range(up), range(half)):
        port = pod * share + upper // cores + 1
        target = core(link * cores + upper % cores)
        yield spine(pod * up + link), half + upper + 1, target, port


def _dragonfly(shape: Shape) -> Iterator[_Wire]:
    """Yield groups of routers, all to all; a = 2p = 2h of Kim et al."""
    down = (shape.radix + 1) // 4
    size, links = 2 * down, down
    groups = _groups(shape, size * down, size * links)
    router = _Namer("router", groups * size)
    yield from _hosts(shape.hosts, down, router)
    for group, one, other in product(range(groups), range(size), range(size)):
        if one < other:
            base = group * size
            yield router(base + one), down + other, router(base + other), down + one + 1
    first = down + size
    for a, a_slot, b, b_slot in _global_links(groups, size * links):
        one, other = a * size + a_slot // links, b * size + b_slot // links
        ports = (first + a_slot % links, first + b_slot % links)
        yield router(one), ports[0], router(other), ports[1]


def _dragonfly_plus(shape: Shape) -> Iterator[_Wire]:
    """Yield groups of leafs and spines; spines of all groups are connected."""
    half = shape.radix // 2
    groups = _groups(shape, half * half, half * half)
    leafs = math.ceil(shape.hosts / half)
    leaf, spine = _Namer("leaf", leafs), _Namer("spine", groups * half)
    yield from _hosts(shape.hosts, half, leaf)
    for index, link in product(range(leafs), range(half)):
        group, place = divmod(index, half)
        yield leaf(index), half + link + 1, spine(group * half + link), place + 1
    for a, a_slot, b, b_slot in _global_links(groups, half * half):
        one, other = a * half + a_slot // half, b * half + b_slot // half
        ports = (half + 1 + a_slot % half, half + 1 + b_slot % half)
        yield spine(one), ports[0], spine(other), ports[1]


def _torus(shape: Shape) -> Iterator[_Wire]:
    """Yield switches with two neighbours in each dimension of more than two."""
    count = math.prod(shape.dims) if shape.dims else 0
    if count < 2 or min(shape.dims) < 1:
        raise SeatrialError(
            "torus: expected its switches by dimension, such as --dims 8x8x8"
        )
    down = math.ceil(shape.hosts / count)
    if down + 2 * len(shape.dims) > shape.radix:
        raise _too_many(shape, count * max(shape.radix - 2 * len(shape.dims), 0))
    switch = _Namer("switch", count)
    yield from _hosts(shape.hosts, down, switch)
    for place in product(*map(range, shape.dims)):
        for axis, size in enumerate(shape.dims):
            if size == 1 or (size == 2 and place[axis] == 1):
                continue
            far = [*place]
            far[axis] = (place[axis] + 1) % size
            port = down + 2 * axis + 1
            yield (
                switch(_index(place, shape.dims)),
                port,
                switch(_index(far, shape.dims)),
                port + 1,
            )


_WIRES = {
    "fat-tree-2": _fat_tree_2,
    "fat-tree-3": _fat_tree_3,
    "dragonfly": _dragonfly,
    "dragonfly+": _dragonfly_plus,
    "torus": _torus,
}


class _Namer:
    """The names of the switches of a level, by their index: leaf01, leaf02."""

    def __init__(self, level: str, count: int) -> None:
        self.level = level
        self.digits = max(2, len(str(count)))

    def __call__(self, index: int) -> str:
        return f"{self.level}{index + 1:0{self.digits}}"


def _hosts(hosts: int, down: int, leaf: _Namer) -> Iterator[_Wire]:
    for host in range(hosts):
        yield f"host:{host}", 1, leaf(host // down), host % down + 1


def _down(shape: Shape) -> int:
    down = shape.radix * shape.blocking // (shape.blocking + 1)
    return min(down, shape.radix - 1)


def _fewest(links: int, lower: int, radix: int) -> int:
    """Return the fewest switches above that take the same number of links of each."""
    return next(
        count
        for count in range(1, links + 1)
        if links % count == 0 and lower * (links // count) <= radix
    )


def _groups(shape: Shape, hosts: int, links: int) -> int:
    """Return the number of groups; SeatrialError if their links do not suffice."""
    groups = math.ceil(shape.hosts / hosts) if hosts else 0
    if not 0 < groups <= links + 1:
        raise _too_many(shape, (links + 1) * hosts)
    return groups


def _global_links(groups: int, slots: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the links between groups: group and slot of both ends.

    Each pair of groups has the same number of links.
    """
    share = slots // (groups - 1) if groups > 1 else 0
    for one, other in product(range(groups), range(groups)):
        if one < other:
            for link in range(share):
                ahead = (other - one - 1) * share + link
                back = (one - other - 1) % groups * share + link
                yield one, ahead, other, back


def _index(place: tuple[int, ...] | list[int], dims: tuple[int, ...]) -> int:
    index = 0
    for at, size in zip(place, dims, strict=True):
        index = index * size + at
    return index


def _too_many(shape: Shape, most: int) -> SeatrialError:
    return SeatrialError(
        f"{shape.kind} of {shape.radix}-port switches: {shape.hosts} hosts, expected "
        f"at most {most}. Use switches with more ports, or another kind."
    )
