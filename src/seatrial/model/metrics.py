"""All metrics: unit, direction and meaning.

Metrics of upstream tools keep their own names (`RandomlyOrderedRingLatency_usec`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

import msgspec

from seatrial.model.energy import energy_metrics
from seatrial.model.units import parse_size, size_label

Direction = Literal["higher", "lower"]
Area = Literal["nodes", "links", "machine", "programs"]


@dataclass(frozen=True)
class Metric:
    """A metric; `direction` says which values are better, `size` what a size is of.

    `area` is the part of a machine that the metric is about; None: the area follows
    from the place of a number (a node, a pair, all nodes).
    """

    name: str
    unit: str
    direction: Direction
    meaning: str
    size: str = "message size"
    area: Area | None = None


_ALL = (
    Metric("latency", "us", "lower", "half round trip, or mean time of a call"),
    Metric("bw", "MB/s", "higher", "bandwidth, 10^6 B/s"),
    Metric("bibw", "MB/s", "higher", "bandwidth of both directions at once"),
    Metric("msg_rate", "msg/s", "higher", "messages of all pairs per second"),
    Metric("put_latency", "us", "lower", "MPI_Put and its completion"),
    Metric("get_latency", "us", "lower", "MPI_Get and its completion"),
    Metric("send_latency", "us", "lower", "verbs send and receive, half round trip"),
    Metric("write_latency", "us", "lower", "verbs RDMA write, half round trip"),
    Metric("read_latency", "us", "lower", "verbs RDMA read, post to completion"),
    Metric("atomic_latency", "us", "lower", "verbs atomic, post to completion"),
    Metric("read_bw", "MB/s", "higher", "bandwidth of RDMA read"),
    Metric("fairness", "1", "higher", "Jain's index of the pairs' bandwidth"),
    Metric("registration_time", "us", "lower", "ibv_reg_mr", size="memory bytes"),
    Metric("deregistration_time", "us", "lower", "ibv_dereg_mr", size="memory bytes"),
    Metric("registration_per_page", "us", "lower", "ibv_reg_mr of one more page"),
    Metric("connection_latency", "us", "lower", "half a round over all, for each"),
    Metric("put_bw", "MB/s", "higher", "bandwidth of MPI_Put"),
    Metric("launch_time", "s", "lower", "srun of a program that ends at once"),
    Metric("mpi_launch_time", "s", "lower", "srun of MPI_Init and MPI_Finalize"),
    Metric("mpi_init_time", "s", "lower", "MPI_Init on the slowest rank"),
    Metric("ready_time", "s", "lower", "from srun until all ranks left MPI_Init"),
    Metric("submit_rate", "job/s", "higher", "jobs that sbatch submits, one by one"),
    Metric("job_rate", "job/s", "higher", "short jobs, from submission to the end"),
    Metric("array_rate", "job/s", "higher", "the same of the tasks of a job array"),
    Metric("crowded_latency", "us", "lower", "latency while other pairs measured"),
    Metric("crowded_bw", "MB/s", "higher", "bandwidth while other pairs measured"),
    Metric("start_spread", "us", "lower", "from first to last out of a barrier"),
    Metric(
        "pairs_answered",
        "%",
        "higher",
        "pairs of a node that could be measured",
        area="links",
    ),
    Metric("balance_latency", "1", "lower", "latency between over within nodes"),
    Metric("balance_bw", "1", "lower", "bandwidth within over between nodes"),
    Metric("balance_bibw", "1", "lower", "bibw within over between nodes"),
    Metric("balance_multi_bw", "1", "lower", "bw of many pairs, within over between"),
    Metric("congestion_latency", "1", "lower", "latency beside aggressors over alone"),
    Metric("congestion_latency_p99", "1", "lower", "the same of 99th percentiles"),
    Metric("congestion_bw", "1", "lower", "bandwidth alone over beside aggressors"),
    Metric("congestion_bw_p99", "1", "lower", "the same of what 99 % reach"),
    Metric("congestion_allreduce", "1", "lower", "allreduce beside over alone"),
    Metric("congestion_allreduce_p99", "1", "lower", "the same of 99th percentiles"),
    Metric("isolated_latency", "us", "lower", "half an exchange in random rings"),
    Metric("isolated_bw", "MB/s", "higher", "bandwidth of a rank in random rings"),
    Metric("isolated_allreduce", "us", "lower", "MPI_Allreduce, ranks of many nodes"),
    Metric("congested_latency", "us", "lower", "isolated_latency, with aggressors"),
    Metric("congested_bw", "MB/s", "higher", "isolated_bw, with aggressors"),
    Metric("congested_allreduce", "us", "lower", "isolated_allreduce, likewise"),
    Metric("reuse_ratio", "1", "lower", "latency without over with buffer re-use"),
    Metric("reuse_ratio_eager", "1", "lower", "median reuse_ratio, eager sizes"),
    Metric("reuse_ratio_rendezvous", "1", "lower", "median reuse_ratio, larger sizes"),
    Metric("match_time", "ns", "lower", "latency added per entry of a queue"),
    Metric("logp_L", "us", "lower", "LogP: network latency"),
    Metric("logp_os", "us", "lower", "LogP: time the sender is busy"),
    Metric("logp_or", "us", "lower", "LogP: time the receiver is busy"),
    Metric("logp_g", "us", "lower", "LogP: gap between messages"),
    Metric(
        "exchange_time",
        "us",
        "lower",
        "one halo exchange, slowest rank",
        size="bytes of a row, 8 N",
    ),
    Metric("loop_time", "s", "lower", "LAMMPS, 100 timed steps", area="programs"),
    Metric(
        "Mops_total",
        "Mop/s",
        "higher",
        "NPB, 10^6 operations of all ranks",
        area="programs",
    ),
    Metric(
        "communication_share",
        "%",
        "lower",
        "of a rank's time, mean of all",
        area="programs",
    ),
    Metric("mem_bw", "GB/s", "higher", "STREAM triad, all cores of a node"),
    Metric("dgemm", "Gflop/s", "higher", "DGEMM, all cores of a node"),
    Metric("hpl", "Gflop/s", "higher", "HPL of one node"),
    Metric("socket_mem_bw", "GB/s", "higher", "STREAM triad of one socket"),
    Metric("socket_dgemm", "Gflop/s", "higher", "DGEMM of one socket"),
    Metric("socket_hpl", "Gflop/s", "higher", "HPL of one socket"),
    Metric(
        "mem_latency", "ns", "lower", "one load at a random place", size="memory size"
    ),
    Metric("fixed_work", "Gflop/s", "higher", "fixed work, all cores of a node"),
    Metric("slowest_core", "Gflop/s", "higher", "fixed work, the slowest core"),
    Metric("work_kept", "%", "higher", "last over first quarter of fixed work"),
    Metric("cpu_share", "%", "higher", "CPU time over time, core with the least"),
    Metric("os_noise", "%", "lower", "time lost to noise, mean of a node's cores"),
    Metric("os_noise_core", "%", "lower", "time lost to noise, the worst core"),
    Metric("detour_p99_9", "us", "lower", "loss of a quantum of work, the worst core"),
    Metric("detour_max", "us", "lower", "largest loss of a quantum, the worst core"),
    Metric("noise_period", "us", "higher", "period of the costliest periodic noise"),
    Metric("periodic_noise", "%", "lower", "time lost to it, on the core with most"),
    Metric("clock_idle", "GHz", "higher", "clock of the CPUs before load"),
    Metric("clock_load", "GHz", "higher", "clock of the CPUs under load"),
    Metric("temperature_max", "degC", "lower", "hottest reading under load"),
    Metric("throttle_events", "count", "lower", "times that heat slowed a core"),
    Metric("quota_stops", "count", "lower", "periods that a CPU quota cut short"),
    Metric("ecc_corrected", "count", "lower", "memory errors that were corrected"),
    Metric("ecc_uncorrected", "count", "lower", "memory errors that were not"),
    Metric("machine_checks", "count", "lower", "machine check exceptions"),
    Metric(
        "port_errors",
        "count",
        "lower",
        "errors that a port counted in a session",
        area="links",
    ),
    Metric(
        "port_bits",
        "bit",
        "higher",
        "bits that a port received in a session",
        area="links",
    ),
    Metric(
        "port_bit_error_rate_bound",
        "1/bit",
        "lower",
        "bit error rate is below it, with a confidence of 95 %",
        area="links",
    ),
    Metric("programs_passed", "%", "higher", "programs of a node that ended well"),
    Metric("threads_there", "%", "higher", "threads of a node that ran as they may"),
    Metric("threads_placed", "%", "higher", "threads of a node with their own core"),
    *(
        Metric(f"{files}_{way}_bw", "MB/s", "higher", meaning, size, "machine")
        for size in ("bytes of a transfer",)
        for files, way, meaning in (
            ("file", "write", "writes to a file system, a file of each rank"),
            ("file", "read", "reads of files that another node wrote"),
            ("shared", "write", "writes to a file system, one file for all ranks"),
            ("shared", "read", "reads of what another node wrote to one file"),
        )
    ),
    Metric("file_data", "GB", "higher", "that a run wrote at once", area="machine"),
    *(
        Metric(f"{kind}_{operation}", "1/s", "higher", meaning, area="machine")
        for kind, operation, meaning in (
            ("file", "creates", "files created, with their data"),
            ("file", "stats", "files of another node looked up"),
            ("file", "reads", "files of another node read"),
            ("file", "removes", "files removed"),
            ("folder", "creates", "folders created"),
            ("folder", "stats", "folders of another node looked up"),
            ("folder", "removes", "folders removed"),
        )
    ),
    Metric("HPL_Tflops", "Tflop/s", "higher", "HPL rate of all processes"),
    Metric("hpl_efficiency", "%", "higher", "HPL rate over the peak of its nodes"),
    Metric("hpl_residual", "1", "lower", "scaled residual of HPL, below 16"),
    Metric("slowest_rack", "Gflop/s", "higher", "HPL of the slowest rack, per node"),
    Metric("rack_evenness", "%", "higher", "HPL, slowest rack over the median rack"),
    Metric("hpcg_rating", "Gflop/s", "higher", "HPCG by its rules: 1800 s, memory"),
    Metric("hpcg_trial", "Gflop/s", "higher", "HPCG in less time or memory"),
    Metric("hpcg_memory", "%", "higher", "data of HPCG, of the nodes' memory"),
    Metric("PTRANS_GBs", "GB/s", "higher", "HPCC, transposition over all ranks"),
    Metric("MPIRandomAccess_GUPs", "GUP/s", "higher", "HPCC, all ranks together"),
    Metric("StarRandomAccess_GUPs", "GUP/s", "higher", "HPCC, a rank, all busy"),
    Metric("SingleRandomAccess_GUPs", "GUP/s", "higher", "HPCC, a rank alone"),
    Metric("StarSTREAM_Triad", "GB/s", "higher", "HPCC, a rank, all busy"),
    Metric("SingleSTREAM_Triad", "GB/s", "higher", "HPCC, a rank alone"),
    Metric("MPIFFT_Gflops", "Gflop/s", "higher", "HPCC, all ranks together"),
    Metric("StarFFT_Gflops", "Gflop/s", "higher", "HPCC, a rank, all busy"),
    Metric("SingleFFT_Gflops", "Gflop/s", "higher", "HPCC, a rank alone"),
    Metric("StarDGEMM_Gflops", "Gflop/s", "higher", "HPCC, a rank, all busy"),
    Metric("SingleDGEMM_Gflops", "Gflop/s", "higher", "HPCC, a rank alone"),
    Metric("MinPingPongLatency_usec", "us", "lower", "HPCC, best pair, 8 B"),
    Metric("AvgPingPongLatency_usec", "us", "lower", "HPCC, mean of pairs, 8 B"),
    Metric("MaxPingPongLatency_usec", "us", "lower", "HPCC, worst pair, 8 B"),
    Metric("MinPingPongBandwidth_GBytes", "GB/s", "higher", "HPCC, worst pair, 2 MB"),
    Metric("AvgPingPongBandwidth_GBytes", "GB/s", "higher", "HPCC, mean pair, 2 MB"),
    Metric("MaxPingPongBandwidth_GBytes", "GB/s", "higher", "HPCC, best pair, 2 MB"),
    Metric(
        "NaturallyOrderedRingLatency_usec", "us", "lower", "HPCC ring in rank order"
    ),
    Metric(
        "NaturallyOrderedRingBandwidth_GBytes",
        "GB/s",
        "higher",
        "HPCC ring in rank order, per process",
    ),
    Metric("RandomlyOrderedRingLatency_usec", "us", "lower", "HPCC ring, random order"),
    Metric(
        "RandomlyOrderedRingBandwidth_GBytes",
        "GB/s",
        "higher",
        "HPCC ring, random order, per process",
    ),
)
_ROWS = (Metric(*row) for row in energy_metrics())
METRICS = {metric.name: metric for metric in (*_ALL, *_ROWS)}

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def own_metric(metric: Metric) -> Metric:
    """Return a metric of a site's own check; ValueError if it is not complete."""
    if not (isinstance(metric.name, str) and _NAME.fullmatch(metric.name)):
        raise ValueError(f"name {metric.name!r}: expected letters, digits and _")
    try:
        split_flat_name(metric.name)
    except ValueError:
        pass
    else:
        raise ValueError(f"{metric.name} is a metric of Seatrial: choose another name")
    for key, allowed in (("direction", get_args(Direction)), ("area", get_args(Area))):
        value = getattr(metric, key)
        if value not in allowed and (key, value) != ("area", None):
            expected = ", ".join(allowed)
            raise ValueError(f"{metric.name}: {key} {value!r}: expected {expected}")
    for key in ("unit", "meaning", "size"):
        value = getattr(metric, key)
        if not isinstance(value, str) or not value.strip() or value != value.strip():
            raise ValueError(f"{metric.name}: {key} {value!r}: expected a text")
    return metric


