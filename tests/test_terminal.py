"""Printed text has no foreign control characters, also when pipes close or fail."""

import ast
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from closed_runs import CRITERIA, close_run, rewrite_manifest
from fake_home import write
from judge_samples import CASE, sample
from test_status import open_run

from seatrial.cli import main
from seatrial.output import clean, one_line
from seatrial.runs.pack import pack

SEATRIAL = str(Path(sys.executable).parent / "seatrial")
SOURCES = Path(__file__).resolve().parents[1] / "src" / "seatrial"

FORGED = "\x1b[2K\x1b[1A\x1b[32mPASS\x1b[0m\r\x9b2J\u202e[/]"
"""Erases a line and writes another, by C0 and by C1; turns text; ends a markup."""

COMMANDS = {
    "judge": ("judge", "{run}"),
    "judge csv": ("judge", "{run}", "--format", "csv"),
    "judge json": ("judge", "{run}", "--format", "json"),
    "status": ("status",),
    "verify": ("verify", "{run}"),
    "verify json": ("verify", "{run}", "--format", "json"),
    "report": ("report", "{run}", "--form", "md", "--out", "{out}"),
    "compare": ("compare", "a={run}", "b={other}"),
    "query": ("query", "{run}"),
    "query csv": ("query", "{run}", "--format", "csv"),
    "export": ("export", "{run}"),
    "trend": (
        "trend",
        "lab",
        "{run}",
        "{other}",
        "--format",
        "table",
        "--out",
        "{out}",
    ),
    "plan": ("plan", "lab", "--campaign", "smoke"),
    "unknown": ("judge", FORGED),
}
QUICK = {"status", "verify", "verify json", "query", "query csv", "export"}
"""Commands that `make test` tries on a terminal, beside `judge`."""


@pytest.fixture
def scene(tmp_path: Path) -> dict[str, str]:
    """Two closed runs and an open one whose names hold escape sequences."""
    home, results = tmp_path / "home", tmp_path / "results"
    write(home / "reference-data" / "lab" / "criteria.yaml", CRITERIA)
    smoke = "blocks: [{name: pairs, checks: [ImbRing]}]\n"
    write(home / "reframe-checks" / "campaigns" / "smoke.yaml", smoke)
    case = replace(
        CASE,
        case=f"ImbRing {FORGED}",
        environment=f"mpi{FORGED}",
        raw="raw/pairs-1",
    )
    rows = [
        sample(case, 10.0 + number, pair=f"cn01{FORGED} cn0{number}{FORGED}")
        for number in (2, 3)
    ]
    runs = [
        close_run(
            results,
            f"2026010{day}T000000Z-smoke",
            rows=rows,
            cases=[case],
            description=FORGED,
            software={"seatrial": FORGED},
            nodes=[
                {
                    "name": "cn01",
                    "facts": {},
                    "state": "absent",
                    "reason": FORGED,
                }
            ],
        )
        for day in (1, 2)
    ]
    agenda = open_run(results) / "plan.json"
    content = json.loads(agenda.read_text())
    content["campaign"]["name"] = FORGED
    agenda.write_text(json.dumps(content))
    return {
        "run": str(runs[0]),
        "other": str(runs[1]),
        "out": str(tmp_path / "out"),
        "SEATRIAL_HOME": str(home),
        "SEATRIAL_RESULTS": str(results),
    }


def environment(scene: dict[str, str]) -> dict[str, str]:
    ours = {key: value for key, value in scene.items() if key.isupper()}
    return {**os.environ, **ours, "COLUMNS": "100", "TERM": "xterm-256color"}


def on_pty(command: list[str], env: dict[str, str]) -> tuple[int, str]:
    """Run a command with both outputs on a pseudo-terminal; status and output."""
    main, side = pty.openpty()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=side, stderr=side, env=env
    ) as process:
        os.close(side)
        output = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # its other end is closed
                break
            if not part:
                break
            output += part
    os.close(main)
    return process.returncode, output.decode()


def in_process(scene: dict[str, str], *arguments: str) -> Result:
    """Run a command in this process, its output into a pipe so to say."""
    given = [part.format(**scene) for part in arguments]
    return CliRunner(env=environment(scene)).invoke(main, given)


