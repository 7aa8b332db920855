"""The pairs of neighbours in a ring of nodes, in rounds of disjoint pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.runs.raw_output import JOB_FILE


@dataclass(frozen=True)
class Round:
    """Pairs without a node in common.

    `members` are the nodes by their place in the job, in order; ranks 0 and 1 are a
    pair, 2 and 3, and so on. With `closes` it is the pair of the last and first node.
    """

    members: tuple[int, ...]
    closes: bool = False

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Return the ranks of every pair."""
        return [(rank, rank + 1) for rank in range(0, len(self.members), 2)]

    def pairs(self, nodes: Sequence[str]) -> list[tuple[str, str]]:
        """Return source and destination of every pair, each next in the ring."""
        names = [nodes[member] for member in self.members]
        if self.closes:
            names.reverse()
        return list(zip(names[::2], names[1::2], strict=True))

    def node_list(self) -> str:
        """Return a command of the shell that prints the nodes, with commas."""
        first, last = self.members[0] + 1, self.members[-1] + 1
        fields = f"{first}{',' if len(self.members) == 2 else '-'}{last}"
        return f"$(sed -n s/^nodes=//p {JOB_FILE} | cut -d' ' -f{fields} | tr ' ' ,)"


def ring_rounds(count: int) -> list[Round]:
    """Return at most three rounds with all neighbours in a ring of two nodes or more.

    Every round but the last has nodes that follow each other, as Slurm orders ranks.
    """
    first = Round(tuple(range(count // 2 * 2)))
    if count == 2:
        return [first]
    second = Round(tuple(range(1, 1 + (count - 1) // 2 * 2)))
    return [first, second, Round((0, count - 1), closes=True)]
