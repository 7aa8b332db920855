"""Output of jobs of several steps, and of programs that only start."""

import re

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.mpi_startup import verify_started
from seatrial.parsers.steps import StepOutput, split_steps

TWO = """
# step a
1 2
# done a 10.250000 10.500000
# step b,validated

# done b,validated 11.0 12.5
"""


def test_steps_have_their_outputs_lines_and_times() -> None:
    assert split_steps(TWO, ["a", "b,validated"]) == (
        StepOutput("a", 2, "1 2\n", 0.25, 10.25),
        StepOutput("b,validated", 5, "\n", 1.5, 11.0),
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("# done a 10.250000 10.500000\n", "", 4, "expected the end of a"),
        ("# step b,validated\n", "", 6, "the end of b,validated, expected a step"),
        ("# step b,validated\n", "noise\n", 7, "the end of b,validated, expected a"),
        ("# step b,validated", "noise# step b,validated", 7, "expected a step"),
        ("# done a", "noise# done a", 5, "step b,validated, expected the end of a"),
        ("# step a\n", "# step b\n", 2, "step b, expected a"),
        ("1 2\n", "1 2", 4, "step b,validated, expected the end of a"),
        ("10.500000", "10.250000", 4, "a took 0.0 s"),
        ("10.500000", "9.0", 4, "a took -1.25 s"),
        ("12.5\n", "12.5\n# step c\n", 8, "step c, expected no step"),
        ("# done b,validated 11.0 12.5\n", "", 6, "1 of 2 steps came to an end"),
        (TWO, "", 0, "0 of 2 steps came to an end; not a"),
        ("# done a", "# done x", 4, "the end of x, expected a"),
    ],
)
def test_damaged_jobs_are_refused(old: str, new: str, line: int, reason: str) -> None:
    assert old in TWO
    with pytest.raises(ParseError, match=re.escape(reason)) as caught:
        split_steps(TWO.replace(old, new, 1), ["a", "b,validated"])
    assert caught.value.line == line


def test_error_in_a_step_tells_its_name_and_the_line_of_the_job() -> None:
    step = StepOutput("a", 7, "", 1.0, 0.0)
    with pytest.raises(ParseError, match="line 9: a: no row"), step.located():
        raise ParseError(2, "no row")


GREETING = '{"type": "preflight", "stage": "%s", "host": "cn01"}\n'
HELLO = "".join(GREETING % stage for stage in ("start", "init", "hello"))
BARRIER = """\
# Benchmarking Barrier
# #processes = 2
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            1         0.00         0.00         0.00
"""


@pytest.mark.parametrize(
    ("program", "text", "problem"),
    [
        ("pairsweep", HELLO * 2, None),
        ("pairsweep", HELLO, "started 1 ranks, expected 2"),
        ("pairsweep", HELLO + GREETING % "start", "ranks that are not at the end"),
        ("pairsweep", HELLO + '{"type": "pref', "line 4: no row of --preflight"),
        ("pairsweep", HELLO + '{"stage": "other"}', "line 4: no row of --preflight"),
        ("pairsweep", "", "started 0 ranks"),
        ("IMB-MPI1", BARRIER, None),
        ("IMB-MPI1", BARRIER.replace("= 2", "= 1"), "started 1 ranks, expected 2"),
        ("IMB-MPI1", BARRIER * 2, "started no ranks"),
        ("IMB-MPI1", BARRIER[:-10], "started no ranks"),
    ],
)
def test_all_ranks_must_have_started(
    program: str, text: str, problem: str | None
) -> None:
    if problem is None:
        verify_started(text, program, 2)
        return
    with pytest.raises(ParseError, match=problem):
        verify_started(text, program, 2)
