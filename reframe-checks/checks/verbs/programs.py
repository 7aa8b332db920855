# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Verbs between two nodes, below MPI, by our own programs."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from seatrial.checks.base import cores_of
from seatrial.checks.verbs_program import VerbsProgram, VerbsRun
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
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
    completion. `bw` (of writes) and `read_bw` are those of all pairs; `fairness` is 1
    if all get the same share. The numbers of all cores are judged; those of fewer have
    the parameter `pairs`. `start_spread` is the worst time between the ranks that leave
    the barrier; a latency after more than `spread_limit_ns` does not count.
    """

    window = variable(int, value=64)
    spread_limit_ns = variable(int, value=200)
    most_ranks = variable(int, value=256)
    """Maximum of ranks per node."""

    descr = "RDMA of 1, 2, 4 and so on pairs up to all cores"
    tool = "mp_rdma_lat, mp_rdma_bw"
    experiments = ("E01", "E02", "E03", "E04")
    typical_s = 60
    valid_prog_environs = ["+mp_rdma_lat +mp_rdma_bw"]
    judged = ["write_latency_8B", "read_latency_8B", "bw_64KiB", "read_bw_64KiB"]

    @run_after("setup")
    def place(self):
        """Place a rank on every core, as in ReFrame's settings."""
        self.ppn = min(cores_of(self.current_partition), self.most_ranks)
        super().place()

    def runs(self):
        """Return both programs on each rail."""
        options = f"--pairs 1:{self.ppn} --spread-limit {self.spread_limit_ns}"
        runs = []
        for rail in self.rails:
            more = f"{options}{self.gid(rail)}"
            bandwidth = f"mp_rdma_bw {more} --window {self.window}"
            runs += [
                VerbsRun(f"mp_rdma_lat {more}", (rail,), self.read_latency),
                VerbsRun(bandwidth, (rail,), self.read_bandwidth),
            ]
        return runs

    def verify_pairs(self, rows, rails):
        """Raise ParseError unless the rows are of the requested pairs."""
        self.verify_rows(rows, rails[0])
        if rows[-1].pairs != self.ppn:
            raise ParseError(0, f"up to {rows[-1].pairs} pairs, expected {self.ppn}")

    def of_pairs(self, row):
        """Return the parameters of a row: none if it is of all cores."""
        return {} if row.pairs == self.ppn else {"pairs": row.pairs}

    def read_latency(self, text, rails):
        """Return latency and spread of every number of pairs and size."""
        rows = parse_mp_rdma_lat(text)
        self.verify_pairs(rows, rails)
        samples = []
        for row in rows:
            size, more = row.size_bytes, {"parameters": self.of_pairs(row)}
            latency = f"{row.operation}_latency"
            samples.append(Sample(latency, row.p50_us, size, "p50", row.n, **more))
            if row.operation == "write" and row.pairs > 1:
                spread, n = row.spread_max_ns / 1e3, row.operations
                samples.append(Sample("start_spread", spread, size, "max", n, **more))
        return samples

    def read_bandwidth(self, text, rails):
        """Return bandwidth and fairness of every number of pairs and size."""
        rows = parse_mp_rdma_bw(text)
        self.verify_pairs(rows, rails)
        samples = []
        for row in rows:
            size = row.size_bytes
            more = {"parameters": self.of_pairs(row), "n": row.operations}
            name = "bw" if row.operation == "write" else "read_bw"
            samples.append(Sample(name, row.mb_per_s, size, **more))
            if row.operation == "write":
                samples.append(Sample("fairness", row.fairness, size, **more))
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
    max_size = MIB
    window = variable(int, value=64)
    threshold = variable(int, value=8 * KIB)

    descr = "windows of RDMA writes by one port and by two"
    tool = "winbw"
    experiments = ("E12", "E13", "E14", "E15", "E16", "E17")
    typical_s = 60
    valid_prog_environs = ["+winbw"]
    judged = ["bw_64KiB", "bw_1MiB", "bibw_1MiB"]

    @run_after("init")
    def choose_processes(self):
        """Start that many processes on each node."""
        self.ppn = self.processes

    def runs(self):
        """Return a run on the first two rails, and one on each other rail."""
        options = f"winbw --window {self.window} --threshold {self.threshold}"
        groups = [tuple(self.rails[:2]), *((rail,) for rail in self.rails[1:])]
        return [
            VerbsRun(f"{options}{self.gid(rails[0])}", rails, self.read)
            for rails in groups
        ]

    def read(self, text, rails):
        """Return the bandwidth of every use of the ports, direction and size."""
        rows = parse_winbw(text)
        self.verify_rows(rows, rails[0])
        if rows[0].rails != len(rails):
            raise ParseError(0, f"a run of {rows[0].rails} ports, not {len(rails)}")
        return [
            Sample(
                "bibw" if row.direction == "bi" else "bw",
                row.mb_per_s,
                row.size_bytes,
                n=row.n,
                hca=rails[0] if row.policy == "single" else None,
                parameters={} if row.policy == "single" else {"policy": row.policy},
            )
            for row in rows
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
    min_size = 4 * KIB
    max_size = 16 * MIB

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
        return [VerbsRun("mr_cost", (rail,), self.read) for rail in self.rails]

    def read(self, text, rails):
        """Return the times of every state and size, and the cost of a page."""
        rows = parse_mr_cost(text)
        self.verify_rows(rows, rails[0])
        samples = []
        for row in rows:
            size, n = row.size_bytes, row.n
            more = {} if row.state == "cold" else {"parameters": {"state": row.state}}
            given_up = row.dereg_p50_us
            samples += [
                Sample("registration_time", row.p50_us, size, "p50", n, **more),
                Sample("deregistration_time", given_up, size, "p50", n, **more),
            ]
            if size == self.max_size and row.us_per_page is not None:
                slope = {"statistic": "slope", "n": n}
                page = ("registration_per_page", row.us_per_page)
                samples.append(Sample(*page, **slope, **more))
        return samples


@rfm.simple_test
class Connections(TwoNodes):
    """What does a message cost an adapter that holds many connections?

    Two ranks write over 1, 2, 4 and so on reliable connections in turn.
    `connection_latency` is half the time of a round over all of them, divided by their
    number; `bibw` is the sum of both ways while both ranks write. Numbers of the most
    connections are judged; the others have the parameter `connections`. Send and
    receive instead of RDMA write has the parameter `mode`. An adapter keeps the state
    of few connections at hand, and fetches that of others from memory.
    """

    iterations = 100
    warmup = 10
    max_size = 4 * KIB
    most_connections = variable(int, value=256)
    """At most 1024."""
    duration_ms = variable(int, value=100)

    descr = "latency and throughput of 1, 2, 4 and so on connections"
    tool = "mqp_lat"
    experiments = ("E39", "E40", "E48")
    typical_s = 60
    valid_prog_environs = ["+mqp_lat"]
    ppn = 1
    judged = ["connection_latency_8B", "bibw_4KiB"]

    def runs(self):
        """Return a run on each rail."""
        count = f"--connections 1:{self.most_connections}"
        options = f"mqp_lat {count} --duration {self.duration_ms}"
        return [
            VerbsRun(f"{options}{self.gid(rail)}", (rail,), self.read)
            for rail in self.rails
        ]

    def read(self, text, rails):
        """Return latency and throughput of every number of connections and size."""
        rows = parse_mqp_lat(text)
        self.verify_rows(rows, rails[0])
        most = rows[-1].connections
        if most != self.most_connections:
            raise ParseError(0, f"{most} connections, not {self.most_connections}")
        samples = []
        for row in rows:
            parameters = {} if row.mode == "write" else {"mode": row.mode}
            if row.connections != most:
                parameters["connections"] = row.connections
            size, more = row.size_bytes, {"parameters": parameters}
            if row.test == "latency":
                latency = ("connection_latency", row.p50_us, size)
                samples.append(Sample(*latency, "p50", row.n, **more))
            else:
                samples.append(Sample("bibw", row.mb_per_s, size, **more))
        return samples
