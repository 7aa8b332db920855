"""Content of a protocol, the same for Markdown and PDF: plain texts in their order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from seatrial.criteria.criteria import Criteria
from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.waived import WAIVED, waiver_name
from seatrial.names import natural_key
from seatrial.report.content import Content, CriterionRow, Front
from seatrial.report.folding import first_names, fold_criteria
from seatrial.report.render import text
from seatrial.report.stability_chapter import event_lines
from seatrial.report.wording import interval_words, required_words, urgency
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import nodes_and_software

MOST_DEVIATIONS = 200
"""Deviations that the protocol names; findings.csv of the report has all."""

_NO_CLAUSE = "Without a clause"
_CLAUSE = ("document", "clause")


@dataclass(frozen=True)
class Line:
    """A criterion: what the contract requires, what was measured, and the verdict.

    `required`, `measured` and `interval` are in words with their unit, of the worst
    place; `remark` is '' or `waived`.
    """

    criterion: str
    where: str
    required: str
    measured: str
    interval: str
    samples: str
    verdict: str
    reason: str
    remark: str


@dataclass(frozen=True)
class Clause:
    """A clause of the contract with its criteria."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Part:
    """A part of the protocol: its notes, or `empty` in their place."""

    title: str
    notes: tuple[str, ...]
    empty: str


@dataclass(frozen=True)
class Protocol:
    """A protocol; `files` are those that are signed beside it, with their SHA-256.

    `runs` are the facts of each run: who measured when, and with which versions.
    """

    front: Front
    run: str
    system: str
    campaign: str
    is_model: bool
    clauses: tuple[Clause, ...]
    parts: tuple[Part, ...]
    runs: tuple[tuple[tuple[str, str], ...], ...]
    files: tuple[tuple[str, str], ...]
    signatures: Mapping[str, int]
    written: str


def protocol_of(
    runs: Sequence[Run],
    judgement: Judgement,
    criteria: Criteria,
    content: Content,
    files: Mapping[str, str],
    written: str,
) -> Protocol:
    """Build the protocol of a run, the first, and of those judged with it.

    `content` is that of the report; `files` are the SHA-256 of all other files.
    """
    run = runs[0]
    return Protocol(
        front=content.front,
        run=judgement.run,
        system=judgement.system,
        campaign=judgement.campaign,
        is_model=bool(run.manifest.get("model")),
        clauses=tuple(_clauses(judgement, criteria, content.criteria)),
        parts=tuple(_parts(judgement, content)),
        runs=tuple(_facts(one) for one in runs),
        files=tuple(sorted(files.items())),
        signatures=criteria.signatures,
        written=written,
    )


def _clauses(
    judgement: Judgement, criteria: Criteria, rows: Sequence[CriterionRow]
) -> Iterator[Clause]:
    """Yield the clauses in their order, then all that has none; equal rows once."""
    names = _titles(criteria)
    groups: dict[str, list[CriterionRow]] = {}
    for row in rows:
        groups.setdefault(names.get(row.name, _NO_CLAUSE), []).append(row)
    waived = _waived(judgement.findings)
    last = groups.pop(_NO_CLAUSE, [])
    for title in sorted(groups, key=natural_key):
        ordered = sorted(groups[title], key=lambda row: natural_key(row.name))
        lines = without_repeats(_line(row, waived) for row in ordered)
        yield Clause(title, tuple(lines))
    if last:
        folded = fold_criteria(last, {})
        yield Clause(_NO_CLAUSE, tuple(_line(row, waived) for row in folded))


def _titles(criteria: Criteria) -> dict[str, str]:
    """Return document and clause of each criterion that has them."""
    titles = {}
    for one in (*criteria.criteria, *criteria.declared):
        given = [one.provenance.get(key, "") for key in _CLAUSE]
        if any(given):
            titles[one.name] = ", ".join(filter(None, given))
    return titles


def _waived(findings: Iterable[Finding]) -> dict[str, str]:
    """Return if the findings of a criterion that do not pass are waived, by its name.

    Without a criterion the name is that of a check, or the kind of the findings.
    """
    flags: dict[str, set[bool]] = {}
    for one in findings:
        if one.verdict not in ("pass", "skipped"):
            flags.setdefault(waiver_name(one), set()).add(WAIVED in one.flags)
    words = {frozenset({True}): "waived", frozenset({True, False}): "waived in part"}
    return {name: words.get(frozenset(own), "") for name, own in flags.items()}


def _line(row: CriterionRow, waived: Mapping[str, str]) -> Line:
    place = row.worst.place
    samples = f"n = {row.allocations}" if row.allocations else ""
    places = f"{text.exact(row.places)} place{'s' * (row.places > 1)}"
    name = (
        f"{text.exact(row.alike)} criteria: {row.name}" if row.alike > 1 else row.name
    )
    return Line(
        criterion=name,
        where=row.where,
        required=row.limit,
        measured=row.estimate + (f" at {place}" if row.estimate and place else ""),
        interval=row.interval,
        samples=", ".join(filter(None, (samples, places if row.places else ""))),
        verdict=row.verdict,
        reason=row.reason if row.verdict != "pass" else "",
        remark=waived.get(waiver_name(row.worst), "") if row.verdict != "pass" else "",
    )


