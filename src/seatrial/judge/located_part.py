"""A part of the fabric that explains slow pairs."""

from dataclasses import dataclass

_MOST_ALIKE = 4


@dataclass(frozen=True)
class LocatedPart:
    """A part of the fabric that explains slow pairs, with those that do it as well.

    `paths` of the `measured` ones cross it and take longer by the share `slower`; `p`
    is the chance that a sound fabric names one. `kind` is node, cable or switch; `ends`
    are both devices and ports of a cable; `device` is the node or switch. `alike` are
    other parts that explain the pairs as well.
    """

    name: str
    kind: str
    device: str
    ends: tuple[tuple[str, str], ...]
    slower: float
    paths: int
    measured: int
    p: float
    alike: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Describe what it explains, and the parts that it is not told from."""
        more = len(self.alike) - _MOST_ALIKE
        others = ", ".join(self.alike[:_MOST_ALIKE])
        others += f" and {more} more" if more > 0 else ""
        others = f"; not told from {others}" if others else ""
        return (
            f"explains slow pairs: the {self.paths:,} of {self.measured:,} measured "
            f"paths across it take {100 * self.slower:.3g} % longer than others "
            f"(p {self.p:.1g}){others}"
        )
