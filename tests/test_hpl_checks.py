"""Hpl, HplNodes, HplRacks and Hpcg: sizes, ranks, limits, and what fails a case."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from model_runs import model_truth, run_checks, samples
from reframe_runs import record_of
from test_checks import replay
from test_program_checks import dry_run, parameters

from seatrial.checks.hpcc_input import hpcc_input, hpl_input
from seatrial.checks.hpcg_input import BYTES_OF_A_POINT, hpcg_seconds, points_within
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hplsweep import parse_hplsweep
from seatrial.standins.truth import Faults, SlowNode


def script_of(folder: Path) -> str:
    (script,) = folder.rglob("rfm_job.sh")
    return script.read_text()


def conductor(script: str) -> str:
    """The options of the sweep in the script of a job."""
    (line,) = (line for line in script.splitlines() if "hplsweep " in line)
    return line.partition("--output hplsweep.jsonl ")[2]


# ---- Inputs


def test_hpl_has_the_problem_of_hpcc_and_prints_to_standard_output() -> None:
    of_hpl, of_hpcc = hpl_input(1000, 192, 6), hpcc_input(1000, 192, 6)
    lines = of_hpl.splitlines()
    assert lines[3].split()[:3] == ["6", "device", "out"]
    assert len(lines) == 31
    differing = [a for a, b in zip(lines, of_hpcc.splitlines(), strict=False) if a != b]
    assert differing == [lines[3]]


@pytest.mark.parametrize(
    ("gib", "points"),
    [(0.003, (16, 16, 16)), (1.0, (112, 112, 112)), (0.5, (96, 88, 80)), (2, None)],
)
def test_points_of_hpcg_fill_a_rank_and_no_more(
    gib: float, points: tuple[int, int, int] | None
) -> None:
    x, y, z = found = points_within(gib * 2**30)
    room = gib * 2**30 / BYTES_OF_A_POINT
    assert x * y * z <= room < (z + 8) ** 3 or found == (16, 16, 16)
    assert all(side % 8 == 0 for side in found)
    assert 0 <= x - z <= 8


def test_rank_without_room_for_hpcg_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1000000 bytes of a rank do not hold 16\^3"):
        points_within(1e6)


def test_hpcg_takes_its_time_and_some_sets_more() -> None:
    small = hpcg_seconds((16, 16, 16), 1800)
    assert 1800 < small < 1802
    assert hpcg_seconds((104, 104, 104), 1800) - 1800 == pytest.approx(240, rel=0.01)


# ---- Sizes and ranks


ORDERS = {"Hpl": (4, 82176), "HplNodes": (1, 41088), "HplRacks": (2, 58368)}
"""Nodes of a group of each check, and the order of their matrix."""


def test_matrix_fills_class_node_or_rack(tmp_path: Path) -> None:
    """Four nodes of 16 GiB in two racks: 0.8 of it holds 82,897^2 numbers.

    An order by memory takes no fixed one.
    """
    options = [("-S", f"{check}.memory_fraction=0.8") for check in ORDERS]
    fixed = ("-S", "Hpl.n=0")
    dry_run(tmp_path, "Hpl", *(word for each in options for word in each), *fixed)
    found = {}
    for file in tmp_path.rglob("seatrial.json"):
        record = json.loads(file.read_text())
        found[record["check"]] = record["parameters"]
    assert found == {
        check: {"memory_fraction": 0.8, "n": order}
        for check, (_, order) in ORDERS.items()
    }
    for nodes, order in ORDERS.values():
        assert order**2 * 8 < 0.8 * nodes * 2**34 < (order * 1.05) ** 2 * 8


@pytest.mark.parametrize("setting", ["n=0", "n=-5", "block=0"])
def test_order_and_block_are_positive(tmp_path: Path, setting: str) -> None:
    checks = ("Hpl", "HplNodes", "Hpcc")
    options = [word for check in checks for word in ("-S", f"{check}.{setting}")]
    output = dry_run(tmp_path, "Hpl$|HplNodes$|Hpcc$", *options)
    name, _, value = setting.partition("=")
    reason = (
        rf"{name} is {value}\b.*expected 1 or more\. "
        "Set memory_fraction for an order by memory"
    )
    assert len(re.findall(reason, output)) == len(checks)


def test_time_bounds_the_matrix_and_limits_the_job(tmp_path: Path) -> None:
    options = ("-S", "Hpl.memory_fraction=0.8", "-S", "Hpl.longest_s=600")
    dry_run(tmp_path, "Hpl$", *options, scheduler="slurm")
    n = parameters(tmp_path)["n"]
    assert n < 82176
    assert 0.9 * 600 < 2 / 3 * n**3 / (8 * 1e10) <= 600
    assert "#SBATCH --time=0:5" in script_of(tmp_path)


def test_ranks_are_those_of_the_cores_in_a_nearly_square_grid(tmp_path: Path) -> None:
    dry_run(tmp_path, "Hpl$", cores=3)
    (file,) = tmp_path.rglob("HPL.dat")
    assert [line.split()[0] for line in file.read_text().splitlines()[10:12]] == [
        *("3", "4")
    ]
    assert "export OMP_NUM_THREADS=1" in script_of(tmp_path)


def test_fewer_ranks_have_threads_on_their_share_of_the_cores(tmp_path: Path) -> None:
    dry_run(tmp_path, "Hpl$", "-S", "Hpl.ppn=2", cores=8)
    script = script_of(tmp_path)
    assert "export OMP_NUM_THREADS=4" in script
    assert "--cpus-per-task=8" in script  # two CPUs of each core
    output = dry_run(
        tmp_path,
        *("Hpl$", "-S", "Hpl.ppn=2"),
        cores=8,
        mpirun={"kind": "openmpi", "program": "mpirun"},
    )
    assert "2 ranks with 4 threads each need launcher: srun" in output


# ---- Groups


def test_programs_of_the_vendor_are_started_by_their_path(tmp_path: Path) -> None:
    """A sweep names its groups, their size and a limit."""
    dry_run(tmp_path, "Hpl$|HplRacks", hpl="/opt/vendor/hpl.sh")
    scripts = {
        json.loads(file.read_text())["check"]: file.with_name("rfm_job.sh").read_text()
        for file in tmp_path.rglob("seatrial.json")
    }
    assert "--kill-on-bad-exit=1 /opt/vendor/hpl.sh\n" in scripts["Hpl"]
    sweep = conductor(scripts["HplRacks"])
    assert sweep.startswith(
        "--group r1=cn01,cn02 --group r2=cn03,cn04 --n 1000 --ppn 2 --cores 2 --block "
        "192 --limit 600 -- srun"
    )
    assert sweep.endswith(" -- /opt/vendor/hpl.sh")


def test_sweep_by_memory_passes_it_on(tmp_path: Path) -> None:
    dry_run(tmp_path, "HplNodes", "-S", "HplNodes.memory_fraction=0.5")
    sweep = conductor(script_of(tmp_path))
    assert f"--node-bytes {2**33} --longest 0 --ppn 2" in sweep
    assert "--group" not in sweep


@pytest.mark.parametrize("racks", [{}, {"r1": ["cn01", "cn02"]}])
def test_class_without_two_racks_is_skipped(
    tmp_path: Path, racks: Mapping[str, Any]
) -> None:
    output = dry_run(tmp_path, "HplRacks", of_class={"racks": racks})
    assert f"class batch names {len(racks)} racks, expected two or more: add" in output


def test_node_that_computes_wrong_is_named_and_the_others_stay(tmp_path: Path) -> None:
    (row,) = replay(tmp_path, only="HplNodes", TIRED_NODE="cn03")
    assert (row["result"], row["fail_phase"]) == ("fail", "performance")
    assert "cn03: HPL: line 53: the residual" in row["fail_reason"]
    values: dict[str, dict[str, float]] = {"hpl": {}, "programs_passed": {}}
    for sample in record_of(row)["samples"]:
        values.setdefault(sample["metric"], {})[sample["node"]] = sample["value"]
    assert set(values["hpl"]) == {"cn01", "cn02", "cn04"}
    passed = dict.fromkeys(("cn01", "cn02", "cn04"), 100.0)
    assert values["programs_passed"] == {**passed, "cn03": 0.0}
    assert Path(row["stagedir"], "groups", "cn03", "out").is_file()
    assert not Path(row["stagedir"], "groups", "cn01").exists()


def test_slow_node_shows_in_its_rack(tmp_path: Path) -> None:
    faults = Faults(slow_nodes=(SlowNode("mn0003", 1.25, "compute"),))
    truth = model_truth(6, noise_percent=0.1, node_spread_percent=0.0, faults=faults)
    rows = run_checks(
        tmp_path, truth, 6, ["HplNodes", "HplRacks"], "-S", "calibrate=yes"
    )
    nodes, racks = sorted(rows, key=lambda row: str(row["name"]))
    rates = {sample["node"]: sample["value"] for sample in samples(nodes, "hpl")}
    assert min(rates, key=lambda node: rates[node]) == "mn0003"
    assert rates["mn0003"] / rates["mn0001"] == pytest.approx(1 / 1.25, abs=0.01)
    (evenness,) = samples(racks, "rack_evenness")
    assert evenness["value"] == pytest.approx(100 * 0.8 / 0.9, abs=1)  # of two racks
    by_rack = {s["parameters"]["rack"]: s for s in samples(racks, "hpl_efficiency")}
    assert by_rack["r1"]["value"] == pytest.approx(
        0.8 * by_rack["r2"]["value"], rel=0.01
    )


def sweep_rows() -> list[dict[str, Any]]:
    """Rows of a sweep of two nodes, one of which failed."""
    times = {"start_time": 5.0}
    return [
        {
            **{"type": "run", "program": "hplsweep", "version": "1", "groups": 2},
            **{"ppn": 2, "block": 192, **times},
        },
        {
            **{"type": "hpl", "group": "a", "nodes": "a", "n": 1000, "block": 192},
            **{"rows": 1, "columns": 2, "seconds": 0.5, "gflops": 1.4},
            **{"residual": 0.01, **times},
        },
        {"type": "failed", "group": "b", "nodes": "b", "reason": "it hangs", **times},
        {"type": "end", "passed": 1, "failed": 1, "elapsed_s": 2.0},
    ]


def text_of(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_sweep_is_read_and_compared_with_its_groups() -> None:
    sweep = parse_hplsweep(text_of(sweep_rows()))
    assert [row.text for row in sweep.failures] == ["b: HPL: it hangs"]
    sweep.verify_groups({"a": ["a"], "b": ["b"]})
    with pytest.raises(ParseError, match="c: no row"):
        sweep.verify_groups({"a": ["a"], "b": ["b"], "c": ["c"]})
    with pytest.raises(ParseError, match="b: a row of an unknown group"):
        sweep.verify_groups({"a": ["a"]})
    with pytest.raises(ParseError, match="a: ran on a, expected a x"):
        sweep.verify_groups({"a": ["a", "x"], "b": ["b"]})


@pytest.mark.parametrize(
    ("row", "change", "reason"),
    [
        (1, {"residual": 16.0}, "a residual of 16"),
        (1, {"gflops": 0.0}, "gflops is not positive"),
        (1, {"gflops": float("nan")}, "not a JSON row"),
        (1, {"more": 1}, "missing or unknown keys: more"),
        (2, {"group": "a"}, "a: a second time"),
        (2, {"type": "other"}, "a row of type 'other'"),
        (3, {"passed": 2}, "2 groups"),
        (0, {"groups": 3}, "3 groups"),
    ],
)
def test_damaged_sweeps_are_refused(
    row: int, change: dict[str, Any], reason: str
) -> None:
    rows = sweep_rows()
    rows[row] |= change
    with pytest.raises(ParseError, match=reason):
        parse_hplsweep(text_of(rows))


def test_cut_sweep_is_refused() -> None:
    rows = sweep_rows()
    for count in range(len(rows)):
        with pytest.raises(ParseError):
            parse_hplsweep(text_of(rows[:count]))


# ---- HPCG


def official(folder: Path, *options: str, fraction: float = 0.3) -> dict[str, Any]:
    """Run Hpcg on a model of three nodes with the memory of the class."""
    options = (
        *("-S", "calibrate=yes", "-S", f"Hpcg.memory_fraction={fraction}"),
        *("-S", "Hpcg.seconds=1800", *options),
    )
    (row,) = run_checks(
        folder, model_truth(3), 3, ["Hpcg"], *options, demonstration=False
    )
    return row


def test_official_run_of_hpcg_gives_a_rating(tmp_path: Path) -> None:
    row = official(tmp_path)
    assert row["result"] == "pass", row["fail_reason"]
    record = record_of(row)
    assert record["declared"] == ["hpcg_rating"]
    assert {sample["metric"] for sample in record["samples"]} == {
        *("hpcg_rating", "hpcg_memory")
    }
    (share,) = samples(row, "hpcg_memory")
    assert 25 < share["value"] < 30


@pytest.mark.parametrize(
    "options", [("-S", "Hpcg.seconds=1700"), ("-S", "Hpcg.memory_fraction=0.2")]
)
def test_shorter_or_smaller_run_is_a_trial(
    tmp_path: Path, options: tuple[str, str]
) -> None:
    row = official(tmp_path, *options)
    assert row["result"] == "pass", row["fail_reason"]
    assert record_of(row)["declared"] == ["hpcg_trial"]
    assert not samples(row, "hpcg_rating")


def test_a_demonstration_measures_for_a_few_seconds(tmp_path: Path) -> None:
    """All repeats of an acceptance of the lab would take hours."""
    options = ("-S", "calibrate=yes", "-S", "Hpcg.seconds=1800")
    (row,) = run_checks(tmp_path, model_truth(3), 3, ["Hpcg"], *options)
    record = record_of(row)
    assert record["parameters"]["seconds"] == 5
    assert record["declared"] == ["hpcg_trial"]


def test_rating_with_too_little_memory_fails(tmp_path: Path) -> None:
    row = official(tmp_path, fraction=0.25)
    assert row["result"] == "fail"
    assert "of the memory, a rating takes 25 %: raise memory_fraction" in str(
        row["fail_reason"]
    )


def test_quick_path_of_hpcg_is_refused(tmp_path: Path) -> None:
    output = dry_run(tmp_path, "Hpcg", "-S", "Hpcg.seconds=0")
    assert "seconds is 0, points are (16, 16, 16): expected a second" in output
