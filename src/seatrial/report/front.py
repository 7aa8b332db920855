"""Page one: the verdict, what to act on, what is undecided, and who vouches for it."""

from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.findings import Finding, Judgement
from seatrial.judging.start_crashes import start_crashes
from seatrial.report import text
from seatrial.report.common_facts import common_facts
from seatrial.report.content import ActOn, CriterionRow, Front
from seatrial.report.criteria_rows import counts, needs
from seatrial.report.view import badness, few, interval_words, limit_words
from seatrial.results import Run
from seatrial.seal import key_text
from seatrial.signature import known_signers

MAX_PLACES = 8
"""Places in one list of page one; the rest is counted there."""

_MAX_REASONS, _MAX_NEEDS, _MAX_COMMON, _MAX_LOOKS = 2, 5, 3, 12
_MEANING = {
    "pass": "Every criterion that was judged is met.",
    "fail": "At least one criterion is not met. The system is not acceptable in this "
    "state.",
    "undecided": "No criterion failed, but not every one could be decided. This is "
    "not a pass: the system is neither accepted nor refused.",
}


def front(
    run: Run, judgement: Judgement, home: Path, rows: Sequence[CriterionRow]
) -> Front:
    """Fill page one; `rows` are all criteria."""
    signer, digest = seal_words(run, home)
    found = counts(rows)
    replay = "REPLAY, " if judgement.replay else ""
    return Front(
        verdict=judgement.verdict,
        meaning=_meaning(judgement, found),
        title=f"{replay}{judgement.verdict.upper()}: {judgement.system}, "
        f"{judgement.campaign}, {judgement.run}",
        notices=_notices(run, judgement),
        counts=found,
        needs=_shortened(needs(judgement, rows), _MAX_NEEDS),
        act_on=_places(_act_on(judgement)),
        absent=_places(
            [
                ActOn(node.name, (node.reason or "no reason known",))
                for node in judgement.nodes
                if node.state != "present"
            ]
        ),
        in_common=_shortened(
            [each.words for each in common_facts(run, judgement)], _MAX_COMMON
        ),
        worth_a_look=_shortened(judgement.worth_a_look, _MAX_LOOKS),
        facts=_facts(run, judgement),
        signer=signer,
        digest=judgement.digest,
        manifest_sha256=digest,
    )


def _meaning(judgement: Judgement, found: dict[str, int]) -> str:
    """Say the verdict in words, and what it does not cover."""
    words = [_MEANING[judgement.verdict]]
    skipped, left_out = found["skipped"], len(judgement.uncovered)
    if skipped:
        words.append(f"What was skipped ({skipped}) is no part of the verdict.")
    if left_out:
        words.append(
            f"{left_out} {'criterion belongs' if left_out == 1 else 'criteria belong'} "
            "to checks that this campaign does not run."
        )
    return " ".join(words)


def _notices(run: Run, judgement: Judgement) -> tuple[str, ...]:
    """Give what must be said before all else; each begins with its own headline."""
    notices = []
    if judgement.replay:
        notices.append(
            "Replay: no measurement. No program was run. Recorded output was read "
            f"again, from {run.manifest.get('replay')}. This is no acceptance of the "
            "system, whatever is said below."
        )
    if run.manifest.get("demonstration"):
        notices.append(
            "Functional demonstration. This run shows that the suite works on this "
            "system. Its numbers mean nothing as performance."
        )
    if run.manifest.get("partial"):
        notices.append(
            "Partial run. Some checks of the campaign were left out. What was judged "
            "is no whole acceptance."
        )
    sessions = run.manifest.get("sessions", ())
    beside = sorted({each for s in sessions for each in s.get("beside", ())})
    if beside:
        notices.append(
            "Not alone. While this run was going on, other runs of this system were at "
            f"work: {', '.join(few(beside, MAX_PLACES))}. They may have slowed it down."
        )
    if judgement.changed:
        changes = "; ".join(few(judgement.changed, MAX_PLACES))
        notices.append(
            "Judged by the criteria of today. Beside those that held when the data "
            f"were taken: {changes}."
        )
    return tuple(notices)


