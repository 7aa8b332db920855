"""Build page one: verdict, headline numbers, places by verdict, signatures."""

from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.judge.case_findings import start_crashes
from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.other_campaigns import is_elsewhere, words_elsewhere
from seatrial.report.areas import area_summaries
from seatrial.report.common_facts import common_facts
from seatrial.report.content import ActOn, CriterionRow, Front
from seatrial.report.criteria_rows import counts, needs
from seatrial.report.fabric_chapter import parts_of_fabric
from seatrial.report.folding import not_tested, skip_reasons
from seatrial.report.load_chapter import throttling
from seatrial.report.look_at import case_name, look_at, reasons_of
from seatrial.report.render import text
from seatrial.report.render.text import few
from seatrial.report.small_map import small_map
from seatrial.report.wording import MODEL_NOTICE
from seatrial.runs.closed_run import Run
from seatrial.runs.seal import key_text
from seatrial.runs.ssh_signature import known_signers

MAX_PLACES = 8
"""Places in one list of page one; the rest is counted."""

_MAX_NEEDS, _MAX_COMMON, _MAX_LOOKS = 5, 3, 12
_MEANING = {
    "pass": "Every judged criterion is met.",
    "pass with waivers": "What is not met is accepted by signed waivers, which this "
    "page lists. All else is met.",
    "fail": "At least one criterion is not met. The system is not acceptable in this "
    "state.",
    "not shown": "No criterion is proven to be missed, but the agreed allocations do "
    "not show that all are met. ",
    "undecided": "No criterion failed, but some are undecided. This is not a pass: "
    "the system is neither accepted nor refused.",
}
_BEARS = {
    "seller": "The seller bears that: the system is not accepted.",
    "buyer": "The buyer bears that: this is not a pass, but no reason to refuse the "
    "system.",
}


def front(
    run: Run, judgement: Judgement, home: Path, rows: Sequence[CriterionRow]
) -> Front:
    """Fill page one; `rows` are all criteria."""
    signer, digest = seal_words(run, home)
    replay = "REPLAY, " if judgement.replay else ""
    not_shown, undecided, suspects = look_at(judgement)
    bears = _BEARS[judgement.bears] if judgement.verdict == "not shown" else ""
    return Front(
        verdict=judgement.verdict,
        meaning=_MEANING[judgement.verdict] + bears,
        title=f"{replay}{judgement.verdict.upper()}: {judgement.system}, "
        f"{judgement.campaign}, {judgement.run}",
        notices=_notices(run, judgement),
        counts=counts(rows),
        areas=area_summaries(rows),
        node_map=small_map(judgement),
        needs=tuple(few(needs(judgement, rows), _MAX_NEEDS)),
        act_on=_places(_act_on(judgement)),
        not_shown=_places(not_shown),
        look_at=_places(undecided),
        absent=_places(
            [
                ActOn(node.name, (node.reason or "no reason known",))
                for node in judgement.nodes
                if node.state != "present"
            ]
        ),
        parts=_places(parts_of_fabric(run, judgement)),
        in_common=tuple(
            few((fact.words for fact in common_facts(run, judgement)), _MAX_COMMON)
        ),
        worth_a_look=tuple(few(suspects, _MAX_LOOKS)),
        not_tested=not_tested(rows, skip_reasons(run)),
        reasons=tuple(few(judgement.reasons, MAX_PLACES)),
        optional=tuple(few(_optional(judgement), _MAX_LOOKS)),
        facts=_facts(run, judgement),
        signer=signer,
        digest=judgement.digest,
        manifest_sha256=digest,
    )


