"""The fabric as a chapter: a drawing, bad links, and other findings."""

from collections import Counter
from collections.abc import Iterable, Sequence

from seatrial.errors import SeatrialError
from seatrial.fabric.findings import Finding
from seatrial.fabric.records import Fabric
from seatrial.judge.judge import Judgement
from seatrial.report.content import ActOn, Chapter
from seatrial.report.fabric_drawing import MOST_LINES, drawing
from seatrial.report.fabric_layout import layout_of
from seatrial.report.fabric_links import BadLink, bad_links, links_table
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.runs.closed_run import Run
from seatrial.runs.kept_fabric import KeptFabric
from seatrial.runs.port_totals import ports_of_run

MAX_ROWS = 200
_TITLE = "Fabric"
_BAD = ("absent", "drift")
_INTRO = "Links as discovered before the run, beside the cable plan of the inventory."
_NO_PLAN = (
    "Links as discovered before the run. There is no cable plan: only subnet managers, "
    "GUIDs, firmware, states and up-links were compared."
)


def fabric_chapter(run: Run, judgement: Judgement) -> tuple[Chapter, ...]:
    """Build the chapter; none if the run kept no fabric."""
    try:
        if run.fabric is None:
            return ()
        return (_chapter(run, run.fabric, judgement),)
    except SeatrialError as error:
        words = f"The fabric that the run kept cannot be shown: {error}"
        return (Chapter("fabric", _TITLE, "", empty=words),)


def parts_of_fabric(run: Run, judgement: Judgement) -> tuple[ActOn, ...]:
    """Return located parts, then bad cables that no criterion judges, for page one."""
    located = [ActOn(part.name, (part.words,)) for part in judgement.located]
    if any(finding.kind == "fabric" for finding in judgement.findings):
        return tuple(located)
    try:
        findings = run.fabric.findings if run.fabric else ()
    except SeatrialError:
        findings = ()  # the chapter says why
    bad = [one for one in findings if one.verdict in _BAD and one.spots]
    judged = "no criterion judges it"
    cables = [ActOn(one.where, (f"{one.kind}: {one.words}; {judged}",)) for one in bad]
    return (*located, *cables)


def _chapter(run: Run, kept: KeptFabric, judgement: Judgement) -> Chapter:
    fabric, plan, findings = kept.fabric, kept.plan, kept.findings
    ports, cables = ports_of_run(run), plan.cables if plan else ()
    links = bad_links(fabric, cables, findings, judgement.located, ports)
    notes = [_rest(fabric, links)]
    if len(links) > MAX_ROWS:
        notes.append(
            f"The table has {MAX_ROWS} of {text.exact(len(links))} links; `seatrial "
            "fabric diff` prints all."
        )
    tables = []
    if links:
        tables.append(("Links with findings", links_table(links[:MAX_ROWS], ports)))
    others = [one for one in findings if not one.ends and not _is_device(one)]
    if others:
        tables.append(("Other findings", _others(others)))
    return Chapter(
        "fabric",
        _TITLE,
        f"{_INTRO if plan else _NO_PLAN} {_source(fabric)}".strip(),
        figures=(_figure(kept, links),),
        tables=tuple(tables),
        notes=tuple(notes),
    )


def _is_device(one: Finding) -> bool:
    return one.kind in ("device", "switch") and len(one.spots) > 1


def _others(findings: Iterable[Finding]) -> Table:
    heads = ("Verdict", "Finding", "Where", "Plan", "Found", "Note")
    rows = (
        (one.verdict, one.kind, one.where, one.declared, one.actual, one.reason)
        for one in findings
    )
    return Table(heads, tuple(rows)[:MAX_ROWS])


def _source(fabric: Fabric) -> str:
    """Name the tools and the time of the discovery."""
    tools = ", ".join(dict.fromkeys(source.tool for source in fabric.sources))
    when = f", {text.day_and_time(fabric.time)}" if fabric.time else ""
    return f"Discovered by {tools}{when}." if tools else ""


def _rest(fabric: Fabric, links: Sequence[BadLink]) -> str:
    """Count the links without a finding."""
    bad = {link.key for link in links if link.is_cable}
    ports = {port for key in bad for port in key}
    sound = [link for link in fabric.links if not {link.a, link.b} & ports]
    return f"{text.exact(len(sound))} other links have no finding."


def _figure(kept: KeptFabric, links: Sequence[BadLink]) -> Figure:
    layout = layout_of(kept.fabric, kept.plan)
    counts = Counter(link.verdict for link in links)
    found = ", ".join(f"{text.exact(n)} {name}" for name, n in counts.items())
    nodes = len({node for _, node in layout.marks})
    words = (
        f"{text.exact(nodes)} nodes, {text.exact(len(layout.switches))} switches, "
        f"{text.exact(len(kept.fabric.links))} links; {found or 'no bad link'}"
    )
    note = (
        "A square is a node, below its leaf. Sound links between switches are pale; "
        "parallel ones are one line. A bad cable has the number of its label; a dashed "
        "line has no link."
    )
    if len(layout.pairs) > MOST_LINES:
        note += f" More than {text.exact(MOST_LINES)} sound links are not drawn."
    return Figure(
        name="fabric",
        title="Switches, links and nodes",
        detail=words,
        spec={"description": f"Drawing of the fabric: {words}."},
        table=Table((), ()),
        note=note,
        wide=True,
        drawing=drawing(layout, links, f"Fabric: {words}"),
    )
