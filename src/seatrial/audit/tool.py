"""Sources of readings: programs that node.sh runs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading


def of_hca(block: Block, raw: Raw) -> Iterable[tuple[str, str]]:
    """Return the subject of a program that was asked about one PCI address."""
    return [("hca", block.subject)]


@dataclass(frozen=True)
class Tool:
    """One source of node.sh.

    `keys` are unknown of each of its subjects if it says nothing: it failed, is not
    installed, or its output is damaged. `read` may raise ParseError.
    """

    keys: tuple[str, ...]
    read: Callable[[Block, Raw], Iterator[Reading]]
    subjects: Callable[[Block, Raw], Iterable[tuple[str, str]]] = of_hca
