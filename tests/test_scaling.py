"""Ranks over nodes: how many a program can run, and where it scales."""

from collections.abc import Callable

import pytest

from seatrial.checks.npb_ranks import most_ranks, rule_of, runs_on
from seatrial.checks.scaling import Spot, exactly


def any_number(_: int) -> bool:
    return True


def power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def square(ranks: int) -> bool:
    return ranks in {side**2 for side in range(1, 200)}


@pytest.mark.parametrize(
    ("there", "rule", "expected"),
    [
        ((4, 2), any_number, (4, 2)),
        ((4, 8), power_of_two, (4, 8)),
        ((3, 1), power_of_two, (2, 1)),
        ((10, 24), power_of_two, (8, 16)),
        ((4, 2), square, (4, 1)),
        ((9, 36), square, (9, 36)),
        ((10, 24), square, (9, 16)),
        ((1, 1), square, (1, 1)),
    ],
)
def test_most_ranks_that_a_program_can_run(
    there: tuple[int, int], rule: Callable[[int], bool], expected: tuple[int, int]
) -> None:
    assert most_ranks(*there, rule) == expected
    assert most_ranks(*expected, rule) == expected


def test_program_that_needs_more_ranks_than_there_are_has_no_place() -> None:
    assert most_ranks(2, 1, lambda ranks: ranks >= 4) is None


def test_most_ranks_of_a_large_machine_take_no_time() -> None:
    assert most_ranks(10_000, 256, power_of_two) == (8192, 256)


@pytest.mark.parametrize(
    ("ranks", "there", "expected"),
    [
        (8, (4, 2), (4, 2)),
        (4, (4, 2), (2, 2)),
        (32, (16, 8), (4, 8)),
        (9, (4, 4), (3, 3)),
        (7, (4, 4), None),
        (16, (4, 2), None),
        (3, (4, 1), (3, 1)),
    ],
)
def test_number_of_ranks_as_asked_for(
    ranks: int, there: tuple[int, int], expected: tuple[int, int] | None
) -> None:
    assert exactly(ranks, *there) == expected


def test_only_the_spot_on_all_nodes_is_judged() -> None:
    all_nodes = Spot(4, 2, "cyclic", judged=True)
    fewer = Spot(2, 2, "cyclic")
    assert all_nodes.parameters == {}
    assert fewer.parameters == {"num_nodes": 2, "placement": "cyclic"}
    assert fewer.srun_options == "--distribution=cyclic"
    assert Spot(1, 2).parameters == {"num_nodes": 1}
    assert Spot(1, 2).srun_options == ""


@pytest.mark.parametrize(
    ("benchmark", "problem_class", "runs", "refused"),
    [
        ("BT", "C", (1, 4, 9, 16, 1024), (0, 2, 8, 12, 162**2)),
        ("SP", "S", (1, 4, 16), (2, 25)),
        ("CG", "A", (1, 2, 32), (0, 3, 6, 36)),
        ("FT", "C", (32,), (24,)),
        ("MG", "B", (64,), (100,)),
        ("LU", "C", (32,), (36,)),
        ("LU", "S", (1, 16), (32, 64)),
        ("EP", "D", (1, 3, 7, 1000), (0,)),
        ("IS", "C", (1, 1024), (2048, 12)),
        ("IS", "S", (128,), (256,)),
        ("IS", "D", (4, 1024), (1, 2)),
        ("IS", "E", (64,), (32,)),
    ],
)
def test_ranks_that_npb_runs_on(
    benchmark: str,
    problem_class: str,
    runs: tuple[int, ...],
    refused: tuple[int, ...],
) -> None:
    assert all(runs_on(benchmark, problem_class, ranks) for ranks in runs)
    assert not any(runs_on(benchmark, problem_class, ranks) for ranks in refused)


def test_rule_names_benchmark_and_class() -> None:
    assert rule_of("SP", "C") == ("a square number of ranks that SP of class C can run")
    with pytest.raises(ValueError, match="class 'F' of IS"):
        runs_on("IS", "F", 4)
