"""The numbers of HPCC's summary, of a model machine."""

import math

from seatrial.standins.run import Run

_KERNELS = {"Copy": 0.97, "Scale": 0.96, "Add": 1.01, "Triad": 1.0}
_LATENCY_BYTES, _BANDWIDTH_BYTES = 8, 2_000_000
_MOST_PAIRS = 500


class Problem:
    """HPL's order and block, its grid of processes, and the number of ranks."""

    def __init__(self, n: int, block: int, rows: int, columns: int, ranks: int) -> None:
        self.n, self.block = n, block
        self.rows, self.columns, self.ranks = rows, columns, ranks


def measure(run: Run, problem: Problem) -> dict[str, float]:
    """Return all numbers by their names; the seconds of HPL are the run's.

    Counts are int. Names of MPIFFT and of messages are missing where HPCC has none:
    for another number of ranks than a power of two, and for one rank.
    """
    ranks = problem.ranks
    values: dict[str, float] = {"CommWorldProcs": ranks}
    values |= _hpl(run, problem)
    values |= _compute(run, problem)
    values |= _memory(run, problem)
    values |= _fft(run, problem)
    if ranks > 1:
        values |= _messages(run)
    run.seconds = values["HPL_time"]
    return values


def _hpl(run: Run, problem: Problem) -> dict[str, float]:
    n = problem.n
    scale = 1.0 if len(run.job.nodes) == 1 else 0.85
    gflops = scale * run.machine.rate("gflops", "compute", run.job.nodes)
    seconds = n * n * (2 / 3 * n + 3 / 2) / gflops / 1e9
    return {
        "HPL_Tflops": gflops / 1e3,
        "HPL_time": seconds,
        "HPL_eps": 1.11022e-16,
        "HPL_RnormI": 2.4e-15 * n,
        "HPL_Anorm1": 0.2639 * n,
        "HPL_AnormI": 0.2628 * n,
        "HPL_Xnorm1": 2.62 * n,
        "HPL_XnormI": 11.3513,
        "HPL_BnormI": 0.499776,
        "HPL_N": n,
        "HPL_NB": problem.block,
        "HPL_nprow": problem.rows,
        "HPL_npcol": problem.columns,
    }


def _compute(run: Run, problem: Problem) -> dict[str, float]:
    n, ranks = problem.n, problem.ranks
    each = 1.1 * run.machine.rate("gflops", "compute", run.job.nodes) / ranks
    network = run.machine.worst(run.job.nodes, "bandwidth")
    links = run.machine.numbers["bandwidth_mb_per_s"] * len(run.job.nodes)
    gb_per_s = 0.3 * links / 1e3 / network * run.machine.noise()
    half = n // 2
    return {
        "DGEMM_N": int(math.sqrt(n**2 // ranks // 3 + 0.25) - 0.5),
        "StarDGEMM_Gflops": each,
        "SingleDGEMM_Gflops": 1.2 * each * run.machine.noise(),
        "PTRANS_GBs": gb_per_s,
        "PTRANS_time": 8e-9 * half * half / gb_per_s,
        "PTRANS_residual": 0,
        "PTRANS_n": half,
        "PTRANS_nb": problem.block,
        "PTRANS_nprow": problem.rows,
        "PTRANS_npcol": problem.columns,
    }


def _memory(run: Run, problem: Problem) -> dict[str, float]:
    ranks, machine = problem.ranks, run.machine
    table = 1 << max(10, (problem.n**2 // 2 // ranks).bit_length() - 1)
    values: dict[str, float] = {}
    slow = machine.worst(run.job.nodes, "latency")
    for which in ("_LCG", ""):
        rate = 0.002 * len(run.job.nodes) / slow * machine.noise()
        values |= {
            f"MPIRandomAccess{which}_N": table * ranks,
            f"MPIRandomAccess{which}_time": 4 * table * ranks / rate / 1e9,
            f"MPIRandomAccess{which}_Errors": 0,
            f"MPIRandomAccess{which}_ErrorsFraction": 0,
            f"MPIRandomAccess{which}_ExeUpdates": 4 * table * ranks,
            f"MPIRandomAccess{which}_GUPs": rate,
        }
        each = (
            0.0005
            * run.machine.rate("memory_gb_per_s", "memory", run.job.nodes)
            / ranks
        )
        values |= {
            f"RandomAccess{which}_N": table,
            f"StarRandomAccess{which}_GUPs": each,
            f"SingleRandomAccess{which}_GUPs": 1.1 * each * machine.noise(),
        }
    values["STREAM_VectorSize"] = problem.n**2 // ranks // 3
    each = run.machine.rate("memory_gb_per_s", "memory", run.job.nodes) / ranks
    single = min(6, -(-ranks // len(run.job.nodes))) * each
    for kernel, share in _KERNELS.items():
        values[f"StarSTREAM_{kernel}"] = share * each * machine.noise()
        values[f"SingleSTREAM_{kernel}"] = share * single * machine.noise()
    return values


def _fft(run: Run, problem: Problem) -> dict[str, float]:
    ranks = problem.ranks
    size = 1 << max(10, (problem.n**2 // ranks // 8).bit_length() - 1)
    each = 0.05 * run.machine.rate("gflops", "compute", run.job.nodes) / ranks
    values: dict[str, float] = {"FFT_N": size, "StarFFT_Gflops": each}
    values["SingleFFT_Gflops"] = 1.1 * each * run.machine.noise()
    if ranks & (ranks - 1) == 0:
        network = run.machine.worst(run.job.nodes, "bandwidth")
        values["MPIFFT_N"] = size * ranks
        values["MPIFFT_Gflops"] = 0.3 * each * ranks / network * run.machine.noise()
        values["MPIFFT_maxErr"] = 1.29948e-15
        values["MPIFFT_Procs"] = ranks
    return values


def _messages(run: Run) -> dict[str, float]:
    """Return ping-pongs of some pairs of ranks, and the rings of all."""
    job, machine = run.job, run.machine
    step = max(1, job.ranks // _MOST_PAIRS)
    pairs = [
        (job.node_of(rank), job.node_of((rank + 1) % job.ranks))
        for rank in range(0, job.ranks, step)
    ]
    latencies = [
        machine.half_trip(*pair, _LATENCY_BYTES) * machine.noise() for pair in pairs
    ]
    rates = [
        _BANDWIDTH_BYTES / machine.half_trip(*pair, _BANDWIDTH_BYTES) * machine.noise()
        for pair in pairs
    ]
    values: dict[str, float] = {}
    for name, numbers, scale in (
        ("PingPongLatency_usec", latencies, 1.0),
        ("PingPongBandwidth_GBytes", rates, 1e-3),
    ):
        values[f"Min{name}"] = min(numbers) * scale
        values[f"Avg{name}"] = sum(numbers) / len(numbers) * scale
        values[f"Max{name}"] = max(numbers) * scale
    base = machine.numbers
    latency = base["latency_us"] * machine.worst(job.nodes, "latency")
    rate = base["bandwidth_mb_per_s"] / machine.worst(job.nodes, "bandwidth") / 1e3
    if len(job.nodes) == 1:
        latency = base["shared_latency_us"] * machine.slowness(job.node, "latency")
        rate = base["shared_bandwidth_mb_per_s"] / 1e3
        rate /= machine.slowness(job.node, "bandwidth")
    for order, share in (("Naturally", 1.2), ("Randomly", 1.4)):
        values[f"{order}OrderedRingLatency_usec"] = share * latency * machine.noise()
        bandwidth = rate / share / job.ppn * machine.noise()
        values[f"{order}OrderedRingBandwidth_GBytes"] = bandwidth
    return values
