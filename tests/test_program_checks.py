"""Checks of whole programs: what is refused before a job, and what the job runs."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from reframe_runs import CHECKS, HOME, SETTINGS, reframe


def dry_run(
    folder: Path,
    name: str,
    *options: str,
    of_class: Mapping[str, Any] | None = None,
    **extras: Any,
) -> str:
    """Dry-run a check with other extras of Open MPI's environment; what was said.

    `of_class` are further extras of the class of nodes.
    """
    settings = json.loads(SETTINGS.read_text())
    settings["environments"][0]["extras"].update(extras)
    partition = settings["systems"][0]["partitions"][0]
    partition["launcher"] = "srun"
    partition["extras"].update(of_class or {})
    (folder / "settings.json").write_text(json.dumps(settings))
    result = reframe(
        *("-C", "settings.json", "-c", str(CHECKS), "-R", "--dry-run", "-n", name),
        *("--prefix", str(folder), "--keep-stage-files", *options),
        folder=folder,
        RFM_REFERENCE_PREFIX=str(HOME / "reference-data" / "lab"),
    )
    return result.stdout + result.stderr


def steps(folder: Path) -> list[str]:
    """The steps of the only case, with single spaces."""
    (file,) = folder.rglob("steps.sh")
    lines = re.findall(r"^run_step (\S+ .*)$", file.read_text(), re.MULTILINE)
    return [" ".join(line.split()) for line in lines if "{" not in line]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["Npb.ranks=6"],
            "it takes a power of two of ranks that CG of class C can run, not 6",
        ),
        (
            ["Npb.ranks=64"],
            "it takes 64 ranks, evenly spread, there are 4 nodes x 2",
        ),
        (
            ["Npb.problem_class=D"],
            "in programs.npb of mpi_stacks, or add its class to mpi_npb_classes",
        ),
    ],
)
def test_npb_that_cannot_run_is_skipped(
    tmp_path: Path, options: list[str], reason: str
) -> None:
    settings = [word for option in options for word in ("-S", option)]
    assert reason in dry_run(tmp_path, "Npb%benchmark=CG", *settings)


@pytest.mark.parametrize(
    ("benchmark", "options", "reason"),
    [
        ("BT", ["-S", "Npb.ranks=8"], "it takes a square number of ranks that BT"),
        ("IS", ["-S", "Npb.problem_class=F"], "class 'F' of IS, expected one of"),
    ],
)
def test_npb_has_rules_for_each_benchmark(
    tmp_path: Path, benchmark: str, options: list[str], reason: str
) -> None:
    assert reason in dry_run(tmp_path, f"Npb%benchmark={benchmark}", *options)


def test_npb_runs_once_for_the_rate_and_once_for_its_timers(tmp_path: Path) -> None:
    dry_run(tmp_path, "Npb%benchmark=SP")
    place = "--nodes=4 --ntasks=4 --ntasks-per-node=1"
    assert steps(tmp_path) == [
        f"4x1 {place} sp.C.x",
        f"4x1,with-timers {place} --chdir=with-timers sp.C.x",
    ]
    (flag,) = tmp_path.rglob("timer.flag")
    assert flag.parent.name == "with-timers"


def test_npb_3_3_has_a_program_for_each_number_of_ranks(tmp_path: Path) -> None:
    options = ("-S", "Npb.communication=no", "-S", "Npb.ranks=4")
    dry_run(tmp_path, "Npb%benchmark=MG", *options, programs=["mg.C.4", "mg.C.8"])
    assert steps(tmp_path) == [
        "2x2 --nodes=2 --ntasks=4 --ntasks-per-node=2 mg.C.4",
    ]


def test_scaling_is_over_nodes_and_both_orders_in_one_job(tmp_path: Path) -> None:
    options = ("-S", "scaling=yes", "-S", "ppn=2")
    dry_run(tmp_path, "LammpsScaled%problem=lj", *options)
    shown = [
        re.sub(r"--nodes=\d+ --ntasks=(\d+) --ntasks-per-node=\d+", r"np\1", step)
        for step in steps(tmp_path)
    ]
    lmp = "lmp -log none -var x {} -var y {} -var z {} -in in.lj"
    assert shown == [
        f"4x2 np8 {lmp.format(2, 2, 2)}",
        f"1x2,scaling np2 {lmp.format(1, 1, 2)}",
        *(
            f"{nodes}x2-{order},scaling np{2 * nodes} --distribution={order} "
            + lmp.format(*grid)
            for nodes, grid in ((2, (1, 2, 2)), (4, (2, 2, 2)))
            for order in ("block", "cyclic")
        ),
    ]


def test_lammps_input_that_is_not_there_is_named(tmp_path: Path) -> None:
    output = dry_run(
        tmp_path, "LammpsFixed%problem=eam", lammps_inputs=["in.eam", "in.lj"]
    )
    assert "Cu_u3.eam not among LAMMPS' inputs; copy LAMMPS' folder bench" in output


@pytest.mark.parametrize(
    ("fraction", "order"),
    [("0.5", 65520), ("0.8", 82880)],
)
def test_hpcc_fills_the_memory_of_all_nodes(
    tmp_path: Path, fraction: str, order: int
) -> None:
    """Four nodes of 16 GiB: half of it are 2^32 numbers, 65536 x 65536."""
    dry_run(tmp_path, "Hpcc", "-S", f"Hpcc.memory_fraction={fraction}")
    (file,) = tmp_path.rglob("hpccinf.txt")
    assert file.read_text().splitlines()[5].split() == [str(order), "Ns"]


def test_hpcc_leaves_memory_for_its_other_tests(tmp_path: Path) -> None:
    output = dry_run(tmp_path, "Hpcc", "-S", "Hpcc.memory_fraction=0.9")
    assert "memory_fraction is 0.9, expected a number of at most 0.8" in output
