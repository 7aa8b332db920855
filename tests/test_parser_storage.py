"""The parsers of IOR and mdtest, on captured output of three versions."""

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.ior import parse_ior
from seatrial.parsers.mdtest import OPERATIONS, parse_mdtest

DATA = Path(__file__).parent / "data" / "ior"
VERSIONS = ("3.3.0", "4.0.0", "4.1.0+dev")
IOR = (DATA / "file-4.0.0.txt").read_text()
MDTEST = (DATA / "mdtest-4.0.0.txt").read_text()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", ["file", "shared"])
@pytest.mark.parametrize("verified", [False, True])
def test_captured_runs_of_ior(version: str, layout: str, verified: bool) -> None:
    suffix = "-verified" if verified else ""
    run = parse_ior((DATA / f"{layout}{suffix}-{version}.txt").read_text())
    assert run.version == version
    assert (run.nodes, run.ranks, run.block_bytes) == (1, 4, 32 << 20)
    assert run.transfer_bytes == 1 << 20
    assert run.file_per_process == (layout == "file")
    assert (run.reordered, run.verified) == (True, verified)
    assert (run.write_mb_per_s is None) == verified
    assert run.read_mb_per_s is not None


def test_mib_of_ior_become_mb() -> None:
    whole = json.loads(IOR)
    write, read = (row["bwMeanMIB"] for row in whole["summary"])
    run = parse_ior(IOR)
    assert run.write_mb_per_s == pytest.approx(write * 1.048576, rel=1e-12)
    assert run.read_mb_per_s == pytest.approx(read * 1.048576, rel=1e-12)


def test_lines_around_the_results_are_passed_over() -> None:
    around = f"slurmstepd: hello\n{IOR}\n[cn01] ucx: goodbye\n"
    assert parse_ior(around) == parse_ior(IOR)


def _changed(path: str, value: Any) -> str:
    whole = json.loads(IOR)
    *keys, last = (int(key) if key.isdigit() else key for key in path.split("."))
    place: Any = whole
    for key in keys:
        place = place[key]
    place[last] = value
    return json.dumps(whole, indent=1)


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("tests.0.Parameters.repetitions", 2, "expected one repetition"),
        ("tests.0.Parameters.segmentCount", 2, "expected one repetition"),
        ("tests.0.Parameters.readFile", 0, "results of write, read"),
        ("tests.0.Parameters.nodes", 0, "0 is not a number of at least 1"),
        ("tests.0.Parameters.nodes", "1", "'1' is not a number of at least 1"),
        ("tests.0.Options.tasks", 8, "numTasks 4, expected 8"),
        ("summary.0.numTasks", 5, "numTasks 5, expected 4"),
        ("summary.0.blockSize", 1, "blockSize 1, expected 33554432"),
        ("summary.1.transferSize", 1, "transferSize 1, expected 1048576"),
        ("summary.1.filePerProc", 0, "filePerProc 0, expected 1"),
        ("summary.0.xsizeMiB", 127.0, "write: 127.0 MiB, expected 128.0"),
        ("summary.0.MeanTime", 1.0, "write: 128.0 MiB in 1.0 s are not"),
        ("summary.0.bwMeanMIB", 0, "write: bandwidth 0.0 in"),
        ("summary.0.bwMeanMIB", "fast", "not the results of IOR"),
        ("summary.0.operation", "read", "an operation 'read' too many"),
        ("summary", [], "results of nothing"),
        ("tests", [], "not the results of IOR"),
    ],
)
def test_results_of_ior_that_contradict_are_refused(
    path: str, value: Any, error: str
) -> None:
    with pytest.raises(ParseError, match=error):
        parse_ior(_changed(path, value))


def test_output_of_ior_that_is_cut_or_mixed_is_refused() -> None:
    lines = IOR.splitlines(keepends=True)
    for cut in range(len(lines)):
        with pytest.raises(ParseError):
            parse_ior("".join(lines[:cut]))
        if cut > 0:
            with pytest.raises(ParseError):
                parse_ior("".join([*lines[:cut], "cn01: warning\n", *lines[cut:]]))
    with pytest.raises(ParseError, match="not the JSON of IOR"):
        parse_ior((DATA / "damaged-4.1.0+dev.txt").read_text())
    with pytest.raises(ParseError, match="no results of IOR in 0 lines"):
        parse_ior("")


@pytest.mark.parametrize("version", VERSIONS)
def test_captured_runs_of_mdtest(version: str) -> None:
    run = parse_mdtest((DATA / f"mdtest-{version}.txt").read_text())
    assert (run.version, run.nodes, run.tasks, run.items) == (version, 1, 4, 200)
    assert [*run.rates] == [*OPERATIONS]
    creation = {"3.3.0": 1824.497, "4.0.0": 27367.245, "4.1.0+dev": 5415.499}
    assert run.rates["File creation"] == creation[version]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("(of 1 iterations)", "(of 2 iterations)", "2 iterations, expected 1"),
        ("4 tasks, 200", "8 tasks, 200", "8 tasks, expected 4"),
        ("   File stat ", "   File read ", "a second row of File read"),
        ("   File stat ", "   File stet ", "no row of File stat"),
        ("   File read ", "cn01 File read ", "no row of File read"),
        (" 193642.844 ", " 193642.845 ", "File read: rates are out of order"),
        ("-- finished at", "-- begun at", "0 lines like '-- finished"),
        ("SUMMARY rate", "SUMMARY time", "0 lines like 'SUMMARY"),
    ],
)
def test_damaged_output_of_mdtest_is_refused(old: str, new: str, error: str) -> None:
    damaged = MDTEST[::-1].replace(old[::-1], new[::-1], 1)[::-1]
    with pytest.raises(ParseError, match=error):
        parse_mdtest(damaged)


def test_output_of_mdtest_twice_or_cut_is_refused() -> None:
    with pytest.raises(ParseError, match="2 lines like"):
        parse_mdtest(MDTEST * 2)
    lines = MDTEST.rstrip().splitlines(keepends=True)
    for cut in range(len(lines)):
        with pytest.raises(ParseError):
            parse_mdtest("".join(lines[:cut]))
