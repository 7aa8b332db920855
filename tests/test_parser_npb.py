"""The parser of the NAS Parallel Benchmarks, on outputs of NPB 3.3.1, 3.4 and 3.4.1."""

import re
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.npb import NpbRun, parse_npb
from seatrial.parsers.npb_problems import BENCHMARKS, problem_of
from seatrial.parsers.npb_timers import NpbTimer

DATA = Path(__file__).parent / "data" / "npb"
NAME = re.compile(r"(\w\w)-([SW])-np(\d)(-timers)?-(3\.[34](?:\.1)?)(?:-mpich)?\.txt")
GOOD = sorted(path.name for path in DATA.iterdir() if NAME.fullmatch(path.name))


def read(name: str) -> str:
    return (DATA / name).read_text()


def printed(text: str, name: str) -> float:
    (found,) = re.findall(rf"^ {name} *= *(\S+)$", text, re.MULTILINE)
    return float(found)


@pytest.mark.parametrize("name", GOOD)
def test_every_benchmark_version_and_form(name: str) -> None:
    match = NAME.fullmatch(name)
    assert match is not None
    text = read(name)
    benchmark, problem_class, ranks = match[1].upper(), match[2], int(match[3])
    run = parse_npb(text, benchmark, problem_class, ranks, timers=bool(match[4]))
    problem = problem_of(benchmark, problem_class)
    assert run == NpbRun(
        benchmark=benchmark,
        problem_class=problem_class,
        processes=ranks,
        size=problem.size,
        iterations=problem.iterations,
        time_s=printed(text, "Time in seconds"),
        mops_total=printed(text, "Mop/s total"),
        mops_per_process=printed(text, "Mop/s/process"),
        version=match[5],
        timers=run.timers,
    )
    assert bool(run.timers) == bool(match[4])


def test_outputs_of_every_benchmark() -> None:
    fortran_and_c = {name[:2].upper() for name in GOOD}
    assert fortran_and_c == set(BENCHMARKS)
    assert len(GOOD) == 28


CG = read("cg-S-np4-timers-3.4.1.txt")
IS = read("is-S-np2-3.4.1.txt")
LU = read("lu-W-np4-3.4.1.txt")


def test_result_and_timers_of_cg() -> None:
    run = parse_npb(CG, "CG", "S", 4, timers=True)
    assert run == NpbRun(
        benchmark="CG",
        problem_class="S",
        processes=4,
        size=(1400,),
        iterations=15,
        time_s=0.05,
        mops_total=1381.5,
        mops_per_process=345.38,
        version="3.4.1",
        timers={
            "total": NpbTimer(0.0479, 0.0482, 0.0481),
            "conjg": NpbTimer(0.0053, 0.0065, 0.0056),
            "rcomm": NpbTimer(0.0385, 0.0426, 0.0406),
            "ncomm": NpbTimer(0.0, 0.0033, 0.0014),
            "totcomp": NpbTimer(0.0053, 0.0072, 0.0061),
            "totcomm": NpbTimer(0.0407, 0.0429, 0.042),
        },
    )
    assert run.communication_share == pytest.approx(0.042 / 0.0481)


COMMUNICATION = {
    "bt-S-np4-timers-3.4.1.txt": (0.7250, 0.7421),
    "cg-S-np4-timers-3.3.1.txt": (0.7999, 0.8108),
    "ep-S-np4-timers-3.4.1.txt": (0.0159, 0.7343),
    "ft-S-np4-timers-3.3.1.txt": (0.1855, 0.2198),
    "ft-S-np4-timers-3.4.1.txt": (0.0963, 0.1566),
    "is-S-np4-timers-3.3.1.txt": (0.0487, 0.0493),
    "is-S-np4-timers-3.4.1.txt": (0.0040, 0.0048),
    "lu-S-np4-timers-3.3.1.txt": (0.2197, 0.2286),
    "lu-S-np4-timers-3.4.1.txt": (0.0503, 0.0556),
    "mg-S-np4-timers-3.4.1.txt": (0.0026, 0.0032),
    "sp-S-np4-timers-3.4.1.txt": (0.0771, 0.0834),
}


