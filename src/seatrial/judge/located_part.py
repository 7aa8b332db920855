"""A part of the fabric that explains slow pairs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A part as a technician finds it.

    `kind` is node, cable or switch; `ends` are both devices and ports of a cable;
    `device` is the node or switch. `likely` is its share of the likelihood.
    """

    name: str
    kind: str
    device: str
    ends: tuple[tuple[str, str], ...]
    likely: float = 1.0


@dataclass(frozen=True)
class LocatedPart:
    """A part of the fabric that explains slow pairs; one of several if it is not told.

    `name` is of the part, or of all `members`, the most likely first. `paths` of the
    `measured` ones cross the first and take longer by the share `slower`; `p` is the
    chance that a sound fabric names one. `way_out` tells how to learn which it is.
    """

    name: str
    members: tuple[Member, ...]
    slower: float
    paths: int
    measured: int
    p: float
    way_out: str = ""

    @property
    def is_single(self) -> bool:
        """Return True if the pairs tell which part it is."""
        return len(self.members) == 1

    @property
    def words(self) -> str:
        """Describe what it explains, and how to learn which part of several it is."""
        across = "across it" if self.is_single else "across the first"
        way_out = f"; {self.way_out}" if self.way_out else ""
        return (
            f"explains slow pairs: the {self.paths:,} of {self.measured:,} measured "
            f"paths {across} take {100 * self.slower:.3g} % longer than others "
            f"(p {self.p:.1g}){way_out}"
        )
