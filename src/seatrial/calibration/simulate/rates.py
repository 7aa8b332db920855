"""Count the verdicts of a rule on many machines; rates with their intervals."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

import scipy

from seatrial.calibration.simulate.draw import Drawn
from seatrial.judge.findings import RunVerdict, Verdict

CONFIDENCE = 0.95
"""Of the intervals of the rates."""


class Rate(NamedTuple):
    """Hits of trials; the share is None without trials."""

    hits: float
    trials: int

    @property
    def value(self) -> float | None:
        """Return the share."""
        return self.hits / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The exact interval of Clopper and Pearson.

        C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits
        illustrated in the case of the binomial, Biometrika 26 (1934). Of a mean of
        shares it is too wide, not too narrow.
        """
        if not self.trials:
            return None
        misses, tail = self.trials - self.hits, (1 - CONFIDENCE) / 2
        beta = scipy.stats.beta
        low = float(beta.ppf(tail, self.hits, misses + 1)) if self.hits else 0.0
        high = float(beta.ppf(1 - tail, self.hits + 1, misses)) if misses else 1.0
        return low, high

    @property
    def percent(self) -> str:
        """Format the share with its interval: `98.3 (95.0-99.6)`; - without trials."""
        if self.value is None or self.interval is None:
            return "-"
        low, high = (100 * bound for bound in self.interval)
        return f"{100 * self.value:.1f} ({low:.1f}-{high:.1f})"

    @property
    def facts(self) -> dict[str, float | None]:
        """Return share, interval and counts for a record."""
        low, high = self.interval or (None, None)
        return {
            "measured": self.value,
            "low": low,
            "high": high,
            "hits": self.hits,
            "trials": self.trials,
        }


@dataclass
class Tally:
    """Verdicts of a rule on machines of one kind.

    False fail counts machines that reach every limit, false pass those with a place at
    the limit or below. A fault is found if its node or pair is blamed. The false
    discovery rate is the mean share of suspects that have no fault.
    """

    counts: dict[str, Rate] = field(default_factory=dict)

    def add(
        self,
        drawn: Drawn,
        verdict: RunVerdict,
        blamed: Collection[str],
        suspects: Collection[str] | None = None,
    ) -> None:
        """Count a machine; `blamed` are nodes, and pairs as `cn1 - cn2`."""
        links = {" - ".join(pair) for pair in drawn.slow_links}
        faults = drawn.slow_nodes | links
        blamed_nodes = {node for name in blamed for node in name.split(" - ")}
        for possible in get_args(Verdict):
            self._count(possible.replace(" ", "_"), verdict == possible)
        if drawn.good:
            self._count("false_fail", verdict == "fail")
        if drawn.bad:
            self._count("false_pass", verdict == "pass")
        if drawn.machine.kind == "value":
            return
        guilty = drawn.slow_nodes.union(*drawn.slow_links)
        for fault in faults:
            self._count("found", {*fault.split(" - ")} <= blamed_nodes)
        if faults:
            self._count("blamed_right", bool(blamed_nodes & guilty))
        self._count("blamed_wrong", bool(blamed_nodes - guilty))
        if suspects is not None:
            named = {node for name in suspects for node in name.split(" - ")}
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
    "not_shown",
    "undecided",
    "found",
    "blamed_right",
    "blamed_wrong",
    "false_suspects",
)
"""All rates, in the order in which they are shown."""
