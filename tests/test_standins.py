"""The stand-ins of a model machine: its truth, its numbers, its faults."""

import json
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from model_runs import model_truth, node_names, start, step_variables

from seatrial.checks.hpcc_input import hpcc_input
from seatrial.parsers.hpcc import parse_hpcc
from seatrial.parsers.memlat import parse_memlat
from seatrial.parsers.osu import parse_osu
from seatrial.parsers.pairsweep import PairSweep, parse_pairsweep
from seatrial.standins.__main__ import main
from seatrial.standins.draw import draw
from seatrial.standins.hostlist import expand
from seatrial.standins.install import install
from seatrial.standins.truth import (
    DeadNode,
    Faults,
    LateNode,
    SlowLeaf,
    SlowLink,
    SlowNode,
    TruthError,
    parse_truth,
)

SWEEP = "pairsweep --validate --json --resume {}"
MEMLAT = "memlat --validate --json --sizes 16384:1073741824"


def sweep(machine: Path, nodes: list[str], options: str = "") -> PairSweep:
    """Sweep all pairs; the file is sweep.jsonl in the machine's folder."""
    file = machine / "sweep.jsonl"
    ended = start(machine, f"{SWEEP.format(file)} {options}", nodes)
    assert (ended.returncode, ended.stderr) == (0, "")
    return parse_pairsweep(file.read_text())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mn7", ["mn7"]),
        ("mn[08-10,12],head", ["mn08", "mn09", "mn10", "mn12", "head"]),
        ("r[1-2]n[3,5]", ["r1n3", "r1n5", "r2n3", "r2n5"]),
    ],
)
def test_lists_of_slurm_are_expanded(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["", "mn1,", "mn[1-2", "mn1]", "mn[x]", "mn[1-]x["])
def test_other_lists_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no list of nodes|no range of numbers"):
        expand(text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seed": "x"}, "Expected `int`, got `str` in seed"),
        ({"sead": 1}, "Object contains unknown field `sead`"),
        ({"noise_percent": -1}, "Expected `float` >= 0.0 in noise_percent"),
        ({"clocks_khz": []}, "Expected `array` of length >= 1 in clocks_khz"),
        ({"nodes": "mn[1-"}, "nodes: 'mn[1-' is no list of nodes"),
        ({"nodes": "mn1,mn1"}, "nodes: mn1,mn1 has a node twice"),
        (
            {"faults": {"slow_nodes": [{"node": "mn9", "factor": 2}]}},
            "faults: mn9 is none of the nodes mn[1-4]",
        ),
        (
            {"faults": {"slow_nodes": [{"node": "mn1", "factor": 0.5}]}},
            "Expected `float` >= 1.0 in faults.slow_nodes[0].factor",
        ),
        (
            {"faults": {"slow_leaves": [{"leaf": 1, "factor": 2}]}},
            "faults.slow_leaves: leaf 1, expected a number below 1",
        ),
        (
            {"faults": {"slow_links": [{"nodes": ["mn1", "mn1"], "factor": 2}]}},
            "faults.slow_links: mn1 with itself",
        ),
    ],
)
def test_a_file_that_describes_no_machine_is_refused_with_its_key(
    change: dict[str, Any], reason: str, tmp_path: Path, capsys: Any
) -> None:
    file = tmp_path / "truth.json"
    file.write_text(json.dumps({"seed": 1, "nodes": "mn[1-4]", **change}))
    assert main(["install", str(tmp_path / "m"), "--truth", str(file)]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"seatrial.standins: {file}: {reason}")
    assert not (tmp_path / "m").exists()


def test_a_node_can_only_die_in_a_program_that_has_a_stand_in(tmp_path: Path) -> None:
    faults = Faults(dead_nodes=(DeadNode("mn0001", "make"),))
    with pytest.raises(TruthError, match="no stand-in of 'make'; expected one of"):
        install(tmp_path / "m", model_truth(2, faults=faults))


def test_a_seed_draws_the_same_faults_on_different_nodes(capsys: Any) -> None:
    assert draw("mn[1-256]", 7) == draw("mn[1-256]", 7) != draw("mn[1-256]", 8)
    drawn = draw("mn[1-256]", 7, dead_nodes=2).faults
    assert len(drawn.nodes()) == 3 + 2 * 2 + 2 + 1
    assert main(["draw", "--nodes", "mn[1-256]", "--seed", "7"]) == 0
    assert parse_truth(capsys.readouterr().out) == draw("mn[1-256]", 7)
    assert main(["draw", "--nodes", "mn[1-4]", "--seed", "7"]) == 2
    assert "too few nodes or leaves for the faults" in capsys.readouterr().err


