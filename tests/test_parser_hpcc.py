"""The parser of hpccoutf.txt, on files that HPCC 1.5.0 wrote."""

import re
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcc import parse_hpcc, parse_hpcc_partly
from seatrial.parsers.hpcc_metrics import METRICS

DATA = Path(__file__).parent / "data" / "hpcc"
ALL = list(METRICS)
BETWEEN_RANKS = [name for name in ALL if METRICS[name].of in ("pair", "ring")]
OF_MPIFFT = [name for name in ALL if METRICS[name].section == "MPIFFT"]
NP2 = (DATA / "debian-1.5.0-np2.txt").read_text()
NP4 = (DATA / "debian-1.5.0-np4.txt").read_text()


def names_without(left_out: list[str]) -> list[str]:
    return [name for name in ALL if name not in left_out]


def summary(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("file", "ranks", "n", "nb", "grid", "names"),
    [
        ("debian-1.5.0-np1", 1, 400, 40, (1, 1), names_without(BETWEEN_RANKS)),
        ("debian-1.5.0-np2", 2, 1000, 80, (1, 2), ALL),
        ("debian-1.5.0-np3", 3, 600, 60, (1, 3), names_without(OF_MPIFFT)),
        ("debian-1.5.0-np4", 4, 1000, 80, (2, 2), ALL),
        ("two-blocks-np2", 2, 400, 32, (1, 2), ALL),
    ],
)
def test_numbers_are_those_of_the_summary(
    file: str, ranks: int, n: int, nb: int, grid: tuple[int, int], names: list[str]
) -> None:
    text = (DATA / f"{file}.txt").read_text()
    printed = summary(text)
    expected = {name: float(printed[name]) for name in names}
    assert parse_hpcc(text, names, ranks, n) == expected
    assert parse_hpcc(text, names, ranks, n, nb, grid) == expected


def test_every_rate_of_the_summary_has_a_metric() -> None:
    rates = ("_Tflops", "_GBs", "_GUPs", "_Gflops", "_usec", "_GBytes")
    streams = ("StarSTREAM_", "SingleSTREAM_")
    expected = {
        name
        for name in summary(NP4)
        if name.endswith(rates) or name.startswith(streams)
    }
    assert expected == {name for name in ALL if METRICS[name].of != "size"}


def test_metrics_say_whose_number_they_are() -> None:
    assert {name: METRICS[name].of for name in ALL if "STREAM_Triad" in name} == {
        "StarSTREAM_Triad": "each",
        "SingleSTREAM_Triad": "one",
    }
    assert METRICS["RandomlyOrderedRingBandwidth_GBytes"].of == "ring"
    assert METRICS["MaxPingPongLatency_usec"].of == "pair"
    for name in ("HPL_Tflops", "PTRANS_GBs", "MPIRandomAccess_GUPs", "MPIFFT_Gflops"):
        assert METRICS[name].of == "all"


LATENCY = "MaxPingPongLatency_usec=1.68375"
BELOW = "expected a positive number below 1e+09"


def changed(old: str, new: str, count: int = -1) -> str:
    assert old in NP4
    return NP4.replace(old, new, count)


def latency(value: str) -> str:
    return changed(LATENCY, LATENCY[:-7] + value)


