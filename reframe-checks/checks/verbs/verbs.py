# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Verbs between two nodes, below MPI, by perftest."""

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, variable

from seatrial.checks.perftest import PerftestCheck, PerftestLatency, PerftestRun
from seatrial.model.records import Sample
from seatrial.parsers.perftest import parse_perftest_bw

KIB = 1 << 10
MIB = 1 << 20

TITLES = {"send": "Send", "write": "RDMA_Write", "read": "RDMA_Read"}
"""Operations as the programs print them."""


@rfm.simple_test
class VerbsLatency(PerftestLatency):
    """What does one message cost the adapter, without MPI?

    `send_latency` (both sides poll their completion queues) and `write_latency` (the
    receiver polls the last byte) are half a round trip; `read_latency` is the whole
    operation at its initiator, from the post to the completion. Reliable connection,
    one queue pair. 8 B shows the cost of a message, 4 KiB is beyond what fits into one
    packet inline.
    """

    operation = parameter(["send", "write", "read"])

    descr = "latency of verbs between two nodes"
    tool = "ib_send_lat, ib_write_lat, ib_read_lat"
    experiments = ("E08", "E09", "E10", "E36")
    typical_s = 20
    sizes = [2, 8, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB]

    @run_after("init")
    def name_metric(self):
        """Judge the metric of the operation."""
        self.metric = f"{self.operation}_latency"
        self.judged = [f"{self.metric}_8B", f"{self.metric}_4KiB"]

    def runs(self):
        """Return a run for every size."""
        program = f"ib_{self.operation}_lat"
        title = f"{TITLES[self.operation]} Latency"
        return [
            self.latency(f"{program} -s {size}", title, self.metric, size)
            for size in self.sizes
        ]


@rfm.simple_test
class VerbsAtomics(PerftestLatency):
    """What does an atomic operation on the memory of another node cost?

    `atomic_latency` is the whole operation at its initiator, from the post to the
    completion; an atomic has 8 B.
    """

    operation = parameter(["FETCH_AND_ADD", "CMP_AND_SWAP"])

    descr = "latency of atomics of verbs between two nodes"
    tool = "ib_atomic_lat"
    experiments = ("E11",)
    typical_s = 5
    sizes = [8]
    judged = ["atomic_latency_8B"]

    def runs(self):
        """Return the run of this operation."""
        title = f"Atomic {self.operation} Latency"
        command = f"ib_atomic_lat -A {self.operation}"
        return [self.latency(command, title, "atomic_latency", 8)]


@rfm.simple_test
class VerbsBandwidth(PerftestCheck):
    """What does a link carry without MPI, one way and both ways?

    RDMA write with up to 64 messages under way per queue pair, each with a completion
    (`ib_write_bw -t 64 -Q 1`). `bibw` is the sum of both directions (`-b`). Numbers of
    one queue pair are judged; those of more have the parameter `qps`. 4 MiB is far
    beyond every switch of protocol, 64 KiB shows the cost per message.
    """

    iterations = 6400
    """Messages of a run, of all queue pairs: 100 windows of 64."""
    qps = variable(typ.List[int], value=[1, 2, 8])

    descr = "bandwidth of RDMA writes between two nodes"
    tool = "ib_write_bw"
    experiments = ("E12", "E13", "E37")
    typical_s = 90
    sizes = [64, KIB, 8 * KIB, 64 * KIB, MIB, 4 * MIB]
    judged = ["bw_64KiB", "bw_4MiB", "bibw_4MiB"]

    def runs(self):
        """Return a run for every direction, number of queue pairs, and size."""
        return [
            self.bandwidth(metric, size, qps)
            for metric in ("bw", "bibw")
            for qps in self.qps
            for size in self.sizes
        ]

    def bandwidth(self, metric, size, qps):
        """Return a run of one size."""
        count = max(self.iterations // qps, 5)  # perftest's minimum
        both, title = "", "RDMA_Write BW"
        if metric == "bibw":
            both, title = "-b", "RDMA_Write Bidirectional BW"
        depth = f"-t 64 -Q 1 -q {qps} -n {count} -s {size}"

        def read(text):
            (row,) = parse_perftest_bw(text, title, [size], count * qps)
            value, n = row.bandwidth_mb_per_s, row.iterations
            parameters = {} if qps == 1 else {"qps": qps}
            return [Sample(metric, value, size, n=n, parameters=parameters)]

        command = " ".join(filter(None, ["ib_write_bw", both, depth]))
        return PerftestRun(f"{metric},{size},qps={qps}", command, read)
