"""Findings on cases without regard to numbers: failures, retries, crashes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from seatrial.judge.findings import Finding
from seatrial.judge.multiple_testing import holm_adjusted
from seatrial.model.cases import Case, CaseKey

_QUICK_VERDICT = "does not meet its reference"
"""ReFrame's words for a number that misses its limit."""


def case_findings(
    key: CaseKey, cases: Sequence[Case], numbers: Sequence[Finding]
) -> list[Finding]:
    """Judge a case without regard to its numbers: it failed, was skipped, or ran."""
    subject = Finding.of_case(key)
    failed = [case for case in cases if _failed(case, numbers)]
    skipped = [case for case in cases if case.result == "skip"]
    passed = [case for case in cases if case.result == "pass"]
    findings = []
    if failed:
        times = f" in {len(failed)} of {len(cases)} repeats" if len(cases) > 1 else ""
        reason = f"failed{_phase_and_reason(failed[0], times)}"
        findings.append(subject.judged("fail", reason, n=len(cases)))
    if skipped:
        reason = skipped[0].reason or _NO_REASON
        findings.append(subject.judged("skipped", reason, n=len(skipped)))
    if passed and not failed and not numbers:
        reason = "ran and verified; it has no number to judge"
        findings.append(subject.judged("pass", reason, n=len(passed)))
    return findings


def _failed(case: Case, numbers: Sequence[Finding]) -> bool:
    """Return True if a case failed, and not only for numbers that are judged.

    ReFrame holds the worst number to the limit; a criterion judges all of them.
    """
    if case.result != "fail":
        return False
    if case.phase != "performance" or not numbers:
        return True
    faults = (case.reason or "").split("; ")
    explained = all(fault.strip().endswith(_QUICK_VERDICT) for fault in faults)
    return not explained and all(finding.verdict == "pass" for finding in numbers)


def retried(key: CaseKey, tries: Sequence[Case], last: Sequence[Case]) -> list[Finding]:
    """Return a finding on each case that passed, but not at the first try.

    The tries lack those that lost nodes spoiled if a repeat made them again.
    """
    findings = []
    for case in last:
        if case.attempt > 1 and case.result == "pass":
            reason = f"passed at try {case.attempt} in session {case.session}"
            first = next(other for other in tries if other.session == case.session)
            if first.result == "fail":
                reason += f"; the first failed{_phase_and_reason(first)}"
            findings.append(Finding.of_case(key).judged("pass", reason, n=1))
    return findings


_NO_REASON = "no reason given"


def _phase_and_reason(case: Case, times: str = "") -> str:
    phase = f" in {case.phase}" if case.phase else ""
    return f"{phase}{times}: {case.reason or _NO_REASON}"


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

    The findings pass: a case fails by itself if all its tries crashed. A conspicuous
    node is only worth a look, not convicted: ranks have fixed places in most jobs, and
    a crash that prefers rank 0 falls on the first node without any fault of it.
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
