"""The judge: from closed runs and the criteria to findings and one verdict.

It never changes a run. Its risks are declared: a machine passes if every place of
every criterion reaches its limit (at the buyer's risk), fails if some place is
convicted of missing it (at the seller's risk, that of the whole machine), is not shown
to pass if the agreed allocations are used up without a decision, and is undecided
otherwise. The worst verdict counts, in the order of `VERDICTS`. A replay of recorded
output is judged in the same way, but never passes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from seatrial.criteria.criteria import Criteria
from seatrial.judge import joint_runs
from seatrial.judge.absent_nodes import Inventory
from seatrial.judge.allocations import allocations
from seatrial.judge.case_findings import case_findings, retried, start_findings
from seatrial.judge.case_numbers import Numbers, numbers_by_size, sizes_of
from seatrial.judge.criteria_changes import changes_of, expiry, flagged
from seatrial.judge.declared_findings import declared_findings
from seatrial.judge.exchanged import with_exchanges
from seatrial.judge.fabric_findings import fabric_findings
from seatrial.judge.findings import (
    NOT_MEASURED,
    Finding,
    Judgement,
    NodeVerdict,
    Verdict,
    place_of_finding,
)
from seatrial.judge.located_parts import located_parts
from seatrial.judge.looks import Look, kept, looks_of
from seatrial.judge.multiple_testing import share_of_look
from seatrial.judge.other_campaigns import accounted, findings_elsewhere
from seatrial.judge.place_findings import findings_of, node_verdicts
from seatrial.judge.planned_findings import (
    gap_findings,
    permitted,
    unused_nodes,
    why_not,
)
from seatrial.judge.repeated_numbers import require_distinct
from seatrial.judge.run_history import ledger_findings, since_repairs
from seatrial.judge.screening import tried
from seatrial.judge.shared_leafs import shared_leafs
from seatrial.judge.spoiled import Spoiled, spoiled_of
from seatrial.judge.stability_findings import Phases
from seatrial.judge.verdicts import VERDICTS, Ruling, rulings
from seatrial.judge.waived import waived
from seatrial.model.cases import Case, CaseKey
from seatrial.model.places import with_place
from seatrial.names import natural_key
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import fingerprint
from seatrial.runs.ledger_beside import Beside
from seatrial.runs.ledger_check import ledger_view
from seatrial.runs.reasons import Reason, signed_reasons

__all__ = ["Finding", "Judgement", "NodeVerdict", "Verdict", "judge"]


_ByCase = Mapping[CaseKey, Sequence[Numbers]]
"""Numbers of each case, apart for each size of allocation."""


def judge(
    run: Run,
    criteria: Criteria,
    further: Sequence[Run] = (),
    beside: Beside | None = None,
    signers: Path | None = None,
) -> Judgement:
    """Hold a run to the criteria of its system; same input, same judgement.

    Each of the `further` runs of the campaign, by their start, is one more look at
    growing data. The ledger must agree with the runs `beside`; `signers` (OpenSSH) may
    excuse missing numbers. Raises SeatrialError if the runs are not alike.
    """
    runs = joint_runs.alike_in_time_order((run, *further))
    replay, changed = joint_runs.is_replay(runs), changes_of(runs, criteria)
    criteria, signed = permitted(runs, criteria), signed_reasons(runs, signers)
    ledger = with_exchanges(ledger_view(runs, criteria.sha256, beside), runs)
    nodes, repairs = joint_runs.delivered_nodes(runs), ledger.repairs if ledger else ()
    phases = Phases.of(runs, criteria, signed)
    inventory = Inventory.of(runs, nodes, criteria, repairs, phases.returned(nodes))
    spoiled = spoiled_of(runs, inventory.permitted, phases.counted)
    rows = spoiled.counted(joint_runs.rows(runs), runs)
    table, left_out = since_repairs(rows, ledger)
    require_distinct(table)
    looks = looks_of(runs, table, ledger)
    by_case, ruled = _looked(looks, criteria, nodes, signed.reasons, spoiled)
    unmeasured, uncovered = _unmeasured(runs, criteria, by_case, signed.reasons)
    starts, conspicuous = start_findings(_tries(runs), criteria.risks.seller)
    found = accounted(_of_cases(spoiled.whole(runs), by_case), criteria.elsewhere)
    found += [*spoiled.findings(runs), *unmeasured, *starts]
    found += inventory.findings(replay=replay) + _of_declarations(runs, criteria)
    found += unused_nodes(runs, nodes, signed.reasons) + ledger_findings(ledger)
    found = phases.softened(found, nodes) + phases.findings(runs)
    located, found, unfit = located_parts(runs, [flagged(f, changed) for f in found])
    accepted = waived(sorted(found, key=place_of_finding), signed, runs, criteria)
    by_node = node_verdicts(nodes, ruled, accepted.findings, phases, replay=replay)
    shared = shared_leafs(ruled, joint_runs.leafs_of(nodes), criteria.risks.discovery)
    return Judgement(
        **{key: run.manifest[key] for key in ("run", "system", "campaign")},
        verdict=accepted.verdict(_overall),
        findings=accepted.findings,
        nodes=by_node,
        convicted=_present(by_node, "fail"),
        suspects=_suspects(ruled, [*conspicuous, *(one.leaf for one in shared)]),
        replay=replay,
        further=tuple(other.manifest["run"] for other in further),
        criteria_sha256=criteria.sha256,
        changed=tuple(": ".join(filter(None, change)) for change in changed.items()),
        uncovered=uncovered,
        not_shown=_present(by_node, "not shown"),
        ledger=ledger,
        reasons=tuple(map(str, signed.reasons)),
        notes=(*left_out, *accepted.notes, *map(str, shared), *unfit, *phases.notes),
        spoiled=() if phases.phases else spoiled.left(runs),
        repeats=spoiled.words,
        absence=inventory.words,
        located=located,
        waivers=accepted.waivers,
        phases=phases,
    )


def _each(by_case: _ByCase) -> list[Numbers]:
    """Return the numbers of all cases."""
    return [of_size for sizes in by_case.values() for of_size in sizes]


def _tries(runs: Sequence[Run]) -> list[Case]:
    """Return all tries of all cases, those of a case together."""
    return [case for own in joint_runs.cases_of(runs).values() for case in own]


def _looked(
    looks: Sequence[Look],
    criteria: Criteria,
    nodes: Sequence[Mapping[str, Any]],
    reasons: Sequence[Reason],
    spoiled: Spoiled,
) -> tuple[dict[CaseKey, list[Numbers]], list[Ruling]]:
    """Return the numbers of the last look, with findings, and the rulings of all."""
    ruled: list[Ruling] = []
    for look in looks:
        by_case = _numbers(look, criteria, nodes, reasons, spoiled)
        ruled = spoiled.reopened(ruled, look.runs[-1])
        ruled = kept(ruled, _tried(_each(by_case), criteria, look.number))
    _add_findings(by_case, ruled)
    return by_case, ruled


def _numbers(
    look: Look,
    criteria: Criteria,
    nodes: Sequence[Mapping[str, Any]],
    reasons: Sequence[Reason],
    spoiled: Spoiled,
) -> dict[CaseKey, list[Numbers]]:
    """Hold the numbers of each case to the criteria."""
    runs = look.runs
    sizes = sizes_of(look.rows)
    smaller = any(len(own) > 1 for own in sizes.values())
    rows = joint_runs.by_case(look.rows if smaller else look.rows.drop("nodes"))
    fingerprints = [fingerprint(judged.manifest) for judged in runs]
    rules = [(rule, expiry(rule, fingerprints)) for rule in criteria.criteria]
    planned = allocations(runs, nodes, reasons, look.repaired, spoiled)
    leafs = joint_runs.leafs_of(nodes)
    by_case = {}
    for key, tries in joint_runs.cases_of(runs).items():
        last, own = joint_runs.last_tries(tries), rows.get(key, [])
        of_case = planned.get(key, ())
        by_case[key] = numbers_by_size(
            key, last, own, sizes.get(key, ()), rules, of_case, leafs
        )
    return by_case


def _of_cases(
    runs: Sequence[Run], numbers: Mapping[CaseKey, list[Numbers]]
) -> list[Finding]:
    """Return the findings of each case: on its numbers, and on its tries."""
    findings: list[Finding] = []
    for key, tries in joint_runs.cases_of(runs).items():
        last = joint_runs.last_tries(tries)
        own = [finding for of_size in numbers[key] for finding in of_size.findings]
        findings += own + case_findings(key, last, own) + retried(key, tries, last)
    return findings


def _of_declarations(runs: Sequence[Run], criteria: Criteria) -> list[Finding]:
    """Return the findings on settings and cables."""
    declared = criteria.declared
    return declared_findings(runs, declared) + fabric_findings(runs, declared)


def _tried(numbers: Sequence[Numbers], criteria: Criteria, look: int) -> list[Ruling]:
    """Try all places of the machine together; return the rulings case by case."""
    share = share_of_look(look)
    groups = [
        replace(group, share=share) for of_case in numbers for group in of_case.groups
    ]
    after = rulings(tried(groups, criteria.risks))
    return [
        ruling
        for of_case in numbers
        for ruling in (*of_case.rulings, *islice(after, len(of_case.groups)))
    ]


def _add_findings(by_case: _ByCase, ruled: Sequence[Ruling]) -> None:
    """Add the findings of rulings, case by case, to their numbers."""
    rest = iter(ruled)
    for of_case in _each(by_case):
        own = list(islice(rest, len(of_case.rulings) + len(of_case.groups)))
        # Rulings on leafs, ways between leafs, nodes, and pairs follow each other.
        for ruling, following in zip_longest(own, own[1:]):
            pairs = following if ruling.of_nodes else None
            of_case.findings += findings_of(ruling, pairs)


def _unmeasured(
    runs: Sequence[Run],
    criteria: Criteria,
    by_case: _ByCase,
    reasons: Sequence[Reason],
) -> tuple[list[Finding], tuple[str, ...]]:
    """Return findings on criteria that lack numbers, and criteria of checks not run.

    Skipping a check, or leaving it out, does not satisfy its criterion, unless the
    criterion is optional, or a signed reason names the check.
    """
    answered: dict[str, list[CaseKey]] = defaultdict(list)
    for of_case in _each(by_case):
        for name in of_case.answered:
            answered[name].append(of_case.key)
    cases = [case for run in runs for case in run.cases]
    checks = {case.check for case in cases}
    checks |= {check for run in runs for check in run.manifest.get("checks", ())}
    findings, uncovered = gap_findings(runs, criteria.criteria, answered, reasons), []
    findings += findings_elsewhere(criteria.elsewhere)
    excused = {one.case: str(one) for one in reasons if not (one.node or one.session)}
    for rule in criteria.criteria:
        if rule.name in answered:
            continue
        if rule.check not in checks:
            uncovered.append(rule.name)
            why = f"campaign {runs[0].manifest['campaign']} does not run {rule.check}"
        else:
            why = why_not(rule, cases)
        skipped = rule.optional or rule.check in excused
        findings.append(
            Finding("limit", rule.check)
            .held_to(rule)
            .judged(
                "skipped" if skipped else "undecided",
                f"{NOT_MEASURED}: {excused.get(rule.check, why)}",
            )
        )
    return findings, tuple(uncovered)


def _present(nodes: Iterable[NodeVerdict], verdict: Verdict) -> tuple[str, ...]:
    """Return the nodes that are present and have this verdict."""
    return tuple(n.name for n in nodes if (n.verdict, n.state) == (verdict, "present"))


def _suspects(ruled: Iterable[Ruling], conspicuous: Iterable[str]) -> tuple[str, ...]:
    """Return the places worth a look, each once, in natural order."""
    names = dict.fromkeys(conspicuous)
    for ruling in ruled:
        if ruling.discovered.any():
            places = ruling.names.filter(pl.Series(ruling.discovered))
            names |= dict.fromkeys(with_place(places, several_rails=False)["place"])
    return tuple(sorted(filter(None, names), key=natural_key))


def _overall(findings: Sequence[Finding]) -> Verdict:
    verdicts = {finding.verdict for finding in findings}
    worst: Verdict = next((v for v in VERDICTS if v in verdicts), "undecided")
    judged = any(
        finding.kind not in ("inventory", "start", "declared", "fabric")
        and finding.verdict != "skipped"
        for finding in findings
    )
    return "undecided" if worst == "pass" and not judged else worst
