"""The sections of hpccoutf.txt, which show the numbers of the summary once more."""

from seatrial.standins.hpcc_values import Problem

Values = dict[str, float]

_KERNELS = ("Copy", "Scale", "Add", "Triad")
_PTRANS = """\
M: {half}
N: {half}
MB: {block}
NB: {block}
P: {rows}
Q: {columns}
TIME   M     N    MB  NB  P   Q     TIME   CHECK   GB/s   RESID
---- ----- ----- --- --- --- --- -------- ------ -------- -----
{runs}

Finished    5 tests, with the following results:
    5 tests completed and passed residual checks.
    0 tests completed and failed residual checks.
    0 tests skipped because of illegal input values.

END OF TESTS."""
_CONDITIONS = """\
Benchmark conditions:
 The latency   measurements were done with        8 bytes
 The bandwidth measurements were done with  2000000 bytes
 The ring communication was done in both directions on {ranks} processes"""
_HPL = """\
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4     {n:>7} {block:>5} {rows:>5} {columns:>5} {time:>18.2f} {gflops:>22.3e}
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)={residual:>17.7f} ...... PASSED
================================================================================

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
--------------------------------------------------------------------------------

End of Tests.
================================================================================"""


def sections(problem: Problem, values: Values) -> str:
    """Write all sections but the summary, in HPCC's order."""
    bodies: dict[str, str] = {}
    for which in ("", "_LCG"):
        bodies |= _random_access(which, values)
    bodies["PTRANS"] = _ptrans(problem, values)
    residual = "Scaled residual: 0.0277601\n"
    bodies["StarDGEMM"] = residual + _star("Gflop/s", values["StarDGEMM_Gflops"])
    bodies["SingleDGEMM"] = _single("DGEMM Gflop/s", values["SingleDGEMM_Gflops"])
    bodies |= _stream(values)
    bodies |= _fft(values)
    if problem.ranks > 1:
        bodies["LatencyBandwidth"] = _messages(problem, values)
    bodies["HPL"] = _hpl(problem, values)
    return "".join(
        f"Begin of {name} section.\n{body}\nEnd of {name} section.\n"
        for name, body in bodies.items()
    )


def _star(unit: str, mean: float) -> str:
    """Write the rate of a rank while all do the same: all have the mean."""
    lines = [f"{name} {unit} {mean:.6f}" for name in ("Minimum", "Average", "Maximum")]
    return "\n".join(["Node(s) with error 0", *lines])


def _single(name: str, rate: float) -> str:
    return f"Node(s) with error 0\nNode selected 0\nSingle {name} {rate:.6f}"


def _random_access(which: str, values: Values) -> dict[str, str]:
    name = f"MPIRandomAccess{which}"
    words, each = int(values[f"{name}_N"]), int(values[f"RandomAccess{which}_N"])
    updates, rate = int(values[f"{name}_ExeUpdates"]), values[f"{name}_GUPs"]
    ranks = words // each
    power, of_each = words.bit_length() - 1, each.bit_length() - 1
    together = f"""\
Running on {ranks} processors{" (PowerofTwo)" if ranks & (ranks - 1) == 0 else ""}
Total Main table size = 2^{power} = {words} words
PE Main table size = 2^{of_each} = {each} words/PE
Default number of updates (RECOMMENDED) = {updates}
Number of updates EXECUTED = {updates} (for a TIME BOUND of 60.00 secs)
Real time used = {values[f"{name}_time"]:.6f} seconds
{rate:.9f} Billion(10^9) Updates    per second [GUP/s]
{rate / ranks:.9f} Billion(10^9) Updates/PE per second [GUP/s]
Found 0 errors in {words} locations (passed)."""
    alone = f"Main table size   = 2^{of_each} = {each} words\n"
    star = alone + _star("GUP/s", values[f"StarRandomAccess{which}_GUPs"])
    single = _single("GUP/s", values[f"SingleRandomAccess{which}_GUPs"])
    kind = f"RandomAccess{which}"
    return {f"MPI{kind}": together, f"Star{kind}": star, f"Single{kind}": single}


