"""Lines of others in the output of every program: the same numbers, or a refusal.

The lines are in data/foreign, modelled and not captured. `seatrial.parsers.printed` has
the rule. Other numbers than those of the clean output are never right.
"""

from pathlib import Path

import pytest
from damaged_outputs import DATA, OUTPUTS, Output
from hypothesis import given
from hypothesis import strategies as st
from test_parser_damage import PLACE, repeated

from seatrial.parsers.errors import ParseError
from seatrial.parsers.mpi_startup import verify_started
from seatrial.parsers.steps import split_steps

BLOCKS = {
    path.stem: path.read_text() for path in sorted((DATA / "foreign").glob("*.txt"))
}
LINES = [line for block in BLOCKS.values() for line in block.splitlines()]
PASSED = {name: BLOCKS[name] for name in BLOCKS if name != "sacct"}
"""Not a single word that begins with a number, as a damaged row may: it is refused."""

UCX = BLOCKS["ucx"].partition("\n")[0] + "\n"
TABLES = tuple(name for name in OUTPUTS if name.startswith(("osu", "imb")))
PERFTEST = ("perftest bw", "perftest lat")
ROWS = (
    "balance",
    "bufreuse",
    "halo2d",
    "logp",
    "match_queue",
    "memlat",
    "mpair",
    "rr64",
)
SHORT = (
    *("osu latency 5.6", "osu mbw_mr", "osu alltoall -f -c -z", "osu barrier"),
    *("osu init", "imb alltoall", "imb uniband", "imb barrier", "perftest bw"),
)
PROGRAMS = [
    name
    for name in OUTPUTS
    if name.split()[0] in ("hpcc", "hpcg", "hpl", "lammps", "npb")
]


def passes(output: Output, text: str) -> bool:
    """Parse: True if the numbers are right, False if there are none."""
    try:
        found = output.numbers(text)
    except ParseError:
        return False
    assert found == output.right
    return True


def passes_with(output: Output, foreign: str, at: int) -> bool:
    """Put lines before a line, or after the last, and parse."""
    lines = output.lines
    return passes(output, "".join([*lines[:at], f"{foreign}\n", *lines[at:]]))


@pytest.mark.parametrize("name", [*TABLES, *PERFTEST, *ROWS])
@pytest.mark.parametrize("block", PASSED)
def test_blocks_are_passed_over_everywhere(name: str, block: str) -> None:
    """Only a line that begins with the size of the row that comes next is not."""
    firsts = {line.split()[0] for line in BLOCKS[block].splitlines() if line.strip()}
    output = OUTPUTS[name]
    for at, line in enumerate([*output.lines, ""]):
        if not passes_with(output, BLOCKS[block], at):
            assert line.split()[0] in firsts


@pytest.mark.parametrize("name", [*TABLES, *PERFTEST, *ROWS])
def test_blocks_around_and_missing_line_breaks(name: str) -> None:
    output = OUTPUTS[name]
    everything = "".join(PASSED.values())
    assert passes(output, everything + output.text + everything)
    assert passes(output, output.text + "2026-03-01 10:00:00 cn01 mlx5_core: temp")


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_banner_and_epilogue_do_not_disturb_programs(name: str, block: str) -> None:
    """HPCC, whose output is a file of its own, takes any ERROR for one of its own."""
    output, foreign = OUTPUTS[name], BLOCKS[block]
    has_error = name == "hpcc" and "ERROR" in foreign
    assert passes(output, foreign + output.text + foreign) is not has_error


@pytest.mark.parametrize("name", SHORT)
def test_single_lines_everywhere(name: str) -> None:
    """Every place gets a third of the lines."""
    output = OUTPUTS[name]
    for number, line in enumerate(LINES):
        for at in range(number % 3, len(output.lines) + 1, 3):
            passes_with(output, line, at)


@pytest.mark.parametrize("name", [name for name in OUTPUTS if name not in ROWS])
@repeated(20)
@given(block=st.sampled_from([*BLOCKS]), place=st.integers(0, 2**20))
def test_blocks_never_change_numbers(name: str, block: str, place: int) -> None:
    output = OUTPUTS[name]
    place %= len(output.lines) + 1
    lines = [*output.lines[:place], BLOCKS[block], *output.lines[place:]]
    passes(output, "".join(lines))


@pytest.mark.parametrize("name", OUTPUTS)
@repeated(40)
@given(
    line=st.sampled_from(LINES),
    end=st.sampled_from(["", " ", "\n"]),
    start=st.sampled_from(["", "\n"]),
    place=st.integers(0, 2**20),
)
def test_lines_put_into_lines_never_change_numbers(
    name: str, line: str, end: str, start: str, place: int
) -> None:
    """Several ranks and daemons write into one stream, at any byte."""
    output = OUTPUTS[name]
    place %= len(output.text) + 1
    passes(output, output.text[:place] + start + line + end + output.text[place:])


