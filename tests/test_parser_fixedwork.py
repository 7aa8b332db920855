"""The parser of fixedwork, on captured output."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_damage import with_values

from seatrial.checks.nodesweep.outputs import fixedwork_row
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fixedwork import parse_fixedwork

TEXT = (Path(__file__).parent / "data/fixedwork/0.1.0-np2.txt").read_text()


def test_captured_run() -> None:
    rows = parse_fixedwork(TEXT)
    assert [(row.cpu, row.n, row.validation) for row in rows] == [
        (0, 774, "pass"),
        (1, 623, "pass"),
    ]
    assert rows[0].seconds == 2.000410491


def test_cores_of_a_node_are_summed_up() -> None:
    row = fixedwork_row(TEXT, 2, 2000)
    assert row == {
        "cores": 2,
        "seconds": 2.004473755,
        "gflops": pytest.approx(4.18635212, rel=1e-8),
        "slowest_gflops": pytest.approx(1.86482861, rel=1e-8),
        "kept_percent": pytest.approx(125.2297674, rel=1e-8),
        "cpu_share_percent": pytest.approx(100 * 0.648657197 / 2.004473755),
        "longest_us": 179841.891,
        "n": 1397,
    }


@pytest.mark.parametrize(
    ("cores", "time_ms", "reason"),
    [
        (3, 2000, "2 cores for 2000 ms, expected 3 for 2000 ms"),
        (2, 20000, "2 cores for 2000 ms, expected 2 for 20000 ms"),
    ],
)
def test_another_run_is_refused(cores: int, time_ms: int, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        fixedwork_row(TEXT, cores, time_ms)


def test_results_must_be_validated() -> None:
    text = TEXT.replace('"pass"', '"off"')
    with pytest.raises(ParseError, match="were not validated"):
        fixedwork_row(text, 2, 2000)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"p50_us": 0.1}, "out of order"),
        ({"min_us": 0.0}, "out of order"),
        ({"n": 773}, "mean_us is 2584.5"),
        ({"mean_us": 2584.5097}, "mean_us is 2584.5097"),
        ({"gflops": 2.3215236}, "gflops is 2.3215236"),
        ({"iterations": 0}, "no work"),
        ({"last_per_s": 0}, "no work in a quarter"),
        ({"validation": "fail"}, "contents failed validation"),
        ({"host": "cn02"}, "host: "),
    ],
)
def test_contradictions_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_fixedwork(with_values(TEXT, 1, **values))


@given(
    n=st.integers(1, 5_000_000),
    iterations=st.integers(1, 10_000_000),
    seconds_ns=st.integers(1, 4 * 10**12),
)
def test_exact_values_in_the_formats_of_the_program_are_accepted(
    n: int, iterations: int, seconds_ns: int
) -> None:
    """Printed with 15 digits; the mean is the quotient of a sum of n doubles."""
    seconds = seconds_ns / 1e9
    values: dict[str, Any] = {"n": n, "iterations": iterations}
    values |= {"seconds": printed(seconds), "mean_us": printed(seconds_ns / 1e3 / n)}
    flops = float(iterations) * 8 * 3
    values["gflops"] = printed(flops * n / seconds / 1e9)
    values |= dict.fromkeys(("min_us", "p50_us", "p99_us", "max_us"), 1.0)
    (row,) = parse_fixedwork(with_values(only_first(TEXT), 1, **values))
    assert row.n == n


def printed(value: float) -> float:
    return float(f"{value:.15g}")


def only_first(text: str) -> str:
    return text.splitlines()[0].replace('"rows": 2', '"rows": 1') + "\n"
