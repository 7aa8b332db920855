"""Output of our own benchmarks with `--json`: a row per line, each complete in itself.

Every row carries program, version, commit, MPI library and settings of its run, its
number and the number of all rows, so that a missing one is noticed. The rule for
foreign lines is that of `printed`: a line without a brace at its start is skipped, any
other must be the next row. The tables that the programs print without `--json` are for
people.

Numbers are printed with `%.15g` (benchmarks/common/output.c), after arithmetic in
double precision. `tolerance` gives how far such numbers may contradict each other.
"""

import json
import math
from dataclasses import MISSING, dataclass, fields
from functools import cache
from itertools import pairwise
from types import UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import OPERATION

T = TypeVar("T")
_SIGNED = "may be negative"
Signed = Annotated[float, _SIGNED]
"""A field of a row: a finite number that may be below 0."""

Setting = Annotated[T, "setting"]
"""A field of a row that is the same in all rows of a run."""


@dataclass(frozen=True)
class Row:
    """The fields of all benchmarks' rows; a subclass adds those of its program."""

    program: str
    version: Setting[str]
    commit: Setting[str]
    mpi: Setting[str]
    np: Setting[int]
    iterations: Setting[int]
    warmup: Setting[int]
    row: int
    rows: Setting[int]


@dataclass(frozen=True)
class Times:
    """Statistics of `n` samples in us, and whether contents were verified."""

    min_us: float
    p50_us: float
    p99_us: float
    max_us: float
    mean_us: float
    n: int
    validation: Setting[Literal["pass", "off"]]

    def verify_times(self) -> None:
        """Raise ValueError if the statistics are out of order."""
        verify_statistics(self, "us")
        require(self.p50_us > 0, "p50_us is not positive")
        require(self.n > 0, "no samples")


@dataclass(frozen=True)
class PingPongRow(Times, Row):
    """Times of half round trips between two ranks."""

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        self.verify_times()
        require(self.np == 2, f"np is {self.np}, expected 2")
        most = self.iterations
        require(self.n <= most, f"{self.n} samples, expected at most {most}")


_DIGIT = 0.5e-14
"""Largest relative error of `%.15g`: half a unit of 15 digits."""

R = TypeVar("R", bound=Row)


def require(holds: bool, otherwise: str) -> None:
    """Raise ValueError with a reason if something does not hold."""
    if not holds:
        raise ValueError(otherwise)


def verify_statistics(row: Any, unit: str) -> None:
    """Raise ValueError if minimum, percentiles, maximum and mean are out of order."""
    names = [f"{name}_{unit}" for name in ("min", "p50", "p99", "max")]
    values = [getattr(row, name) for name in names]
    require(values == sorted(values), f"{', '.join(names)} are out of order")
    least, *_, greatest = values
    mean, slack = getattr(row, f"mean_{unit}"), tolerance(2, row.n) * greatest
    require(
        least - slack <= mean <= greatest + slack,
        f"mean_{unit} {mean} is not between min_{unit} and max_{unit}",
    )


def tolerance(printed: int, operations: int = 0) -> float:
    """Return how far two sides of an equation may differ, as a part of them.

    `printed` numbers were rounded to their 15 digits; `operations` in double precision
    lie behind them (a mean of n samples takes n), beside a few for the equation itself.
    Valid for products, quotients and means, not for differences.
    """
    return printed * _DIGIT + (operations + 16) * OPERATION


def require_ratio(name: str, ratio: float | None, above: float, below: float) -> None:
    """Raise ValueError unless a printed ratio is that of two printed numbers."""
    expected = above / below
    require(
        ratio is not None and math.isclose(ratio, expected, rel_tol=tolerance(3)),
        f"{name} {ratio}, by its values it is {expected:.6g}",
    )


def parse_rows(
    text: str, program: str, row_type: type[R], doubled: str = ""
) -> list[R]:
    """Read all rows of one run of a program, in their order.

    `doubled` is a field that doubles from row to row (`check_sizes`). Raises ParseError
    on anything but one complete, valid run: missing, repeated or cut rows, unknown
    keys, numbers that are negative or not finite, settings that change, contents that
    failed validation, or rows that `verify` refuses.
    """
    decode = Decoder(row_type)
    located = [
        (number, _row(number, line, program, decode))
        for number, line in enumerate(text.splitlines(), start=1)
        if line.startswith("{")
    ]
    last = len(text.splitlines())
    if not located:
        raise ParseError(0, f"no output of {program} in {last} lines")
    first = located[0][1]
    for count, (number, row) in enumerate(located, start=1):
        if row.row != count:
            raise ParseError(number, f"row {row.row}, expected row {count}")
        decode.verify_settings(number, row, first)
    if len(located) != first.rows:
        raise ParseError(last, f"{len(located)} rows, expected {first.rows}")
    if doubled:
        check_sizes([getattr(row, doubled) for _, row in located])
    return [row for _, row in located]


