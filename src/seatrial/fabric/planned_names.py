"""Names of a plan that the fabric does not have: switched off, or misspelt."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from seatrial.fabric.plan import Plan
from seatrial.fabric.records import End
from seatrial.fabric.similar import Names

_NUMBER = re.compile(r"\d+")


def check_names(
    plan: Plan,
    known: Collection[str],
    links: Mapping[End, End],
    nodes: Callable[[], Collection[str]],
) -> None:
    """Refuse misspelt names of a plan, with their line.

    `known` are the names of the fabric, `links` its links in both directions; `nodes`
    returns the nodes of the system, none if nothing tells them. Any other name that is
    not in the fabric is that of a device which does not answer.
    """
    names = _names(known)
    unplanned: _Unplanned | None = None
    for name, far, side, line in _unseen(plan, known):
        like = names.like(name)
        if like is not None:
            plan.refuse(
                line,
                f"{side}: {name!r} is {like[0]!r} in the fabric; they differ only "
                f"in case or domain. Write {like[0]!r}.",
            )
        if plan.kinds[name] != "host":
            continue
        unplanned = unplanned or _Unplanned(nodes(), known, plan.kinds)
        there = links.get(far)
        near = unplanned.meant(name, there.device if there else "")
        if near:
            plan.refuse(
                line,
                f"{side}: unknown device {name!r}, neither a node of the system "
                f"nor in the fabric. Did you mean {near!r}?",
            )


def _unseen(plan: Plan, known: Collection[str]) -> Iterator[tuple[str, End, str, int]]:
    """Yield planned names that the fabric lacks: name, far end, side, line."""
    checked: set[str] = set()
    for cable in plan.cables:
        for side, end, far in (("a", cable.a, cable.b), ("b", cable.b, cable.a)):
            if end.device not in checked and end.device not in known:
                checked.add(end.device)
                yield end.device, far, side, cable.line


class _Unplanned:
    """Devices and nodes that the plan lacks: a misspelt name may mean one of them.

    Names that differ only in their numbers are of two devices (login1, login2).
    """

    def __init__(
        self, nodes: Collection[str], known: Iterable[str], planned: Collection[str]
    ) -> None:
        self.nodes = nodes
        self.free = {*nodes, *known}.difference(planned)
        self.like = _names(self.free).like
        self.numbered: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in sorted(self.free):
            self.numbered[_numbers(name)].append(name)

    def meant(self, name: str, there: str) -> str:
        """Return what a planned host may mean; '' for a node, or if nothing is near.

        `there` is the device that is in its place.
        """
        if not self.nodes or name in self.nodes:
            return ""
        like = self.like(name)
        if like is not None:
            return like[0]
        shape = _shape(name)
        shapes = {_shape(one): one for one in self.numbered.get(_numbers(name), ())}
        if there in self.free and _shape(there) != shape:
            shapes.setdefault(_shape(there), there)
        nearest = get_close_matches(shape, shapes, 1)
        return shapes[nearest[0]] if nearest else ""


def _names(devices: Iterable[str]) -> Names:
    names = Names()
    for name in devices:
        names.add(name)
    return names


def _shape(name: str) -> str:
    """Return a name with a mark for each number: long numbers do not look alike."""
    return _NUMBER.sub("#", name)


def _numbers(name: str) -> tuple[str, ...]:
    return tuple(number.lstrip("0") for number in _NUMBER.findall(name))
