"""Crashes in MPI_Init: their number for each stack, and conspicuous nodes.

They fail no node: a library that crashes by chance does so anywhere. A node is worth a
look if it has more crashes than chance explains at the seller's risk. It is not
convicted: ranks have fixed places in most jobs, and a crash that prefers rank 0 falls
on the first node without any fault of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from seatrial.judge.findings import Finding
from seatrial.judge.multiple_testing import holm_adjusted
from seatrial.model.cases import Case


class StartCrashes(NamedTuple):
    """Crashes at start of an MPI stack, among its `jobs`, in `words`."""

    stack: str
    jobs: int
    words: str


def start_crashes(cases: Iterable[Case]) -> list[StartCrashes]:
    """Count jobs that crashed at start, for each MPI stack with crashes.

    Every try of a case is a job, unless it was skipped or never got nodes.
    """
    stacks: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.result != "skip" and case.nodes:
            stacks[case.environment].append(case)
    counts = []
    for stack, jobs in sorted(stacks.items()):
        crashes = [job.start_crashes for job in jobs if job.start_crashes]
        if crashes:
            dead = Counter(node for job in crashes for c in job for node in c["dead"])
            nodes = [f"{node} {count}" for node, count in sorted(dead.items())]
            words = f"{len(crashes)} of {len(jobs)} {stack} jobs died in MPI_Init"
            words += f" (crashes by node: {', '.join(nodes)})" if nodes else ""
            counts.append(StartCrashes(stack, len(jobs), words))
    return counts


def conspicuous(cases: Iterable[Case], risk: float) -> dict[str, float]:
    """Return p of the nodes with more crashes than chance explains, by node.

    Without a bad node, a crash falls on each node of its program alike: if `dead` of
    `nodes` nodes died, on each with the probability dead/nodes. The number of crashes
    on a node is then a sum of such trials (Poisson binomial); p is the exact
    probability of at least the observed number, adjusted by Holm's procedure over all
    nodes that took part in a crashed start. All stacks count together: a bad node is
    bad for each. Crashes of programs on one node, or of unknown place, do not count.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    hits: Counter[str] = Counter()
    for case in cases:
        for crash in case.start_crashes:
            nodes, dead = {*crash["nodes"]}, {*crash["dead"]}
            if dead < nodes:
                hits.update(dead)
                for node in nodes:
                    shares[node].append(len(dead) / len(nodes))
    names = sorted(shares)
    p = np.array([_at_least(hits[name], shares[name]) for name in names])
    adjusted = zip(names, holm_adjusted(p).tolist(), strict=True)
    return {name: p for name, p in adjusted if p <= risk}


def start_findings(
    cases: Sequence[Case], risk: float
) -> tuple[list[Finding], list[str]]:
    """Return a finding for each stack that crashed at start, and the conspicuous nodes.

    The findings pass: a case fails by itself if all its tries crashed.
    """
    nodes = conspicuous(cases, risk)
    names = ", ".join(f"{node} (p = {p:.2g})" for node, p in nodes.items())
    names = f"worth a look: {names}" if nodes else "no node stands out"
    method = "Poisson binomial, Holm over nodes"
    return [
        Finding("start", case="MPI_Init", environment=stack, method=method).judged(
            "pass", f"{words}; {names}", n=jobs
        )
        for stack, jobs, words in start_crashes(cases)
    ], [*nodes]


def _at_least(count: int, shares: Sequence[float]) -> float:
    """Return the probability of `count` or more hits in trials of these shares."""
    pmf = np.ones(1)
    for share in shares:
        pmf = np.convolve(pmf, (1 - share, share))
    return float(pmf[count:].sum())
