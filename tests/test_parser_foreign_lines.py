"""Foreign lines in the outputs of LAMMPS, NPB and HPCC: right numbers or a refusal.

The lines are modelled on what sites print, not captured: see data/foreign_lines.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damaged_outputs import OUTPUTS, Output, numbers_of
from hypothesis import given
from hypothesis import strategies as st
from test_parser_damage import PLACE, repeated

from seatrial.parsers.errors import ParseError
from seatrial.parsers.lammps import LammpsRun

SAMPLES = {
    file.stem: file.read_text()
    for file in sorted((Path(__file__).parent / "data/foreign_lines").glob("*.txt"))
}
LINES = sorted({f"{line}\n" for text in SAMPLES.values() for line in text.split("\n")})
PROGRAMS = [name for name in OUTPUTS if name.split()[0] in ("hpcc", "lammps", "npb")]


@pytest.fixture(params=PROGRAMS, scope="module")
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def output(program: str) -> Output:
    return OUTPUTS[program]


def numbers(output: Output, text: str) -> Any:
    """The numbers, without the count of warnings, which foreign lines may raise."""
    run = output.parse(text)
    return numbers_of(replace(run, warnings=()) if isinstance(run, LammpsRun) else run)


def is_taken(output: Output, text: str) -> bool:
    """Return True if the numbers are right, False if the output is refused."""
    try:
        found = numbers(output, text)
    except ParseError:
        return False
    assert found == numbers(output, output.text)
    return True


def with_line(output: Output, at: int, foreign: str) -> str:
    return "".join([*output.lines[:at], foreign, *output.lines[at:]])


@pytest.mark.parametrize("sample", SAMPLES)
def test_banner_and_epilogue_do_not_disturb(output: Output, sample: str) -> None:
    foreign = SAMPLES[sample]
    assert is_taken(output, f"{foreign}{output.text}{foreign}")


def test_lines_between_lines(program: str, output: Output) -> None:
    """Every place gets some of the lines, and every line some of the places.

    NPB takes them all. LAMMPS has tables whose rows begin with a number, have bars or
    an equals sign: a line like that is refused there. HPCC is alone with its file, and
    some of its tables are read as blocks of lines.
    """
    steps = max(1, len(output.lines) // 20)
    for number, line in enumerate(LINES):
        is_like_a_row = line.lstrip()[:1].isdigit() or "|" in line or " = " in line
        for at in range(number % steps, len(output.lines) + 1, steps):
            taken = is_taken(output, with_line(output, at, line))
            if "npb" in program or ("lammps" in program and not is_like_a_row):
                assert taken, (at, line)


@repeated(150)
@given(place=PLACE, line=st.sampled_from(LINES), end=st.sampled_from(["", "\n"]))
def test_lines_within_lines(output: Output, place: int, line: str, end: str) -> None:
    """A foreign line, which may have a break of its own before it, in mid-number."""
    place %= len(output.text) + 1
    is_taken(output, f"{output.text[:place]}{end}{line}{output.text[place:]}")


@repeated(150)
@given(number=PLACE, inside=PLACE, line=st.sampled_from(LINES))
def test_lines_within_numbers(
    output: Output, number: int, inside: int, line: str
) -> None:
    start, end = output.places[number % len(output.places)]
    place = start + inside % (end - start)
    is_taken(output, f"{output.text[:place]}\n{line}{output.text[place:]}")


LAMMPS = OUTPUTS["lammps one"]
NPB = OUTPUTS["npb timers"]


@pytest.mark.parametrize(
    ("output", "before"),
    [
        (LAMMPS, "MPI task timing breakdown:"),
        (LAMMPS, "Section |"),
        (LAMMPS, "Neigh   |"),
        (LAMMPS, "Other   |"),
        (LAMMPS, "99.8% CPU"),
        (LAMMPS, "Neighbor list builds"),
        (LAMMPS, "Dangerous builds"),
        (LAMMPS, "Total wall time"),
        (LAMMPS, "        10   "),
        (NPB, " Mop/s total "),
        (NPB, " Operation type "),
        (NPB, " timer  3"),
    ],
)
@pytest.mark.parametrize("foreign", ["\n", SAMPLES["ucx-warning"]])
def test_line_within_a_table_is_passed_over(
    output: Output, before: str, foreign: str
) -> None:
    text = output.text
    at = text.find(before)
    if before.endswith("% CPU"):
        at = text.rindex("\n", 0, text.index("% CPU")) + 1
    assert at > 0
    assert is_taken(output, text[:at] + foreign + text[at:])