def _act_on(judgement: Judgement) -> list[ActOn]:
    """Name what to act on: convicted nodes, then links, then what fails as a whole."""
    found: dict[str, list[Finding]] = {name: [] for name in judgement.convicted}
    links: dict[str, list[Finding]] = {}
    whole: dict[str, list[Finding]] = {}
    for finding in judgement.findings:
        if finding.verdict != "fail" or finding.kind == "inventory":
            continue
        if finding.node in found:
            found[finding.node].append(finding)
        elif finding.place:
            links.setdefault(finding.place, []).append(finding)
        else:
            name = ", ".join(filter(None, (finding.case, finding.environment)))
            whole.setdefault(name or finding.kind, []).append(finding)
    reasons = {node.name: node.reason for node in judgement.nodes}
    placed = [
        ActOn(place, _reasons(findings) or (reasons.get(place, ""),))
        for place, findings in {**found, **links}.items()
    ]
    return placed + [
        ActOn(name, _reasons(findings, of_whole=True))
        for name, findings in whole.items()
    ]


def _reasons(findings: Sequence[Finding], *, of_whole: bool = False) -> tuple[str, ...]:
    """Say of the worst findings of a place what they are held to, and how sure.

    A whole case is named before. Limits of a contract are told before sameness.
    """
    worst = sorted(
        findings,
        key=lambda each: (not each.metric, each.kind == "sameness", -badness(each)),
    )
    said = [
        _said(each) if of_whole or each.value is None else f"{_of(each)}: {_said(each)}"
        for each in worst
    ]
    return _shortened(said, _MAX_REASONS)


def _of(finding: Finding) -> str:
    return ", ".join(filter(None, (finding.check, finding.environment)))


def _said(finding: Finding) -> str:
    if finding.value is None:
        return finding.reason
    value = text.quantity(text.measured(finding.value, finding.limit), finding.unit)
    if finding.kind == "sameness":
        value += " times the typical"
    interval = interval_words(finding)
    between = f" ({interval})" if interval else ""
    required = f", {limit_words(finding)} is required" if finding.limit else ""
    return f"{finding.metric} is {value}{between}{required}: {finding.reason}"


def _places(places: Sequence[ActOn]) -> tuple[ActOn, ...]:
    """Shorten a list of places; what is left out is a last one."""
    more = len(places) - MAX_PLACES
    if more <= 0:
        return tuple(places)
    rest = ActOn(f"and {more} more", ("they are among the findings",))
    return (*places[:MAX_PLACES], rest)


def _shortened(words: Sequence[str], most: int) -> tuple[str, ...]:
    return tuple(few(words, most))


def _facts(run: Run, judgement: Judgement) -> tuple[tuple[str, str], ...]:
    manifest = run.manifest
    present = sum(node.state == "present" for node in judgement.nodes)
    seconds = text.span(manifest.get("started"), manifest.get("ended"))
    recorded = " as recorded" if judgement.replay else " present"
    facts = [
        ("Run", judgement.run),
        ("Started", text.day_and_time(manifest.get("started"))),
        ("Duration", text.duration(seconds)),
        (f"Nodes{recorded}", f"{present} of {len(judgement.nodes)}"),
        ("Cases", text.exact(len(run.cases))),
        ("Numbers", text.exact(run.measurements.height)),
    ]
    facts += [("Crashes at start", each.words) for each in start_crashes(run.cases)]
    if judgement.further:
        facts.append(("Judged together with", ", ".join(few(judgement.further, 4))))
    return tuple(facts)


def seal_words(run: Run, home: Path) -> tuple[str, str]:
    """Say who sealed a run, and give the SHA-256 of its manifest ('' if unknown)."""
    if run.sealed is None:
        return "not sealed", run.digest
    try:
        signers = known_signers(home / "reference-data", run.manifest["system"])
        signature = run.sealed.check(signers)
    except SeatrialError as error:
        return f"sealed, and the seal cannot be checked: {error}", run.digest
    key = key_text(signature)
    if signature.signer is None:
        return f"sealed by an unknown signer: {key}", run.digest
    return f"sealed by {signature.signer}: {key}", run.digest
