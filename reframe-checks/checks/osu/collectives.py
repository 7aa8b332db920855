# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""OSU Micro-Benchmarks over all nodes."""

import reframe as rfm
from reframe.core.builtins import parameter

from seatrial.checks.base import Tag
from seatrial.checks.node_numbers import doubled
from seatrial.checks.osu import FLOATS, OsuCheck, OsuRun

MIB = 1 << 20
KIB = 1 << 10


class OsuAllNodes(OsuCheck):
    """A collective over all nodes, then over 2, 4, 8 and so on of them.

    One job measures the whole curve, as a start costs more than a measurement. The
    numbers of all nodes are judged; the others have the parameter `num_nodes`. A node
    has `ppn` ranks, by default one. Sizes end at 64 KiB: larger ones repeat the
    bandwidth of links.
    """

    tags = {Tag.NETWORK}
    min_tasks = 2
    typical_s = 30
    step_s_per_node = 0.25

    def runs(self):
        """Return the run over all nodes, then those over fewer."""
        counts = [n for n in doubled(self.num_nodes) if n * self.ppn > 1]
        return [self.over(nodes) for nodes in reversed(counts)]

    def over(self, nodes):
        """Return the run over a number of nodes, with sufficient memory."""
        program = f"osu_{self.benchmark}"
        options = [f"-M {max(512 * MIB, 64 * KIB * nodes * self.ppn)}"]
        if self.benchmark == "allreduce":
            options.append(FLOATS.format(program))
        return OsuRun(
            program,
            64 * KIB,
            nodes,
            self.ppn,
            smallest=8,
            options="" if self.benchmark == "barrier" else " ".join(options),
            parameters={} if nodes == self.num_nodes else {"num_nodes": nodes},
        )


@rfm.simple_test
class OsuCollective(OsuAllNodes):
    """How long does a collective over all nodes take, and how does that grow?

    `latency` is the mean over the ranks. 8 B shows the number of steps, 64 KiB the load
    of the links.
    """

    benchmark = parameter(["alltoall", "bcast", "allgather", "scatter", "allreduce"])

    descr = "collective over 2, 4, 8 and so on up to all nodes"
    tool = "osu_alltoall, osu_bcast, osu_allgather, osu_scatter, osu_allreduce"
    experiments = ("E21", "E31", "E32")
    judged = ["latency_8B", "latency_64KiB"]


@rfm.simple_test
class OsuBarrier(OsuAllNodes):
    """How long does a barrier over all nodes take, and how does that grow?

    `latency` is the mean over the ranks. There is no data that OSU could validate.
    """

    benchmark = "barrier"

    descr = "barrier over 2, 4, 8 and so on up to all nodes"
    tool = "osu_barrier"
    experiments = ()
    judged = ["latency"]