@pytest.mark.parametrize("name", COMMUNICATION)
def test_communication_share_of_each_program(name: str) -> None:
    run = parse_npb(read(name), name[:2].upper(), "S", 4, timers=True)
    communication_s, total_s = COMMUNICATION[name]
    assert run.communication_share == pytest.approx(communication_s / total_s)


def test_no_communication_share_without_timers() -> None:
    run = parse_npb(IS, "IS", "S", 2)
    assert run.communication_share is None


def test_title_lags_behind_the_version() -> None:
    assert "NAS Parallel Benchmarks 3.4 --" in IS
    assert parse_npb(IS, "IS", "S", 2).version == "3.4.1"


def with_value(text: str, name: str, value: str) -> str:
    damaged, count = re.subn(
        rf"^( {name} *= *).*$", rf"\g<1>{value}", text, flags=re.MULTILINE
    )
    assert count == 1
    return damaged


END = IS.index("npb@nas")
BROKEN = {
    "empty": ("", 0, "no result of IS in 0 lines"),
    "cut before the result": (IS[: IS.index("\n IS B")], 8, "no result of IS in 8"),
    "cut in the result": (
        IS[: IS.index("Mop/s/process")],
        17,
        "no end of NPB's result",
    ),
    "cut before the end": (IS[:END], 35, "no end of NPB's result"),
    "cut in the end": (IS[: END + 5], 35, "no end of NPB's result"),
    "top missing": (IS[IS.index(" Size:") :], 34, "no title of NPB"),
    "two results": (IS + IS, 48, "a second result of IS"),
    "two ranks print": (
        IS.replace(" IS Bench", " IS Benchmark Completed\n IS Bench"),
        11,
        "a second result of IS",
    ),
    "a line lost": (
        IS.replace(" Iterations      =                       10\n", ""),
        13,
        "'Time in seconds =                     0.02', expected 'Iterations = ...'",
    ),
    "a line twice": (
        IS.replace(" Class           =", " Class           = S\n Class ="),
        12,
        "expected 'Size = ...'",
    ),
    "a line broken in its number": (
        IS.replace("28.88\n", "28.88\n12\n"),
        18,
        "'12', expected 'Mop/s/process = ...'",
    ),
    "a line broken in its name": (
        IS.replace(" Operation type", " Opera\ntion type"),
        21,
        "SUCCESSFUL', expected 'Operation type = ...'",
    ),
    "two lines in one": (
        IS.replace("28.88\n", "28.88"),
        17,
        "Mop/s total is 28.88 Mop/s/process   =                    14.44",
    ),
    "another benchmark": (CG, 3, "CG Benchmark', expected the title of IS"),
    "another class": (with_value(IS, "Class", "W"), 11, "Class is W, expected S"),
    "another size": (with_value(IS, "Size", "65537"), 12, "Size is 65537, expected 65"),
    "other iterations": (with_value(IS, "Iterations", "1"), 13, "Iterations is 1, exp"),
    "other ranks": (
        with_value(IS, "Total processes", "4"),
        15,
        "Total processes is 4, expected 2",
    ),
    "idle ranks": (
        with_value(IS, "Active processes", "1"),
        16,
        "Active processes is 1, expected 2",
    ),
    "unverified": (
        with_value(IS, "Verification", "UNSUCCESSFUL"),
        20,
        "Verification is UNSUCCESSFUL, expected SUCCESSFUL",
    ),
    "not verified": (
        with_value(IS, "Verification", "NOT PERFORMED"),
        20,
        "Verification is NOT PERFORMED, expected SUCCESSFUL",
    ),
    "overflow of the rate": (
        with_value(IS, "Mop/s total", "************"),
        17,
        "Mop/s total is ************ (too large for its field), expected a number",
    ),
    "overflow of the time": (
        with_value(IS, "Time in seconds", "************"),
        14,
        "Time in seconds is ************ (too large for its field)",
    ),
    "nan": (with_value(IS, "Mop/s total", "NaN"), 17, "Mop/s total is NaN, expected"),
    "infinity": (
        with_value(IS, "Mop/s total", "Infinity"),
        17,
        "Mop/s total is Infinity",
    ),
    "negative": (with_value(IS, "Time in seconds", "-0.02"), 14, "is -0.02, expected"),
    "absurd": (with_value(IS, "Time in seconds", "1e30"), 14, "is 1e30, expected a n"),
    "no rate": (with_value(IS, "Mop/s total", "0.00"), 17, "0.00, expected a positive"),
    "no value": (with_value(IS, "Mop/s total", ""), 17, "expected 'Mop/s total = ...'"),
    "rate of another time": (
        with_value(IS, "Mop/s total", "288.80"),
        17,
        "Mop/s total is 288.8, which takes 0.002269 s for this problem, not 0.02 s",
    ),
    "one digit more than rounding": (
        with_value(IS, "Time in seconds", "0.03"),
        17,
        "Mop/s total is 28.88, which takes 0.02269 s for this problem, not 0.03 s",
    ),
    "rate of other ranks": (
        with_value(IS, "Mop/s/process", "28.88"),
        18,
        "Mop/s/process is 28.88 on 2 processes, Mop/s total 28.88",
    ),
    "no version": (with_value(IS, "Version", "3.4."), 21, "Version is 3.4., expected"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_output_is_refused(name: str) -> None:
    text, line, reason = BROKEN[name]
    assert text != IS
    with pytest.raises(ParseError) as caught:
        parse_npb(text, "IS", "S", 2)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_timers_that_were_not_asked_for_are_refused() -> None:
    with pytest.raises(ParseError, match="timers, which cost time, were not asked"):
        parse_npb(CG, "CG", "S", 4)


def with_timer(name: str, *times: str) -> str:
    damaged, count = re.subn(
        rf"^( timer +\d\( *{name} *\) :).*$",
        r"\g<1>  " + "  ".join(times),
        CG,
        flags=re.MULTILINE,
    )
    assert count == 1
    return damaged


BROKEN_TIMERS = {
    "none": (CG[: CG.index(" nprocs")], 62, "no table of timers"),
    "cut": (CG[: CG.index(" timer  6")], 69, "'', expected timer totcomm"),
    "cut in the last line": (CG[:-4], 69, "'', expected timer totcomm"),
    "a timer lost": (
        re.sub(r" timer  3.*\n", "", CG),
        66,
        "expected timer rcomm",
    ),
    "two tables": (CG + CG[CG.index("\n nprocs") :], 70, "a second table of timers"),
    "other ranks": (
        CG.replace("nprocs =     4", "nprocs =     2"),
        63,
        "expected timers of 4 processes",
    ),
    "nan": (
        with_timer("totcomm", "0.0407", "0.0429", "NaN"),
        69,
        "expected timer totc",
    ),
    "overflow": (
        with_timer("totcomm", "**********", "0.0429", "0.0420"),
        69,
        "expected timer totcomm",
    ),
    "negative": (with_timer("rcomm", "-0.0385", "0.0426", "0.0406"), 66, "timer rcomm"),
    "mean above maximum": (
        with_timer("rcomm", "0.0385", "0.0426", "0.4060"),
        66,
        "timer rcomm: no ranks can have NpbTimer(minimum_s=0.0385, maximum_s=0.0426, ",
    ),
    "sum is not the total": (
        with_timer("totcomm", "0.0397", "0.0419", "0.0410"),
        69,
        "totcomp and totcomm take 0.0471 s, total 0.0481 s",
    ),
    "total of another run": (
        CG.replace(
            "0.0479      0.0482      0.0481", "0.0379      0.0382      0.0381"
        ).replace("0.0407      0.0429      0.0420", "0.0307      0.0329      0.0320"),
        64,
        "total 0.0382 s, 'Time in seconds' 0.05",
    ),
}


@pytest.mark.parametrize("name", BROKEN_TIMERS)
def test_broken_timers_are_refused(name: str) -> None:
    text, line, reason = BROKEN_TIMERS[name]
    assert text != CG
    with pytest.raises(ParseError) as caught:
        parse_npb(text, "CG", "S", 4, timers=True)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_ft_leaves_out_timers_that_are_zero() -> None:
    text = read("ft-S-np4-timers-3.4.1.txt")
    run = parse_npb(text, "FT", "S", 4, timers=True)
    assert "transpose2_loc" not in run.timers
    assert list(run.timers)[-3:] == ["sync", "totcomp", "totcomm"]
    with pytest.raises(ParseError, match="expected timer totcomp"):
        parse_npb(re.sub(r" timer 17.*\n", "", text), "FT", "S", 4, timers=True)


def test_timers_too_large_for_their_fields_are_not_left_out() -> None:
    text = re.sub(
        r"(\( *jac.*:).*",
        r"\g<1>" + 3 * "  **********",
        read("lu-S-np4-timers-3.3.1.txt"),
    )
    with pytest.raises(ParseError, match=r"timer  5\(jacld .* expected timer exch"):
        parse_npb(text, "LU", "S", 4, timers=True)


def test_lu_3_4_leaves_out_two_timers() -> None:
    old = parse_npb(read("lu-S-np4-timers-3.3.1.txt"), "LU", "S", 4, timers=True)
    new = parse_npb(read("lu-S-np4-timers-3.4.1.txt"), "LU", "S", 4, timers=True)
    assert old.timers.keys() - new.timers.keys() == {"jacld", "jacu"}


REFUSED_RUNS = {
    "cg-S-np3-active2-3.4.1.txt": ("CG", 3, 40, "Active processes is 2, expected 3"),
    "cg-S-np3-refused-3.4.1.txt": ("CG", 3, 1, "*** ERROR determining processor topo"),
    "cg-S-np2-compiled4-3.3.1.txt": ("CG", 2, 11, "Error: num of procs allocated"),
    "bt-U-np1-3.4.1.txt": ("BT", 1, 30, "Class is U, expected S"),
}


@pytest.mark.parametrize("name", REFUSED_RUNS)
def test_real_runs_without_a_valid_result_are_refused(name: str) -> None:
    benchmark, ranks, line, reason = REFUSED_RUNS[name]
    with pytest.raises(ParseError) as caught:
        parse_npb(read(name), benchmark, "S", ranks)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_error_of_the_solution_is_no_complaint() -> None:
    cut = CG[: CG.index(" CG Benchmark Completed")]
    assert "Error is" in cut
    with pytest.raises(ParseError, match="no result of CG in 32 lines"):
        parse_npb(cut, "CG", "S", 4)


@pytest.mark.parametrize(
    "size", ["512x 256x 256", " 512x 256x 256", "512 x 256 x 256", "512x256x256"]
)
def test_grids_are_read_with_any_blanks(size: str) -> None:
    text = read("mg-W-np4-3.4.1.txt")
    spread = with_value(text, "Size", size.replace("512", "128").replace("256", "128"))
    assert parse_npb(spread, "MG", "W", 4) == parse_npb(text, "MG", "W", 4)


def test_other_output_around_the_result_does_no_harm() -> None:
    noise = "srun: job 1 queued and waiting for resources\n" * 1000
    assert parse_npb(noise + IS + noise, "IS", "S", 2) == parse_npb(IS, "IS", "S", 2)


@pytest.mark.parametrize(
    ("benchmark", "problem_class", "reason"),
    [
        ("DT", "S", "benchmark 'DT', expected one of"),
        ("cg", "S", "benchmark 'cg', expected one of"),
        ("CG", "G", "class 'G' of CG, expected one of SWABCDEF"),
        ("IS", "F", "class 'F' of IS, expected one of SWABCDE"),
        ("CG", "", "class '' of CG"),
        ("CG", "SW", "class 'SW' of CG"),
    ],
)
def test_unknown_problem(benchmark: str, problem_class: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parse_npb(IS, benchmark, problem_class, 2)
    assert not isinstance(caught.value, ParseError)


@pytest.mark.parametrize(
    ("benchmark", "problem_class", "size", "iterations"),
    [
        ("BT", "C", (162, 162, 162), 200),
        ("CG", "C", (150000,), 75),
        ("EP", "C", (8589934592,), 0),
        ("FT", "A", (256, 256, 128), 6),
        ("FT", "B", (512, 256, 256), 20),
        ("IS", "B", (33554432,), 10),
        ("LU", "D", (408, 408, 408), 300),
        ("MG", "C", (512, 512, 512), 20),
        ("SP", "F", (2560, 2560, 2560), 500),
    ],
)
def test_problems(
    benchmark: str, problem_class: str, size: tuple[int, ...], iterations: int
) -> None:
    problem = problem_of(benchmark, problem_class)
    assert (problem.size, problem.iterations) == (size, iterations)
