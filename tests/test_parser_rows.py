"""Parser of our own benchmarks' rows, tested on a benchmark made up here."""

import json
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_damage import with_values, without_key, without_line

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import (
    Row,
    Setting,
    Signed,
    Times,
    check_sizes,
    parse_rows,
    require,
)


@dataclass(frozen=True)
class DemoRow(Times, Row):
    """A row with a field of every kind that rows may have."""

    mode: Setting[Literal["fast", "slow"]]
    size_bytes: int
    rate: float
    slope: Signed
    host: str | None
    depth: int | None
    ratio: float | None

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        self.verify_times()
        require(self.rate < 1e6, "rate is absurd")


def demo(row: int) -> DemoRow:
    return DemoRow(
        program="demo",
        version="0.1.0",
        commit="0123456789ab",
        mpi="Open MPI v4.1.4",
        np=4,
        iterations=100,
        warmup=10,
        row=row,
        rows=3,
        mode="fast",
        size_bytes=8 << row,
        rate=1234.5,
        slope=-0.25,
        host=None if row == 1 else 'cn"01',
        depth=None if row == 1 else row,
        ratio=None if row == 1 else 0.5,
        min_us=1.25,
        p50_us=1.5 + row,
        p99_us=7.75,
        max_us=9,
        mean_us=2.5,
        n=100,
        validation="pass",
    )


ROWS = [demo(row) for row in (1, 2, 3)]
TEXT = "".join(json.dumps(vars(row)) + "\n" for row in ROWS)


def parse(text: str) -> list[DemoRow]:
    return parse_rows(text, "demo", DemoRow)


def assert_right_or_refused(text: str) -> None:
    try:
        rows = parse(text)
    except ParseError:
        return
    assert rows == ROWS


def test_rows_are_read_whole() -> None:
    assert parse(TEXT) == ROWS
    assert parse(TEXT.rstrip("\n")) == ROWS


def test_lines_of_others_are_passed_over() -> None:
    assert parse(f"nodes cn01,cn02\n\n{TEXT}slurmstepd: done\n") == ROWS


def test_every_cut_is_refused() -> None:
    for end in range(len(TEXT) - 2):
        with pytest.raises(ParseError):
            parse(TEXT[:end])


def test_every_lost_beginning_is_refused() -> None:
    for start in range(1, len(TEXT)):
        with pytest.raises(ParseError):
            parse(TEXT[start:])


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("program", "logp", "a row of 'logp', expected 'demo'"),
        ("program", None, "a row of None, expected 'demo'"),
        ("version", "0.2.0", "version: '0.2.0', in the first row '0.1.0'"),
        ("commit", "fedcba987654", "commit: 'fedcba987654', in the first row"),
        ("mpi", "MPICH Version: 4.0.2", "mpi: 'MPICH Version: 4.0.2', in the first"),
        ("np", 2, "np: 2, in the first row 4"),
        ("iterations", 99, "iterations: 99, in the first row 100"),
        ("warmup", 9, "warmup: 9, in the first row 10"),
        ("mode", "slow", "mode: 'slow', in the first row 'fast'"),
        ("validation", "off", "validation: 'off', in the first row 'pass'"),
        ("rows", 4, "rows: 4, in the first row 3"),
        ("row", 1, "row 1, expected row 2"),
        ("row", 3, "row 3, expected row 2"),
        ("validation", "fail", "contents failed validation"),
        ("validation", "ok", "validation: 'ok' is none of ('pass', 'off')"),
        ("validation", ["pass"], "validation: ['pass'] is none of"),
        ("mode", "brisk", "mode: 'brisk' is none of ('fast', 'slow')"),
        ("np", True, "np: True is not of type int"),
        ("np", 4.0, "np: 4.0 is not of type int"),
        ("np", "4", "np: '4' is not of type int"),
        ("np", None, "np: None is not of type int"),
        ("np", -4, "np: -4 is not a number of at least 0"),
        ("size_bytes", 10**30, f"size_bytes: {10**30} is not a number of at least 0"),
        ("rate", 10**400, f"at least 0 and below {2**63}"),
        ("rate", 1e15, "rate: 1000000000000000.0 is not a number of at least 0 and"),
        ("slope", -1e300, "slope: -1e+300 is not a number and below"),
        ("rate", None, "rate: None is not of type float"),
        ("rate", False, "rate: False is not of type float"),
        ("rate", -0.5, "rate: -0.5 is not a number of at least 0"),
        ("rate", [1.0], "rate: [1.0] is not of type float"),
        ("rate", math.nan, "NaN is not a number"),
        ("rate", math.inf, "Infinity is not a number"),
        ("slope", -math.inf, "-Infinity is not a number"),
        ("slope", "-0.25", "slope: '-0.25' is not of type float"),
        ("host", 7, "host: 7 is not of type str or NoneType"),
        ("depth", 0.5, "depth: 0.5 is not of type int or NoneType"),
        ("ratio", -1, "ratio: -1 is not a number of at least 0"),
        ("extra", 1, "missing or unknown keys: extra"),
        ("rate", 1e6, "rate is absurd"),
        ("min_us", 9.5, "min_us, p50_us, p99_us, max_us are out of order"),
        ("p50_us", 8, "min_us, p50_us, p99_us, max_us are out of order"),
        ("max_us", 7.5, "min_us, p50_us, p99_us, max_us are out of order"),
        ("mean_us", 1.2, "mean_us 1.2 is not between min_us and max_us"),
        ("mean_us", 9.1, "mean_us 9.1 is not between min_us and max_us"),
        ("n", 0, "no samples"),
    ],
)
def test_bad_value_is_refused(key: str, value: object, reason: str) -> None:
    with pytest.raises(ParseError) as refusal:
        parse(with_values(TEXT, 2, **{key: value}))
    assert reason in refusal.value.reason
    assert refusal.value.line == 2


