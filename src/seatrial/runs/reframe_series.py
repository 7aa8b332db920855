"""Plain ReFrame's performance values as metrics with unit and direction.

ReFrame stores a name and a unit as the check wrote them, without the direction of
better values; a check may have changed its unit between sessions.
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
    """The metric of the values of a key: stored times `factor`, in `unit`."""

    metric: str
    size_bytes: int | None
    unit: str
    direction: Direction
    factor: float


@dataclass
class _Reported:
    """The units in which a check reports a value, each with its first source.

    `lower` and `upper`: some reference has that bound.
    """

    check: str
    name: str
    units: dict[str, str] = field(default_factory=dict)
    lower: bool = False
    upper: bool = False

    @property
    def first(self) -> str:
        """Return the first of its units."""
        return next(iter(self.units))

    def __str__(self) -> str:
        return f"{self.name} of {self.check}"


class Survey:
    """Collects the values of all sessions of an import, and identifies their metrics.

    `units` are accepted although unknown; `directions` are by metric.
    """

    def __init__(
        self, units: Collection[str], directions: Mapping[str, Direction]
    ) -> None:
        self._units = units
        self._directions = directions
        self._seen: dict[tuple[str, str, str, bool, bool], str] = {}

    def add(self, entry: Entry, source: str) -> None:
        """Note the measured values of a case."""
        check, seen = entry.check, self._seen
        for key, value in entry.perfvalues.items():
            if value.value is not None:
                low, high = value.lower is not None, value.upper is not None
                seen.setdefault((check, key, value.unit, low, high), source)

    def series(self) -> dict[Key, Series]:
        """Return the series of every value.

        Raises SeatrialError with all unknown units, else with all metrics with units
        that do not convert, else with all metrics of unknown direction.
        """
        values: dict[tuple[str, str], _Reported] = {}
        for (check, key, unit, low, high), source in self._seen.items():
            name = name_of(key)
            reported = values.setdefault((check, name), _Reported(check, name))
            reported.units.setdefault(unit, source)
            reported.lower |= low
            reported.upper |= high
        self._check_units(values.values())
        directions = self._decide(values.values())
        series = {}
        for check, key, unit, _, _ in self._seen:
            value = check, name_of(key)
            series[check, key, unit] = self._one(values[value], unit, directions[value])
        return series

    def _unit(self, text: str) -> Unit | None:
        """Find a unit; an accepted unknown one converts to no other."""
        unit = find_unit(text)
        if unit is None and text in self._units:
            return Unit(text or "1", f"what {text!r} is", 1.0)
        return unit

    def _check_units(self, values: Collection[_Reported]) -> None:
        unknown: dict[str, str] = {}
        for reported in values:
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
        mixed = [
            f"{reported}: "
            + ", ".join(f"{unit!r} in {src}" for unit, src in reported.units.items())
            for reported in values
            if len({unit.kind for unit in map(self._unit, reported.units) if unit}) > 1
        ]
        if mixed:
            raise SeatrialError(
                f"units that do not convert into each other: {'; '.join(mixed)}; "
                "expected one kind of unit for a metric; import the sessions before "
                "and after the change apart, with --until and --since"
            )

    def _decide(
        self, values: Collection[_Reported]
    ) -> dict[tuple[str, str], Direction]:
        directions: dict[tuple[str, str], Direction] = {}
        undecided: dict[str, str] = {}
        for reported in values:
            direction = self._direction(reported)
            if direction is not None:
                directions[reported.check, reported.name] = direction
                continue
            first = reported.first
            place = f"{reported} in {first!r} ({reported.units[first]})"
            undecided[place] = f"--direction {reported.name}=higher"
        if undecided:
            raise SeatrialError(
                "which values are better, higher or lower ones, cannot be told of "
                f"{', '.join(undecided)}: neither reference nor unit says it; say it: "
                f"{' '.join(dict.fromkeys(undecided.values()))} (or lower)"
            )
        return directions

    def _direction(self, reported: _Reported) -> Direction | None:
        """Decide by the options, the only bound of references, our metric, the unit."""
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
    """Find our metric and size of a flat name, if its unit is of that kind."""
    try:
        metric, size = split_flat_name(name)
    except ValueError:
        return None
    return (metric, size) if UNITS[metric.unit].kind == unit.kind else None