def test_a_job_is_reproduced_and_jobs_differ(tmp_path: Path) -> None:
    install(tmp_path / "m", model_truth(2))
    again = [
        start(tmp_path / "m", "osu_latency -m 1:65536", node_names(2), **job).stdout
        for job in (
            {},
            {},
            {"SLURM_JOB_ID": "2"},
            {"SLURM_STEP_ID": "1"},
        )
    ]
    assert again[0] == again[1]
    assert len({*again}) == 3
    sizes = [1 << power for power in range(17)]
    first, *_, other = (parse_osu(text, "osu_latency", sizes)[-1] for text in again)
    assert first.latency_us == pytest.approx(other.latency_us, rel=0.06)


def test_the_message_rate_follows_the_clock_of_the_step(tmp_path: Path) -> None:
    install(tmp_path / "m", model_truth(2, noise_percent=0))
    command = "osu_mbw_mr -m 8:8 -W 64"
    rates = []
    for khz in ("", "2400000", "1800000"):
        asked = {"SLURM_CPU_FREQ_REQ": khz}
        text = start(tmp_path / "m", command, node_names(2), **asked).stdout
        (row,) = parse_osu(text, "osu_mbw_mr", [8])
        rates.append(row.msg_per_s or 0)
    usual, high, low = rates
    assert usual == high
    assert low == pytest.approx(0.75 * high, rel=1e-3)
    files = {file.name: file.read_text() for file in (tmp_path / "m/clock").iterdir()}
    assert files == {"1800000": "1800000\n", "2400000": "2400000\n"}


def test_other_ranks_print_nothing(tmp_path: Path) -> None:
    install(tmp_path / "m", model_truth(2), python="/none")
    ended = start(tmp_path / "m", "halo2d --json", node_names(2), SLURM_PROCID="1")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_an_option_that_the_model_does_not_know_is_refused(tmp_path: Path) -> None:
    install(tmp_path / "m", model_truth(2))
    ended = start(tmp_path / "m", "osu_latency -z 99", node_names(2))
    assert ended.returncode == 2
    assert ended.stderr == "osu_latency: model: unknown option -z\n"


def test_a_slow_node_is_slower_than_the_median_by_its_factor(tmp_path: Path) -> None:
    slow = (
        SlowNode("mn0003", 1.1, "memory"),
        SlowNode("mn0005", 1.2, "compute"),
    )
    truth = model_truth(9, noise_percent=0, faults=Faults(slow_nodes=slow))
    install(tmp_path / "m", truth)
    (tmp_path / "m" / "hpccinf.txt").write_text(hpcc_input(1000, 80, 2))
    names = ("HPL_Tflops", "StarSTREAM_Triad")
    numbers, latencies = {}, {}
    for node in node_names(9):
        start(tmp_path / "m", "hpcc", [node], SLURM_STEP_NUM_TASKS="2")
        file = tmp_path / "m" / "hpccoutf.txt"
        numbers[node] = parse_hpcc(file.read_text(), names, 2, 1000)
        file.unlink()
        rows = parse_memlat(start(tmp_path / "m", MEMLAT, [node]).stdout)
        latencies[node] = rows[-1].p50_ns
    usual = {name: median(of[name] for of in numbers.values()) for name in names}
    of_slow = numbers["mn0003"], numbers["mn0005"]
    shares = [[of[name] / usual[name] for name in names] for of in of_slow]
    assert shares[0] == pytest.approx([1, 1 / 1.1], abs=0.01)
    assert shares[1] == pytest.approx([1 / 1.2, 1], abs=0.01)
    usual_ns = median(latencies.values())
    assert latencies["mn0003"] / usual_ns == pytest.approx(1.1, abs=0.01)
    assert latencies["mn0005"] / usual_ns == pytest.approx(1, abs=0.01)


