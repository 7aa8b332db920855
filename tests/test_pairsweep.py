"""`pairsweep` on one machine, whose ranks pretend to be nodes."""

import json
import re
import socket
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from benchmark_builds import Build, Completed, run

from seatrial.parsers.pairsweep import PairSweep, parse_pairsweep
from seatrial.parsers.pairsweep_rows import PairRow

HOST = socket.gethostname().partition(".")[0]
READ_ONLY = "/proc/sys/kernel/ostype"  # even to root
SHORT = ["--pretend-ppn=1", "--max-size=4096", "--iterations=10", "--warmup=1"]
SHORT += ["--windows=2", "--window=4", "--time=0", "--json"]
RAILS = ["--rails=a,b", "--rail-variable=SEATRIAL_TEST_RAIL"]
ONCE = [*SHORT, "--retest=0"]


def names(count: int) -> list[str]:
    """Return the pretended nodes in the program's order."""
    return sorted(f"{HOST}/{number}" for number in range(count))


def all_pairs(count: int) -> set[tuple[str, str]]:
    return set(combinations(names(count), 2))


def pairs_of(sweep: PairSweep) -> list[tuple[str, str]]:
    return [(row.source, row.destination) for row in sweep.pairs]


def sweep_of(done: Completed) -> PairSweep:
    """Read what a run printed; it must have passed."""
    assert done.returncode == 0, done.stderr
    return parse_pairsweep(done.stdout)


def swept(build: Build, np: int, file: Path, *options: str) -> PairSweep:
    """Resume the program in a file, and read the whole file."""
    done = build.run("pairsweep", np, *ONCE, "--resume", str(file), *options)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return parse_pairsweep(file.read_text())