def _notices(run: Run, judgement: Judgement) -> tuple[str, ...]:
    """Return the notices of page one; each begins with a headline."""
    manifest = run.manifest
    sessions = manifest.get("sessions", ())
    beside = sorted({name for s in sessions for name in s.get("beside", ())})
    slowed = throttling(run)
    elsewhere = words_elsewhere(judgement.findings)
    notices = {
        "Replay: no measurement. Seatrial ran no program; it read recorded output from "
        f"{manifest.get('replay')}. No verdict of a replay accepts the "
        "system.": judgement.replay,
        MODEL_NOTICE: manifest.get("model"),
        f"Waivers: {len(judgement.waivers)}. "
        f"{'. '.join(map(_sentence, judgement.waivers))}.": judgement.waivers,
        "Functional demonstration. This run shows that the suite works on this system. "
        "Its numbers mean nothing as performance.": manifest.get("demonstration"),
        "Partial run. The run left out some checks of the campaign. It is no complete "
        "acceptance.": manifest.get("partial"),
        f"Not judged. {_sentence(elsewhere)}.": elsewhere,
        "Not alone. Other runs of this system were active during this run: "
        f"{', '.join(few(beside, MAX_PLACES))}. They may have slowed it down.": beside,
        "Judged by the criteria of today. Differences from the criteria at the time of "
        f"the run: {'; '.join(few(judgement.changed, MAX_PLACES))}.": judgement.changed,
        f"Spoiled by lost nodes. {'. '.join(map(_sentence, judgement.spoiled))}.": (
            judgement.spoiled
        ),
        f"Throttled. {_sentence(slowed)}.": slowed,
        f"Repeats: {len(judgement.repeats)}. "
        f"{'. '.join(map(_sentence, judgement.repeats))}.": judgement.repeats,
        f"Other runs. {'. '.join(map(_sentence, judgement.history))}.": (
            judgement.history
        ),
    }
    return tuple(notice for notice, applies in notices.items() if applies)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _optional(judgement: Judgement) -> list[str]:
    """Return the names of optional criteria of which something was not measured."""
    return list(
        dict.fromkeys(
            finding.criterion
            for finding in judgement.findings
            if finding.verdict == "skipped" and finding.criterion
            if not is_elsewhere(finding)
        )
    )


def _act_on(judgement: Judgement) -> list[ActOn]:
    """List convicted nodes, then failing links, then cases that fail as a whole."""
    by_node: dict[str, list[Finding]] = {name: [] for name in judgement.convicted}
    links: dict[str, list[Finding]] = {}
    whole: dict[str, list[Finding]] = {}
    for finding in judgement.findings:
        if finding.verdict != "fail" or finding.kind == "inventory":
            continue
        if finding.node in by_node:
            by_node[finding.node].append(finding)
        elif finding.place:
            links.setdefault(finding.place, []).append(finding)
        else:
            whole.setdefault(case_name(finding), []).append(finding)
    reasons = {node.name: node.reason for node in judgement.nodes}
    placed = [
        ActOn(place, reasons_of(findings) or (reasons.get(place, ""),))
        for place, findings in {**by_node, **links}.items()
    ]
    return placed + [
        ActOn(name, reasons_of(findings, of_whole=True))
        for name, findings in whole.items()
    ]


def _places(places: Sequence[ActOn]) -> tuple[ActOn, ...]:
    """Shorten a list of places; the last entry counts the others."""
    more = len(places) - MAX_PLACES
    rest = ActOn(f"and {more} more", ("they are among the findings",))
    return (*places[:MAX_PLACES], *([rest] if more > 0 else []))


def _facts(run: Run, judgement: Judgement) -> tuple[tuple[str, str], ...]:
    started = run.manifest.get("started")
    seconds = text.span(started, run.manifest.get("ended"))
    present = text.exact(sum(node.state == "present" for node in judgement.nodes))
    nodes = "Nodes as recorded" if judgement.replay else "Nodes present"
    facts = [
        ("Run", judgement.run),
        ("Started", text.day_and_time(started)),
        ("Duration", text.duration(seconds)),
        (nodes, f"{present} of {text.exact(len(judgement.nodes))}"),
        ("Absent nodes", judgement.absence),
        ("Cases", text.exact(len(run.cases))),
        ("Numbers", text.exact(run.count)),
    ]
    facts += [("Crashes at start", crash.words) for crash in start_crashes(run.cases)]
    if judgement.further:
        facts.append(("Judged together with", ", ".join(few(judgement.further, 4))))
    return tuple(facts)


def seal_words(run: Run, home: Path) -> tuple[str, str]:
    """Return the signer in words and the manifest's SHA-256 ('' if unknown)."""
    if run.sealed is None:
        return "not sealed", run.digest
    try:
        signers = known_signers(home / "reference-data", run.manifest["system"])
        signature = run.sealed.check(signers)
    except SeatrialError as error:
        return f"sealed; the seal cannot be checked: {error}", run.digest
    key = key_text(signature)
    return f"sealed by {signature.signer or 'an unknown signer'}: {key}", run.digest
