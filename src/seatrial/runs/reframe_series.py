"""Plain ReFrame's performance values as metrics with unit and direction.

ReFrame stores a name and a unit as the check wrote them. Which values are better is
nowhere said, and one check may have changed its unit in the course of time.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from seatrial.errors import SeatrialError
from seatrial.model.metrics import Direction, Metric, split_flat_name
from seatrial.model.units import UNITS, Unit, conversion, find_unit
from seatrial.runs.reframe_report import Entry

Key = tuple[str, str, str]
"""Check, ReFrame's key of a value (`tiny:cpu:latency_8B`), and unit as reported."""


@dataclass(frozen=True)
class Series:
    """What the values of a key are: stored times `factor`, in `unit`."""

    metric: str
    size_bytes: int | None
    unit: str
    direction: Direction
    factor: float


@dataclass
class _Reported:
    """How a check reports a value: its units, each with where it came first."""

    check: str
    name: str
    units: dict[str, str] = field(default_factory=dict)
    lower: bool = False
    upper: bool = False

    @property
    def first(self) -> str:
        """The first of its units."""
        return next(iter(self.units))

    def __str__(self) -> str:
        return f"{self.name} of {self.check}"


class Survey:
    """Collects what all sessions of an import report, then decides what it is.

    `units` are taken as they stand although unknown; `directions` are by metric.
    """

    def __init__(
        self, units: Collection[str], directions: Mapping[str, Direction]
    ) -> None:
        self._units = units
        self._directions = directions
        self._seen: dict[tuple[str, str, str, bool, bool], str] = {}

    def add(self, entry: Entry, source: str) -> None:
        """Take note of the values of a case that were measured."""
        check, seen = entry.check, self._seen
        for key, each in entry.perfvalues.items():
            if each.value is not None:
                low, high = each.lower is not None, each.upper is not None
                seen.setdefault((check, key, each.unit, low, high), source)

    def series(self) -> dict[Key, Series]:
        """Decide what every value is.

        Raises SeatrialError with all units that are unknown, else with all metrics
        whose units do not convert, else with all whose direction cannot be told.
        """
        found: dict[tuple[str, str], _Reported] = {}
        for (check, key, unit, low, high), source in self._seen.items():
            name = name_of(key)
            reported = found.setdefault((check, name), _Reported(check, name))
            reported.units.setdefault(unit, source)
            reported.lower |= low
            reported.upper |= high
        self._refuse_unknown(found.values())
        self._refuse_mixed(found.values())
        directions = self._decide(found.values())
        return {
            (check, key, unit): self._one(
                found[check, name_of(key)], unit, directions[check, name_of(key)]
            )
            for check, key, unit, _, _ in self._seen
        }

    def _unit(self, text: str) -> Unit | None:
        """Find a unit; one that is taken as it stands converts to no other."""
        if text not in self._units:
            return find_unit(text)
        return find_unit(text) or Unit(text or "1", f"what {text!r} is", 1.0)

    def _refuse_unknown(self, found: Collection[_Reported]) -> None:
        unknown: dict[str, str] = {}
        for reported in found:
            for unit, source in reported.units.items():
                if self._unit(unit) is None:
                    unknown.setdefault(unit, f"{reported}, in {source}")
        if unknown:
            listed = ", ".join(f"{unit!r} ({of})" for unit, of in unknown.items())
            remedy = " ".join(f"--unit '{unit}'" for unit in unknown)
            raise SeatrialError(
                f"unknown units: {listed}; expected one of {', '.join(UNITS)}; to take "
                f"them as they stand: {remedy}"
            )

    def _refuse_mixed(self, found: Collection[_Reported]) -> None:
        mixed = [
            f"{reported}: "
            + ", ".join(f"{unit!r} in {src}" for unit, src in reported.units.items())
            for reported in found
            if len({unit.kind for unit in map(self._unit, reported.units) if unit}) > 1
        ]
        if mixed:
            raise SeatrialError(
                f"units that do not convert into each other: {'; '.join(mixed)}; "
                "expected one kind of unit for a metric; import the sessions before "
                "and after the change apart, with --until and --since"
            )

    def _decide(self, found: Collection[_Reported]) -> dict[tuple[str, str], Direction]:
        directions = {}
        undecided = []
        for reported in found:
            direction = self._direction(reported)
            if direction is None:
                undecided.append(reported)
            else:
                directions[reported.check, reported.name] = direction
        if undecided:
            listed = ", ".join(
                f"{each} in {each.first!r} ({each.units[each.first]})"
                for each in undecided
            )
            remedy = dict.fromkeys(f"--direction {each.name}=" for each in undecided)
            raise SeatrialError(
                f"which values are better, higher or lower ones, cannot be told of "
                f"{listed}: neither reference nor unit says it; say it: "
                + " ".join(f"{option}higher" for option in remedy)
                + " (or lower)"
            )
        return directions

    def _direction(self, reported: _Reported) -> Direction | None:
        """Decide by the user, the reference's one bound, our metrics, or the unit."""
        unit = self._unit(reported.first)
        assert unit is not None
        ours = _ours(reported.name, unit)
        names = (reported.name, ours[0].name if ours else reported.name)
        for name in names:
            if name in self._directions:
                return self._directions[name]
        if reported.lower != reported.upper:
            return "higher" if reported.lower else "lower"
        if ours is not None:
            return ours[0].direction
        if unit.name not in UNITS:  # taken as it stands
            return "higher" if unit.name.endswith("/s") else None
        return unit.better

    def _one(self, reported: _Reported, text: str, direction: Direction) -> Series:
        unit, first = self._unit(text), self._unit(reported.first)
        assert unit is not None
        assert first is not None
        ours = _ours(reported.name, unit)
        if ours is None:
            factor = conversion(unit, first)
            return Series(reported.name, None, first.name, direction, factor)
        metric, size = ours
        factor = conversion(unit, UNITS[metric.unit])
        return Series(metric.name, size, metric.unit, direction, factor)


def name_of(key: str) -> str:
    """Return the name of a performance value without system and partition."""
    return key.split(":", 2)[-1]


def _ours(name: str, unit: Unit) -> tuple[Metric, int | None] | None:
    """Find the metric and size of a name of ours, if its unit is of that kind, too."""
    try:
        metric, size = split_flat_name(name)
    except ValueError:
        return None
    return (metric, size) if UNITS[metric.unit].kind == unit.kind else None