def decode_object(line: int, text: str) -> dict[str, Any]:
    """Decode one line of JSON Lines; ParseError if it is not one JSON object."""
    try:
        values = _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(line, f"not a JSON row: {error}") from None
    if not isinstance(values, dict):
        raise ParseError(line, f"not a JSON object: {text[:40]!r}")
    return values


class Decoder(Generic[T]):
    """Builder of records of one type from decoded JSON objects."""

    def __init__(self, record_type: type[T]) -> None:
        """Prepare a dataclass with fields of str, int, float, Signed, Literal or None.

        Fields with a default are newer than some recordings.
        """
        self._type = record_type
        self._verify = getattr(record_type, "verify", None)
        untyped: Any = record_type  # mypy does not know that it is a dataclass
        self._kinds = _kinds(untyped)
        self._settings = [name for name, kind in self._kinds.items() if kind.is_setting]
        self._newer = {
            field.name for field in fields(untyped) if field.default is not MISSING
        }

    def __call__(self, line: int, values: dict[str, Any]) -> T:
        """Build a record; keys and types of `values` must be those of its fields.

        The fields with a default are all there, or none of them. Numbers are finite,
        and not negative unless Signed. Raises ParseError, also where the record's
        `verify` raises ValueError.
        """
        keys = self._kinds.keys() ^ values.keys()
        if keys and keys != self._newer:
            names = ", ".join(sorted(keys))
            raise ParseError(line, f"missing or unknown keys: {names}")
        for name, value in values.items():
            kind = self._kinds[name]
            type_ = type(value)
            if type_ in kind.kinds:
                limit = _LIMITS.get(type_)
                if limit is None or kind.least <= value < limit:
                    continue
            if fault := kind.fault(value):
                raise ParseError(line, f"{name}: {fault}")
        record = self._type(**values)
        if self._verify is not None:
            try:
                self._verify(record)
            except ValueError as error:
                raise ParseError(line, str(error)) from None
        return record

    def verify_settings(self, line: int, record: T, first: T) -> None:
        """Raise ParseError unless all settings are those of the first record."""
        for name in self._settings:
            value, expected = getattr(record, name), getattr(first, name)
            if value != expected:
                reason = f"{name}: {value!r}, in the first row {expected!r}"
                raise ParseError(line, reason)


class _Kind:
    """The allowed values of a field, prepared once for up to a million rows."""

    def __init__(self, expected: Any) -> None:
        marks = getattr(expected, "__metadata__", ())
        self.is_setting = "setting" in marks
        expected = expected.__origin__ if marks else expected
        is_union = get_origin(expected) in (Union, UnionType)
        members = get_args(expected) if is_union else (expected,)
        self._choices: tuple[Any, ...] = ()
        if get_origin(expected) is Literal:
            self._choices, members = get_args(expected), ()
        is_signed = Signed in members or _SIGNED in marks
        self.least = -_LIMITS[float] if is_signed else 0.0
        self._names = tuple(float if kind == Signed else kind for kind in members)
        self.kinds = {*self._names, int} if float in self._names else {*self._names}

    def fault(self, value: Any) -> str | None:
        """Return the fault of a value; None if it is of the expected type."""
        if self._choices:
            known = value in self._choices
            return None if known else f"{value!r} is none of {self._choices}"
        kind = type(value)
        if kind not in self.kinds:
            names = " or ".join(kind.__name__ for kind in self._names)
            return f"{value!r} is not of type {names}"
        if kind in _LIMITS and not self.least <= value < _LIMITS[kind]:
            bounds = "a number" if self.least else "a number of at least 0"
            return f"{value} is not {bounds} and below {_LIMITS[kind]}"
        return None


@cache
def _kinds(record_type: type[Any]) -> dict[str, _Kind]:
    """Return the allowed values of each field of a dataclass, by its name."""
    hints = get_type_hints(record_type, include_extras=True)
    return {field.name: _Kind(hints[field.name]) for field in fields(record_type)}


def check_sizes(sizes: list[int]) -> None:
    """Raise ParseError unless each size doubles the one before (0 comes before 2)."""
    for before, size in pairwise(sizes):
        expected = 2 * before or 2
        if size != expected:
            raise ParseError(0, f"size {size} after {before}, expected {expected}")


def _row(line: int, text: str, program: str, decode: Decoder[R]) -> R:
    values = decode_object(line, text)
    if values.get("program") != program:
        name = values.get("program")
        raise ParseError(line, f"a row of {name!r}, expected {program!r}")
    if values.get("validation") == "fail":
        raise ParseError(line, "contents failed validation")
    return decode(line, values)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_LIMITS = {int: 2**63, float: 1e15}
"""Upper bounds of all numbers: integers are a C program's `long long`.

1e15 us are 30 years, and no rate of anything is 1e15 per second.
"""

_JSON = json.JSONDecoder(parse_constant=_refuse_constant)
