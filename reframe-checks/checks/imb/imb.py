# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Intel MPI Benchmarks: one node, pairs on all cores, all nodes."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, variable

from seatrial.checks.base import SeatrialCheck, Tag, cores_of
from seatrial.model.records import Sample
from seatrial.parsers import imb


class ImbCheck(SeatrialCheck):
    """Sizes and limits of all checks with IMB-MPI1.

    IMB makes `repetitions` per size, fewer if they would move more than `volume_mb`: a
    slow link takes seconds too. It drops the remaining rows when a size takes longer
    than `seconds_per_size` on average: that run has no result, so the limit is high.
    """

    largest_log2 = variable(int)
    repetitions = variable(int)
    volume_mb = variable(int)
    seconds_per_size = variable(float, value=10.0)

    valid_prog_environs = ["+imb"]
    reference_file = "imb.yaml"
    preamble = r"\s*#.*"
    executable = "IMB-MPI1"
    tags = {Tag.NETWORK}

    def options(self, benchmark, smallest_log2):
        """Return the options of a benchmark on all ranks of its step."""
        return [
            benchmark,
            f"-npmin {2 if benchmark == 'PingPong' else self.num_tasks}",
            f"-msglog {smallest_log2}:{self.largest_log2}",
            f"-iter {self.repetitions},{self.volume_mb}",
            f"-time {self.seconds_per_size}",
        ]


@rfm.simple_test
class ImbWithin(ImbCheck):
    """What does a message cost between two cores of a node?

    PingPong of two ranks on one node, through its memory; sizes as in ImbRing.
    """

    descr = "PingPong between two cores of a node"
    tool = "IMB-MPI1 PingPong"
    experiments = ("E30",)
    typical_s = 5
    num_nodes = 1
    ppn = 2
    min_tasks = 2
    largest_log2 = 22
    repetitions = 1000
    volume_mb = 16
    judged = ["latency_8B", "bw_4MiB"]

    @run_after("setup")
    def need_cores(self):
        """Skip nodes of one core."""
        self.skip_if(cores_of(self.current_partition) == 1, "a pair takes 2 cores")

    @run_before("run")
    def choose_benchmark(self):
        """Run the benchmark with all its sizes."""
        self.executable_opts = self.options("PingPong", smallest_log2=0)

    def extract(self, text):
        """Return latency and bandwidth of every size."""
        sizes = [0, *(1 << k for k in range(self.largest_log2 + 1))]
        rows = imb.parse_imb(text, "PingPong", 2, sizes)
        (node,) = self.nodes
        place = {"source": node, "destination": node}
        return [sample for row in rows for sample in samples_of(row, **place)]


class ImbPairs(ImbCheck):
    """Windows of messages between two nodes, a pair of ranks on every core.

    IMB pairs the ranks of the first half with those of the second, so ranks must fill a
    node before the next: placement is block. A window has 64 messages up to IMB 2021.1,
    and 256 since. Numbers are of all pairs together.
    """

    most_ranks = variable(int, value=256)
    """Maximum of ranks per node."""

    typical_s = 5
    needs_nodes = 2
    most_nodes = 2
    placement = "block"
    largest_log2 = 16
    repetitions = 20
    volume_mb = 1

    @run_after("setup")
    def place(self):
        """Place a rank on every core of two nodes, as in ReFrame's settings."""
        self.ppn = min(cores_of(self.current_partition), self.most_ranks)
        super().place()

    @run_before("run")
    def choose_benchmark(self):
        """Run the benchmark without its row of 0 bytes."""
        options = self.options(self.benchmark, smallest_log2=0)
        self.executable_opts = [*options, "-zero_size off"]

    def extract(self, text):
        """Return bandwidth and message rate of every size."""
        sizes = [1 << k for k in range(self.largest_log2 + 1)]
        samples = []
        for row in imb.parse_imb_rate(text, self.benchmark, self.num_tasks, sizes):
            values = {self.bandwidth: row.mb_per_s, "msg_rate": row.msg_per_s}
            samples += [
                Sample(metric, value, row.size_bytes, n=row.repetitions)
                for metric, value in values.items()
            ]
        return samples