def _ptrans(problem: Problem, values: Values) -> str:
    half, block = int(values["PTRANS_n"]), problem.block
    rate, time_s = values["PTRANS_GBs"], values["PTRANS_time"]
    place = f"{half:>5} {half:>5} {block:>3} {block:>3} {problem.rows:>3}"
    row = f"{place} {problem.columns:>3} {time_s:>8.2f} PASSED {rate:>8.3f}  0.00"
    runs = "\n".join([f"WALL {row}\nCPU  {row}"] * 5)
    grid = {"rows": problem.rows, "columns": problem.columns}
    return _PTRANS.format(half=half, block=block, runs=runs, **grid)


def _stream(values: Values) -> dict[str, str]:
    size = int(values["STREAM_VectorSize"])
    star = [
        f"Array size = {size}, Offset = 0",
        "Each test is run 10 times.",
        "Solution Validates: avg error less than 1.000000e-13 on all three arrays",
        "Node(s) with error 0",
    ]
    single = ["Node(s) with error 0", "Node selected 0"]
    for kernel in _KERNELS:
        mean = values[f"StarSTREAM_{kernel}"]
        star += [
            f"{name} {kernel} GB/s {mean:.6f}"
            for name in ("Minimum", "Average", "Maximum")
        ]
        rate = values[f"SingleSTREAM_{kernel}"]
        single.append(f"Single STREAM {kernel} GB/s {rate:.6f}")
    return {"StarSTREAM": "\n".join(star), "SingleSTREAM": "\n".join(single)}


def _fft(values: Values) -> dict[str, str]:
    size = f"Vector size: {int(values['FFT_N'])}"
    times = (
        "Generation time: 0.001\nTuning: 0.000\nComputing: 0.001\nInverse FFT: 0.001"
    )
    error = "max(|x-x0|): 1.171e-15"
    star = _star("Gflop/s", values["StarFFT_Gflops"])
    bodies = {
        "StarFFT": "\n".join([size, times, error, star]),
        "SingleFFT": _single("FFT Gflop/s", values["SingleFFT_Gflops"]),
    }
    if "MPIFFT_N" not in values:
        return bodies
    together = f"""\
Number of nodes: {int(values["MPIFFT_Procs"])}
Vector size: {int(values["MPIFFT_N"]):>20}
{times}
max(|x-x0|): {values["MPIFFT_maxErr"]:.3e}
Gflop/s: {values["MPIFFT_Gflops"]:>9.3f}"""
    return {"MPIFFT": together, **bodies}


def _messages(problem: Problem, values: Values) -> str:
    names = ("Min", "Avg", "Max")
    latency = [values[f"{name}PingPongLatency_usec"] / 1e3 for name in names]
    rate = [values[f"{name}PingPongBandwidth_GBytes"] * 1e3 for name in names]
    lines = [
        "Detailed benchmark results:",
        "Ping Pong:",
        f"Latency   min / avg / max:{' /'.join(f'{x:>11.6f}' for x in latency)} msecs",
        f"Bandwidth min / avg / max:{' /'.join(f'{x:>11.3f}' for x in rate)} MByte/s",
        "Ring:",
    ]
    for order, shown in (("Naturally", "naturally"), ("Randomly", "randomly ")):
        slow = values[f"{order}OrderedRingLatency_usec"] / 1e3
        fast = values[f"{order}OrderedRingBandwidth_GBytes"] * 1e3
        numbers = f"latency= {slow:>13.6f} msec, bandwidth= {fast:>13.6f} MB/s"
        lines.append(f"On {shown} ordered ring: {numbers}")
    return "\n".join([*lines, "", _CONDITIONS.format(ranks=problem.ranks)])


def _hpl(problem: Problem, values: Values) -> str:
    norms = values["HPL_AnormI"] * values["HPL_XnormI"] + values["HPL_BnormI"]
    residual = values["HPL_RnormI"] / (values["HPL_eps"] * norms * problem.n)
    return _HPL.format(
        n=problem.n,
        block=problem.block,
        rows=problem.rows,
        columns=problem.columns,
        time=values["HPL_time"],
        gflops=1e3 * values["HPL_Tflops"],
        residual=residual,
    )
