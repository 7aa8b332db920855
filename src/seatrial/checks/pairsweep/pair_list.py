"""A file of pairs for a sweep: lines NODE NODE ROUND, of `seatrial fabric locate`.

The pairs of a round are measured at the same time.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from seatrial.checks.pairsweep.adaptive import Rounds
from seatrial.errors import SeatrialError


@dataclass(frozen=True)
class PairList:
    """The rounds of a file, in the order of their numbers."""

    rounds: Rounds

    @property
    def keys(self) -> set[tuple[str, str]]:
        """Return all pairs, each in the order of its names."""
        pairs = (sorted(pair) for own in self.rounds for pair in own)
        return {(a, b) for a, b in pairs}


def read_pair_list(file: Path, nodes: Collection[str] = ()) -> PairList:
    """Read the pairs of a file; with `nodes`, all must be among them.

    SeatrialError with the line of what is wrong, and if the file has no pair.
    """
    rounds: dict[int, list[tuple[str, str]]] = {}
    known: set[frozenset[str]] = set()
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SeatrialError(f"{file}: {error}") from error
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        problem = _problem(words, nodes)
        if not problem:
            a, b, place = words[0], words[1], int(words[2])
            own = rounds.setdefault(place, [])
            taken = {node for pair in own for node in pair} & {a, b}
            if taken:
                problem = f"{min(taken)} is in round {place} already"
            elif frozenset((a, b)) in known:
                problem = f"{a} and {b} a second time"
            known.add(frozenset((a, b)))
            own.append((a, b))
        if problem:
            raise SeatrialError(f"{file}:{number}: {problem}")
    if not rounds:
        raise SeatrialError(f"{file}: no pairs; expected lines NODE NODE ROUND")
    return PairList([rounds[place] for place in sorted(rounds)])


def _problem(words: list[str], nodes: Collection[str]) -> str:
    """Return what is wrong with the words of a line by themselves."""
    if len(words) != 3 or not words[2].isdecimal():
        return f"expected NODE NODE ROUND, got {' '.join(words)!r}"
    if words[0] == words[1]:
        return f"{words[0]} with itself; expected two nodes"
    if nodes and (unknown := [node for node in words[:2] if node not in nodes]):
        return f"{unknown[0]} is no node of this job"
    return ""
