# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Messages from many regions of memory in turn, by our own benchmark."""

import reframe as rfm
from reframe.core.builtins import run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import OwnBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.rr64 import parse_rr64


@rfm.simple_test
class ManyRegions(OwnBenchmark):
    """What do messages within a node cost that do not stay in a cache?

    Two ranks of a node send from 64 regions, and receive into 64, in turn. With one
    region the contents stay in a cache, in applications seldom: 64 regions of 64 KiB
    are 4 MiB on each side; 8 B shows that small messages cost the same. The numbers
    with one region are kept beside them. rr64 verifies every region.
    """

    milliseconds_per_size = 10
    min_size = variable(int, value=8)
    max_size = variable(int, value=65536)
    regions = variable(int, value=64)
    window = variable(int, value=64)
    windows = variable(int, value=100)
    ppn = 2

    descr = "latency and bandwidth within a node of 64 regions in turn"
    tool = "rr64"
    experiments = ("E30",)
    typical_s = 5
    valid_prog_environs = ["+rr64"]
    reference_file = "regions.yaml"
    executable = "rr64"
    most_nodes = 1
    tags = {Tag.NETWORK}
    judged = ["latency_8B", "latency_64KiB", "bw_64KiB"]

    @run_before("run")
    def choose_regions(self):
        """Set the options for sizes and regions."""
        self.executable_opts += [
            f"--sizes {self.min_size}:{self.max_size}",
            f"--regions {self.regions}",
            f"--window {self.window}",
            f"--windows {self.windows}",
        ]

    def extract(self, text):
        """Return latency and bandwidth of many regions and of one."""
        rows = parse_rr64(text)
        own = {"regions": self.regions, "window": self.window, "windows": self.windows}
        self.verify_rows(rows, nodes=1, **own)
        self.verify_span(rows, "size_bytes", self.min_size, self.max_size)
        return [sample for row in rows for sample in _samples(row)]


def _samples(row):
    size, single = row.size_bytes, {"regions": 1}
    return [
        Sample("latency", row.p50_us, size, "p50", row.n),
        Sample("latency", row.one_p50_us, size, "p50", row.one_n, parameters=single),
        Sample("bw", row.bw_mb_per_s, size, "p50", row.bw_n),
        Sample("bw", row.bw_one_mb_per_s, size, "p50", row.bw_one_n, parameters=single),
    ]
