"""A protocol as Markdown, for a terminal, a ticket or a browser."""

from collections.abc import Iterable, Iterator

from seatrial.protocol.content import Clause, Protocol
from seatrial.protocol.wording import SIGNED, commands, persons
from seatrial.report.markdown import plain

_LINES = ("Name and organisation", "Place and date", "Signature")


def markdown(protocol: Protocol) -> str:
    """Write the protocol; names in it stay text."""
    return "\n".join(_lines(protocol)) + "\n"


def _lines(protocol: Protocol) -> Iterator[str]:
    front = protocol.front
    title = f"{protocol.system}, {protocol.campaign}, {protocol.run}"
    yield f"# Acceptance protocol: {plain(title)}"
    for notice in front.notices:
        yield from ("", f"> {plain(notice)}")
    yield from ("", f"**{front.verdict.upper()}.** {plain(front.meaning)}", "")
    counts = (f"{count} {verdict}" for verdict, count in front.counts.items() if count)
    yield f"Criteria: {', '.join(counts)}. Run: {plain(front.signer)}."
    yield f"Digest of the judgement: `{front.digest}`."
    yield f"SHA-256 of the manifest: `{front.manifest_sha256}`."
    yield f"Written {plain(protocol.written)}."
    for clause in protocol.clauses:
        yield from _clause(clause)
    for part in protocol.parts:
        yield from ("", f"## {part.title}", "")
        yield from (f"- {plain(note)}" for note in part.notes)
        if not part.notes:
            yield part.empty
    yield from ("", "## Measured by", "")
    for facts in protocol.runs:
        yield from _table(("Fact", "Value"), facts)
        yield ""
    yield from ("## Signed together", "", SIGNED, "")
    yield "| SHA-256 | File |"
    yield "|---|---|"
    for name, digest in protocol.files:
        yield f"| `{digest}` | {plain(name)} |"
    yield from ("", "Without Seatrial, in the folder of the protocol:", "")
    yield from (f"    {command}" for command in commands(protocol.signatures))
    yield from ("", "## Signatures", "")
    for role in persons(protocol.signatures):
        yield from (f"### {plain(role)}", "")
        for line in _LINES:
            yield from (f"{line}: ................................................", "")


def _clause(clause: Clause) -> Iterator[str]:
    yield from ("", f"## {plain(clause.title)}", "")
    heads = ("Verdict", "Criterion", "Required", "Measured", "Interval", "Samples")
    rows = (
        (
            f"{line.verdict}, {line.remark}" if line.remark else line.verdict,
            f"{line.criterion} ({line.where})" if line.where else line.criterion,
            line.required,
            line.measured,
            line.interval,
            line.samples,
            line.reason,
        )
        for line in clause.lines
    )
    yield from _table((*heads, "Reason"), rows)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield "| " + " | ".join(map(plain, row)) + " |"