BROKEN = {
    "empty": ("", "0 runs of HPCC, expected one"),
    "zero rows with exit status 0": (
        NP4[: NP4.index("Begin of MPIR")],
        "the file is cut off, expected all tests",
    ),
    "cut in the summary": (
        NP4[: NP4.index("FFTEnblk")],
        "section Summary is cut off",
    ),
    "cut before the summary": (
        NP4[: NP4.index("Begin of Summary")],
        "the file is cut off",
    ),
    "cut after the summary": (
        NP4[: NP4.index("End of HPC")],
        "the file is cut off, expected all tests",
    ),
    "cut in a test": (NP4[: NP4.index("Natural Order")], "section LatencyBandwidth is"),
    "no beginning": (NP4[NP4.index("Begin of Star") :], "0 runs of HPCC, expected one"),
    "appended to an old file": (NP4 + NP4, "section MPIRandomAccess a second time"),
    "appended to a run that was killed": (
        NP4[: NP4.index("Begin of MPIR")] + NP4,
        "2 runs of HPCC, expected one",
    ),
    "appended to a run that was killed in a test": (
        NP4[: NP4.index("Tuning: ")] + NP4,
        "section MPIRandomAccess begins within MPIFFT",
    ),
    "no success": (changed("Success=1", "Success=0"), "Success is 0, expected 1"),
    "HPL failed": (changed("...... PASSED", "...... FAILED"), "check failed: '||Ax"),
    "HPL not checked": (
        changed("||Ax-b||_oo/(eps*(||A", ""),
        "0 residuals that PASSED",
    ),
    "HPL passed by its threshold": (
        changed("0.0072510 .", "17.000000 ."),
        "the residual of HPL is 17.000000, expected",
    ),
    "HPL residual is nan": (
        changed("0.0072510 .", "      nan ."),
        "the residual of HPL is nan",
    ),
    "HPL residual is not that of its norms": (
        changed("0.0072510 .", "0.0072520 ."),
        "the residual of HPL is 0.007252, by its norms 0.00725",
    ),
    "HPL rate by its row": (
        changed("HPL_Tflops=0.00567014", "HPL_Tflops=0.00667014"),
        "HPL_Tflops is 0.00667014, but line 414 says 0.00567",
    ),
    "HPL time by its row": (
        changed("HPL_time=0.11784", "HPL_time=0.1784"),
        "HPL_time is 0.1784, but line 414 says 0.12",
    ),
    "HPL rate by its time": (
        changed("HPL_time=0.11784", "HPL_time=0.11794"),
        "HPL_Tflops is 0.00567014, but line 451 says 0.00566531",
    ),
    "HPL of another block": (changed("HPL_NB=80", "HPL_NB=88"), "the best run of HPL"),
    "HPL not run": (changed("HPL_N=1000", "HPL_N=-1"), "HPL_N is -1, expected 1000"),
    "PTRANS failed": (changed("0.00 PASSED", "0.00 FAILED"), "check failed: 'WALL"),
    "PTRANS not checked": (changed("0.00 PASSED", "0.00 BYPASS"), "check failed: 'WA"),
    "PTRANS without a row": (
        changed(
            "WALL   500   500  80  80   2   2     0.00 PASSED    2.122  0.00\n", "", 1
        ),
        "4 runs of PTRANS that PASSED, not 5 each",
    ),
    "PTRANS by its rows": (
        changed("PTRANS_GBs=2.12179", "PTRANS_GBs=2.32179"),
        "PTRANS_GBs is 2.32179, but line 147 says 2.122",
    ),
    "PTRANS by its time": (
        changed("PTRANS_time=0.000813057", "PTRANS_time=0.000943"),
        "PTRANS_GBs is 2.12179, more than 2.12089 by PTRANS_time",
    ),
    "PTRANS of another size": (
        changed("PTRANS_n=500", "PTRANS_n=50"),
        "PTRANS_n is 50",
    ),
    "RandomAccess failed": (
        changed("(passed)", "(failed)", 1),
        "check failed: 'Found 0",
    ),
    "RandomAccess found errors that it does not count": (
        changed("Found 0 errors in 524288", "Found 7 errors in 524288", 1),
        "MPIRandomAccess_Errors is 0, expected 7",
    ),
    "RandomAccess has too many errors": (
        changed("Found 0 errors in 524288", "Found 5300 errors in 524288", 1)
        .replace("MPIRandomAccess_Errors=0", "MPIRandomAccess_Errors=5300")
        .replace("ss_ErrorsFraction=0", "ss_ErrorsFraction=0.0101089"),
        "MPIRandomAccess_ErrorsFraction is 0.0101089, expected",
    ),
    "RandomAccess by its time": (
        changed("MPIRandomAccess_time=1.62305", "MPIRandomAccess_time=1.52305"),
        "MPIRandomAccess_GUPs is 0.00129211, but line 514 says 0.00137694",
    ),
    "STREAM failed on rank 0": (
        changed("Solution Validates", "Failed Validation on array a[]"),
        "check failed: 'Failed Validation",
    ),
    "STREAM not checked": (
        changed("Solution Validates", "Solution"),
        "0 lines of StarSTREAM with a solution that validates, expected one",
    ),
    "STREAM without memory": (
        changed("Solution Validates", "Failed to allocate memory (7).\n"),
        "check failed: 'Failed to allocate memory (7).'",
    ),
    "a node with error": (
        changed(
            "Node(s) with error 0\nMinimum Copy", "Node(s) with error 1\nMinimum Copy"
        ),
        "1 nodes with error in StarSTREAM",
    ),
    "DGEMM is wrong": (
        changed("Scaled residual: 0.0277601", "Scaled residual: 27.7601"),
        "the residual of DGEMM is 27.7601, expected",
    ),
    "DGEMM is nan": (
        changed("Scaled residual: 0.0277601", "Scaled residual: nan"),
        "the residual of DGEMM is nan",
    ),
    "DGEMM of another size": (
        changed("DGEMM_N=288", "DGEMM_N=28"),
        "DGEMM_N is 28, ex",
    ),
    "FFT is wrong": (
        changed("max(|x-x0|): 1.171e-15", "max(|x-x0|): 1.171e-13"),
        "the error of FFT is 1.171e-13, too large",
    ),
    "MPIFFT by its section": (
        changed("MPIFFT_maxErr=1.29948e-15", "MPIFFT_maxErr=1.39948e-15"),
        "MPIFFT_maxErr is 1.39948e-15, but line",
    ),
    "wrong contents of a message": (
        changed(
            "MPI_Wtime granularity is ok.",
            "[0]: ERROR: expected 14 and 15 as first and last byte, but got 0 and 15",
            1,
        ),
        "check failed: '[0]: ERROR: expected 14",
    ),
    "messages of another size": (
        changed("done with        8 bytes", "done with       16 bytes"),
        "measured with 16 B, 2000000 B, 4 processes",
    ),
    "input with an error": (
        changed(
            "Begin of MPIR", "Error in line 33 of the input file.\nBegin of MPIR", 1
        ),
        "check failed: 'Error in line 33",
    ),
    "nan": (latency("nan"), f"{LATENCY[:-8]} is nan, {BELOW}"),
    "inf": (latency("inf"), f"{LATENCY[:-8]} is inf, {BELOW}"),
    "absurd": (latency("1e30"), f"{LATENCY[:-8]} is 1e30, {BELOW}"),
    "absurd in both places": (
        latency("1.68375e12").replace(
            "0.001684 msecs\nBandw", "1683750000.0 msecs\nBandw"
        ),
        f"{LATENCY[:-8]} is 1.68375e12, {BELOW}",
    ),
    "negative": (latency("-1.68375"), f"{LATENCY[:-8]} is -1.68375, {BELOW}"),
    "not run": (latency("-1"), f"{LATENCY[:-8]} is -1: HPCC did not run it"),
    "zero": (latency("0"), f"{LATENCY[:-8]} is 0, {BELOW}"),
    "missing": (changed(LATENCY + "\n", ""), f"{LATENCY[:-8]} is missing"),
    "no number": (latency("fast"), f"{LATENCY[:-8]} is fast, {BELOW}"),
    "garbage in the summary": (
        changed(LATENCY, "slurm: oops"),
        f"{LATENCY[:-8]} is missing",
    ),
    "number broken in two lines": (
        changed(LATENCY, LATENCY[:-2] + "\n" + LATENCY[-2:]),
        f"{LATENCY[-2:]!r}, expected name=value",
    ),
    "a name twice": (
        changed(LATENCY, f"{LATENCY}\n{LATENCY}"),
        f"{LATENCY[:-8]} a seco",
    ),
    "latency by its section": (
        latency("1.8375"),
        f"{LATENCY[:-8]} is 1.8375, but line 344 says 1.684",
    ),
    "ring by its section": (
        changed("Ring:\nOn naturally ordered ring", "Ring:\nOn a ring"),
        "0 lines of LatencyBandwidth with NaturallyOrderedRingLatency_usec",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_output_is_refused(case: str) -> None:
    text, reason = BROKEN[case]
    with pytest.raises(ParseError) as refusal:
        parse_hpcc(text, ALL, 4, 1000, 80 if "block" not in case else None)
    assert reason in refusal.value.reason
    assert text.count("\n") >= refusal.value.line
    assert refusal.value.line > 0 or "0 runs" in reason


CONFIRMED = [name for name in ALL if METRICS[name].line is not None]


@pytest.mark.parametrize("name", CONFIRMED)
def test_number_must_be_that_of_its_section(name: str) -> None:
    """A digit too many in the summary: the section says otherwise."""
    printed = summary(NP4)[name]
    text = NP4.replace(f"\n{name}={printed}\n", f"\n{name}=1{printed}\n")
    with pytest.raises(ParseError) as refusal:
        parse_hpcc(text, [name], 4, 1000)
    assert refusal.value.reason.startswith(f"{name} is 1{printed}, ")
    assert text.splitlines()[refusal.value.line - 1] == f"{name}=1{printed}"


def test_error_names_the_line() -> None:
    text = latency("nan")
    with pytest.raises(ParseError) as refusal:
        parse_hpcc(text, ALL, 4, 1000)
    assert "usec=nan" in text.splitlines()[refusal.value.line - 1]


@pytest.mark.parametrize(
    ("file", "ranks", "n", "nb", "grid", "reason"),
    [
        ("debian-1.5.0-np2", 4, 1000, None, None, "CommWorldProcs is 2, expected 4"),
        ("debian-1.5.0-np2", 2, 2000, None, None, "HPL_N is 1000, expected 2000"),
        ("debian-1.5.0-np2", 2, 1000, 128, None, "HPL_NB is 80, expected 128"),
        ("debian-1.5.0-np2", 2, 1000, 80, (2, 1), "HPL_nprow is 1, expected 2"),
        ("debian-1.5.0-np4", 4, 1000, 80, (2, 1), "HPL_npcol is 2, expected 1"),
        ("two-blocks-np2", 2, 400, 40, None, "HPL_NB is 32, expected 40"),
        ("idle-rank-np3", 3, 600, 60, None, "HPL ran on 2 processes, expected 3"),
        ("debian-1.5.0-np3", 3, 600, 60, None, "MPIFFT_Procs is 2, expected 3"),
        ("debian-1.5.0-np1", 1, 400, 40, None, "one process has no latency"),
        ("failed-np2", 2, 400, 40, None, "FAILED"),
        ("unchecked-np2", 2, 400, 40, None, "BYPASS"),
    ],
)
def test_other_problem_than_asked_for_is_refused(
    file: str,
    ranks: int,
    n: int,
    nb: int | None,
    grid: tuple[int, int] | None,
    reason: str,
) -> None:
    text = (DATA / f"{file}.txt").read_text()
    with pytest.raises(ParseError) as refusal:
        parse_hpcc(text, ALL, ranks, n, nb, grid)
    assert reason in refusal.value.reason


def test_input_that_the_program_made_up_is_refused() -> None:
    """HPCC ran a problem that nobody asked for, and says Success=1."""
    text = (DATA / "builtin-input-np2.txt").read_text()
    assert "Success=1" in text
    with pytest.raises(ParseError, match="HPL_N is 3520, expected 1000"):
        parse_hpcc(text, ALL, 2, 1000)


def test_test_that_nobody_asked_for_may_not_have_run() -> None:
    text = (DATA / "debian-1.5.0-np1.txt").read_text()
    assert parse_hpcc(text, ["StarSTREAM_Triad"], 1, 400) == {
        "StarSTREAM_Triad": float(summary(text)["StarSTREAM_Triad"])
    }


def test_check_that_failed_counts_for_all() -> None:
    with pytest.raises(ParseError, match="line 139: check failed: 'WALL"):
        parse_hpcc(changed("0.00 PASSED", "0.00 FAILED"), ["HPL_Tflops"], 4, 1000)


def test_unknown_name_is_an_error_of_the_caller() -> None:
    with pytest.raises(
        ValueError, match=r"not among the numbers of HPCC: \['HPL_time'\]"
    ):
        parse_hpcc(NP4, ["HPL_time"], 4, 1000)


STREAM = [name for name in ALL if METRICS[name].section == "StarSTREAM"]
MISSING = {
    "number": ("StarSTREAM_Triad=9.97.*", ["StarSTREAM_Triad"]),
    "line of the section": ("Average Triad GB/s .*", ["StarSTREAM_Triad"]),
    "proof of the section": ("Solution Validates.*", STREAM),
    "a run of PTRANS": (r"WALL .* 2\.122 .*", ["PTRANS_GBs"]),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_is_missing_costs_only_what_depends_on_it(case: str) -> None:
    line, expected = MISSING[case]
    line = line.replace("9.97", summary(NP4)["StarSTREAM_Triad"][:4])
    text, count = re.subn(rf"(?m)^{line}\n", "", NP4, count=1)
    assert count == 1
    numbers, missing = parse_hpcc_partly(text, ALL, 4, 1000)
    assert list(missing) == expected
    whole = parse_hpcc(NP4, ALL, 4, 1000)
    assert numbers == {name: whole[name] for name in names_without(expected)}
    with pytest.raises(ParseError):
        parse_hpcc(text, ALL, 4, 1000)


def test_any_line_may_be_missing() -> None:
    """Without a line there are the same numbers but some, or none at all."""
    whole = parse_hpcc(NP4, ALL, 4, 1000)
    lines = NP4.splitlines(keepends=True)
    for at in range(0, len(lines), 2):
        try:
            text = "".join(lines[:at] + lines[at + 1 :])
            numbers, missing = parse_hpcc_partly(text, ALL, 4, 1000)
        except ParseError:
            continue
        assert {*numbers} | {*missing} == {*ALL}
        assert numbers.items() <= whole.items()


def test_hpcc_1_4_says_less_of_its_validation() -> None:
    text = changed(": avg error less than 1.000000e-13 on all three arrays", "")
    assert parse_hpcc(text, ALL, 4, 1000) == parse_hpcc(NP4, ALL, 4, 1000)


def test_epilogue_with_an_error_is_none_of_the_run() -> None:
    text = f"{NP4}epilogue: ERROR: /scratch FAILED\n"
    assert parse_hpcc(text, ALL, 4, 1000) == parse_hpcc(NP4, ALL, 4, 1000)
