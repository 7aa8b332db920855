"""Startup has a bounded number of starts at any number of nodes."""

import re
from pathlib import Path

import pytest
from reframe_runs import record_of
from test_checks import replay

from seatrial.checks.node_numbers import doubled, spread


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 2, 3]),
        (4, [1, 2, 4]),
        (32, [1, 2, 4, 8, 16, 32]),
        (33, [1, 4, 16, 33]),
        (256, [1, 4, 16, 64, 256]),
        (1000, [1, 4, 16, 64, 256, 1000]),
        (1024, [1, 4, 16, 64, 256, 1024]),
        (4096, [1, 8, 64, 512, 4096]),
    ],
)
def test_numbers_of_nodes(most: int, expected: list[int]) -> None:
    assert spread(most, 6) == expected


def test_few_numbers_are_all_powers_of_two() -> None:
    for most in range(1, 33):
        assert spread(most, 6) == doubled(most)


@pytest.mark.parametrize("numbers", [2, 3, 4, 6, 8])
def test_there_are_never_more_numbers(numbers: int) -> None:
    for most in (1, 2, 3, 64, 100, 1023, 1024, 1025, 20_000):
        found = spread(most, numbers)
        assert len(found) <= numbers
        assert found == sorted({*found})
        assert (found[0], found[-1]) == (1, most)


def test_starts_of_many_nodes_are_few(tmp_path: Path) -> None:
    nodes = [f"cn{number:04}" for number in range(1024)]
    row, *_ = replay(tmp_path, nodes, only="Startup")
    assert row["result"] == "pass", row["fail_reason"]
    script = Path(row["stagedir"], "steps.sh").read_text()
    starts = re.findall(r"^run_step \S+ --nodes=(\d+)", script, re.MULTILINE)
    assert sorted({*map(int, starts)}) == [1, 4, 16, 64, 256, 1024]
    assert len(starts) == 6 * 2 * 3
    judged = [s for s in record_of(row)["samples"] if not s["parameters"]]
    assert {(s["metric"], s["n"]) for s in judged} >= {
        ("launch_time", 3),
        ("mpi_launch_time", 3),
    }
