# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Verbs between two nodes, below MPI, by our own programs."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from seatrial.checks.base import cores_of
from seatrial.checks.verbs_program import VerbsProgram, VerbsRun
from seatrial.model.records import Sample
from seatrial.parsers.mp_rdma import parse_mp_rdma_bw, parse_mp_rdma_lat
from seatrial.parsers.mqp_lat import parse_mqp_lat
from seatrial.parsers.mr_cost import parse_mr_cost
from seatrial.parsers.winbw import parse_winbw

KIB = 1 << 10
MIB = 1 << 20


class TwoNodes(VerbsProgram):
    """A check of two nodes, whose ranks are in blocks."""

    needs_nodes = 2
    most_nodes = 2
    placement = "block"


@rfm.simple_test
class MultiPairVerbs(TwoNodes):
    """What does an adapter deliver to one core, and to all cores at once?

    All pairs begin each operation together, behind a barrier in shared memory. Latency
    is the median over all of them: of a write half the round trip, of a read until its
    completion. `bw` is that of all pairs, `fairness` 1 if all get the same share. The
    numbers of all cores are judged; those of fewer have the parameter `pairs`.
    `start_spread` is the worst time between the ranks that leave the barrier;
    operations with more than `spread_limit_ns` do not count.
    """

    operation = parameter(["write", "read"])
    window = variable(int, value=64)
    spread_limit_ns = variable(int, value=200)
    most_ranks = variable(int, value=256)
    """Maximum of ranks per node."""

    descr = "RDMA of 1, 2, 4 and so on pairs up to all cores"
    tool = "mp_rdma_lat, mp_rdma_bw"
    experiments = ("E01", "E02", "E03", "E04")
    typical_s = 30
    valid_prog_environs = ["+mp_rdma_lat +mp_rdma_bw"]

    @run_after("init")
    def name_metric(self):
        """Judge the latency of the operation, and the bandwidth."""
        self.latency = f"{self.operation}_latency"
        self.judged = [f"{self.latency}_8B", "bw_64KiB"]

    @run_after("setup")
    def place(self):
        """Place a rank on every core, as in ReFrame's settings."""
        self.ppn = min(cores_of(self.current_partition), self.most_ranks)
        super().place()

    def runs(self):
        """Return both programs on each rail."""
        options = (
            f"--operation {self.operation} --pairs 1:{self.ppn} --sizes 8:{64 * KIB} "
            f"--spread-limit {self.spread_limit_ns}"
        )
        runs = []
        for rail in self.rails:
            more = f"{options}{self.gid(rail)}"
            bandwidth = f"mp_rdma_bw {more} --window {self.window}"
            runs += [
                VerbsRun(f"mp_rdma_lat {more}", (rail,), self.read_latency),
                VerbsRun(bandwidth, (rail,), self.read_bandwidth),
            ]
        return runs

    def of_pairs(self, row):
        """Return the parameters of a row: none if it is of all cores."""
        return {} if row.pairs == self.ppn else {"pairs": row.pairs}

    def read_latency(self, text):
        """Return latency and spread of every number of pairs and size."""
        samples = []
        for row in parse_mp_rdma_lat(text):
            more = {"parameters": self.of_pairs(row)}
            spread, n = row.spread_max_ns / 1e3, row.operations
            samples += [
                Sample(self.latency, row.p50_us, row.size_bytes, "p50", row.n, **more),
                Sample("start_spread", spread, row.size_bytes, "max", n, **more),
            ]
        return samples

    def read_bandwidth(self, text):
        """Return bandwidth and fairness of every number of pairs and size."""
        samples = []
        for row in parse_mp_rdma_bw(text):
            more = {"parameters": self.of_pairs(row), "n": row.operations}
            samples += [
                Sample("bw", row.mb_per_s, row.size_bytes, **more),
                Sample("fairness", row.fairness, row.size_bytes, **more),
            ]
        return samples


