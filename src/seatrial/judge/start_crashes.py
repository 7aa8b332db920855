"""Crashes in MPI_Init: their number for each stack, and conspicuous nodes.

They blame no node: a library that crashes by chance does so anywhere. A node is named
as worth a look if more crashes fell on it than chance explains at the seller's risk. It
is not convicted: ranks have fixed places in most jobs, and a crash that prefers rank 0
falls on the first node without any fault of it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seatrial.judge.findings import Finding, Subject
from seatrial.judge.multiple_testing import holm_adjusted
from seatrial.model.cases import Case

_CASE = "MPI_Init"
_METHOD = "Poisson binomial, Holm over nodes"


@dataclass(frozen=True)
class StartCrashes:
    """Crashes at start: `jobs` of `stack` in all, `died` of them, `crashes` by node."""

    stack: str
    jobs: int
    died: int
    crashes: Counter[str]

    @property
    def words(self) -> str:
        """Say it in one line."""
        words = f"{self.died} of {self.jobs} {self.stack} jobs died in MPI_Init"
        nodes = [f"{node} {count}" for node, count in sorted(self.crashes.items())]
        return words + (f" (crashes by node: {', '.join(nodes)})" if nodes else "")


def start_crashes(cases: Iterable[Case]) -> list[StartCrashes]:
    """Count jobs that crashed at start, of each MPI stack that had some.

    Every try of a case is a job. Skipped cases, and those that never got nodes, are
    none.
    """
    jobs: Counter[str] = Counter()
    died: Counter[str] = Counter()
    crashes: dict[str, Counter[str]] = {}
    for case in cases:
        if case.result == "skip" or not case.nodes:
            continue
        jobs[case.environment] += 1
        if case.start_crashes:
            died[case.environment] += 1
            dead = (node for each in case.start_crashes for node in each["dead"])
            crashes.setdefault(case.environment, Counter()).update(dead)
    return [
        StartCrashes(stack, jobs[stack], died[stack], by_node)
        for stack, by_node in sorted(crashes.items())
    ]


def conspicuous(cases: Iterable[Case], risk: float) -> dict[str, float]:
    """Return the nodes on which more crashes fell than chance explains: p by node.

    Without a bad node, a crash falls on each node of its program alike: if `dead` of
    `nodes` nodes died, on each with the probability dead/nodes. The number of crashes
    on a node is then a sum of such trials (Poisson binomial); p is the exact
    probability of so many or more, adjusted by Holm's procedure over all nodes that
    took part in a crashed start. All stacks count together: a bad node is bad for each.
    Crashes of programs on one node, or of unknown place, tell nothing.
    """
    shares: dict[str, list[float]] = {}
    hits: Counter[str] = Counter()
    for case in cases:
        for crash in case.start_crashes:
            nodes, dead = {*crash["nodes"]}, {*crash["dead"]}
            if not dead < nodes:
                continue
            hits.update(dead)
            for node in nodes:
                shares.setdefault(node, []).append(len(dead) / len(nodes))
    names = sorted(shares)
    if not names:
        return {}
    p = np.array([_at_least(hits[name], shares[name]) for name in names])
    adjusted = holm_adjusted(p)
    return {
        name: float(each)
        for name, each in zip(names, adjusted, strict=True)
        if each <= risk
    }


def start_findings(
    cases: Sequence[Case], risk: float
) -> tuple[list[Finding], set[str]]:
    """Return a finding for each stack that crashed at start, and the conspicuous nodes.

    The findings pass: a case whose every try crashed fails by itself.
    """
    nodes = conspicuous(cases, risk)
    named = ", ".join(f"{node} (p = {p:.2g})" for node, p in nodes.items())
    told = f"worth a look: {named}" if nodes else "no node stands out"
    return [
        Subject("start", case=_CASE, environment=found.stack, method=_METHOD).finding(
            "pass", f"{found.words}; {told}", n=found.jobs
        )
        for found in start_crashes(cases)
    ], {*nodes}


def _at_least(count: int, shares: Sequence[float]) -> float:
    """Return the probability of `count` or more hits in trials of these shares."""
    pmf = np.ones(1)
    for share in shares:
        pmf = np.convolve(pmf, (1 - share, share))
    return float(pmf[count:].sum())
