"""LAMMPS' benchmarks: grids of copies, inputs, and energies that prove a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seatrial.checks.lammps_problems import ATOMS, PROBLEMS, cubic_grid
from seatrial.parsers.errors import ParseError
from seatrial.parsers.lammps import LammpsRun, parse_lammps

DATA = Path(__file__).parent / "data" / "lammps"

FIXED = {
    "2025.7-np4.txt": ("rhodo", 4),
    "debian-2021.9-np2.txt": ("rhodo", 2),
    **{f"2025.7-{name}-np4.txt": (name, 4) for name in ("lj", "eam", "chain", "chute")},
}


def parsed(file: str, name: str, ranks: int, copies: int = 1) -> LammpsRun:
    text = (DATA / file).read_text()
    return parse_lammps(text, ranks, copies * ATOMS, [*PROBLEMS[name].energies])


@pytest.mark.parametrize("file", FIXED)
def test_real_runs_of_several_releases_are_right(file: str) -> None:
    name, ranks = FIXED[file]
    PROBLEMS[name].verify(parsed(file, name, ranks))


@pytest.mark.parametrize("name", PROBLEMS)
def test_copies_have_the_energy_of_as_many_systems(name: str) -> None:
    run = parsed(f"2025.7-{name}-scaled-np4.txt", name, 4, copies=4)
    PROBLEMS[name].verify(run, copies=4)


@pytest.mark.parametrize("file", FIXED)
def test_run_with_another_energy_is_refused(file: str) -> None:
    name, ranks = FIXED[file]
    problem, run = PROBLEMS[name], parsed(file, name, ranks)
    for step, energy in problem.energies.items():
        wrong = {**problem.energies, step: energy * 1.01}
        with pytest.raises(ParseError, match=f"at step {step}, expected"):
            replace(problem, energies=wrong).verify(run)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"neighbour_builds": 12}, "12 neighbour list builds, expected 11"),
        ({"dangerous_builds": 1}, "1 dangerous builds, not 0"),
        ({"dangerous_builds": None}, "None dangerous builds, not 0"),
    ],
)
def test_rebuilds_of_the_neighbour_list_are_those_of_the_logs(
    change: dict[str, Any], reason: str
) -> None:
    run = replace(parsed("2025.7-np4.txt", "rhodo", 4), **change)
    with pytest.raises(ParseError, match=reason):
        PROBLEMS["rhodo"].verify(run)


@pytest.mark.parametrize(
    ("ranks", "grid"),
    [
        (1, (1, 1, 1)),
        (2, (1, 1, 2)),
        (4, (1, 2, 2)),
        (7, (1, 1, 7)),
        (8, (2, 2, 2)),
        (12, (2, 2, 3)),
        (16, (2, 2, 4)),
        (96, (4, 4, 6)),
        (1024, (8, 8, 16)),
    ],
)
def test_copies_make_a_grid_as_cubic_as_it_goes(
    ranks: int, grid: tuple[int, int, int]
) -> None:
    assert cubic_grid(ranks) == grid
    assert PROBLEMS["lj"].grid(ranks) == grid


def test_grains_stay_on_their_chute() -> None:
    assert PROBLEMS["chute"].grid(16) == (4, 4, 1)
    assert PROBLEMS["chute"].grid(8) == (4, 2, 1)


def test_every_run_names_all_files_that_it_reads() -> None:
    needs = {
        name: (problem.needs(scaled=False), problem.needs(scaled=True))
        for name, problem in PROBLEMS.items()
    }
    assert needs == {
        "rhodo": (("in.rhodo", "data.rhodo"), ("in.rhodo.scaled", "data.rhodo")),
        "lj": (("in.lj",), ("in.lj",)),
        "eam": (("in.eam", "Cu_u3.eam"), ("in.eam", "Cu_u3.eam")),
        "chain": (("in.chain", "data.chain"), ("in.chain.scaled", "data.chain")),
        "chute": (("in.chute", "data.chute"), ("in.chute.scaled", "data.chute")),
    }
