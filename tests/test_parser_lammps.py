"""The parser of LAMMPS, on outputs of two versions."""

from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.lammps import LammpsRun, parse_lammps

DATA = Path(__file__).parent / "data" / "lammps"
GOOD = (DATA / "debian-2021.9-np2.txt").read_text()


def test_old_version() -> None:
    run = parse_lammps(GOOD)
    (loop,) = (line for line in GOOD.splitlines() if line.startswith("Loop time"))
    energy = {0: -25356.2064, 50: -25330.0317, 100: -25290.7303}
    expected = LammpsRun(float(loop.split()[3]), 2, 100, 32000, energy, 11, 0)
    assert run == expected


def test_new_version() -> None:
    run = parse_lammps((DATA / "2025.7-np4.txt").read_text())
    energy = {0: -25356.2057, 50: -25330.0307, 100: -25290.7364}
    assert run == LammpsRun(3.8862, 4, 100, 32000, energy, 11, 0)


LOOP = next(line for line in GOOD.splitlines() if line.startswith("Loop time"))
TIME = LOOP.split()[3]
BROKEN = {
    "empty": ("", "0 lines 'Loop time of ...', expected one"),
    "cut before the loop time": (GOOD[: GOOD.index("Loop")], "0 lines 'Loop time of"),
    "cut after the loop time": (
        GOOD[: GOOD.index("Neighbor list b")],
        "0 lines 'Neigh",
    ),
    "cut before the end": (GOOD[: GOOD.index("Total wall")], "0 lines 'Total wall"),
    "two runs": (GOOD + GOOD, "2 lines 'Loop time of ...', expected one"),
    "error": (GOOD + "ERROR: Lost atoms (src/thermo.cpp:438)\n", "ERROR: Lost atoms"),
    "nan time": (GOOD.replace(TIME, "nan"), "'nan', expected a finite number"),
    "inf time": (GOOD.replace(TIME, "inf"), "'inf', expected a finite number"),
    "zero time": (GOOD.replace(f"of {TIME}", "of 0"), "loop time 0, expected a posi"),
    "negative time": (GOOD.replace(TIME, "-1"), "loop time -1, expected a positive"),
    "nan energy": (GOOD.replace("-25290.7303", "nan"), "'nan', expected a finite"),
    "no energy": (GOOD.replace("TotEng   =    -25290", "Tot = 1"), "expected 'TotEng"),
    "no builds": (GOOD.replace("builds = 11", "builds = many"), "expected a count"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_output_is_refused(name: str) -> None:
    text, reason = BROKEN[name]
    assert text != GOOD
    with pytest.raises(ParseError) as caught:
        parse_lammps(text)
    assert reason in caught.value.reason
    assert len(text.splitlines()) >= caught.value.line >= bool(text)


def test_error_names_the_line() -> None:
    text = GOOD.replace("-25290.7303", "nan")
    with pytest.raises(ParseError) as caught:
        parse_lammps(text)
    assert "TotEng   =    nan" in text.splitlines()[caught.value.line - 1]