def without_colours(text: str) -> str:
    """Remove what Rich writes on a terminal: colours, and line ends of the pty."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")


def assert_harmless(output: str) -> None:
    """Require text and colours only, and no forged verdict."""
    assert "unexpected" not in output
    assert "Traceback" not in output
    rest = without_colours(output)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", rest), repr(rest)
    for colour in re.findall(r"\x1b\[32mPASS", output):
        pytest.fail(f"a forged verdict: {colour!r}")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in COMMANDS
        if name != "judge"
    ],
)
def test_no_escape_sequence_reaches_the_terminal(
    name: str, scene: dict[str, str]
) -> None:
    command = [SEATRIAL, *(part.format(**scene) for part in COMMANDS[name])]
    status, output = on_pty(command, environment(scene))
    assert status in (0, 1, 2, 3)
    assert_harmless(output)


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if not name.endswith("csv") and name != "export"]
)
def test_nor_a_pipe(name: str, scene: dict[str, str]) -> None:
    result = in_process(scene, *COMMANDS[name])
    output = result.stdout + result.stderr
    assert result.exit_code in (0, 1, 2, 3)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", output), repr(output)


def test_judge_with_forged_names_still_fails(scene: dict[str, str]) -> None:
    status, output = on_pty([SEATRIAL, "judge", scene["run"]], environment(scene))
    assert status == 1
    assert_harmless(output)
    lines = without_colours(output).splitlines()
    assert any(line.startswith("FAIL  lab, campaign smoke") for line in lines)
    assert not any(line.startswith("PASS") for line in lines)


def test_clean_keeps_lines_and_one_line_does_not() -> None:
    assert (
        clean("a\tb\nc\x1b\x07\x7f\x9b\u2066")
        == "a\tb\nc\u241b\u2407\u2421\ufffd\ufffd"
    )
    assert one_line("a\tb\nPASS") == "a\u2409b\u240aPASS"


@pytest.mark.parametrize(
    "arguments",
    [
        ("judge",),
        pytest.param(("judge", "--format", "csv"), marks=pytest.mark.slow),
    ],
)
def test_closed_pipe_keeps_the_status(
    arguments: tuple[str, ...], scene: dict[str, str]
) -> None:
    read, write_end = os.pipe()
    os.close(read)
    done = subprocess.run(
        [SEATRIAL, *arguments, scene["run"]],
        stdout=write_end,
        stderr=subprocess.PIPE,
        env=environment(scene),
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, b"")


def test_closed_pipe_of_a_query_is_no_error(scene: dict[str, str]) -> None:
    read, write_end = os.pipe()
    os.close(read)
    done = subprocess.run(
        [SEATRIAL, "query", scene["run"], "--format", "csv"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        env=environment(scene),
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")


def test_output_that_the_encoding_lacks(scene: dict[str, str]) -> None:
    done = subprocess.run(
        [SEATRIAL, "judge", scene["run"]],
        capture_output=True,
        env={**environment(scene), "PYTHONIOENCODING": "latin-1"},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert rb"\u2265 60 MB/s" in done.stdout


@pytest.mark.parametrize(
    "manifest",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"schema": 2, "checksums": {"a\\u0000b": "0"}, "started": "2026-01-01"}',
        b'{"schema": 2, "checksums": {}, "nodes": 7, "system": [], "run": {}}',
        b'{"schema": Infinity, "checksums": {}}',
    ],
    ids=["deep", "NUL", "types", "infinity"],
)
@pytest.mark.parametrize("command", ["judge", "verify", "report", "query"])
def test_damaged_manifest_is_never_a_failed_acceptance(
    command: str, manifest: bytes, scene: dict[str, str]
) -> None:
    Path(scene["run"], "manifest.json").write_bytes(manifest)
    result = in_process(scene, command, "{run}")
    if result.exit_code == 1:
        assert command == "verify"
        assert result.stdout.startswith("CHANGED")  # a verdict
        return
    assert result.exit_code in (0, 2), result.stderr
    assert command == "query" or result.stderr.startswith("seatrial: ")
    assert "Traceback" not in result.stderr


def test_unexpected_error_has_a_traceback_if_asked_for(
    scene: dict[str, str],
) -> None:
    rewrite_manifest(Path(scene["run"]), nodes=7)
    for debug, shown in (("", False), ("1", True)):
        result = in_process({**scene, "SEATRIAL_DEBUG": debug}, "judge", "{run}")
        assert result.exit_code == 2
        assert ("Traceback" in result.stderr) is shown


def test_packed_run_is_named_by_its_file(scene: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "offer.seatrial.tar.xz"
    pack(Path(scene["run"]), file)
    for command in ("judge", "verify"):
        result = in_process(scene, command, str(file))
        assert result.stdout.splitlines()[-1] == f"run: {file}"
        assert "seatrial-run-" not in result.output


ON_NODES = {
    "checks/hplsweep/__main__.py",
    "checks/job_control.py",
    "checks/loadsensors/__main__.py",
    "checks/mpi_start.py",
    "checks/nodesweep/__main__.py",
    "checks/nodesweep/sensors.py",
    "checks/pairsweep/__main__.py",
    "checks/perftest_pair.py",
    "checks/srun_steps.py",
    "checks/storage/__main__.py",
    "checks/storage/keeper.py",
    "checks/throughput.py",
    "standins/__main__.py",
    "standins/run.py",
}
"""Programs that run in jobs, and the stand-ins for such: they print its output."""


def dotted(node: ast.AST) -> str:
    """Return a name with dots, without the arguments of what is called on its way."""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_only_two_modules_print() -> None:
    """Whoever prints on his own prints what a vendor's names hold."""
    printing = set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = dotted(node.func)
                if called in ("print", "Console", "click.echo", "click.secho") or (
                    called.startswith(("sys.stdout.", "sys.stderr."))
                    and called.endswith("write")
                ):
                    printing.add(str(file.relative_to(SOURCES)))
            elif isinstance(node, ast.Name | ast.Attribute):
                name = dotted(node)
                if name in ("rich.print", "from_markup", "Text.from_markup"):
                    printing.add(str(file.relative_to(SOURCES)))
    assert printing - ON_NODES == {"output.py"}
