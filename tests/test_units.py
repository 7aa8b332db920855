"""Units: every spelling means one, and conversions are exact."""

import pytest

from seatrial.model.metrics import METRICS
from seatrial.model.units import UNITS, conversion, find_unit


@pytest.mark.parametrize(
    ("text", "name", "better"),
    [
        ("MB/s", "MB/s", "higher"),
        ("MB/sec", "MB/s", "higher"),
        (" GBps ", "GB/s", "higher"),
        ("Mb/s", "Mbit/s", "higher"),
        ("GFLOPS", "Gflop/s", "higher"),
        ("Gflops/s", "Gflop/s", "higher"),
        ("messages/s", "msg/s", "higher"),
        ("ns/day", "ns/day", "higher"),
        ("usec", "us", "lower"),
        ("µs", "us", "lower"),
        ("seconds", "s", "lower"),
        ("GiB", "GiB", None),
        ("%", "%", None),
        ("W", "W", None),
    ],
)
def test_spelling(text: str, name: str, better: str | None) -> None:
    unit = find_unit(text)
    assert unit is not None
    assert (unit.name, unit.better) == (name, better)


@pytest.mark.parametrize("text", ["", "img/s", "mb/s", "gb/s", "KB/s", "S", "us/s"])
def test_what_may_mean_two_things_is_unknown(text: str) -> None:
    assert find_unit(text) is None


@pytest.mark.parametrize(
    ("source", "target", "factor"),
    [
        ("MiB/s", "MB/s", 1.048576),
        ("GiB/s", "MiB/s", 1024.0),
        ("Gbit/s", "GB/s", 0.125),
        ("ms", "us", 1000.0),
        ("Tflop/s", "Gflop/s", 1000.0),
        ("%", "1", 0.01),
    ],
)
def test_conversion(source: str, target: str, factor: float) -> None:
    assert conversion(UNITS[source], UNITS[target]) == pytest.approx(factor, rel=1e-15)
    assert conversion(UNITS[source], UNITS[source]) == 1.0


def test_kinds_do_not_mix() -> None:
    with pytest.raises(ValueError, match="s is a unit of time, MB/s of bandwidth"):
        conversion(UNITS["s"], UNITS["MB/s"])


def test_units_of_our_metrics_are_known() -> None:
    assert {metric.unit for metric in METRICS.values()} <= UNITS.keys()