@pytest.mark.parametrize("name", PROGRAMS)
@repeated(75)
@given(
    line=st.sampled_from(LINES),
    end=st.sampled_from(["", "\n"]),
    start=st.sampled_from(["", "\n"]),
    number=PLACE,
    inside=PLACE,
)
def test_lines_put_into_numbers_never_change_them(
    name: str, line: str, end: str, start: str, number: int, inside: int
) -> None:
    output = OUTPUTS[name]
    first, last = output.places[number % len(output.places)]
    place = first + inside % (last - first)
    passes(output, output.text[:place] + start + line + end + output.text[place:])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if "2021" in name else [])
        for name in PROGRAMS
    ],
)
def test_lines_between_lines_of_programs(name: str) -> None:
    """Every place gets some of the lines, and every line some of the places.

    NPB takes them all. LAMMPS has tables whose rows begin with a number, have bars or
    an equals sign: a line like that is refused there. HPCC is alone with its file, and
    some of its tables are read as blocks of lines.
    """
    output = OUTPUTS[name]
    steps = max(1, len(output.lines) // 8)
    for number, line in enumerate(LINES):
        is_like_a_row = line.lstrip()[:1].isdigit() or "|" in line or " = " in line
        for at in range(number % steps, len(output.lines) + 1, steps):
            taken = passes_with(output, line, at)
            if "npb" in name or ("lammps" in name and not is_like_a_row):
                assert taken, (at, line)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("lammps one", "MPI task timing breakdown:"),
        ("lammps one", "Section |"),
        ("lammps one", "Neigh   |"),
        ("lammps one", "Other   |"),
        ("lammps one", "99.8% CPU"),
        ("lammps one", "Neighbor list builds"),
        ("lammps one", "Dangerous builds"),
        ("lammps one", "Total wall time"),
        ("lammps one", "        10   "),
        ("npb timers", " Mop/s total "),
        ("npb timers", " Operation type "),
        ("npb timers", " timer  3"),
    ],
)
@pytest.mark.parametrize("foreign", ["\n", UCX])
def test_line_within_a_table_is_passed_over(
    name: str, before: str, foreign: str
) -> None:
    text = OUTPUTS[name].text
    at = text.find(before)
    if before.endswith("% CPU"):
        at = text.rindex("\n", 0, text.index("% CPU")) + 1
    assert at > 0
    assert passes(OUTPUTS[name], text[:at] + foreign + text[at:])


LIKE_ROWS = {
    "osu latency 5.6": "64                      1.23",
    "osu mbw_mr": "64                     12.80         200000.00",
    "osu barrier": "             8.45              8.45              8.45         100",
    "imb pingpong": "           64         1000         1.28        50.00",
    "imb barrier": "           50       479.17       479.25       479.20",
    "perftest bw": " 64         20000            64.00              64.00"
    "              1.048576",
    "perftest lat": " 64      20000          1.03           9.40         1.09"
    "               1.12            0.29             1.63                   5.02",
}


@pytest.mark.parametrize("name", LIKE_ROWS)
def test_what_looks_like_a_row_is_refused(name: str) -> None:
    """A second row, with other numbers or the same, may be the right one."""
    output = OUTPUTS[name]
    first = next(
        number
        for number, line in enumerate(output.lines)
        if line.strip()[:1].isdigit() and "." in line
    )
    end = len(output.lines) - (2 if name.startswith("perftest") else 0)
    for place in range(first, end):
        lines = [*output.lines[:place], f"{LIKE_ROWS[name]}\n", *output.lines[place:]]
        assert not passes(output, "".join(lines))
        cut = f"{LIKE_ROWS[name][:-1]}\n"
        assert not passes(output, "".join([*lines[:place], cut, *output.lines[place:]]))


ROW_16 = "16                      0.41"
MANGLED = (
    "1[cn01:7] UCX WARN retry\n6                       0.41",
    "16           [cn01:7:0] UCX WARN out of memory",
    "16                      0.41[cn01:7] WARN x y",
    "cn01 kernel: temp 16                      0.41",
    "16                      0.\n41",
)


@pytest.mark.parametrize("mangled", MANGLED)
def test_rows_with_foreign_text_in_them_are_refused(mangled: str) -> None:
    output = OUTPUTS["osu latency 5.6"]
    assert ROW_16 in output.text
    assert not passes(output, output.text.replace(ROW_16, mangled))


STEPS = "# step a\n1\n# done a 1.0 2.0\n# step b\n2\n# done b 2.0 3.5\n"


@pytest.mark.parametrize("block", BLOCKS)
def test_steps_stay_whole(block: str) -> None:
    lines = STEPS.splitlines(keepends=True)
    for place in range(len(lines) + 1):
        text = "".join([*lines[:place], BLOCKS[block], *lines[place:]])
        found = split_steps(text, ["a", "b"])
        inside = place % 3 > 0
        assert [step.seconds for step in found] == [1.0, 1.5]
        for step, number in zip(found, "12", strict=True):
            assert f"{number}\n" in step.text
            assert (step.text == f"{number}\n") or inside


def test_steps_of_a_job_with_everything_around() -> None:
    everything = "".join(BLOCKS.values())
    text = STEPS.replace("# step", f"{everything}# step") + everything
    assert [step.text for step in split_steps(text, ["a", "b"])] == ["1\n", "2\n"]


@pytest.mark.parametrize("block", BLOCKS)
def test_programs_that_only_start(block: str) -> None:
    barrier = Path(DATA / "imb" / "barrier-2021.11.txt").read_text()
    lines = barrier.splitlines(keepends=True)
    for place in range(len(lines) + 1):
        text = "".join([*lines[:place], BLOCKS[block], *lines[place:]])
        verify_started(text, "IMB-MPI1", 4)