@pytest.mark.any_mpi
@pytest.mark.parametrize(("np", "rounds"), [(6, 2), (5, 2), (6, 5)])
def test_some_rounds_give_each_node_as_many_partners(
    build: Build, np: int, rounds: int
) -> None:
    options = [*ONCE, f"--rounds={rounds}"]
    sweep = sweep_of(build.run("pairsweep", np, *options))
    sweep.verify_complete(names(np), rounds)
    counts = sweep.answered(names(np), rounds)
    assert {count for count, _ in counts.values()} <= {rounds - np % 2, rounds}
    assert sum(count for count, _ in counts.values()) == 2 * rounds * (np // 2)


def end_row(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text.splitlines()[-1])
    assert row["type"] == "end"
    return row


def run_shimmed(build: Build, np: int, *options: str, **variables: str) -> Completed:
    """Run the program with planted faults, see benchmarks/tests/mpi_shim.c."""
    preloaded = [build.bin / "libmpi_shim.so"]
    if build.mpi == "mpich":
        preloaded.append(build.bin / "libmpich_yield.so")
    return run(
        f"mpiexec.{build.mpi}",
        *("-n", str(np)),
        build.bin / "pairsweep",
        *options,
        LD_PRELOAD=":".join(map(str, preloaded)),
        **variables,
    )


@pytest.mark.parametrize("np", [2, 3, 4, 8])
def test_every_pair_meets_once(build: Build, np: int) -> None:
    done = build.run("pairsweep", np, *ONCE, "--validate")
    sweep = sweep_of(done)
    assert sorted(pairs_of(sweep)) == sorted(all_pairs(np))
    (start,) = sweep.runs
    assert (start.np, start.nodes, start.rounds) == (np, np, np - 1 + np % 2)
    assert (start.pairs, start.resumed) == (len(sweep.pairs), 0)
    assert start.mpi.replace(" ", "").lower().startswith(build.mpi)
    meetings = Counter((row.round, node) for row in sweep.pairs for node in row.key[:2])
    assert set(meetings.values()) == {1}
    assert {row.round for row in sweep.pairs} == set(range(1, start.rounds + 1))
    assert {row.at_once for row in sweep.pairs} == {np // 2}
    assert {row.validation for row in sweep.pairs} == {"pass"}
    assert {(row.latency_n, row.bw_n) for row in sweep.pairs} == {(10, 2)}
    end = end_row(done.stdout)
    assert end["retested"] == 0
    assert (end["measured"], end["rounds_made"]) == (start.pairs, start.rounds)
    assert 0 < end["round_overhead_p50_us"] < 1e6 * end["elapsed_s"]


def test_measuring_is_no_overhead(build: Build) -> None:
    """Each timed loop takes a fifth of a second, and the rest next to nothing."""
    long = ("--time=200", "--iterations=10000000", "--windows=1000000")
    done = build.run("pairsweep", 2, *ONCE, *long)
    end = end_row(done.stdout)
    assert 0 < end["round_overhead_p50_us"] < 0.3 * 1e6 * end["elapsed_s"]


def test_rows_are_dated_and_whole(build: Build) -> None:
    sweep = sweep_of(build.run("pairsweep", 4, *ONCE))
    starts = [row.start_time for row in sweep.pairs]
    assert all(start > sweep.runs[0].start_time for start in starts)
    by_round: dict[int, list[float]] = {}
    for row in sweep.pairs:
        by_round.setdefault(row.round, []).append(row.start_time)
    rounds = [by_round[number] for number in sorted(by_round)]
    assert all(max(a) < min(b) for a, b in pairwise(rounds))
    assert {row.validation for row in sweep.pairs} == {"off"}


@pytest.mark.any_mpi
def test_order_follows_the_seed(build: Build) -> None:
    def order(seed: str) -> list[tuple[int, str, str]]:
        sweep = sweep_of(build.run("pairsweep", 5, *ONCE, "--seed", seed))
        return sorted((row.round, row.source, row.destination) for row in sweep.pairs)

    assert order("1") == order("1")
    assert order("1") != order("2")


@pytest.mark.any_mpi
def test_every_rail_has_its_pass(build: Build) -> None:
    options = ["--pretend-ppn=2", *RAILS, "--validate"]
    done = run_shimmed(build, 6, *ONCE, *options)
    places = re.findall(r"MPI_Init: place (\d+), rail (\w+)", done.stderr)
    assert dict(places) == {"0": "a", "2": "a", "4": "a", "1": "b", "3": "b", "5": "b"}
    sweep = sweep_of(done)
    assert [row.rail for row in sweep.pairs] == [0, 0, 0, 1, 1, 1]
    assert [row.hca for row in sweep.pairs] == ["a", "a", "a", "b", "b", "b"]
    for rail in (0, 1):
        found = {row.key[:2] for row in sweep.pairs if row.rail == rail}
        assert found == all_pairs(3)
    (start,) = sweep.runs
    assert (start.rails, start.rail_variable) == ("a,b", "SEATRIAL_TEST_RAIL")
    assert (start.np, start.nodes, start.pairs) == (6, 3, 6)


@pytest.mark.any_mpi
def test_suspects_of_every_rail_are_its_own(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "rails.jsonl"
    options = ["--pretend-ppn=2", *RAILS]
    sweep = swept(build, 6, file, *options)
    pair = sweep.pairs[4].key
    assert pair[2] == 1
    file.write_text(plant(file.read_text(), {pair: 30.0}))
    done = build.run("pairsweep", 6, *SHORT, *options, "--resume", str(file))
    assert done.returncode == 0, done.stderr
    assert set(parse_pairsweep(file.read_text()).quiet) == {pair}


@pytest.mark.any_mpi
def test_only_the_pairs_of_a_file(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "pairs"
    file.write_text(
        f"# two of six\n{HOST}/3 {HOST}/0\n\n{HOST}/1 {HOST}/2 # the other\n"
    )
    sweep = sweep_of(build.run("pairsweep", 4, *ONCE, "--pairs", str(file)))
    assert set(pairs_of(sweep)) == {
        (f"{HOST}/0", f"{HOST}/3"),
        (f"{HOST}/1", f"{HOST}/2"),
    }
    assert (len(sweep.pairs), sweep.runs[0].pairs) == (2, 2)


@pytest.mark.any_mpi
def test_rounds_of_a_file(build: Build, tmp_path: Path) -> None:
    """Pairs run in the rounds that their file gives, also after an interruption."""
    file, output = tmp_path / "pairs", tmp_path / "sweep.jsonl"
    wanted = [(0, 1, 1), (2, 3, 1), (4, 5, 1), (1, 2, 2), (0, 5, 4), (3, 1, 4)]
    lines = [f"{HOST}/{a} {HOST}/{b} {number}\n" for a, b, number in wanted]
    file.write_text("".join(lines))
    option = f"--pairs={file}"
    first = swept(build, 6, output, option, "--rounds=2")
    assert {row.round for row in first.pairs} == {1, 2}
    sweep = swept(build, 6, output, option)
    assert {(*row.key[:2], row.round) for row in sweep.pairs} == {
        (*sorted((f"{HOST}/{a}", f"{HOST}/{b}")), number) for a, b, number in wanted
    }
    at_once = Counter(number for *_, number in wanted)
    assert {(row.round, row.at_once) for row in sweep.pairs} == {*at_once.items()}
    assert [(run.pairs, run.resumed) for run in sweep.runs] == [(4, 0), (2, 4)]
    assert end_row(output.read_text())["rounds_made"] == 1
    output.write_text(plant(output.read_text(), {sweep.pairs[0].key: 9.0}))
    done = build.run("pairsweep", 6, *SHORT, option, f"--resume={output}")
    assert done.returncode == 0, done.stderr
    (again,) = parse_pairsweep(output.read_text()).quiet.values()
    assert again.key == sweep.pairs[0].key
    assert again.round == sweep.pairs[0].round


@pytest.mark.any_mpi
def test_rounds_in_parts_are_the_whole(build: Build) -> None:
    found: list[tuple[str, str]] = []
    for part, rounds in (("2", {1, 2}), ("3:4", {3, 4}), ("5:99", {5})):
        sweep = sweep_of(build.run("pairsweep", 5, *ONCE, "--rounds", part))
        assert {row.round for row in sweep.pairs} == rounds
        assert sweep.runs[0].rounds == 5
        found += pairs_of(sweep)
    assert sorted(found) == sorted(all_pairs(5))


@pytest.mark.any_mpi
@pytest.mark.parametrize(("np", "most"), [(5, 1), (6, 2)])
def test_fewer_pairs_at_once(build: Build, np: int, most: int) -> None:
    sweep = sweep_of(build.run("pairsweep", np, *ONCE, "--quiet-pairs", str(most)))
    assert sorted(pairs_of(sweep)) == sorted(all_pairs(np))
    counts = Counter(row.round for row in sweep.pairs)
    assert set(counts.values()) == {np // 2}
    expected = {1} if most == 1 else {1, 2}  # of three pairs two, then one
    assert {row.at_once for row in sweep.pairs} == expected


@pytest.mark.any_mpi
def test_resumes_after_every_cut(build: Build, tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    swept(build, 3, whole)
    lines = whole.read_text().splitlines(keepends=True)
    assert len(lines) == 5
    cuts = ["".join(lines[:count]) for count in range(len(lines) + 1)]
    cuts += [cut + lines[count][:40] for count, cut in enumerate(cuts[:-1])]
    cuts.append("".join(lines)[:-1])
    for number, cut in enumerate(cuts):
        file = tmp_path / f"{number}.jsonl"
        file.write_text(cut)
        sweep = swept(build, 3, file)
        assert sorted(pairs_of(sweep)) == sorted(all_pairs(3)), cut
        kept = cut[: cut.rfind("\n") + 1]
        assert file.read_text().startswith(kept + '{"type": "run"')
        done = kept.count('"sweep"')
        assert (sweep.runs[-1].pairs, sweep.runs[-1].resumed) == (3 - done, done)


@pytest.mark.any_mpi
def test_resumes_what_the_conductor_left(build: Build, tmp_path: Path) -> None:
    """Nodes that were left out, and pairs that hung, stay as they are."""
    file = tmp_path / "sweep.jsonl"
    event = {"type": "event", "event": "left_out", "node": "cn9", "stage": "start"}
    file.write_text(json.dumps(event | {"reason": 'no "answer"', "time": 1.5}) + "\n")
    swept(build, 4, file, "--rounds=1")
    row: dict[str, Any] = {"type": "pair", "mode": "sweep", "status": "hung"}
    row |= {"source": f"{HOST}/0", "destination": f"{HOST}/1", "rail": 0, "round": 2}
    known = set(pairs_of(parse_pairsweep(file.read_text())))
    hung = min(all_pairs(4) - known)
    row |= dict(zip(("source", "destination"), hung, strict=True))
    with file.open("a") as stream:
        stream.write(json.dumps(row | {"reason": "latency: no end"}) + "\n")
    sweep = swept(build, 4, file)
    assert set(pairs_of(sweep)) == all_pairs(4) - {hung}
    assert (sweep.runs[-1].pairs, sweep.runs[-1].resumed) == (3, 3)


@pytest.mark.any_mpi
def test_nodes_may_differ(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "sweep.jsonl"
    swept(build, 4, file)
    done = build.run("pairsweep", 3, *ONCE, "--resume", str(file))
    assert done.returncode == 0
    assert "3 pairs with nodes that are not in this run stay" in done.stderr
    sweep = swept(build, 5, file)
    assert sorted(pairs_of(sweep)) == sorted(all_pairs(5))
    assert [(row.pairs, row.resumed) for row in sweep.runs] == [(6, 0), (0, 3), (4, 6)]


def plant(text: str, slow: dict[tuple[str, str, int], float]) -> str:
    """Build all pairs of a file alike, and some slower by a factor."""
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        if row["type"] == "pair":
            factor = slow.get((row["source"], row["destination"], row["rail"]), 1.0)
            times = dict.fromkeys(("min", "p50", "p99", "max"), 5.0 * factor)
            row |= {f"latency_{name}_us": value for name, value in times.items()}
            row |= {"bw_mb_per_s": 900.0, "bw_back_mb_per_s": 1000.0 / factor}
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.any_mpi
def test_suspects_are_measured_again_alone(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "sweep.jsonl"
    first, second, third, *_ = [row.key for row in swept(build, 5, file).pairs]
    file.write_text(plant(file.read_text(), {first: 1.5, second: 4.0, third: 1.1}))
    sweeps = []
    for retest in ("1", "1", "9"):
        options = [*SHORT, "--retest", retest, "--resume", str(file)]
        done = build.run("pairsweep", 5, *options)
        assert done.returncode == 0, done.stderr
        end = end_row(file.read_text())
        assert (end["measured"], end["suspects"]) == (0, 2)
        sweeps.append((end["retested"], set(parse_pairsweep(file.read_text()).quiet)))
    assert sweeps == [(1, {second}), (0, {second}), (1, {first, second})]
    sweep = parse_pairsweep(file.read_text())
    row = sweep.quiet[second]
    assert (row.at_once, row.mode) == (1, "quiet")
    (before,) = [pair for pair in sweep.pairs if pair.key == second]
    assert row.round == before.round


@pytest.mark.any_mpi
def test_suspects_follow_from_the_rows(build: Build) -> None:
    """The medians of the program are those of a histogram of half a percent."""
    done = build.run("pairsweep", 5, *SHORT, "--suspect=5")
    sweep = sweep_of(done)
    latency = statistics.median(row.latency_p50_us for row in sweep.pairs)
    bandwidth = statistics.median(worse_bandwidth(row) for row in sweep.pairs)
    severity = {
        row.key: max(
            row.latency_p50_us / latency / 1.05,
            0.95 * bandwidth / worse_bandwidth(row),
        )
        for row in sweep.pairs
    }
    for pair, times in severity.items():
        if abs(times - 1) > 0.01:
            assert (pair in sweep.quiet) == (times > 1), (pair, times)
    end = end_row(done.stdout)
    assert end["suspects"] == end["retested"] == len(sweep.quiet)


def worse_bandwidth(row: PairRow) -> float:
    return min(row.bw_mb_per_s, row.bw_back_mb_per_s)


@pytest.mark.any_mpi
def test_a_slow_pair_is_found_and_is_slow_alone(build: Build) -> None:
    shim = {"SEATRIAL_TEST_SHIM": "send 1 3 1 slow"}
    done = run_shimmed(build, 4, *SHORT, "--suspect=95", **shim)
    sweep = sweep_of(done)
    slow = (f"{HOST}/1", f"{HOST}/3", 0)
    assert next(iter(sweep.quiet)) == slow  # the worst comes first
    assert sweep.quiet[slow].latency_p50_us > 5000
    (row,) = [row for row in sweep.pairs if row.key == slow]
    assert row.latency_p50_us > 5000


@pytest.mark.any_mpi
def test_time_limits_each_pair(build: Build) -> None:
    options = [*ONCE, "--iterations=1000000", "--windows=1000000", "--time=20"]
    shim = {"SEATRIAL_TEST_SHIM": "send 0 1 1 slow"}
    sweep = sweep_of(run_shimmed(build, 3, *options, **shim))
    samples = {row.key[:2]: row.latency_n for row in sweep.pairs}
    assert samples.pop((f"{HOST}/0", f"{HOST}/1")) == 1
    assert min(samples.values()) > 1
    assert max(samples.values()) < 1000000


@pytest.mark.parametrize(
    ("phase", "fault"),
    [
        ("connect", "send 2 1 11"),
        ("latency", "send 1 2 1"),
        ("bandwidth", "isend 2 1 1"),
        ("validate", "sendrecv 1 2 1"),
    ],
)
def test_a_hung_pair_is_named(build: Build, phase: str, fault: str) -> None:
    """Only that pair: the others wait for it longer."""
    options = [*ONCE, "--validate", "--pair-limit=1", "--iterations=3"]
    shim = {"SEATRIAL_TEST_SHIM": f"{fault} hang"}
    done = run_shimmed(build, 4, *options, **shim)
    assert done.returncode != 0
    said = {line for line in done.stderr.splitlines() if line.startswith("pairsweep: ")}
    (line,) = said
    assert re.fullmatch(
        rf"pairsweep: hung pair {HOST}/1 {HOST}/2 rail 0 round [123] phase {phase}: "
        r"no end within 1 s",
        line,
    )
    rows = [json.loads(row) for row in done.stdout.splitlines() if row[:1] == "{"]
    assert rows[0]["type"] == "run"
    assert {row["status"] for row in rows[1:]} <= {"ok"}


def test_a_node_that_is_waited_for_in_vain(build: Build) -> None:
    options = [*ONCE, "--pair-limit=1", "--iterations=3"]
    done = run_shimmed(build, 3, *options, SEATRIAL_TEST_SHIM="barrier 1 0 0 hang")
    assert done.returncode != 0
    said = re.findall(
        rf"pairsweep: ({HOST}/\d) waited in vain for the others, round 1: "
        r"no end within 3 s\n",
        done.stderr,
    )
    assert said
    assert set(said) <= set(names(3))
    assert "hung pair" not in done.stderr


@pytest.mark.any_mpi
def test_output_goes_to_a_file(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "sweep.jsonl"
    options = [option for option in ONCE if option != "--json"]
    done = build.run("pairsweep", 3, *options, "--output", str(file))
    assert (done.returncode, done.stdout) == (0, "")
    text = file.read_text()
    assert len(parse_pairsweep(text).pairs) == 3
    done = build.run("pairsweep", 3, *options, "--output", str(file))
    assert done.returncode == 2
    assert f"{file} is not empty: go on in it with --resume" in done.stderr
    assert file.read_text() == text


@pytest.mark.any_mpi
def test_table(build: Build) -> None:
    options = [option for option in ONCE if option != "--json"]
    done = build.run("pairsweep", 3, *options, "--validate")
    assert done.returncode == 0
    head = [line for line in done.stdout.splitlines() if line.startswith("#")]
    rows = [line.split() for line in done.stdout.splitlines() if line[0] != "#"]
    assert head[-2].split()[1:4] == ["Source", "Destination", "HCA"]
    assert {(row[0], row[1]) for row in rows} == all_pairs(3)
    assert {(len(row), row[-1]) for row in rows} == {(11, "pass")}


def test_corruption_exits_1(build: Build) -> None:
    done = build.run("pairsweep_corrupt", 3, *ONCE, "--validate")
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    pairs = [row for row in rows if row["type"] == "pair"]
    assert [row["validation"] for row in pairs] == ["fail"] * 3
    for size in (8, 4096):
        assert f"validation failed: {size} bytes, byte {size // 2}, " in done.stderr


@pytest.mark.any_mpi
def test_full_disk_exits_1(build: Build) -> None:
    said = ""
    for _ in range(3):  # under load MPICH's mpiexec now and then loses what it hears
        done = build.run("pairsweep", 2, *ONCE, "--output", "/dev/full")
        assert done.returncode == 1
        said += done.stderr
        if said:
            break
    assert "output: write: No space left on device" in said


def test_preflight(build: Build) -> None:
    done = build.run("pairsweep", 3, "--preflight", "--pretend-ppn=1")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    stages: dict[str, list[str]] = {}
    for row in rows:
        assert row.keys() == {"type", "stage", "host"}
        stages.setdefault(row["host"], []).append(row["stage"])
    assert sorted(stages) == names(3)
    assert all(found == ["start", "init", "hello"] for found in stages.values())


def test_preflight_starts_before_mpi(build: Build) -> None:
    broken = {"OMPI_MCA_pml": "none_such", "UCX_TLS": "none_such"}
    done = build.run("pairsweep", 2, "--preflight", **broken)
    assert done.returncode != 0
    rows = [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"]
    assert [row["stage"] for row in rows] == ["start", "start"]


def refusals(build: Build, np: int, options: Sequence[str], **variables: str) -> str:
    """Return the one line of an error that exits 2 before any data."""
    done = build.run("pairsweep", np, *options, **variables)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = [
        line for line in done.stderr.splitlines() if line.startswith("pairsweep: rank")
    ]
    return line


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (1, [], "1 node: pairs need at least 2"),
        (2, ["--pretend-ppn=0"], "1 node: pairs need at least 2"),
        (4, ["--pretend-ppn=2"], "4 ranks on 2 nodes: expected 1 on every node"),
        (3, ["--pretend-ppn=2", *RAILS], "3 ranks on 2 nodes: expected 2"),
        (2, ["--rails=a,,b"], "--rails: expected names A,B,.. (see --help)"),
        (1, ["--rails=a,b"], "--rails: no variable of a launcher tells"),
        (2, ["--max-size=0"], "--max-size: '0' is not an integer from 1"),
        (2, ["--min-size=9", "--max-size=8"], "smallest size 9 is above the largest"),
        (2, ["--rounds=3:2"], "--rounds: the first is above the last"),
        (3, ["--rounds=4:9"], "--rounds begins with 4, but 3 nodes have 3 rounds"),
        (2, ["--output=a", "--resume=b"], "--output and --resume both name a file"),
        (2, ["--time=2000", "--pair-limit=2"], "--time must be below --pair-limit"),
        (2, ["--output=/none/such"], "fopen: /none/such: No such file or directory"),
        (2, [f"--output={READ_ONLY}"], f"fopen: {READ_ONLY}: Permission denied"),
        (2, [f"--resume={READ_ONLY}"], f"fopen: {READ_ONLY}: Permission denied"),
        (2, ["--resume=/"], "fopen: /: Is a directory"),
        (2, ["--pairs=/none/such"], "fopen: /none/such: No such file or directory"),
    ],
)
def test_bad_input_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    assert error in refusals(build, np, [*ONCE, *options])


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("cn1 cn2\n", "line 1: not a node of this run: cn1"),
        (f"{HOST}/0 {HOST}/1\n{HOST}/0\n", "line 2: expected HOST HOST"),
        (f"{HOST}/0 {HOST}/1 2\n{HOST}/1 {HOST}/0 2\n", "line 2: a second time in"),
    ],
)
def test_bad_pairs_exit_2(build: Build, tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "pairs"
    file.write_text(text)
    assert error in refusals(build, 2, [*ONCE, "--pairs", str(file)])


@pytest.mark.any_mpi
def test_rounds_of_a_file_are_whole(build: Build, tmp_path: Path) -> None:
    file = tmp_path / "pairs"
    file.write_text(f"{HOST}/0 {HOST}/1 1\n")
    options = [*ONCE, "--pairs", str(file), "--quiet-pairs=1"]
    assert f"{file} has rounds: leave out --quiet-pairs" in refusals(build, 2, options)


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("old", "new", "options", "error"),
    [
        ("", "", ["--seed=2"], "line 1: a run with other settings: seed was 1"),
        ("", "", ["--windows=3"], "settings: windows was 2"),
        ("", "", [*RAILS[1:], "--rails=a"], "settings: rails was nothing"),
        (f"{HOST}/", "cn", [], "line 3: none of its nodes is in this run"),
        ('"type": "pair"', '"type": "row"', [], "line 2: no row of pairsweep"),
        ("{", "", [], "line 1: no row of pairsweep"),
    ],
)
def test_files_of_others_are_refused_and_kept(
    build: Build, tmp_path: Path, old: str, new: str, options: list[str], error: str
) -> None:
    file = tmp_path / "sweep.jsonl"
    swept(build, 2, file)
    text = file.read_text().replace(old, new) if old else file.read_text()
    file.write_text(text)
    assert error in refusals(build, 2, [*ONCE, "--resume", str(file), *options])
    assert file.read_text() == text


@pytest.mark.any_mpi
def test_too_much_memory_exits_2(build: Build) -> None:
    info = Path("/proc/meminfo").read_text()
    found = re.search(r"MemAvailable: +(\d+) kB", info)
    assert found
    np = int(found[1]) // (2 << 20) + 2  # each takes 2 GiB
    if np > 16:
        pytest.skip("this machine has too much memory to ask for more with few ranks")
    error = refusals(build, np, [*ONCE, f"--max-size={1 << 30}"])
    assert "MiB of memory, available are" in error


@pytest.mark.any_mpi
def test_help_shows_the_defaults(build: Build) -> None:
    done = build.run("pairsweep", 1, "--seed", "7", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    found = dict(re.findall(r"--([a-z-]+) .*\(default (\S+)\)", done.stdout))
    assert found == {
        "min-size": "8",
        "max-size": "1048576",
        "iterations": "1000",
        "warmup": "20",
        "time": "200",
        "window": "16",
        "windows": "10",
        "seed": "1",
        "rounds": "1:16777216",
        "quiet-pairs": "0",
        "retest": "1000",
        "suspect": "20",
        "rail-variable": "UCX_NET_DEVICES",
        "pair-limit": "60",
        "pretend-ppn": "0",
    }


@pytest.mark.any_mpi
def test_schedule_of_many_nodes(build: Build) -> None:
    done = run(build.bin / "bench_tournament", "2000")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["nodes"], found["pairs"]) == (2000, 1999000)
    assert 0 < found["peak_memory_mib"] < 100
