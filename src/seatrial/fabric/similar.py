"""Names of devices that differ only in case or domain."""


class Names:
    """Names that were added, each with its place (a line, for example)."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int]] = {}
        self._short: dict[str, tuple[str, int]] = {}

    def add(self, name: str, place: int = 0) -> tuple[str, int] | None:
        """Add a name; return an earlier one that differs only in case or domain."""
        known = self.like(name)
        if known is None:
            self._places.setdefault(name.casefold(), (name, place))
            short = _without_domain(name)
            if short is not None:
                self._short.setdefault(short, (name, place))
        return known

    def like(self, name: str) -> tuple[str, int] | None:
        """Return a name that differs from this one only in case or domain."""
        folded = name.casefold()
        same = self._places.get(folded)
        if same is not None:
            return same if same[0] != name else None
        short = _without_domain(name)
        if short is not None:
            return self._places.get(short)
        return self._short.get(folded)


def _without_domain(name: str) -> str | None:
    """Return the name without its domain, folded; None if it has none.

    What follows the dot of `leaf1.2` is no domain.
    """
    short, dot, domain = name.casefold().partition(".")
    return short if dot and not domain.replace(".", "").isdecimal() else None