def test_slow_ports_links_and_leaves_show_in_their_pairs_only(tmp_path: Path) -> None:
    faults = Faults(
        slow_nodes=(SlowNode("mn0002", 1.1, "bandwidth"),),
        slow_links=(SlowLink(("mn0005", "mn0006"), 1.6),),
        slow_leaves=(SlowLeaf(2, 1.3, "latency"),),
    )
    truth = model_truth(16, leaf_nodes=4, noise_percent=0, faults=faults)
    install(tmp_path / "m", truth)
    result = sweep(tmp_path / "m", node_names(16))
    result.verify_complete(node_names(16))
    assert [*result.quiet] == [("mn0005", "mn0006", 0), *[*result.quiet][1:]]
    for row in result.pairs:
        pair = {int(row.source[2:]), int(row.destination[2:])}
        leaves = {(node - 1) // 4 for node in pair}
        latency = 1.4 if len(leaves) == 1 else 1.7
        latency *= 1.3 if len(leaves) == 2 and 2 in leaves else 1
        bandwidth = 12_000 / (1.1 if 2 in pair else 1)
        if pair == {5, 6}:
            latency, bandwidth = 1.6 * latency, bandwidth / 1.6
        assert row.latency_p50_us == pytest.approx(latency, rel=0.015)
        for rate in (row.bw_mb_per_s, row.bw_back_mb_per_s):
            assert rate == pytest.approx(bandwidth, rel=0.015)


@pytest.mark.parametrize(("nodes", "rounds"), [(2, 1), (5, 5), (8, 7)])
def test_every_two_nodes_meet_once_and_no_node_twice_in_a_round(
    nodes: int, rounds: int, tmp_path: Path
) -> None:
    install(tmp_path / "m", model_truth(nodes))
    result = sweep(tmp_path / "m", node_names(nodes))
    result.verify_complete(node_names(nodes))
    assert result.runs[0].rounds == rounds
    for number in range(1, rounds + 1):
        met = [row for row in result.pairs if row.round == number]
        ends = [node for row in met for node in (row.source, row.destination)]
        assert len({*ends}) == len(ends) == nodes - nodes % 2
        assert {row.at_once for row in met} == {nodes // 2}


def test_a_sweep_goes_on_in_its_file(tmp_path: Path) -> None:
    install(tmp_path / "m", model_truth(8))
    whole = sweep(tmp_path / "m", node_names(8))
    file = tmp_path / "m" / "sweep.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    hung = '{"type":"pair","mode":"sweep","status":"hung","source":"%s",'
    hung += '"destination":"%s","rail":0,"round":1,"reason":"connect: none"}\n'
    last = whole.pairs[-1]
    file.write_text("".join(lines[:11]) + hung % (last.source, last.destination))
    with file.open("a") as stream:
        stream.write('{"type": "pai')
    result = sweep(tmp_path / "m", node_names(8))
    result.verify_complete(node_names(8))
    assert [run.resumed for run in result.runs] == [0, 11]
    assert len(result.pairs) == 27


def test_rounds_and_rails_are_those_that_were_asked_for(tmp_path: Path) -> None:
    install(tmp_path / "m", model_truth(6))
    machine = tmp_path / "m"
    variables = {"SLURM_STEP_NUM_TASKS": "12"}
    options = "--rails mlx5_0,mlx5_1 --rail-variable NET --rounds 2"
    command = f"{SWEEP.format(machine / 'r.jsonl')} {options}"
    assert start(machine, command, node_names(6), **variables).returncode == 0
    result = parse_pairsweep((machine / "r.jsonl").read_text())
    result.verify_complete(node_names(6), rounds=2)
    assert len(result.pairs) == 2 * 2 * 3
    assert {row.hca for row in result.pairs} == {"mlx5_0", "mlx5_1"}


@pytest.mark.parametrize(
    ("lines", "met"),
    [
        ("mn0004 mn0001 1\nmn0002 mn0003 1\nmn0001 mn0002 3\n", [1, 1, 3]),
        ("mn0001 mn0002\n# all of it\n", [None]),
    ],
)
def test_pairs_of_a_file_meet_in_its_rounds(
    lines: str, met: list[int | None], tmp_path: Path
) -> None:
    install(tmp_path / "m", model_truth(4))
    (tmp_path / "m" / "pairs.txt").write_text(lines)
    result = sweep(tmp_path / "m", node_names(4), "--pairs pairs.txt")
    assert len(result.pairs) == len(met)
    assert result.runs[0].rounds == 3  # that of the list, or of the tournament
    for row, number in zip(result.pairs, met, strict=True):
        assert number in (None, row.round)
    assert {frozenset((row.source, row.destination)) for row in result.pairs} == {
        frozenset(line.split()[:2]) for line in lines.splitlines() if line[0] != "#"
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("mn0001", "pairs.txt, line 1: expected HOST HOST [ROUND]"),
        ("mn0001 mn0009 1", "pairs.txt, line 1: not a node of this run: mn0009"),
    ],
)
def test_other_lines_of_a_file_of_pairs_are_refused(
    line: str, reason: str, tmp_path: Path
) -> None:
    install(tmp_path / "m", model_truth(4))
    (tmp_path / "m" / "pairs.txt").write_text(f"{line}\n")
    ended = start(tmp_path / "m", "pairsweep --pairs pairs.txt", node_names(4))
    assert ended.returncode == 2
    assert ended.stderr == f"pairsweep: model: {reason}\n"


def test_imb_has_rows_of_every_pair_at_the_same_time(tmp_path: Path) -> None:
    faults = Faults(slow_links=(SlowLink(("mn0003", "mn0004"), 2),))
    install(tmp_path / "m", model_truth(4, faults=faults))
    command = "IMB-MPI1 PingPong -npmin 2 -msglog 0:3 -multi 1"
    text = start(tmp_path / "m", command, node_names(4)).stdout
    assert "# ( 2 groups of 2 processes each running simultaneous )" in text
    rows = [line.split() for line in text.splitlines() if line[:1] == " "]
    assert rows.pop(0) == ["Group", "#bytes", "#repetitions", "t[usec]", "Mbytes/sec"]
    sizes = ["0", "1", "2", "4", "8"]
    assert [row[:2] for row in rows] == [[g, size] for size in sizes for g in "01"]
    for sound, slow in zip(rows[::2], rows[1::2], strict=True):
        assert float(slow[3]) / float(sound[3]) == pytest.approx(2, rel=0.1)


def test_a_node_dies_at_a_program_and_stays_dead(tmp_path: Path) -> None:
    faults = Faults(dead_nodes=(DeadNode("mn0002", "osu_bw", "exit"),))
    machine = tmp_path / "m"
    install(machine, model_truth(2, faults=faults))
    there = {"SLURM_PROCID": "1", "SLURMD_NODENAME": "mn0002"}
    nodes = node_names(2)
    assert start(machine, "osu_latency", nodes, **there).returncode == 0
    ended = start(machine, "osu_bw", nodes, **there)
    assert (ended.returncode, ended.stderr) == (1, "osu_bw: model: mn0002 dies\n")
    assert [file.name for file in (machine / "dead").iterdir()] == ["mn0002"]
    ended = start(machine, "pairsweep --preflight", nodes, **there)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert start(machine, "pairsweep --preflight", nodes).stdout.count("hello") == 1
    install(machine, model_truth(2, faults=faults))
    assert start(machine, "osu_latency", nodes, **there).returncode == 0


def test_output_ends_in_the_middle_where_a_node_dies(tmp_path: Path) -> None:
    faults = Faults(dead_nodes=(DeadNode("mn0002", "pairsweep"),))
    machine = tmp_path / "m"
    install(machine, model_truth(8, faults=faults))
    file = machine / "sweep.jsonl"
    there = {"SLURM_PROCID": "1", "SLURMD_NODENAME": "mn0002"}
    ended = start(machine, "pairsweep --preflight", node_names(8), **there)
    assert (ended.returncode, ended.stdout.count("mn0002")) == (0, 3)
    process = subprocess.Popen(
        [machine / "bin" / "pairsweep", "--json", "--resume", file],
        env=step_variables(node_names(8)),
    )
    try:
        deadline = time.monotonic() + 60
        while not file.exists() or file.read_text().count("\n") < 13:
            assert time.monotonic() < deadline, "no rows"
            time.sleep(0.05)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    assert file.read_text().count("\n") == 1 + 3 * 4
    left = [name for name in node_names(8) if name != "mn0002"]
    event = '{"type":"event","event":"left_out","node":"mn0002","stage":"sweep",'
    with file.open("a") as stream:
        stream.write(event + '"reason":"start: none","time":1.0}\n')
    result = sweep(machine, left)
    result.verify_complete(node_names(8))


def test_programs_start_late_on_a_late_node(tmp_path: Path) -> None:
    faults = Faults(late_nodes=(LateNode("mn0002", 0.4),))
    install(tmp_path / "m", model_truth(2, faults=faults))
    began = time.monotonic()
    there = {"SLURM_PROCID": "1", "SLURMD_NODENAME": "mn0002"}
    ended = start(tmp_path / "m", "pairsweep --preflight", node_names(2), **there)
    assert time.monotonic() - began >= 0.4
    assert ended.stdout.count("mn0002") == 3


def test_a_share_of_the_modelled_time_is_waited(tmp_path: Path) -> None:
    install(tmp_path / "m", model_truth(1, time_scale=0.2))
    began = time.monotonic()
    command = "fixedwork --validate --json --time 2000 --threads 2"
    assert start(tmp_path / "m", command, node_names(1)).returncode == 0
    assert time.monotonic() - began >= 0.4
