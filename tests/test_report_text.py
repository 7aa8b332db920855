"""Numbers and times as the report writes them."""

import pytest

from seatrial.report.render import text
from seatrial.report.render.vega import size_ticks, value_ticks


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        (7.6123, None, "7.612"),
        (0.0023456, None, "0.002346"),
        (1566.4, None, "1,566"),
        (123456.7, None, "123,457"),
        (0, None, "0"),
        (-25290.7386, None, "\u221225,291"),
        (59.9996, 60, "59.9996"),
        (60.0, 60, "60.00"),
        (float("nan"), None, "nan"),
        (None, None, "\N{EN DASH}"),
        (3.2e-7, None, "3.200e\u221207"),
        (9999.6, None, "10,000"),
    ],
)
def test_values_have_sensible_digits(
    value: float | None, limit: float | None, shown: str
) -> None:
    assert text.measured(value, limit) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (60.0, "60"),
        (0.1, "0.1"),
        (1e-5, "0.00001"),
        (12345678901.0, "12,345,678,901"),
        (1e-9, "1e\u221209"),
        (None, "\N{EN DASH}"),
    ],
)
def test_limits_are_written_as_they_were_set(value: float | None, shown: str) -> None:
    assert text.exact(value) == shown


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        (23.5, 60, "39.2 % of it"),
        (59.9996, 60, "99.999 % of it"),
        (60, 60, "100 % of it"),
        (1500, 60, "25 times it"),
        (5, None, ""),
        (5, 0, ""),
    ],
)
def test_values_are_compared_with_limits(
    value: float, limit: float | None, shown: str
) -> None:
    assert text.ratio(value, limit) == shown


@pytest.mark.parametrize(
    ("unit", "shown"), [("MB/s", "60 MB/s"), ("%", "60 %"), ("1", "60")]
)
def test_a_ratio_has_no_unit(unit: str, shown: str) -> None:
    assert text.quantity("60", unit) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "\N{EN DASH}"),
        (0.85, "0.85 s"),
        (59.7, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("words", "most", "shown"),
    [
        ("install the NAS Benchmarks", 26, "install the NAS Benchmarks"),
        ("install the NAS Benchmarks", 25, "install the NAS…"),
        ("install the NAS Benchmarks", 16, "install the NAS…"),
        ("install the NAS Benchmarks", 15, "install the…"),
        ("one, two", 6, "one…"),
        ("x" * 30, 10, "x" * 9 + "…"),
    ],
)
def test_a_long_text_is_cut_between_words(words: str, most: int, shown: str) -> None:
    assert text.shortened(words, most) == shown


def test_ticks_are_few_and_within_the_numbers() -> None:
    assert size_ticks([1, 4194304]) == [2**power for power in range(0, 22, 3)]
    assert size_ticks([8]) == [8]
    assert size_ticks([1000]) == [1000]
    assert value_ticks(6.1, 190000) == [10, 100, 1000, 10000, 100000]
    assert value_ticks(12, 80) == [20, 50]
    assert value_ticks(3.1, 3.2) == [3.1, 3.2]
