# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""MPI's queues of messages: what an entry costs those that must pass it."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import OwnBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.match_queue import parse_match_queue


@rfm.simple_test
class MatchQueue(OwnBenchmark):
    """What does a message pay for every entry of a queue that it must pass?

    Two ranks on two nodes play ping-pong behind a queue: of unexpected messages, which
    every posted receive must pass (mq_unexp), or of posted receives, which every
    arriving message must pass (mq_posted). `match_time` is the slope of the median
    latency over the depths. 8 B, as the entries: the cost of the queue does not depend
    on the size, and its share is largest for small messages. Codes with many neighbours
    reach depths of some hundred; 8192 shows if the queue is searched linearly, or by a
    hash or by the adapter.
    """

    program = parameter(["mq_unexp", "mq_posted"])
    milliseconds_per_size = 50  # here: of every depth
    size_bytes = variable(int, value=8)
    max_depth = variable(int, value=8192)

    descr = "latency behind a queue of unexpected messages, or of posted receives"
    tool = "mq_unexp, mq_posted"
    experiments = ("E46", "E47")
    typical_s = 5
    reference_file = "queues.yaml"
    needs_nodes = 2
    most_nodes = 2
    tags = {Tag.NETWORK}
    judged = ["match_time"]

    @run_after("init")
    def choose_program(self):
        """Set the program of this queue."""
        self.executable = self.program
        self.valid_prog_environs = [f"+{self.program}"]

    @run_before("run")
    def choose_depths(self):
        """Set the options for one size and all depths."""
        self.executable_opts += [
            f"--sizes {self.size_bytes}:{self.size_bytes}",
            f"--depth 0:{self.max_depth}",
        ]

    def extract(self, text):
        """Return slope and latencies, after a check of the run's settings."""
        rows = parse_match_queue(text, self.program)
        self.verify_rows(rows, size_bytes=self.size_bytes, iterations=self.iterations)
        self.verify_span(rows, "depth", 0, self.max_depth)
        return [
            Sample("match_time", rows[0].slope_ns, statistic="slope", n=len(rows)),
            *(
                Sample(
                    "latency",
                    row.p50_us,
                    row.size_bytes,
                    "p50",
                    row.n,
                    parameters={"depth": row.depth},
                )
                for row in rows
            ),
        ]
