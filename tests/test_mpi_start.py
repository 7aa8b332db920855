"""Crashes of the MPI library at start: recognised, repeated, recorded and counted."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from closed_runs import close_run
from criteria_samples import criteria
from judge_samples import LIMIT, NODES, found, make_run, repeats, sample
from test_checks_osu import REPLAY, run, settings

from seatrial.campaign.collect import _collect_case
from seatrial.campaign.collected import Collected
from seatrial.campaign.schedule import Planned
from seatrial.campaign.session import Outcome
from seatrial.campaign.session_command import Session
from seatrial.checks.job_control import Limit
from seatrial.checks.job_steps import _RUN_STEP
from seatrial.checks.mpi_start import FILE, SCRIPT, recorded, write_script
from seatrial.checks.nodesweep.launch import NodeStep
from seatrial.checks.srun_steps import Step
from seatrial.checks.step_launcher import Launcher
from seatrial.console import Terminal
from seatrial.judge.case_findings import conspicuous
from seatrial.judge.judge import judge
from seatrial.judge.summary import format_findings, print_summary
from seatrial.model.cases import Case, ListedCase
from seatrial.parsers.mpi_start import crash_at_start, mark, without_crashed_tries
from seatrial.report.exclusions import exclusions
from seatrial.report.front_page import _facts
from seatrial.runs.closed_run import read_cases
from seatrial.system.description import System

DATA = Path(__file__).parent / "data" / "mpi_start"
SWEEP = Path(__file__).parent / "data" / "sweep"
WRITE = "printf %s >nodes/cn01/hpcc/hpccoutf.txt"
CRASH = DATA / "openmpi-4.1.4-two-ranks.txt"
LATER = DATA / "later-openmpi-4.1.4-null.txt"
OPENMPI = ("-p", "openmpi")
OSU = r"\s*#.*"


@pytest.mark.parametrize(
    ("name", "reason", "ranks", "dead"),
    [
        (
            "openmpi-4.1.4-two-ranks",
            "Segmentation fault (11) before MPI_Init ended",
            "6-7",
            ["cn04"],
        ),
        (
            "openmpi-4.1.4-two-nodes",
            "Segmentation fault (11) before MPI_Init ended",
            "0,7",
            ["cn01", "cn04"],
        ),
        (
            "openmpi-4.1.4-peer-disconnected",
            "Segmentation fault (11) before MPI_Init ended",
            "5",
            ["cn03"],
        ),
        (
            "openmpi-4.1.4-no-component",
            "[cn02:18367] *** An error occurred in MPI_Init",
            "2,0",
            ["cn02", "cn01"],
        ),
        (
            "mpich-4.0.2-unreachable",
            (
                "Abort(70897167) on node 4 (rank 4 in comm 0): Fatal error in "
                "internal_Init: Other MPI error, error stack:"
            ),
            "",
            [],
        ),
        (
            "mpich-4.0.2-no-device",
            (
                "Abort(68800143): Fatal error in internal_Init: Other MPI error, error "
                "stack:"
            ),
            "4-5,6-7,0-1,2-3",
            ["cn03", "cn04", "cn01", "cn02"],
        ),
        (
            "model-openmpi-5.0.3-frames",
            "Segmentation fault (11) in MPI_Init",
            "24-25",
            ["cn04"],
        ),
        (
            "model-openmpi-ucx-frames",
            "6 (Aborted: tkill(2) or tgkill(2)) in MPI_Init",
            "0",
            ["gpu01"],
        ),
        (
            "model-intelmpi-2021",
            (
                "Abort(1090831) on node 1 (rank 1 in comm 0): Fatal error in "
                "PMPI_Init: Unknown error class, error stack:"
            ),
            "1",
            ["cn02"],
        ),
    ],
)
def test_crash_in_mpi_init_is_recognised(
    name: str, reason: str, ranks: str, dead: list[str]
) -> None:
    crash = crash_at_start((DATA / f"{name}.txt").read_text(), "")
    assert crash is not None
    assert (crash.reason, crash.ranks, [*crash.dead]) == (reason, ranks, dead)
    nodes = {"gpu01", "gpu02"} if "ucx" in name else {*NODES}
    assert {*crash.nodes} == (nodes if "intel" not in name else {"cn01", "cn02"})


@pytest.mark.parametrize("file", sorted(DATA.glob("later-*")), ids=lambda f: f.stem)
def test_crash_after_mpi_init_is_none(file: Path) -> None:
    assert crash_at_start(file.read_text(), "") is None


@pytest.mark.parametrize(
    ("printed", "preamble", "is_crash"),
    [
        ("", "", True),
        ("\n \n", "", True),
        ("# OSU MPI Latency Test v7.4\n\n# Size  Latency (us)\n", OSU, True),
        ("# OSU MPI Latency Test v7.4\n", "", False),
        ("# Size  Latency (us)\n1        1.25\n", OSU, False),
        ('{"type": "row"}\n', "", False),
    ],
)
def test_nothing_may_be_printed_that_follows_the_start(
    printed: str, preamble: str, is_crash: bool
) -> None:
    crash = crash_at_start(CRASH.read_text(), printed, preamble)
    assert (crash is not None) == is_crash


def test_output_of_crashed_tries_is_dropped_and_nothing_else() -> None:
    """Also where a try ended in the middle of a line."""
    first, second = "# Size\n", "# Size\n# Lat"
    text = "# step a\n" + first + mark("a", 1, first) + second + mark("a", 2, second)
    kept = "# step a\n# Size\n1 1.25\n# done a 1.0 2.0\n"
    assert without_crashed_tries(text + kept.partition("\n")[2]) == kept
    assert without_crashed_tries(kept) == kept


def start(
    folder: Path, script: str, crashes: int, header: str = "", text: Path = CRASH
) -> tuple[int, str, str]:
    """Run a script whose srun crashes so often; status, standard output and error.

    Both are files, as in a job. The program prints the header, then its number.
    """
    write_script(folder, OSU, "results")
    (folder / "srun").write_text(
        "#!/bin/bash\necho started >>starts\n"
        f"printf '{header}'\n"
        f"if [ $(wc -l <starts) -le {crashes} ]; then\n"
        f"    cat {text} >&2\n    exit 143\nfi\necho 8 1.25\n"
    )
    (folder / "srun").chmod(0o755)
    (folder / "run.sh").write_text(script)
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        status = subprocess.run(
            ["bash", "-c", script], cwd=folder, stdout=out, stderr=err, check=False
        ).returncode
    return status, (folder / "out").read_text(), (folder / "err").read_text()


PLAIN = f"bash {SCRIPT} ./srun"


@pytest.mark.parametrize("crashes", [0, 1, 2])
def test_program_is_started_again_until_it_lives(tmp_path: Path, crashes: int) -> None:
    status, output, errors = start(tmp_path, PLAIN, crashes, "# Size\\n")
    assert status == 0
    assert without_crashed_tries(output) == "# Size\n8 1.25\n"
    assert errors == crashes * CRASH.read_text()
    rows = recorded(tmp_path)
    assert [(row["step"], row["try"], row["dead"]) for row in rows] == [
        ("program", attempt, ["cn04"]) for attempt in range(1, crashes + 1)
    ]


def test_third_crash_is_the_last(tmp_path: Path) -> None:
    status, _, _ = start(tmp_path, PLAIN, 9)
    assert status == 143
    assert (tmp_path / "starts").read_text().count("started") == 3
    assert [row["try"] for row in recorded(tmp_path)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("header", "text"), [("8 1.25\\n", CRASH), ("", LATER)], ids=["printed", "later"]
)
def test_program_that_had_begun_is_not_started_again(
    tmp_path: Path, header: str, text: Path
) -> None:
    status, _, _ = start(tmp_path, PLAIN, 1, header, text)
    assert status == 143
    assert (tmp_path / "starts").read_text().count("started") == 1
    assert recorded(tmp_path) == ()


def test_program_that_wrote_results_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("HPL 1.0\n")
    assert start(tmp_path, PLAIN, 1)[0] == 143


def test_output_into_a_pipe_is_no_evidence(tmp_path: Path) -> None:
    assert start(tmp_path, f"set -o pipefail; {PLAIN} | cat", 1)[0] == 143


def test_step_is_started_again_and_only_its_last_try_counts(tmp_path: Path) -> None:
    steps = "run_step a --nodes=1 prog\nrun_step b --nodes=1 prog\n"
    (tmp_path / "steps.sh").write_text(_RUN_STEP + steps)
    status, output, errors = start(tmp_path, "bash steps.sh ./srun", 2, "# Size\\n")
    assert status == 0
    shown = re.sub(r" \d+\.\d+ \d+\.\d+", "", without_crashed_tries(output))
    assert shown == "".join(
        f"# step {name}\n# Size\n8 1.25\n# done {name}\n" for name in "ab"
    )
    assert errors == 2 * CRASH.read_text()
    assert [(row["step"], row["try"]) for row in recorded(tmp_path)] == [
        ("a", 1),
        ("a", 2),
    ]


def test_damaged_line_of_the_record_is_left_out(tmp_path: Path) -> None:
    start(tmp_path, PLAIN, 1)
    with (tmp_path / FILE).open("a") as file:
        file.write('{"step": "pro')
    assert len(recorded(tmp_path)) == 1


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a controller that answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLUSTER", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{SWEEP}:{os.environ['PATH']}")
    (tmp_path / "log").touch()
    return tmp_path


def conducted(folder: Path, crashes: int, text: Path, first: str = "") -> list[str]:
    """Write a launcher: its program prints a line and crashes a number of times."""
    (folder / "launcher").write_text(
        f"#!/bin/bash\necho started >>{folder}/starts\n"
        f"echo '{first}'\n"
        f"[ $(wc -l <{folder}/starts) -gt {crashes} ] && exit 0\n"
        f"cat {text} >&2\nexit 143\n"
    )
    (folder / "launcher").chmod(0o755)
    return [str(folder / "launcher")]


@pytest.mark.parametrize(
    ("crashes", "text", "first", "status", "starts"),
    [
        (2, CRASH, '{"type": "preflight", "stage": "start"}', 0, 3),
        (9, CRASH, "", 143, 3),
        (1, CRASH, '{"type": "pair"}', 143, 1),
        (1, LATER, "", 143, 1),
    ],
)
def test_step_of_a_pair_sweep(
    cluster: Path, crashes: int, text: Path, first: str, status: int, starts: int
) -> None:
    launcher = conducted(cluster, crashes, text, first)
    nodes, program = ["cn01", "cn02"], ["prog", "--preflight"]
    step = Step(nodes, program, cluster / "step", Limit(60), name="preflight")
    ended = Launcher(launcher, patience_s=60).run(step)
    assert ended.status == status
    assert (cluster / "starts").read_text().count("started") == starts
    rows = recorded(cluster)
    crashed = text == CRASH and "pair" not in first
    assert [row["step"] for row in rows] == ["preflight"] * min(crashes, 3) * crashed
    given_up = "error: MPI library crashed at start, 3 of 3 tries"
    assert (given_up in ended.reason) == (crashes == 9)


@pytest.mark.parametrize(
    ("crashes", "result", "status", "starts"),
    [(2, "", 0, 3), (9, "", 143, 3), (1, "HPL 1.0", 143, 1)],
)
def test_program_of_a_node_sweep(
    cluster: Path, crashes: int, result: str, status: int, starts: int
) -> None:
    (launcher,) = conducted(cluster, crashes, CRASH)
    folder = cluster / "nodes" / "cn01" / "hpcc"
    folder.mkdir(parents=True)
    (folder / "hpccinf.txt").write_text("input\n")
    text = Path(launcher).read_text()
    Path(launcher).write_text(f"{text}".replace("echo ''", f"{WRITE} '{result}'"))
    step = NodeStep("cn01", ["hpcc"], folder, 60, ranks=2, mpi=True)
    started = Launcher([launcher], patience_s=60)
    started.start([step])
    ended = started.wait([step])[step]
    assert ended.status == status
    assert (cluster / "starts").read_text().count("started") == starts
    assert len(recorded(cluster)) == (0 if result else min(crashes, 3))
    assert ("3 of 3 tries" in ended.reason) == (crashes == 9)


def crashing(folder: Path, times: int) -> None:
    """Put an srun into a folder that crashes so often, then is that of REPLAY."""
    (folder / "srun").write_text(
        "#!/bin/bash\n"
        f"[[ $* == *--kill-on-bad-exit* ]] && echo started >>{folder}/starts\n"
        f'[ $(wc -l <{folder}/starts) -gt {times} ] && exec {REPLAY}/srun "$@"\n'
        f"cat {CRASH} >&2\nexit 143\n"
    )
    (folder / "srun").chmod(0o755)


@pytest.mark.parametrize("check", ["OsuBarrier", "Halo%protocol=irecv_isend"])
def test_check_survives_two_crashes(tmp_path: Path, check: str) -> None:
    crashing(tmp_path, 2)
    row = run(tmp_path, settings(), "-n", check, *OPENMPI, path=tmp_path)
    assert row["result"] == "pass", row["fail_reason"]
    assert len(recorded(Path(row["stagedir"]))) == 2


def test_case_whose_every_try_crashes_says_so(tmp_path: Path) -> None:
    crashing(tmp_path, 9)
    changed = settings()
    changed["environments"][0]["extras"]["mpi"] = "openmpi@4.1.4"
    name = ("-n", "Halo%protocol=irecv_isend", *OPENMPI)
    row = run(tmp_path, changed, *name, path=tmp_path)
    assert row["result"] == "fail"
    assert (
        "MPI library crashed at start, 3 of 3 tries (openmpi 4.1.4); the last one on "
        "cn04: Segmentation fault (11) before MPI_Init ended"
    ) in row["fail_reason"]


def crash(dead: str, nodes: tuple[str, ...] = NODES) -> dict[str, Any]:
    """A crash as a case records it."""
    row = {"step": "program", "try": 1, "reason": "Segmentation fault", "ranks": "0"}
    return {**row, "dead": dead.split(), "nodes": [*nodes]}


def crashed(dead: list[str], jobs: int = 20) -> list[Case]:
    """Jobs, of which as many crashed at start as nodes are named."""
    return [
        replace(
            case, start_crashes=(crash(dead[number]),) if number < len(dead) else ()
        )
        for number, case in enumerate(repeats(jobs))
    ]


def test_crashes_are_counted_by_stack_and_blame_no_node() -> None:
    cases = crashed(["cn02", "cn03"])
    other = [replace(case, environment="mpich", start_crashes=()) for case in cases]
    rows = [sample(case, 80.0) for case in [*cases, *other]]
    run = make_run([*cases, *other], rows)
    judgement = judge(run, criteria(LIMIT))
    (finding,) = found(judgement, "start")
    assert finding.reason == (
        "2 of 20 intelmpi jobs died in MPI_Init (crashes by node: cn02 1, cn03 1); no "
        "node stands out"
    )
    assert (finding.verdict, finding.n) == ("pass", 20)
    assert judgement.worth_a_look == ()
    assert judgement.convicted == ()
    said = Terminal()
    with said.capture() as capture:
        print_summary(judgement, "r", said)
    assert "2 of 20 intelmpi jobs died in MPI_Init" in capture.get()
    assert "died in MPI_Init" in format_findings(judgement, "csv")
    assert "died in MPI_Init" in format_findings(judgement, "json")
    assert ("Crashes at start", finding.reason.partition(";")[0]) in _facts(
        run, judgement
    )
    (table,) = (
        table
        for title, table in exclusions(run, judgement).tables
        if title == "Programs that died in MPI_Init"
    )
    assert [row[-2] for row in table.rows] == ["cn02", "cn03"]


def test_run_without_crashes_says_nothing_of_them() -> None:
    cases = repeats(4)
    run = make_run(cases, [sample(case, 80.0) for case in cases])
    assert found(judge(run, criteria(LIMIT)), "start") == []


def test_node_that_stands_out_is_named_and_not_convicted() -> None:
    """Six of six on one node of four: p = 4^-6, times 4 nodes."""
    cases = crashed(["cn03"] * 6)
    run = make_run(cases, [sample(case, 80.0) for case in cases])
    judgement = judge(run, criteria(LIMIT))
    (finding,) = found(judgement, "start")
    assert finding.reason.endswith(
        "(crashes by node: cn03 6); worth a look: cn03 (p = 0.00098)"
    )
    assert judgement.worth_a_look == ("cn03",)
    assert judgement.convicted == ()


@pytest.mark.parametrize(
    ("dead", "named"),
    [
        (["cn03"], []),
        (["cn03"] * 3, []),  # p = 4^-3, times 4
        (["cn03"] * 4, ["cn03"]),
        (["cn03", "cn01", "cn03", "cn02", "cn03", "cn04"], []),
        (["cn01 cn02 cn03 cn04"] * 9, []),  # all died: no node is special
        (["cn02 cn03", "cn03 cn04", "cn03 cn01"], []),  # p = 2^-3
    ],
)
def test_node_stands_out_at_the_declared_risk(
    dead: list[str], named: list[str]
) -> None:
    assert [*conspicuous(crashed(dead), 0.05)] == named


def test_program_on_the_first_node_alone_tells_nothing_of_it() -> None:
    cases = [
        replace(case, start_crashes=(crash("cn01", ("cn01",)),)) for case in repeats(9)
    ]
    assert conspicuous(cases, 0.05) == {}


def test_crashes_are_kept_with_their_case(tmp_path: Path) -> None:
    """From the folder of a job to the cases of a closed run."""
    stage = tmp_path / "stage"
    stage.mkdir()
    start(stage, PLAIN, 2)
    listed = ListedCase("Halo", "lab:batch", "openmpi")
    planned = Planned("halo-1", "halo", 1, ("Halo",), {}, (listed,))
    system = cast(System, SimpleNamespace(uses_slurm=False, name="lab"))
    raw = tmp_path / "r" / "raw" / "halo-1"
    session = Session("r", system, tmp_path, planned, raw, tmp_path)
    entry: dict[str, Any] = {
        "display_name": "Halo",
        "result": "pass",
        "stagedir": str(stage),
    }
    entry |= {"fail_phase": None, "fail_reason": None, "jobid": None}
    entry |= {"job_nodelist": [*NODES], "job_submit_time": 0.0, "time_total": 9.0}
    entry |= {"job_stdout": "out", "job_stderr": "err", "keep_files": [FILE]}
    found = Collected()
    _collect_case(session, Outcome(0.0), listed, 1, entry, found)
    (path,) = (tmp_path / "r" / "raw" / "halo-1").rglob(FILE)
    assert path.read_text().count("errors") == 2
    run = close_run(tmp_path, cases=found.cases)
    assert read_cases(run) == tuple(found.cases)
    assert [each["try"] for each in read_cases(run)[0].start_crashes] == [1, 2]


def test_record_of_a_crash_has_its_text(tmp_path: Path) -> None:
    start(tmp_path, PLAIN, 1)
    (line,) = (tmp_path / FILE).read_text().splitlines()
    assert json.loads(line)["errors"] == CRASH.read_text()
    assert "errors" not in recorded(tmp_path)[0]