def own_metrics_of(manifest: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the metrics of a site's own checks, as the manifest of a run has them."""
    own = msgspec.convert(manifest.get("own_metrics", ()), tuple[Metric, ...])
    return {metric.name: metric for metric in own}


STATISTICS = ("mean", "p50", "p99", "max", "min")
"""Of several statistics of one metric, the first of these is held to the limit."""


def judged_statistic(present: Iterable[str]) -> str:
    """Choose the one statistic of a metric that counts."""

    def rank(name: str) -> tuple[int, str]:
        known = name in STATISTICS
        return (STATISTICS.index(name) if known else len(STATISTICS), name)

    return min(present, key=rank)


def flat_name(metric: str, size_bytes: int | None = None) -> str:
    """Return the name of a metric in ReFrame: `latency_8B`, `loop_time`."""
    return metric if size_bytes is None else f"{metric}_{size_label(size_bytes)}"


def split_flat_name(
    flat: str, known: Mapping[str, Metric] = METRICS
) -> tuple[Metric, int | None]:
    """Split a flat name into a known metric and a size; ValueError if it is none."""
    if flat in known:
        return known[flat], None
    name, _, label = flat.rpartition("_")
    if name not in known:
        nearest = get_close_matches(flat, known, 1) or get_close_matches(name, known, 1)
        remedy = f"did you mean {nearest[0]!r}?" if nearest else "see docs/files.md"
        expected = "expected a name such as latency_8B or mem_bw"
        raise ValueError(f"unknown metric {flat!r}, {expected}; {remedy}")
    return known[name], parse_size(label)