def without_repeats(lines: Iterable[Line]) -> Iterator[Line]:
    """Replace a reason that the line before has; skipped metrics share a long one."""
    before = ""
    for line in lines:
        repeats = line.reason and line.reason == before
        yield replace(line, reason="as above") if repeats else line
        before = line.reason


def _parts(judgement: Judgement, content: Content) -> Iterator[Part]:
    front = content.front
    yield Part("Deviations", tuple(_deviations(judgement)), "Nothing deviates.")
    if judgement.phases is not None and judgement.phases.phases:
        events = tuple(event_lines(judgement.phases))
        yield Part("Events of the stability phase", events, "Nothing failed.")
    yield Part("Waivers", judgement.waivers, "No waiver counts.")
    yield Part(
        "Absent and lost nodes", tuple(_absent(judgement)), "No node was absent."
    )
    repeats = (
        *(f"judged together with run {name}" for name in judgement.further),
        *judgement.repeats,
        *judgement.history,
    )
    yield Part("Repeats and other runs", repeats, "No other run is known.")
    yield Part(
        "Not shown", tuple(_not_shown(judgement, front)), "Everything was judged."
    )


def _deviations(judgement: Judgement) -> Iterator[str]:
    """Yield all that does not pass, the worst first; what has one reason once."""
    groups: dict[tuple[str, bool, str], list[Finding]] = {}
    for one in sorted(judgement.findings, key=urgency):
        if one.verdict not in ("pass", "skipped"):
            key = (one.verdict, WAIVED in one.flags, one.reason)
            groups.setdefault(key, []).append(one)
    for (verdict, waived, reason), own in islice(groups.items(), MOST_DEVIATIONS):
        names = text.few(dict.fromkeys(map(waiver_name, own)))
        words = f"{verdict}{', waived' * waived}: {', '.join(names)}"
        if where := first_names(one.environment for one in own):
            words += f" ({where})"
        if places := first_names(one.place for one in own):
            words += f" at {places}"
        if len(own) == 1:
            words += _numbers(own[0])
        else:
            words += f" ({text.exact(len(own))} findings)"
        yield f"{words}: {reason}"
    if (more := len(groups) - MOST_DEVIATIONS) > 0:
        yield f"and {text.exact(more)} more: report/findings.csv"


def _numbers(finding: Finding) -> str:
    """Describe the value of a finding, its interval and its limit."""
    words = []
    if finding.value is not None:
        number = text.measured(finding.value, finding.limit)
        interval = interval_words(finding)
        between = f" ({interval})" if interval else ""
        words.append(f" is {text.quantity(number, finding.unit)}{between}")
    if finding.limit is not None:
        required = required_words(finding)
        words.append(required if words else f" ({required})")
    return ", ".join(words)


def _absent(judgement: Judgement) -> Iterator[str]:
    away = [node for node in judgement.nodes if node.state != "present"]
    if judgement.absence and away:
        yield judgement.absence
    for node in away:
        yield f"{node.name} ({node.state}): {node.reason or 'no reason known'}"
    yield from judgement.spoiled


def _not_shown(judgement: Judgement, front: Front) -> Iterator[str]:
    verdicts = Counter(one.verdict for one in judgement.findings)
    for verdict in ("not shown", "undecided"):
        if count := verdicts[verdict]:
            many = "s are" if count > 1 else " is"
            yield f"{text.exact(count)} finding{many} {verdict}: see Deviations"
    if judgement.uncovered:
        names = ", ".join(text.few(judgement.uncovered))
        yield f"criteria of checks that this campaign does not run: {names}"
    if front.not_tested:
        yield f"not tested: {front.not_tested}"
    for reason in judgement.reasons:
        yield f"missing numbers, excused: {reason}"


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    """Return who measured a run, when and with which versions."""
    manifest: dict[str, Any] = run.manifest
    software = manifest.get("software") or {}
    starts = [one for one in manifest.get("starts") or () if isinstance(one, dict)]
    hosts = dict.fromkeys(str(one["host"]) for one in starts if one.get("host"))
    seconds = text.span(manifest.get("started"), manifest.get("ended"))
    begun = text.day_and_time(manifest.get("started"))
    commit = software.get("git_commit")
    changed = " with changes" if software.get("dirty") else ""
    facts = {
        "run": str(manifest["run"]),
        "measured": f"{begun}, in {text.duration(seconds)}",
        "driver": ", ".join(text.few(hosts, 4)),
        "starts of the driver": str(len(starts)) if len(starts) > 1 else "",
        "Seatrial": str(software.get("seatrial") or ""),
        "commit": f"{commit}{changed}" if commit else "",
        "ReFrame": str(software.get("reframe") or ""),
        **nodes_and_software(manifest),
    }
    return tuple((name, value) for name, value in facts.items() if value)
