"""The parser of hpccoutf.txt, on captured outputs of HPCC 1.5.0."""

from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcc import parse_hpcc

DATA = Path(__file__).parent / "data" / "hpcc"
NAMES = ["MaxPingPongLatency_usec", "NaturallyOrderedRingBandwidth_GBytes"]
GOOD = (DATA / "debian-1.5.0-np2.txt").read_text()


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [(2, [0.133825, 13.1691]), (4, [1.68375, 4.11635])],
)
def test_numbers_of_the_summary(ranks: int, expected: list[float]) -> None:
    text = (DATA / f"debian-1.5.0-np{ranks}.txt").read_text()
    numbers = parse_hpcc(text, NAMES, ranks, 1000)
    assert numbers == dict(zip(NAMES, expected, strict=True))


LATENCY = "MaxPingPongLatency_usec=0.133825"
BROKEN = {
    "empty": ("", "no HPL residual that PASSED"),
    "cut in the summary": (GOOD[: GOOD.index("FFTEnblk")], "the summary is cut off"),
    "cut before it": (GOOD[: GOOD.index("Begin of Summary")], "0 summary sections"),
    "appended to an old file": (GOOD + GOOD, "2 summary sections, expected one"),
    "no success": (GOOD.replace("Success=1", "Success=0"), "Success is 0, expected 1"),
    "residual failed": (GOOD.replace("...... PASSED", "...... FAILED"), "check failed"),
    "no residual": (GOOD.replace("||Ax-b||_oo/(eps*(||A", ""), "no HPL residual"),
    "nan residual": (GOOD.replace("0.0072510 ..", "nan .."), "HPL residual is nan"),
    "PTRANS failed": (GOOD.replace("0.00 PASSED", "0.00 FAILED"), "check failed"),
    "nan": (GOOD.replace(LATENCY, LATENCY[:-8] + "nan"), f"{NAMES[0]} is nan, expecte"),
    "inf": (GOOD.replace(LATENCY, LATENCY[:-8] + "inf"), f"{NAMES[0]} is inf, expecte"),
    "not run": (GOOD.replace(LATENCY, LATENCY[:-8] + "-1"), f"{NAMES[0]} is -1, expec"),
    "zero": (GOOD.replace(LATENCY, LATENCY[:-8] + "0"), f"{NAMES[0]} is 0, expected a"),
    "missing": (GOOD.replace(LATENCY + "\n", ""), f"{NAMES[0]} is missing, expected a"),
    "no number": (GOOD.replace(LATENCY, LATENCY[:-8] + "fast"), f"{NAMES[0]} is fast"),
    "garbage in the summary": (GOOD.replace(LATENCY, "slurm: oops"), "expected name="),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_output_is_refused(name: str) -> None:
    text, reason = BROKEN[name]
    assert text != GOOD
    with pytest.raises(ParseError) as caught:
        parse_hpcc(text, NAMES, 2, 1000)
    assert reason in caught.value.reason
    assert text.count("\n") >= caught.value.line > 0 or name == "empty"


def test_error_names_the_line() -> None:
    text = GOOD.replace(LATENCY, LATENCY[:-8] + "nan")
    with pytest.raises(ParseError) as caught:
        parse_hpcc(text, NAMES, 2, 1000)
    assert "usec=nan" in text.splitlines()[caught.value.line - 1]


def test_other_ranks_are_refused() -> None:
    with pytest.raises(ParseError, match="CommWorldProcs is 2, expected 4"):
        parse_hpcc(GOOD, NAMES, 4, 1000)


def test_input_of_its_own_is_refused() -> None:
    """HPCC ran a problem that nobody asked for, and says Success=1."""
    text = (DATA / "builtin-input-np2.txt").read_text()
    assert "Success=1" in text
    with pytest.raises(ParseError, match="HPL_N is 3520, expected 1000"):
        parse_hpcc(text, NAMES, 2, 1000)
