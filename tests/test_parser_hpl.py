"""The parser of HPL, on outputs of HPL 2.0 (of HPCC 1.5.0) and HPL 2.3."""

from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpl import HplRun, parse_hpl

DATA = Path(__file__).parent / "data" / "hpl"
OF_HPCC = (DATA / "hpcc-2.0-np2.txt").read_text()
OF_2_3 = (DATA / "hpl-2.3-np4.txt").read_text()
RESIDUAL = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)="


@pytest.mark.parametrize(
    ("name", "problem", "numbers"),
    [
        ("hpcc-2.0-np1", (960, 80, (1, 1)), None),
        ("hpcc-2.0-np2", (1000, 80, (1, 2)), (0.20, 3.343, 0.0039687)),
        ("hpl-2.3-np2", (1000, 80, (1, 2)), (0.38, 1.7599, 3.96873343e-03)),
        ("hpl-2.3-np4", (1500, 64, (2, 2)), None),
    ],
)
def test_versions_differ_in_widths(
    name: str,
    problem: tuple[int, int, tuple[int, int]],
    numbers: tuple[float, float, float] | None,
) -> None:
    run = parse_hpl((DATA / f"{name}.txt").read_text(), *problem)
    assert (run.n, run.block, (run.rows, run.columns)) == problem
    assert 0 < run.residual < 16
    if numbers:
        assert run == HplRun(*problem[:2], *problem[2], *numbers)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("failed-np2", "the residual 4.17789640e-03 is FAILED"),
        ("unchecked-np2", "no residual: HPL has not checked its result"),
        ("skipped-np1", r"HPL says: \[0,0\] Memory allocation failed"),
        ("two-blocks-np2", "2 results of HPL, expected one"),
    ],
)
def test_runs_that_prove_nothing_are_refused(name: str, reason: str) -> None:
    text = (DATA / f"{name}.txt").read_text()
    problem = (1000, 192) if name == "failed-np2" else (500, 80)
    with pytest.raises(ParseError, match=reason):
        parse_hpl(text, *problem, (1, 2))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("0.0039687 ...... PASSED", "nan ...... PASSED", "residual of HPL is nan"),
        ("0.0039687 ...... PASSED", "16.0000001 ...... PASSED", "below 16"),
        ("3.343e+00", "inf", "no whole row"),
        ("3.343e+00", "3.343e+02", "are not the operations of N = 1000"),
        ("0.20 ", "20.20 ", "are not the operations"),
        (
            " 1 tests completed and passed",
            " 0 tests completed and passed",
            "expected 1",
        ),
        (
            " 0 tests completed and failed",
            " 1 tests completed and failed",
            "expected 0",
        ),
        (" 0 tests skipped", " 1 tests skipped", "expected 0"),
        ("Finished      1 tests", "Finished      2 tests", "expected 1"),
        ("End of Tests.", "", "cut off"),
        (f"{RESIDUAL}        0.0039687 ...... PASSED\n", "", "no residual"),
        ("1000    80     1     2", "1000    80     2     1", "N, NB, P, Q are"),
        ("1000    80     1     2", "1000    80     1", "no whole row"),
    ],
)
def test_damaged_runs_are_refused(old: str, new: str, reason: str) -> None:
    assert old in OF_HPCC
    with pytest.raises(ParseError, match=reason):
        parse_hpl(OF_HPCC.replace(old, new), 1000, 80, (1, 2))


def test_another_problem_than_asked_for_is_refused() -> None:
    for problem in ((1500, 80, (2, 2)), (1501, 64, (2, 2)), (1500, 64, (1, 4))):
        with pytest.raises(ParseError, match="N, NB, P, Q are"):
            parse_hpl(OF_2_3, *problem)


def test_version_1_has_three_residuals_that_all_must_pass() -> None:
    """By the format of HPL 1.0a's HPL_pdtest.c; not captured."""
    (line,) = (line for line in OF_HPCC.splitlines() if line.startswith(RESIDUAL))
    three = [
        "||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0415713 ...... PASSED",
        "||Ax-b||_oo / ( eps * ||A||_1  * ||x||_1  ) =        0.0231210 ...... PASSED",
        "||Ax-b||_oo / ( eps * ||A||_oo * ||x||_oo ) =        0.0053103 ...... PASSED",
    ]
    old = OF_HPCC.replace(line, "\n".join(three))
    assert parse_hpl(old, 1000, 80, (1, 2)).residual == 0.0415713
    failed = old.replace("0.0231210 ...... PASSED", "99.0231210 ...... FAILED")
    with pytest.raises(ParseError, match=r"99\.0231210 is FAILED"):
        parse_hpl(failed, 1000, 80, (1, 2))


def test_rate_per_device_and_progress_of_vendors_are_passed_over() -> None:
    """By the row that programs for GPUs print; not captured."""
    text = OF_HPCC.replace("3.343e+00", "3.343e+00 ( 1.672e+00)")
    text = text.replace("====\nT/V", "====\nColumn=000080 Fraction= 8.0%\nT/V", 1)
    assert parse_hpl(text, 1000, 80, (1, 2)).gflops == 3.343
