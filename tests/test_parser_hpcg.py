"""The parser of HPCG, on files that HPCG 3.1 wrote."""

from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcg import HpcgRun, parse_hpcg

DATA = Path(__file__).parent / "data" / "hpcg"
TEXT = (DATA / "3.1-np2.txt").read_text()
LOCAL = (16, 16, 16)


def test_rating_time_and_memory() -> None:
    assert parse_hpcg(TEXT, 2, LOCAL) == HpcgRun(0.267938, 4.59616, 5.86836e6)
    quick = (DATA / "3.1-quick-np4.txt").read_text()
    run = parse_hpcg(quick, 4, (24, 16, 32))
    assert (run.gflops, run.seconds) == (0.426412, 2.00807)


def test_another_problem_is_refused() -> None:
    for ranks, local in ((4, LOCAL), (2, (16, 16, 24)), (2, (32, 16, 8))):
        with pytest.raises(ParseError, match="expected"):
            parse_hpcg(TEXT, ranks, local)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "HPCG result is VALID with a GFLOP/s rating of=0.267938",
            "HPCG result is=INVALID.",
            r"HPCG calls its result INVALID\.",
        ),
        ("Tests::Result=PASSED", "Tests::Result=FAILED", "Spectral .* is FAILED"),
        ("epsilon::Result=PASSED", "epsilon::Result=FAILED", "Symmetry .* is FAILED"),
        ("Count Information::Result=PASSED", "Count Information::Result=FAILED", "It"),
        ("Reproducibility Information::Result=PASSED", "", "0 lines 'Reprod"),
        ("rating of=0.267938", "rating of=0.967938", "rating differs"),
        ("rating of=0.267938", "rating of=nan", "is nan"),
        ("Summary::Total=4.59616", "Summary::Total=1804.59616", "not the operations"),
        ("HPCG-Benchmark\n", "", "0 results of HPCG"),
        ("Total memory used for data (Gbytes)=0.00586836", "", "0 lines 'Memory"),
    ],
)
def test_results_that_are_not_valid_are_refused(
    old: str, new: str, reason: str
) -> None:
    assert old in TEXT
    with pytest.raises(ParseError, match=reason):
        parse_hpcg(TEXT.replace(old, new), 2, LOCAL)


def test_second_result_in_the_file_is_refused() -> None:
    with pytest.raises(ParseError, match="2 results of HPCG"):
        parse_hpcg(TEXT + TEXT, 2, LOCAL)
