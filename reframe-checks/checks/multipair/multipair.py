# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Many pairs of ranks between two nodes, by our own benchmark."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import PairsBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.mpair import parse_mpair

MODES = ("latency", "bw", "bibw", "rate")


@rfm.simple_test
class MultiPair(PairsBenchmark):
    """What do two nodes deliver to one pair of ranks, and to a pair on every core?

    All pairs measure at once: latency is the median over all of them, bandwidth and
    message rate are those of all together. Many pairs must not be slower than one;
    their latency shows the sharing of adapters and switches. 8 B shows the cost of a
    message, 64 KiB the use of the link. mpair verifies every size that it measured.
    """

    pairs = parameter([1, "all"])

    descr = "latency, bandwidth and message rate of one pair or of all cores"
    tool = "mpair"
    experiments = ("E20", "E25", "E28", "E42", "E43")
    typical_s = 5
    valid_prog_environs = ["+mpair"]
    reference_file = "multipair.yaml"
    executable = "mpair"
    tags = {Tag.NETWORK}
    judged = ["latency_8B", "bw_64KiB", "bibw_64KiB", "msg_rate_8B"]

    def ranks_per_node(self, cores):
        """Return 1, or the number of cores."""
        return cores if self.pairs == "all" else 1

    @run_before("run")
    def choose_pairs(self):
        """Set the number of pairs, the same in all rows."""
        self.executable_opts += [f"--pairs {self.ppn}:{self.ppn}"]

    def extract(self, text):
        """Return all modes and sizes, after a check of the run's settings."""
        rows = parse_mpair(text)
        self.verify_pairs(rows, self.ppn)
        modes = tuple(dict.fromkeys(row.mode for row in rows))
        if modes != MODES:
            raise ParseError(0, f"modes {modes}, expected {MODES}")
        return [
            *(
                Sample("latency", row.p50_us, row.size_bytes, "p50", row.n)
                for row in rows
                if row.mode == "latency"
            ),
            *(
                Sample(row.mode, row.mb_per_s, row.size_bytes, "mean", row.n)
                for row in rows
                if row.mode in ("bw", "bibw")
            ),
            *(
                Sample("msg_rate", row.msg_per_s, row.size_bytes, "mean", row.n)
                for row in rows
                if row.mode == "rate"
            ),
        ]
