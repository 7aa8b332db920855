"""Output of our own `halo2d`: JSON Lines, or the table for people.

Every JSON row carries the settings of its run, its number and the number of all
rows, so that a missing one is noticed. Lines that are neither a row nor a header
(a launcher's message, a job script's echo) are passed over.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, NoReturn

from seatrial.parsers.errors import ParseError


@dataclass(frozen=True)
class HaloRow:
    """One size of a run of halo2d; times in us, of one exchange of all four edges.

    `time_median_us` and `time_min_us` are median and minimum over the repetitions,
    each the mean on the slowest rank. `min_us` to `max_us` are of the `n` single
    exchanges, each on its slowest rank. `size_bytes` is an edge, 8 B x `subdomain`.
    """

    version: str
    commit: str
    mpi: str
    protocol: str
    np: int
    px: int
    py: int
    iterations: int
    warmup: int
    repetitions: int
    size_bytes: int
    subdomain: int
    time_median_us: float
    time_min_us: float
    min_us: float
    p50_us: float
    p99_us: float
    max_us: float
    n: int
    validation: Literal["pass", "off"]


_TYPES = {field.name: field.type for field in fields(HaloRow)}
_FIRST_COLUMN = list(_TYPES).index("size_bytes")
_RUN_KEYS = list(_TYPES)[:_FIRST_COLUMN]
_COLUMNS = list(_TYPES)[_FIRST_COLUMN:]
_JSON_KEYS = {"program", "row", "rows", *_TYPES}
_TITLE = re.compile(r"# Seatrial halo2d (\S+) \((.*)\), (.+)")
_SETTINGS = re.compile(r"\[ (\w+): (\S+) \]")
_NUMBER = re.compile(r"\d+(\.\d+)?")

Located = tuple[int, dict[str, Any]]


def parse_halo2d(text: str) -> list[HaloRow]:
    """Read all rows of one run of halo2d, in the order of their sizes.

    Raises ParseError on anything but one complete, valid run: missing, repeated or
    cut rows, times that are not finite and positive, statistics out of order, or
    contents that failed validation.
    """
    lines = list(enumerate(text.splitlines(), start=1))
    if any(line.startswith("{") for _, line in lines):
        located = list(_json_rows(lines))
    else:
        located = list(_table_rows(lines))
    rows = [_decode(line, values) for line, values in located]
    _check_complete(located, len(lines))
    _check_run(located)
    return rows


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _json_rows(lines: list[tuple[int, str]]) -> Iterator[Located]:
    for number, line in lines:
        if not line.startswith("{"):
            continue
        try:
            values = json.loads(line, parse_constant=_refuse_constant)
        except ValueError as error:
            raise ParseError(number, f"not a JSON row: {error}") from None
        if wrong := _JSON_KEYS ^ values.keys():
            keys = ", ".join(sorted(wrong))
            raise ParseError(number, f"missing or unknown keys: {keys}")
        if values["program"] != "halo2d":
            raise ParseError(
                number, f"a row of {values['program']!r}, expected 'halo2d'"
            )
        yield number, values


def _table_rows(lines: list[tuple[int, str]]) -> Iterator[Located]:
    run: dict[str, Any] = {}
    count = 0
    for number, line in lines:
        if match := _TITLE.fullmatch(line):
            if run:
                raise ParseError(number, "a second run begins, expected one")
            run = dict(zip(("version", "commit", "mpi"), match.groups(), strict=True))
        elif line.startswith("# ["):
            run |= _settings(number, line)
        elif run and re.match(r"\s*-?\d", line):
            count += 1
            cells = line.split()
            if len(cells) != len(_COLUMNS):
                raise ParseError(
                    number, f"{len(cells)} columns, expected {len(_COLUMNS)}"
                )
            if missing := {"rows", *_RUN_KEYS} - run.keys():
                keys = ", ".join(sorted(missing))
                raise ParseError(number, f"the header before this row lacks: {keys}")
            values = {
                name: _number(number, name, cell)
                for name, cell in zip(_COLUMNS, cells, strict=True)
            }
            yield number, run | values | {"row": count}
    if not run:
        raise ParseError(0, f"no output of halo2d in {len(lines)} lines")


def _settings(number: int, line: str) -> dict[str, Any]:
    found: dict[str, Any] = dict(_SETTINGS.findall(line))
    if "processes" in found:
        found["np"] = found.pop("processes")
    if "grid" in found:
        found["px"], _, found["py"] = found.pop("grid").partition("x")
    return {name: _number(number, name, value) for name, value in found.items()}


def _number(line: int, name: str, cell: str) -> str | int | float:
    """Turn a cell of the table into the type of its field."""
    expected = _TYPES.get(name, int)
    if expected not in (int, float):
        return cell
    if _NUMBER.fullmatch(cell) is None or (expected is int and "." in cell):
        raise ParseError(line, f"{name}: {cell!r} is not a valid number")
    return int(cell) if expected is int else float(cell)


def _decode(line: int, values: dict[str, Any]) -> HaloRow:
    for name, expected in {"row": int, "rows": int, **_TYPES}.items():
        value = values[name]
        if expected is float and type(value) in (int, float):
            if not math.isfinite(value) or value <= 0:
                raise ParseError(line, f"{name}: {value} is not a positive time")
        elif expected is int and type(value) is int:
            if value < 0:
                raise ParseError(line, f"{name}: {value} is negative")
        elif expected in (int, float) or type(value) is not str:
            kind = getattr(expected, "__name__", "str")
            raise ParseError(line, f"{name}: {value!r} is not of type {kind}")
    if values["validation"] == "fail":
        raise ParseError(line, "contents failed validation")
    row = HaloRow(**{name: values[name] for name in _TYPES})
    _check_row(line, row)
    return row


def _check_row(line: int, row: HaloRow) -> None:
    rules = (
        (row.validation in ("pass", "off"), f"validation: {row.validation!r}"),
        (row.np >= 2 and row.px * row.py == row.np, "np is not px x py, or below 2"),
        (row.size_bytes == 8 * row.subdomain, "size_bytes is not 8 x subdomain"),
        (
            0 < row.n <= row.iterations * row.repetitions
            and row.n % row.repetitions == 0,
            f"{row.n} samples, expected at most {row.iterations} x {row.repetitions}",
        ),
        (row.time_min_us <= row.time_median_us, "time_min_us above time_median_us"),
        (
            row.min_us <= row.p50_us <= row.p99_us <= row.max_us,
            "min_us, p50_us, p99_us, max_us are out of order",
        ),
    )
    for holds, reason in rules:
        if not holds:
            raise ParseError(line, reason)


def _check_complete(located: list[Located], last_line: int) -> None:
    for count, (line, values) in enumerate(located, start=1):
        if values["row"] != count:
            raise ParseError(line, f"row {values['row']}, expected row {count}")
    expected = located[0][1]["rows"] if located else "some"
    if len(located) != expected:
        raise ParseError(last_line, f"{len(located)} rows, expected {expected}")


def _check_run(located: list[Located]) -> None:
    for (_, before), (line, values) in pairwise(located):
        for name in ("rows", "validation", *_RUN_KEYS):
            if values[name] != before[name]:
                raise ParseError(
                    line,
                    f"{name}: {values[name]!r}, in the row before {before[name]!r}",
                )
        following = 2 * before["subdomain"] or 2
        if values["subdomain"] != following:
            raise ParseError(
                line, f"subdomain {values['subdomain']}, expected {following}"
            )