def test_times_of_zero_are_refused() -> None:
    with pytest.raises(ParseError, match="line 2: p50_us is not positive"):
        parse(with_values(TEXT, 2, min_us=0, p50_us=0))


@pytest.mark.parametrize("key", sorted(get_type_hints(DemoRow).keys()))
def test_missing_key_is_refused(key: str) -> None:
    with pytest.raises(ParseError) as refusal:
        parse(without_key(TEXT, 2, key))
    assert refusal.value.line == 2
    assert key in refusal.value.reason or key == "program"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 0, "no output of demo in 0 lines"),
        ("srun: error\n", 0, "no output of demo in 1 lines"),
        (without_line(TEXT, 1), 1, "row 2, expected row 1"),
        (without_line(TEXT, 2), 2, "row 3, expected row 2"),
        (without_line(TEXT, 3), 2, "2 rows, expected 3"),
        (TEXT + TEXT, 4, "row 1, expected row 4"),
        (TEXT.replace("\n", "", 1), 1, "not a JSON row: Extra data"),
        (TEXT.replace("\n", " srun: oops\n", 1), 1, "not a JSON row: Extra data"),
        (TEXT.replace(', "np": 4', ', "np": 04', 1), 1, "not a JSON row"),
        (TEXT.replace('"rate": 1234.5', '"rate": 1e999', 1), 1, "rate: inf is not a"),
        ("{" + TEXT, 1, "not a JSON row"),
        ("{}\n" + TEXT, 1, "a row of None, expected 'demo'"),
        ('{"a":' * 100_000, 1, "not a JSON row"),
    ],
)
def test_broken_text_is_refused(text: str, line: int, reason: str) -> None:
    with pytest.raises(ParseError) as refusal:
        parse(text)
    assert (refusal.value.line, reason) == (
        line,
        refusal.value.reason[: len(reason)],
    )


def test_sizes_must_double() -> None:
    check_sizes([])
    check_sizes([0, 2, 4, 8])
    check_sizes([3, 6])
    for sizes, reason in {
        (0, 1): "size 1 after 0, expected 2",
        (8, 8): "size 8 after 8, expected 16",
        (2, 4, 16): "size 16 after 4, expected 8",
    }.items():
        with pytest.raises(ParseError) as refusal:
            check_sizes(list(sizes))
        assert refusal.value.reason == reason


POSITIONS = st.integers(0, len(TEXT))


@given(st.lists(st.sampled_from(TEXT.splitlines(keepends=True)), max_size=5))
def test_rows_lost_repeated_or_out_of_order_are_noticed(lines: list[str]) -> None:
    assert_right_or_refused("".join(lines))


@given(POSITIONS, POSITIONS)
def test_a_lost_piece_is_noticed(one: int, other: int) -> None:
    """Of what lies within one value nobody can tell: the piece has a quote or end."""
    start, end = sorted((one, other))
    piece = TEXT[start:end]
    if '"' in piece or "\n" in piece:
        assert_right_or_refused(TEXT[:start] + TEXT[end:])


@given(POSITIONS, st.text('{}[]":,\\\n\r\t srun1.e-'))
def test_text_of_others_between_is_noticed(place: int, noise: str) -> None:
    text = TEXT[:place] + "\n" + noise + "\n" + TEXT[place:]
    assert_right_or_refused(text)


@given(st.lists(st.tuples(POSITIONS, st.characters()), min_size=1, max_size=8))
def test_changed_characters_never_raise_another_error(
    changes: list[tuple[int, str]],
) -> None:
    text = list(TEXT)
    for place, character in changes:
        text[place : place + 1] = [character]
    try:
        rows = parse("".join(text))
    except ParseError:
        return
    assert [row.row for row in rows] == [1, 2, 3]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=5,
)


@given(st.sampled_from(sorted(vars(ROWS[1]))), JSON_VALUES)
def test_any_value_is_taken_as_it_is_or_refused(key: str, value: Any) -> None:
    try:
        rows = parse(with_values(TEXT, 2, **{key: value}))
    except ParseError:
        return
    found = vars(rows[1])
    assert found == vars(ROWS[1]) | {key: value}
    hint = get_type_hints(DemoRow)[key]
    kinds = get_args(hint) or (hint,)
    allowed = {str} if get_origin(hint) is Literal else {*kinds}
    assert type(value) in allowed | ({int} if float in kinds else set())
    assert rows[0] == ROWS[0]
    assert rows[2] == ROWS[2]
