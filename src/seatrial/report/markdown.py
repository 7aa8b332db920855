"""The summary as Markdown: what a person pastes into a ticket or a merge request."""

import re
from collections.abc import Iterator, Sequence

from seatrial.report.content import ActOn, AreaSummary, Chapter, Content, CriterionRow
from seatrial.report.render import text

MOST_CRITERIA = 30
"""Criteria that do not pass in the table; the rest is counted, and in criteria.csv."""

_LONGEST = 1000
_SPECIAL = re.compile(r"[\\`*{}\[\]<>|~$&]|(?<!\w)_|_(?!\w)|^[-+#=]")
_NUMBERED = re.compile(r"^(\d+)([.)])(?= |$)")
_REFERENCE = re.compile(
    r"""[@#!~%&$](?=[\w"\\]) | :(?=//|[a-z_+-][\w+-]*:) | \bwww(?=\.)""",
    re.VERBOSE | re.IGNORECASE,
)
_JOINER = "\N{WORD JOINER}"
_NAMES = {"fail": "failed", "not shown": "not shown", "undecided": "undecided"}
_NAMES |= {"pass": "passed", "skipped": "skipped"}


def summary(content: Content) -> str:
    """Write the summary; names in it stay text on GitHub and on GitLab."""
    return "\n".join(_lines(content)) + "\n"


def plain(words: str) -> str:
    """Escape a text: no markup, no link, no mention of a person, ticket or commit.

    A backslash stands before what Markdown knows. Mentions and bare links are found in
    the finished text, where it is of no help: an invisible character parts those.
    """
    line = text.shortened(" ".join(text.clean(words).split()), _LONGEST)
    line = _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line))
    return _REFERENCE.sub(rf"\g<0>{_JOINER}", line)


def _lines(content: Content) -> Iterator[str]:
    front = content.front
    yield f"# {plain(front.title)}"
    for notice in front.notices:
        yield from ("", f"> {plain(notice)}")
    yield from ("", f"**{front.verdict.upper()}.** {plain(front.meaning)}")
    yield ""
    yield "| Criteria | " + " | ".join(_NAMES[count] for count in front.counts) + " |"
    yield "|---|" + "---:|" * len(front.counts)
    yield "| | " + " | ".join(str(count) for count in front.counts.values()) + " |"
    if front.not_tested:
        yield from ("", f"**Not tested:** {plain(front.not_tested)}.")
    yield from _listed("Act on", _places(front.act_on))
    yield from _listed("Parts of the fabric, decide nothing", _places(front.parts))
    yield from _listed("Absent or lost nodes", _places(front.absent))
    yield from _listed("Facts that failing nodes share", map(plain, front.in_common))
    yield from _listed("Not shown", _places(front.not_shown))
    yield from _listed("Look at", _places(front.look_at))
    looks = ", ".join(front.worth_a_look)
    yield from _listed("Worth a look, decides nothing", [plain(looks)] if looks else [])
    yield from _listed("Needed for undecided criteria", map(plain, front.needs))
    optional = [plain(", ".join(front.optional))] if front.optional else []
    yield from _listed("Optional criteria that were not measured", optional)
    yield from _listed("Signed reasons for missing numbers", map(plain, front.reasons))
    yield from _headlines(front.areas)
    yield from _criteria([row for row in content.folded if row.verdict != "pass"])
    for chapter in content.chapters:
        if chapter.name == "fabric":
            yield from _chapter(chapter)
    facts = (f"{plain(name)}: {plain(value)}" for name, value in front.facts)
    yield from _listed("Run", facts)
    yield from ("", f"Signature: {plain(front.signer)}.")
    yield f"Digest of the judgement: `{front.digest}`."
    if front.manifest_sha256:
        yield f"SHA-256 of the manifest: `{front.manifest_sha256}`."
    yield ""
    yield (
        "The whole report: `report.html`, `report.pdf`; every criterion: "
        "`criteria.csv`; every finding: `findings.csv`, `junit.xml`; every "
        "measurement: `seatrial query RUN --format csv`."
    )


def _places(places: Sequence[ActOn]) -> Iterator[str]:
    for place in places:
        yield f"**{plain(place.place)}**: {plain('; '.join(place.reasons))}"


def _listed(title: str, items: Iterator[str] | Sequence[str]) -> Iterator[str]:
    """Write a list under its title, or nothing."""
    for number, item in enumerate(items):
        if number == 0:
            yield from ("", f"## {title}", "")
        yield f"- {item}"


def _headlines(areas: Sequence[AreaSummary]) -> Iterator[str]:
    if not areas:
        return
    yield from ("", "## Numbers with the least margin", "")
    yield "| Area | Criteria | Number | Worst place | Value | Limit | Margin |"
    yield "|---|---|---|---|---:|---|---:|"
    for area in areas:
        counts = [f"{count} {_NAMES[name]}" for name, count in area.counts.items()]
        head = [area.area, ", ".join(counts)]
        for line in area.headlines or [None]:
            cells = [""] * 5
            if line is not None:
                number = f"{line.metric} ({line.where})"
                cells = [number, line.place, line.value, line.limit, line.margin]
            yield "| " + " | ".join(map(plain, (*head, *cells))) + " |"
            head = ["", ""]


def _criteria(rows: Sequence[CriterionRow]) -> Iterator[str]:
    if not rows:
        return
    yield from ("", "## Criteria that do not pass", "")
    yield "| Verdict | Criterion | Clause | Limit | Estimate | Reason |"
    yield "|---|---|---|---|---|---|"
    for row in rows[:MOST_CRITERIA]:
        estimate = f"{row.estimate} ({row.interval})" if row.interval else row.estimate
        place = f" at {row.worst.place}" if row.estimate and row.worst.place else ""
        cells = (
            row.verdict,
            _name(row),
            row.clause,
            row.limit,
            estimate + place,
            row.reason,
        )
        yield "| " + " | ".join(map(plain, cells)) + " |"
    more = sum(row.alike for row in rows[MOST_CRITERIA:])
    if more > 0:
        yield from ("", f"and {more} more: `criteria.csv`")


def _chapter(chapter: Chapter) -> Iterator[str]:
    """Write a chapter without its figures; of long tables the first rows."""
    yield from ("", f"## {plain(chapter.title)}", "")
    yield plain(chapter.intro or chapter.empty)
    for title, table in chapter.tables:
        yield from ("", f"### {plain(title)}", "")
        yield "| " + " | ".join(map(plain, table.columns)) + " |"
        yield "|---" * len(table.columns) + "|"
        for row in table.rows[:MOST_CRITERIA]:
            yield "| " + " | ".join(map(plain, row)) + " |"
        if more := len(table.rows[MOST_CRITERIA:]):
            yield from ("", f"and {more} more: `report.html`")
    for note in chapter.notes:
        yield from ("", plain(note))


def _name(row: CriterionRow) -> str:
    if row.alike > 1:
        return f"{text.exact(row.alike)} criteria: {row.name}"
    return f"{row.name}, {row.where}" if row.where else row.name
