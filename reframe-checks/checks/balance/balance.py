# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Communication within a node against that between two, by our own benchmark."""

import reframe as rfm

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import PairsBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.balance import parse_balance

COMPARED = ("latency", "bw", "bibw", "multi_bw")


@rfm.simple_test
class Balance(PairsBenchmark):
    """How much better do ranks of one node communicate than ranks of two?

    A balance is the ratio of medians within the first node and between the two, for the
    same work and number of pairs: 1 is balanced, more is a network slower than the
    node. 8 B shows the cost of a message, 64 KiB that of its bytes. `balance_multi_bw`
    is of all pairs that fit within a node.
    """

    descr = "latency and bandwidth within a node over those between two"
    tool = "balance"
    experiments = ("E33",)
    typical_s = 5
    valid_prog_environs = ["+balance"]
    reference_file = "balance.yaml"
    executable = "balance"
    tags = {Tag.NETWORK}
    judged = [
        "balance_latency_8B",
        "balance_bw_64KiB",
        "balance_bibw_64KiB",
        "balance_multi_bw_64KiB",
    ]

    def ranks_per_node(self, cores):
        """Return an even number of ranks, for pairs within a node: one per core."""
        return max(cores // 2, 1) * 2

    def extract(self, text):
        """Return all balances, after a check of the run's settings."""
        rows = parse_balance(text)
        self.verify_pairs(rows, self.ppn // 2)
        return [
            Sample(
                f"balance_{name}",
                getattr(row, f"{name}_ratio"),
                row.size_bytes,
                "p50",
                getattr(row, f"{name}_n"),
            )
            for name in COMPARED
            for row in rows
        ]
