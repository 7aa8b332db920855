"""The parser of LAMMPS, on outputs of six versions, by several styles and programs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.lammps import parse_lammps

DATA = Path(__file__).parent / "data" / "lammps"
EVERY_10 = (0, 10, 20)
ENDS = (0, 20)
EVERY_50 = (0, 50, 100)
ATOMS = 32000


def read(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


RHODO = read("2025.7-np4")
LJ = read("2023.8-lj-np2")


@pytest.mark.parametrize(
    ("name", "tasks", "steps", "column", "expected"),
    [
        ("debian-2021.9-np2", 2, EVERY_50, "TotEng", -25290.7303),
        ("2025.7-np4", 4, EVERY_50, "TotEng", -25290.7364),
        ("2024.8-rhodo-np2", 2, EVERY_10, "TotEng", -25344.1503),
        ("2021.9-lj-np2", 2, ENDS, "TotEng", -4.6178952),
        ("2023.8-lj-np2", 2, ENDS, "TotEng", -4.6178952),
        ("2024.8-eam-np2", 2, EVERY_10, "TotEng", -106636.56),
        ("2023.8-eam-np1-custom", 1, EVERY_10, "TotEng", -106636.56),
        ("2025.7-eam-np1-multi", 1, EVERY_10, "TotEng", -106636.5599),
        ("2024.8-eam-np1-yaml", 1, EVERY_10, "PotEng", -109489.25190781),
        ("2021.9-chain-np2", 2, EVERY_10, "TotEng", 22.394872),
        ("2025.7-chain-np2", 2, EVERY_10, "TotEng", 22.394872),
        ("2021.9-chute-np2", 2, EVERY_10, "KinEng", 784180.74),
        ("2025.7-chute-np2", 2, EVERY_10, "KinEng", 784180.74),
    ],
)
def test_loop_time_and_energy_at_the_last_step(
    name: str, tasks: int, steps: Sequence[int], column: str, expected: float
) -> None:
    text = read(name)
    run = parse_lammps(text, tasks, ATOMS, steps)
    (loop,) = (line for line in text.splitlines() if line.startswith("Loop time"))
    assert run.loop_time_s == float(loop.split()[3])
    assert run.processes == tasks
    assert run.steps == steps[-1]
    assert list(run.by_step(column)) == list(steps)
    assert run.by_step(column)[steps[-1]] == expected


def test_run_is_read_whole() -> None:
    run = parse_lammps(RHODO, 4, ATOMS, EVERY_50)
    assert run.version == "12 Jun 2025 - Development - patch_12Jun2025-808-g67067cbc80"
    assert (run.loop_time_s, run.wall_time_s, run.cpu_use_percent) == (3.8862, 4, 99.3)
    assert (run.neighbour_builds, run.dangerous_builds, run.warnings) == (11, 0, ())
    assert run.thermo.columns == (
        *("Step", "CPU", "TotEng", "KinEng", "Temp", "PotEng", "E_bond", "E_angle"),
        *("E_dihed", "E_impro", "E_vdwl", "E_coul", "E_long", "Press", "Volume"),
    )
    assert run.thermo.rows[1] == (
        *(50, 1.894152, -25330.0307, 21501.0009, 299.8229, -46831.0316, 2471.7035),
        *(10836.5102, 5239.6319, 227.1218, -1993.2873, 206797.6807, -270410.3925),
        *(237.6572, 308031.6762),
    )
    assert run.sections == {
        "Pair": 2.8755,
        "Bond": 0.096409,
        "Kspace": 0.27454,
        "Neigh": 0.50495,
        "Comm": 0.029904,
        "Output": 0.00010923,
        "Modify": 0.09846,
        "Other": 0.006314,
    }
    assert run.comm_share == 0.029904 / 3.8862


def test_threads_and_full_timer() -> None:
    """The second table, of threads, is not taken for the first."""
    run = parse_lammps(read("2025.7-lj-np1-omp2-full"), 1, ATOMS, ENDS, threads=2)
    assert run.processes == 1
    assert run.sections["Pair"] == 0.9248
    assert run.comm_share == 0.023858 / 1.51059


@pytest.mark.parametrize(
    ("name", "tasks", "atoms", "steps", "share"),
    [
        ("2024.8-lj-np1-kokkos-cuda", 1, 500, (0, 1000), 0.2302),
        ("2019.7-lj-np10-gpu-hip", 10, 4000, range(0, 251, 50), 0.7812),
    ],
)
def test_accelerators(
    name: str, tasks: int, atoms: int, steps: Sequence[int], share: float
) -> None:
    run = parse_lammps(read(name), tasks, atoms, steps)
    assert run.comm_share == pytest.approx(share, abs=1e-4)


def test_other_columns_may_stand_before_the_step() -> None:
    run = parse_lammps(read("2023.8-eam-np1-custom"), 1, ATOMS, EVERY_10)
    assert run.thermo.columns == (
        *("Press", "PotEng", "Step", "KinEng", "TotEng", "Temp", "CPU", "S/CPU"),
    )
    assert run.by_step("S/CPU") == {0: 0.0, 10: 13.2868, 20: 9.6926934}


def test_column_that_was_not_printed_is_refused() -> None:
    run = parse_lammps(read("2025.7-chute-np2"), 2, ATOMS, EVERY_10)
    with pytest.raises(
        ParseError, match="no TotEng among Step Atoms KinEng c_1 Volume"
    ):
        run.by_step("TotEng")


def test_warnings_are_kept() -> None:
    run = parse_lammps(read("2025.7-chain-np2"), 2, ATOMS, EVERY_10)
    assert len(run.warnings) == 2
    assert run.warnings[0].startswith(
        "Communication cutoff 1.52 is shorter than a bond"
    )


@pytest.mark.parametrize(
    ("name", "expected"), [("2023.8-lj-np2", None), ("2025.7-chain-np2", 0)]
)
def test_dangerous_builds_are_unknown_where_nobody_looked(
    name: str, expected: int | None
) -> None:
    text = read(name)
    steps = ENDS if "lj" in name else EVERY_10
    assert parse_lammps(text, 2, ATOMS, steps).dangerous_builds == expected


def test_no_breakdown_is_refused() -> None:
    text = read("2025.7-lj-np1-timer-loop")
    with pytest.raises(ParseError, match="no line 'MPI task timing breakdown:'"):
        parse_lammps(text, 1, ATOMS, ENDS)


@pytest.mark.parametrize(
    "style", ["2023.8-lj-np2", "2025.7-np4", "2024.8-eam-np1-yaml"]
)
def test_lines_of_others_between_the_rows_are_passed_over(style: str) -> None:
    text = read(style)
    tasks = int(style.partition("-np")[2][0])
    steps = {"2023": ENDS, "2025": EVERY_50, "2024": EVERY_10}[style[:4]]
    run = parse_lammps(text, tasks, ATOMS, steps)
    noise = "SHAKE stats (type/ave/delta/count) on step 0\nWARNING: odd (x.cpp:1)\n"
    loop = text.index("Loop time")
    noisy = text[:loop] + noise + text[loop:]
    assert parse_lammps(noisy, tasks, ATOMS, steps).thermo == run.thermo


@pytest.mark.parametrize(
    ("file", "steps", "cut"),
    [
        ("2021.9-lj-np2", ENDS, ("0", ".97351766 ")),
        ("2025.7-np4", EVERY_50, ("307995.03", "35")),
        ("2025.7-np4", EVERY_50, ("299.", "0397 ")),
    ],
)
def test_row_whose_end_a_foreign_line_took_is_refused(
    file: str, steps: tuple[int, ...], cut: tuple[str, str]
) -> None:
    text = read(file)
    assert "".join(cut) in text
    taken = text.replace("".join(cut), f"{cut[0]}\ncn01 kernel: Link up{cut[1]}", 1)
    with pytest.raises(ParseError, match="may lack digits, which the next line took"):
        parse_lammps(taken, int(file.partition("-np")[2]), ATOMS, steps)


def test_error_of_pmix_is_none_of_lammps() -> None:
    text = read("2021.9-lj-np2")
    pmix = "[cn01:7] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 169\n"
    run = parse_lammps(pmix + text + pmix, 2, ATOMS, ENDS)
    assert run == parse_lammps(text, 2, ATOMS, ENDS)


def changed(old: str, new: str, text: str = RHODO) -> str:
    assert old in text
    return text.replace(old, new, 1)


LOOP = "Loop time of 3.8862 on 4 procs for 100 steps with 32000 atoms"
RATES = "25.732 timesteps/s, 823.427 katom-step/s"
LAST = "------------ Step            100"
OUTPUT = "Output  | 0.00010524 | 0.00010923 | 0.00012092 |   0.0 |  0.00\n"
BROKEN = {
    "empty": ("", "no line 'LAMMPS ('"),
    "cut before the loop time": (RHODO[: RHODO.index("Loop t")], "no line 'Loop time"),
    "cut in the loop time": (RHODO[: RHODO.index(" procs")], "is no whole line 'Loop"),
    "cut after the loop time": (RHODO[: RHODO.index("\nPerf")], "no line '% CPU use"),
    "cut in the breakdown": (RHODO[: RHODO.index("Modify")], "no line 'Neighbor list"),
    "cut before the end": (RHODO[: RHODO.index("Total wall")], "no line 'Total wall"),
    "cut in the end": (RHODO.rstrip()[:-1], "'Total wall time: 0:00:0' is no whole"),
    "no beginning": (RHODO[RHODO.index("# Rhodo") :], "no line 'LAMMPS ('"),
    "doubled": (RHODO + RHODO, "a second 'LAMMPS (', expected one run"),
    "appended to a run that was killed": (
        RHODO[: RHODO.index("Loop")] + RHODO,
        "a second 'LAMMPS ('",
    ),
    "loop time of a second run": (
        changed("Total wall", f"{LOOP}\nTotal wall"),
        "a second 'Loop time of ', expected one run",
    ),
    "error at the end": (
        RHODO + "ERROR: Lost atoms (src/thermo.cpp:438)\n",
        "ERROR: Lost atoms (src/thermo.cpp:438)",
    ),
    "error of another rank in a line": (
        changed("Kspace  |", "Kspace  ERROR on proc 3: Out of memory\n"),
        "Kspace  ERROR on proc 3: Out of memory",
    ),
    "nan time": (changed("of 3.8862", "of nan"), "the loop time is nan, expected a"),
    "inf time": (changed("of 3.8862", "of inf"), "the loop time is inf, expected a"),
    "zero time": (changed("of 3.8862", "of 0"), "the loop time is 0, expected a pos"),
    "negative time": (changed("of 3.8862", "of -1"), "the loop time is -1, expected"),
    "absurd time": (changed("of 3.8862", "of 1e30"), "the loop time is 1e30, expec"),
    "time with a digit lost": (
        changed("of 3.8862", "of 3.862"),
        "25.732 timesteps/s, by the loop time it is 25.8933",
    ),
    "steps per second": (changed(RATES[:6], "25.782"), "25.782 timesteps/s, by the lo"),
    "steps per second missing": (
        changed(RATES[:20], "99.9 things/s, "),
        "timesteps/s is missing",
    ),
    "katom-step/s taken for Matom-step/s": (
        changed("katom", "Matom"),
        "823.427 Matom-step/s, by the loop time it is 0.823426",
    ),
    "other atoms": (
        changed("32000 atoms\n\nPerf", "3200 atoms\n\nPerf"),
        "3200 atoms, e",
    ),
    "other steps": (changed("for 100 st", "for 10 st"), "10 steps, expected 100"),
    "other procs": (changed("on 4 procs", "on 2 procs"), "2 procs, expected 4 x 1"),
    "other tasks": (
        changed("4 MPI tasks", "2 MPI tasks"),
        "2 MPI tasks x 1 threads, ex",
    ),
    "other threads": (
        changed("x 1 OpenMP", "x 8 OpenMP"),
        "4 MPI tasks x 8 threads, ex",
    ),
    "nan energy": (changed("-25290.7364", "       nan"), "TotEng is nan, expected a"),
    "inf pressure": (changed("     6.7352", "       inf"), "Press is inf, expected a"),
    "absurd volume": (changed("308134.2286", "3e38"), "Volume is 3e38, expected a num"),
    "no energy": (changed("TotEng   =    -25290", "Tot = 1"), "expected Step CPU TotE"),
    "energy is not the sum": (
        changed("-25290.7364", "-25290.7464"),
        "TotEng -25290.7464, expected PotEng -46882.6453 + 21591.9089",
    ),
    "value broken by others": (
        changed("10781.9571", "1\n0781.9571"),
        "'0781.9571', expected NAME = VALUE",
    ),
    "value without a name": (changed("Temp     =", "Temp   "), "expected NAME = VALUE"),
    "no first row": (
        changed("Step              0 --", "Stop              0 --"),
        "row of step 50, expected 0",
    ),
    "no last row": (
        RHODO[: RHODO.index(LAST)] + RHODO[RHODO.index(LOOP) :],
        "2 of 3 rows, the next is step 100",
    ),
    "a row twice": (
        changed(LAST, RHODO[RHODO.index(LAST) : RHODO.index(LOOP)] + LAST),
        "row of step 100, expected no further row",
    ),
    "no thermodynamic output": (
        RHODO.replace("- Step ", "- Stop "),
        "no thermodynamic output with Step above the loop time",
    ),
    "CPU use broken by others": (
        changed("99.3% CPU", "9\n9.3% CPU"),
        "'9', expected no line that begins with a number",
    ),
    "builds broken by others": (
        changed("builds = 11", "builds = 1\n1"),
        "'1', expected no line that begins with a number",
    ),
    "dangerous builds broken by others": (
        changed("Dangerous builds = 0", "Dangerous builds = 1\n0"),
        "'0', expected no line that begins with a number",
    ),
    "breakdown without its title": (
        changed("MPI task timing breakdown:\n", ""),
        "no line 'MPI task timing breakdown:'",
    ),
    "no builds": (
        changed("builds = 11", "builds = many"),
        "neighbour list builds is many",
    ),
    "nan time of a section": (changed("2.8755", "   nan"), "avg time of Pair is nan"),
    "section that fell out": (changed(OUTPUT, ""), "no time of Output"),
    "section twice": (changed(OUTPUT, OUTPUT * 2), "expected a row of 'Section |"),
    "section of another name": (
        changed("Kspace  |", "Kspice  |"),
        "expected a row of 'Section |",
    ),
    "section with a column lost": (
        changed("| 0.00010923 |", "|"),
        "expected a row of 'Section |",
    ),
    "section that is not its share": (
        changed("| 2.8755     ", "| 2.8955     "),
        "Pair has 73.99 % of the loop time, not 74.51 %",
    ),
    "section out of its range": (
        changed("| 2.8294     ", "| 2.9294     "),
        "Pair took 2.9294 to 2.9708 s, but 2.8755 s in the mean",
    ),
    "sections that do not add up": (
        changed(
            "0.27454    | 0.32256    |  10.6 |  7.06",
            "0.27469    | 0.32256    |  10.6 |  7.07",
        ),
        "parts of 3.88634 s in all, expected 3.8862 s",
    ),
    "breakdown without a column": (
        changed("avg time ", "avg tim: "),
        "avg time of Pair is missing",
    ),
    "interrupted breakdown": (
        changed("Neigh   |", "srun: a | bar\nNeigh   |"),
        "'srun: a | bar', expected a row of 'Section |",
    ),
    "wall time below the loop time": (
        changed("0:00:04", "0:00:02"),
        "2 s in all, but 3.8862 s for the run",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_output_is_refused(name: str) -> None:
    text, reason = BROKEN[name]
    with pytest.raises(ParseError) as refusal:
        parse_lammps(text, 4, ATOMS, EVERY_50)
    assert reason in refusal.value.reason
    assert len(text.splitlines()) >= refusal.value.line > 0 or not text


BROKEN_ROWS = {
    "exponent in the next line": (
        changed("0.97351766   \n", "0.97351766\ne+05   \n", LJ),
        "'e+05', expected a row of 6 numbers",
    ),
    "row cut": (changed("      0.97351766   ", "", LJ), "expected a row of 6 numbers"),
    "row glued to the next line": (
        changed("      0.97351766   \n", "      0.97351766   ", LJ),
        "is no whole line 'Loop time of '",
    ),
    "column added": (changed("0.97351766   ", "0.97351766 1 ", LJ), "a row of 6 numb"),
    "nan": (changed("-4.6178952", "nan", LJ), "TotEng is nan, expected a number"),
    "infinite": (changed("-4.6178952", "1e999", LJ), "TotEng is 1e999, expected"),
    "python's number": (changed("-4.6178952", "-4_6178952", LJ), "is -4_6178952, exp"),
    "digits of others": (changed("0.6257938", "0.625793٨", LJ), "is 0.625793٨, expec"),
    "letter": (changed("-4.6178952", "-4.6l78952", LJ), "TotEng is -4.6l78952, expe"),
    "step is no whole number": (
        changed("        20   0.6", "      2.0   0.6", LJ),
        "Step is 2.0, expected a count",
    ),
    "step nan": (
        changed("        20   0.6", "       nan   0.6", LJ),
        "Step is nan, ex",
    ),
    "other step": (
        changed("        20   0.6", "        10   0.6", LJ),
        "row of step 10",
    ),
    "name of a column damaged": (changed("TotEng ", "Tot=ng ", LJ), "no thermodynamic"),
}


@pytest.mark.parametrize("name", BROKEN_ROWS)
def test_broken_row_is_refused(name: str) -> None:
    text, reason = BROKEN_ROWS[name]
    with pytest.raises(ParseError) as refusal:
        parse_lammps(text, 2, ATOMS, ENDS)
    assert reason in refusal.value.reason
    assert text.count("\n") >= refusal.value.line > 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "2021.9-error-np1",
            "ERROR: Using suffix omp without OPENMP package installed",
        ),
        ("2025.7-lost-atoms-np2", "ERROR: Lost atoms: original 32000 current 402"),
        ("2025.7-lj-np1-two-runs", "a second 'Loop time of ', expected one run"),
        ("2025.7-lj-np1-minimize", "a second 'Loop time of ', expected one run"),
        ("2025.7-lj-np1-timer-off", "no line 'Loop time of '"),
        ("2025.7-lj-np1-print", "row of step 7, expected 10"),
    ],
)
def test_run_that_is_none_is_refused(name: str, reason: str) -> None:
    text = read(name)
    with pytest.raises(ParseError) as refusal:
        parse_lammps(text, 1, ATOMS, EVERY_10 if "print" in name else ENDS)
    assert refusal.value.reason.startswith(reason)


def test_yaml_rows_are_whole() -> None:
    text = read("2024.8-eam-np1-yaml")
    for old, new, reason in (
        ("56267.6348663682, ]", "56267.6348663682, ", "expected a row of 12 numbers"),
        ("-109489.25190781, 0, 0,", "nan, 0, 0,", "PotEng is nan"),
        ("  - [10, 473", "  - [30, 473", "row of step 30, expected 10"),
    ):
        broken = changed(old, new, text)
        with pytest.raises(ParseError) as refusal:
            parse_lammps(broken, 1, ATOMS, EVERY_10)
        assert reason in refusal.value.reason
        assert new in broken.splitlines()[refusal.value.line - 1]


def test_error_names_the_line() -> None:
    text = changed("-25290.7364", "       nan")
    with pytest.raises(ParseError) as refusal:
        parse_lammps(text, 4, ATOMS, EVERY_50)
    assert text.splitlines()[refusal.value.line - 1].startswith(LAST)
