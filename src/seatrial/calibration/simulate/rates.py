"""Count what a rule did to many machines, and give the rates with their intervals."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import scipy

from seatrial.calibration.simulate.draw import Drawn
from seatrial.judge.findings import Verdict

CONFIDENCE = 0.95
"""Of the intervals of the rates."""


class Rate(NamedTuple):
    """How often of how many; None if there was nothing to count."""

    hits: float
    trials: int

    @property
    def value(self) -> float | None:
        """The share itself."""
        return self.hits / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's score interval.

        E. B. Wilson, Probable inference, the law of succession, and statistical
        inference, J. Am. Stat. Assoc. 22 (1927). Of a mean of shares it is too wide,
        not too narrow.
        """
        if not self.trials:
            return None
        z = float(scipy.stats.norm.ppf((1 + CONFIDENCE) / 2))
        n, share = self.trials, self.hits / self.trials
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = (
            z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / 4 / n**2)
        )
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass
class Tally:
    """What a rule did to machines of one kind.

    False fail counts machines that reach every limit, false pass those with a place at
    the limit or below. A fault is found if its node or pair is blamed; blamed wrongly
    is who has no fault. The false discovery rate is the mean share of suspects that
    have none.
    """

    counts: dict[str, Rate] = field(default_factory=dict)

    def add(
        self,
        drawn: Drawn,
        verdict: Verdict,
        blamed: Collection[str],
        suspects: Collection[str] | None = None,
    ) -> None:
        """Count a machine: its verdict, who is blamed, and who is suspected.

        Blamed are names of nodes, and of pairs as `cn1 - cn2`.
        """
        links = {" - ".join(pair) for pair in drawn.slow_links}
        ends = {node for pair in drawn.slow_links for node in pair}
        faults = drawn.slow_nodes | links
        blamed_nodes = {node for name in blamed for node in name.split(" - ")}
        self._count("fail", verdict == "fail")
        self._count("pass", verdict == "pass")
        self._count("undecided", verdict == "undecided")
        if drawn.good:
            self._count("false_fail", verdict == "fail")
        if drawn.bad:
            self._count("false_pass", verdict == "pass")
        if drawn.machine.kind == "value":
            return
        guilty = drawn.slow_nodes | ends
        for fault in faults:
            self._count("found", {*fault.split(" - ")} <= blamed_nodes)
        if faults:
            self._count("blamed_right", bool(blamed_nodes & guilty))
        self._count("blamed_wrong", bool(blamed_nodes - guilty))
        named = {n for name in (suspects or ()) for n in name.split(" - ")}
        if suspects is not None:
            self._count("false_suspects", len(named - guilty) / max(1, len(named)))

    def __getitem__(self, name: str) -> Rate:
        return self.counts.get(name, Rate(0, 0))

    def _count(self, name: str, hit: float) -> None:
        hits, trials = self[name]
        self.counts[name] = Rate(hits + hit, trials + 1)


RATES = (
    "false_fail",
    "false_pass",
    "pass",
    "fail",
    "undecided",
    "found",
    "blamed_right",
    "blamed_wrong",
    "false_suspects",
)
"""All rates, in the order in which they are shown."""
