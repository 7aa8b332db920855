# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The LogP model's parameters of a pair of nodes, by our own benchmark."""

import reframe as rfm
from reframe.core.builtins import run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import OwnBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.logp import LogpRow, parse_logp


@rfm.simple_test
class LogP(OwnBenchmark):
    """What does a message cost its sender, its receiver, and the network?

    Two ranks on two nodes measure the overheads os and or and the gap g for every size,
    and the latency L, as medians. Overheads are times without computation; 8 B shows
    the minimum of a message. 1 MiB, far beyond every protocol's switch, shows the gap
    that bandwidth sets. L and the gaps of small messages are differences of nearly
    equal times, and L is negative if messages overlap and g(0) is more than half a
    round trip: they are recorded and not judged.
    """

    milliseconds_per_size = 100
    min_size = variable(int, value=8)
    max_size = variable(int, value=1 << 20)
    inserts = variable(int, value=4)
    """Maximum of sizes added where values jump."""
    send = variable(str, value="isend")
    receive = variable(str, value="recv")

    descr = "parameterised LogP between two nodes"
    tool = "logp"
    experiments = ("E44",)
    typical_s = 5
    valid_prog_environs = ["+logp"]
    reference_file = "logp.yaml"
    executable = "logp"
    needs_nodes = 2
    most_nodes = 2
    tags = {Tag.NETWORK}
    judged = ["logp_os_8B", "logp_or_8B", "logp_g_1MiB"]

    @run_before("run")
    def choose_sizes(self):
        """Set the options for sizes and calls."""
        self.executable_opts += [
            f"--sizes {self.min_size}:{self.max_size}",
            f"--inserts {self.inserts}",
            f"--send {self.send}",
            f"--receive {self.receive}",
        ]

    def extract(self, text):
        """Return the parameters of every size, after a check of the settings."""
        rows = parse_logp(text)
        own = {name: getattr(self, name) for name in ("send", "receive", "inserts")}
        self.verify_rows(
            rows[:1], iterations=self.iterations, nodes=2, delay_us=0, **own
        )
        plain = [row for row in rows if row.inserted == "no"]
        self.verify_span(plain[1:], "size_bytes", self.min_size, self.max_size)
        first, last = rows[0], rows[-1]
        if last.g_p50_us <= 0:
            raise ParseError(0, f"g of {last.size_bytes} B is {last.g_p50_us} us")
        latency = Sample("logp_L", first.l_us, statistic="p50", n=first.rtt_n)
        return [latency, *(sample for row in rows for sample in samples_of(row))]


def samples_of(row: LogpRow) -> list[Sample]:
    """Return the parameters of one size; the gap by both ways to measure it."""
    size = row.size_bytes
    flood = {"method": "flood"}
    return [
        Sample("logp_os", row.os_p50_us, size, "p50", row.os_n),
        Sample("logp_or", row.or_p50_us, size, "p50", row.or_n),
        Sample("logp_g", row.g_p50_us, size, "p50", row.g_n),
        Sample("logp_g", row.g_flood_us, size, "mean", row.g_flood_n, parameters=flood),
    ]
