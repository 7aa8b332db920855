"""Checks of whole programs: what is refused before a job, and what the job runs."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from reframe_runs import HOME, SETTINGS, check_paths, reframe


def dry_run(
    folder: Path,
    name: str,
    *options: str,
    of_class: Mapping[str, Any] | None = None,
    cores: int = 2,
    scheduler: str = "local",
    **extras: Any,
) -> str:
    """Dry-run a check with other extras of Open MPI's environment; what was said.

    `of_class` are further extras of the class of nodes, whose nodes have `cores`.
    """
    settings = json.loads(SETTINGS.read_text())
    settings["environments"][0]["extras"].update(extras)
    partition = settings["systems"][0]["partitions"][0]
    partition |= {"launcher": "srun", "scheduler": scheduler}
    partition["extras"].update(of_class or {})
    partition["processor"]["num_cpus"] = 2 * cores
    (folder / "settings.json").write_text(json.dumps(settings))
    result = reframe(
        *("-C", "settings.json", *check_paths("-n", name), "--dry-run", "-n", name),
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


def parameters(folder: Path) -> dict[str, Any]:
    """The parameters that the only case records."""
    (file,) = folder.rglob("seatrial.json")
    found: dict[str, Any] = json.loads(file.read_text())["parameters"]
    return found


def stages(folder: Path) -> list[Path]:
    """The stage folders of all cases."""
    return [file.parent for file in folder.rglob("rfm_job.sh")]


@pytest.mark.parametrize(
    ("option", "reasons"),
    [
        (
            "Npb.ranks=6",
            [
                "it takes a power of two of ranks that CG of class C can run, not 6",
                "it takes a square number of ranks that BT",
            ],
        ),
        (
            "Npb.ranks=64",
            ["it takes 64 ranks, evenly spread, there are 4 nodes x 2"],
        ),
        (
            "Npb.problem_class=F",
            [
                "in programs.npb of mpi_stacks, or add its class to mpi_npb_classes",
                "class 'F' of IS, expected one of",
            ],
        ),
    ],
)
def test_npb_that_cannot_run_is_skipped(
    tmp_path: Path, option: str, reasons: list[str]
) -> None:
    """There are rules for each benchmark."""
    names = "|".join(f"Npb%benchmark={name}" for name in ("CG", "BT", "IS"))
    output = dry_run(tmp_path, names, "-S", option)
    for reason in reasons:
        assert reason in output


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
    [("0.5", 65280), ("0.8", 81920)],
)
def test_hpcc_fills_the_memory_of_all_nodes(
    tmp_path: Path, fraction: str, order: int
) -> None:
    """Four nodes of 16 GiB: half of it are 2^32 numbers, 65536 x 65536."""
    dry_run(tmp_path, "Hpcc", "-S", f"Hpcc.memory_fraction={fraction}")
    (file,) = tmp_path.rglob("hpccinf.txt")
    assert file.read_text().splitlines()[5].split() == [str(order), "Ns"]
    assert parameters(tmp_path) == {"memory_fraction": float(fraction), "n": order}


def test_memory_is_left_for_mpi_and_the_system(tmp_path: Path) -> None:
    output = dry_run(tmp_path, "Hpcc", "-S", "Hpcc.memory_fraction=0.9")
    assert "memory_fraction is 0.9, expected a number of at most 0.8" in output


def test_memory_must_be_known(tmp_path: Path) -> None:
    output = dry_run(
        tmp_path,
        *("Hpcc", "-S", "Hpcc.memory_fraction=0.5"),
        of_class={"memory_mib": None},
    )
    assert "names no memory_mib in its extras" in output


def test_nodes_that_share_one_machine_keep_the_fixed_size(tmp_path: Path) -> None:
    options = ("-S", "Hpcc.memory_fraction=0.5")
    dry_run(tmp_path, "Hpcc", *options, of_class={"demonstration": True})
    (file,) = tmp_path.rglob("hpccinf.txt")
    assert file.read_text().splitlines()[5].split() == ["1000", "Ns"]


def limits(folder: Path) -> list[str]:
    """The time limits of all cases."""
    scripts = "".join(file.read_text() for file in folder.rglob("rfm_job.sh"))
    return re.findall(r"^#SBATCH --time=(.*)$", scripts, re.MULTILINE)


def test_time_limit_follows_from_the_size(tmp_path: Path) -> None:
    """Four times HPL's 2/3 x 65280^3 operations of 8 cores at 10 Gflop/s, and more."""
    fixed, large = tmp_path / "fixed", tmp_path / "large"
    fixed.mkdir()
    large.mkdir()
    dry_run(fixed, "Hpcc", "-S", "Hpcc.ppn=0", scheduler="slurm")
    assert limits(fixed) == ["0:5:36"]
    options = ("-S", "Hpcc.ppn=0", "-S", "Hpcc.memory_fraction=0.5")
    dry_run(
        large,
        *("Hpcc|Npb%benchmark=EP", *options, "-S", "Npb.memory_fraction=0.5"),
        scheduler="slurm",
        programs=NPB,
    )
    assert sorted(limits(large)) == ["1:21:24", "2:51:36"]