@rfm.simple_test
class WindowBandwidth(TwoNodes):
    """What do one and two ports carry, one way and both ways?

    Windows of 64 RDMA writes, each answered by a small reply. With two rails or more,
    the first two also work together: `striped` cuts messages above `threshold` in two,
    `bound` gives each process, or each direction, a port of its own; these numbers have
    the parameter `policy`. `bibw` counts the bytes of both directions.
    """

    processes = parameter([1, 2])
    iterations = 100
    warmup = 10
    window = variable(int, value=64)
    threshold = variable(int, value=8 * KIB)

    descr = "windows of RDMA writes by one port and by two"
    tool = "winbw"
    experiments = ("E12", "E13", "E14", "E15", "E16", "E17")
    typical_s = 30
    valid_prog_environs = ["+winbw"]
    judged = ["bw_64KiB", "bw_1MiB", "bibw_1MiB"]

    @run_after("init")
    def choose_processes(self):
        """Start that many processes on each node."""
        self.ppn = self.processes

    def runs(self):
        """Return a run on each rail, then those on the first two together."""
        options = (
            f"winbw --sizes 8:{MIB} --window {self.window} "
            f"--threshold {self.threshold} --policy "
        )
        runs = [
            VerbsRun(f"{options}single{self.gid(rail)}", (rail,), self.read)
            for rail in self.rails
        ]
        if len(self.rails) > 1:
            two = tuple(self.rails[:2])
            for policy in ("striped", "bound"):
                more = f"{options}{policy}{self.gid(two[0])}"
                runs.append(VerbsRun(more, two, self.read))
        return runs

    def read(self, text):
        """Return the bandwidth of every direction and size."""
        return [
            Sample(
                "bibw" if row.direction == "bi" else "bw",
                row.mb_per_s,
                row.size_bytes,
                n=row.n,
                parameters={} if row.policy == "single" else {"policy": row.policy},
            )
            for row in parse_winbw(text)
        ]


@rfm.simple_test
class Registration(VerbsProgram):
    """What does it cost to register memory with the adapter, and to give it up?

    Of ever new memory whose pages are present, by size; the parameter `state` is `warm`
    for memory that was registered before, `untouched` for memory without pages.
    `registration_per_page` is the slope of a line through the medians of all sizes.
    """

    iterations = 200
    warmup = 10

    descr = "ibv_reg_mr and ibv_dereg_mr by size"
    tool = "mr_cost"
    experiments = ("E38",)
    typical_s = 15
    valid_prog_environs = ["+mr_cost"]
    most_nodes = 1
    ppn = 1
    judged = ["registration_time_4KiB", "registration_time_1MiB"]

    def runs(self):
        """Return a run on each rail."""
        sizes = f"mr_cost --sizes {4 * KIB}:{16 * MIB}"
        return [VerbsRun(sizes, (rail,), self.read) for rail in self.rails]

    def read(self, text):
        """Return the times of every state and size, and the cost of a page."""
        samples = {}
        for row in parse_mr_cost(text):
            more = {} if row.state == "cold" else {"parameters": {"state": row.state}}
            for name, value in (
                ("registration_time", row.p50_us),
                ("deregistration_time", row.dereg_p50_us),
            ):
                key = (name, row.state, row.size_bytes)
                samples[key] = Sample(name, value, row.size_bytes, "p50", row.n, **more)
            per_page = ("registration_per_page", row.us_per_page)
            samples[per_page[0], row.state] = Sample(
                *per_page, statistic="slope", **more
            )
        return list(samples.values())


@rfm.simple_test
class Connections(TwoNodes):
    """What does a message cost an adapter that holds many connections?

    Two ranks send over 1, 2, 4 and so on reliable connections in turn.
    `connection_latency` is half the time of a round over all of them, divided by their
    number; `bibw` is the sum of both ways while both ranks send. Numbers of the most
    connections are judged; the others have the parameter `connections`. An adapter
    keeps the state of few connections at hand, and fetches that of others from memory.
    """

    mode = parameter(["send", "write"])
    iterations = 100
    warmup = 10
    most_connections = variable(int, value=256)
    """At most 1024."""
    duration_ms = variable(int, value=100)

    descr = "latency and throughput of 1, 2, 4 and so on connections"
    tool = "mqp_lat"
    experiments = ("E39", "E40")
    typical_s = 60
    valid_prog_environs = ["+mqp_lat"]
    ppn = 1
    judged = ["connection_latency_8B", "bibw_4KiB"]

    def runs(self):
        """Return a run on each rail."""
        options = (
            f"mqp_lat --mode {self.mode} --connections 1:{self.most_connections} "
            f"--sizes 8:{4 * KIB} --duration {self.duration_ms}"
        )
        return [
            VerbsRun(f"{options}{self.gid(rail)}", (rail,), self.read)
            for rail in self.rails
        ]

    def read(self, text):
        """Return latency and throughput of every number of connections and size."""
        samples = []
        for row in parse_mqp_lat(text):
            few = row.connections != self.most_connections
            more = {"parameters": {"connections": row.connections} if few else {}}
            if row.test == "latency":
                statistic = {"statistic": "p50", "n": row.n}
                value, name = row.p50_us, "connection_latency"
            else:
                statistic, value, name = {}, row.mb_per_s, "bibw"
            samples.append(Sample(name, value, row.size_bytes, **statistic, **more))
        return samples