@rfm.simple_test
class ImbUniband(ImbPairs):
    """How many messages per second do all cores of a node send to another's?

    8 B shows the cost of a message, 64 KiB how far messages fill the link.
    """

    descr = "Uniband between all cores of two nodes"
    tool = "IMB-MPI1 Uniband"
    experiments = ("E19", "E25", "E28", "E42")
    benchmark = "Uniband"
    bandwidth = "bw"
    judged = ["msg_rate_8B", "bw_64KiB"]


@rfm.simple_test
class ImbBiband(ImbPairs):
    """How many messages per second do all cores of two nodes send to each other?

    `bibw` and `msg_rate` count both directions.
    """

    descr = "Biband between all cores of two nodes"
    tool = "IMB-MPI1 Biband"
    experiments = ("E20", "E28", "E43")
    benchmark = "Biband"
    bandwidth = "bibw"
    judged = ["msg_rate_8B", "bibw_64KiB"]


class ImbAllNodes(ImbCheck):
    """An IMB benchmark over all nodes at once, for every message size.

    Sizes end at 64 KiB: beyond that a collective only repeats the bandwidth that
    ImbRing measures pair by pair.
    """

    experiments = ()
    typical_s = 5
    step_s_per_node = 0.25
    min_tasks = 2
    largest_log2 = 16
    repetitions = 500
    volume_mb = 8
    smallest_log2 = 3

    @run_before("run")
    def choose_benchmark(self):
        """Run the benchmark without its row of 0 bytes, which calls nothing."""
        options = self.options(self.benchmark, self.smallest_log2)
        self.executable_opts = [*options, "-zero_size off"]

    def extract(self, text):
        """Return the time of a call, and the bandwidth if there is one, by size."""
        sizes = [1 << k for k in range(self.smallest_log2, self.largest_log2 + 1)]
        rows = imb.parse_imb(text, self.benchmark, self.num_tasks, sizes)
        return [sample for row in rows for sample in samples_of(row)]


@rfm.simple_test
class ImbSendrecv(ImbAllNodes):
    """What is left for each node when all nodes send and receive at once?

    Every rank sends to the next and receives from the one before. `bw` counts both
    directions of a rank, as IMB does.
    """

    descr = "Sendrecv along the chain of all ranks"
    tool = "IMB-MPI1 Sendrecv"
    benchmark = "Sendrecv"
    judged = ["latency_8B", "bw_64KiB"]


@rfm.simple_test
class ImbExchange(ImbAllNodes):
    """What is left for each node when all exchange with both neighbours?

    Every rank sends to and receives from the one before and the one after, as a halo
    in one dimension. `bw` counts all four messages of a rank, as IMB does.
    """

    descr = "Exchange along the chain of all ranks"
    tool = "IMB-MPI1 Exchange"
    benchmark = "Exchange"
    judged = ["latency_8B", "bw_64KiB"]


@rfm.simple_test
class ImbBarrier(ImbAllNodes):
    """How long does a barrier over all nodes take?

    `latency` is IMB's t_avg, the mean over the ranks.
    """

    descr = "Barrier over all ranks"
    tool = "IMB-MPI1 Barrier"
    benchmark = "Barrier"
    judged = ["latency"]

    def extract(self, text):
        """Return the time of a call."""
        row = imb.parse_imb_barrier(text, self.num_tasks)
        return [Sample("latency", row.time_us, n=row.repetitions)]


@rfm.simple_test
class ImbCollective(ImbAllNodes):
    """How long does a collective over all nodes take?

    `latency` is IMB's t_avg, the mean over the ranks: the root of a Bcast may leave
    at once. 8 B shows the number of steps, 64 KiB the load of the links.
    """

    benchmark = parameter(["Alltoall", "Bcast", "Allgather", "Scatter", "Allreduce"])

    descr = "collective over all ranks"
    tool = "IMB-MPI1 Alltoall, Bcast, Allgather, Scatter, Allreduce"
    experiments = ("E21", "E31", "E32")
    judged = ["latency_8B", "latency_64KiB"]


def samples_of(row: imb.ImbRow, **place: str) -> list[Sample]:
    """Convert a row of IMB to samples; 0 bytes have no bandwidth."""
    values = {"latency": row.time_us}
    if row.bandwidth_mb_per_s is not None and row.size_bytes > 0:
        values["bw"] = row.bandwidth_mb_per_s
    return [
        Sample(metric, value, row.size_bytes, n=row.repetitions, **place)
        for metric, value in values.items()
    ]
