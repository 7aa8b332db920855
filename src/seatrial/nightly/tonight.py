"""The limits of one night: the judge, with its share of the year's risk."""

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from msgspec import structs

from seatrial.criteria.criteria import Criteria, kept_criteria
from seatrial.criteria.criterion import Risks
from seatrial.history.tracker import NIGHTS_A_YEAR, OF_HISTORY
from seatrial.judge.findings import Finding
from seatrial.judge.judge import judge
from seatrial.model.cases import Case
from seatrial.names import natural_key
from seatrial.runs.closed_run import Run

PAIR = " - "

_SELLER = 0.05
"""Risk of a system without criteria: only failed cases are faults there."""

_KINDS = ("case", "limit", "sameness", "leaf", "node", "start")
_GAVE_WAY = re.compile(
    r"the job (never started(?!.*(BOOT|NODE)_FAIL)"
    r"|ended as (PREEMPTED|CANCELLED|DEADLINE))"
    r"|.*sbatch: error: .*Requested time limit is invalid",
    re.DOTALL,
)
"""Reasons of cases that made room for users, or for which the window had no time."""


class Fault(msgspec.Struct, frozen=True):
    """A failed finding at a place: a node, a pair, a leaf, or the machine ('')."""

    place: str
    text: str


def risk_of_a_night(alarms_a_year: float) -> float:
    """Return the seller's risk of one night; history has the other part of the year."""
    return alarms_a_year * (1 - OF_HISTORY) / NIGHTS_A_YEAR


def faults_of(run: Run, alarms_a_year: float) -> list[Fault]:
    """Return what fails in a night by the criteria that the run kept.

    Each night is a question of its own: it spends a fixed part of the year's risk, not
    a part of one risk for all runs as an acceptance does. Jobs that gave way to users
    measure nothing, and are no faults.
    """
    criteria = kept_criteria(run) or Criteria(Risks(_SELLER, _SELLER), ())
    risk = risk_of_a_night(alarms_a_year)
    whole = _at_most(criteria.risks, risk)
    rules = tuple(
        replace(rule, risks=_at_most(rule.risks, risk)) for rule in criteria.criteria
    )
    cases = tuple(case for case in run.cases if not gave_way(case))
    alone = replace(run, cases=cases, manifest=_alone(run))
    judgement = judge(alone, replace(criteria, risks=whole, criteria=rules))
    return [
        Fault(finding.node, _words(finding))
        for finding in judgement.findings
        if finding.verdict == "fail" and finding.kind in _KINDS
    ]


def pair_name(ends: Sequence[str]) -> str:
    """Return the name of a pair, the same for both directions."""
    return PAIR.join(sorted(ends, key=natural_key))


def _at_most(risks: Risks, seller: float) -> Risks:
    return structs.replace(risks, seller=min(risks.seller, seller))


def gave_way(case: Case) -> bool:
    """Return True if the job of a case made room for users, or found none."""
    return case.result == "fail" and bool(_GAVE_WAY.match(case.reason or ""))


def _words(finding: Finding) -> str:
    of = " ".join(filter(None, (finding.case, finding.metric)))
    return f"{of}: {finding.reason}" if of else finding.reason


def _alone(run: Run) -> dict[str, object]:
    """Return the manifest without its place in the ledger: one look of its own."""
    return {key: value for key, value in run.manifest.items() if key != "ledger"}