NPB = [f"{name}.{size}.x" for name in ("cg", "ep", "is") for size in "ABCDEF"]


def test_npb_takes_the_largest_class_that_fits(tmp_path: Path) -> None:
    dry_run(
        tmp_path,
        "|".join(f"Npb%benchmark={name}" for name in ("CG", "EP", "IS")),
        *("-S", "Npb.memory_fraction=0.5", "-S", "Npb.communication=no"),
        cores=128,
        of_class={"nodes": [f"n{i}" for i in range(1024)], "memory_mib": 1 << 18},
        programs=NPB,
    )
    found = {step for folder in stages(tmp_path) for step in steps(folder)}
    place = "--nodes=1024 --ntasks={} --ntasks-per-node={}"
    assert found == {
        f"1024x128 {place.format(1024 * 128, 128)} cg.E.x",
        f"1024x128 {place.format(1024 * 128, 128)} ep.F.x",
        f"1024x1 {place.format(1024, 1)} is.E.x",
    }


def test_lammps_copies_its_systems_until_the_memory_is_filled(tmp_path: Path) -> None:
    """Half of four nodes with 16 GiB and two ranks each: 32 GiB."""
    checks = ("Fixed%problem=eam", "Fixed%problem=chute", "Scaled%problem=rhodo")
    names = "|".join(f"Lammps{check}" for check in checks)
    dry_run(tmp_path, names, "-S", "memory_fraction=0.5", "-S", "ppn=0")
    step = "4x2 --nodes=4 --ntasks=8 --ntasks-per-node=2 lmp -log none"
    expected = {
        f"{step} -var x 8 -var y 8 -var z 16 -in in.eam": {"atoms": 1024 * 32000},
        f"{step} -var x 32 -var y 32 -var z 1 -in in.chute.scaled": {
            "atoms": 1024 * 32000
        },
        f"{step} -var x 4 -var y 4 -var z 8 -in in.rhodo.scaled": {
            "atoms_per_rank": 16 * 32000
        },
    }
    found = {}
    for folder in stages(tmp_path):
        (only,) = steps(folder)
        found[only] = parameters(folder)
    assert set(found) == set(expected)
    for only, size in expected.items():
        assert found[only].items() >= size.items()


def test_lammps_has_no_more_atoms_than_numbers(tmp_path: Path) -> None:
    options = ("-S", "memory_fraction=0.5", "-S", "ppn=64")
    large = {"nodes": [f"n{i}" for i in range(2048)], "memory_mib": 1 << 20}
    output = dry_run(
        tmp_path, "LammpsScaled%problem=lj", *options, cores=64, of_class=large
    )
    assert "131072 ranks have no room for lj: 32000 atoms for each take" in output
