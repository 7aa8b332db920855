"""A small report for tests of its forms: every kind of part, and nothing computed."""

from dataclasses import replace
from typing import Any

from seatrial.judge.findings import Finding
from seatrial.model.cases import CaseKey
from seatrial.report.content import (
    ActOn,
    AreaSummary,
    Chapter,
    Content,
    CriterionRow,
    Front,
    Headline,
    SmallMap,
)
from seatrial.report.render.figure import Figure, Table

HOSTILE = (
    "<script>alert(1)</script>",
    '#import "x"',
    "*bold* _it_ $x^2$ `code` [a](http://evil.example)",
    "@user #12 !34 https://evil.example www.evil.example",
    "a|b\n| c\r\n# d",
    "\"quotes\" & 'more' \\ ${x} {{ x }}",
    "node\0\x1b[31m\u202e",
    "x" * 10_000,
)
"""Names that are markup, or would break out of a line, in one form or another."""


def sample_finding(**changed: Any) -> Finding:
    key = CaseKey("PairSweep", "PairSweep", "lab:batch", "openmpi")
    return replace(
        Finding.of_case(key, "limit"),
        metric="bw_4MiB",
        place="cn03 - cn04",
        n=4,
        value=23.5,
        unit="MB/s",
        limit=60.0,
        direction="higher",
        verdict="fail",
        reason="4 of 4 values miss the limit",
        lower=23.4,
        upper=23.6,
        **changed,
    )


def sample_row(verdict: str = "fail", **changed: Any) -> CriterionRow:
    row = CriterionRow(
        name="PairSweep bw_4MiB",
        check="PairSweep",
        metric="bw_4MiB",
        where="openmpi",
        kind="promised",
        clause="offer, 3.2",
        limit="at least 60 MB/s",
        estimate="23.50 MB/s",
        interval="23.40 to 23.60",
        allocations=4,
        places=6,
        verdict=verdict,
        reason="4 of 4 values miss the limit",
        scatter="",
        worst=sample_finding(),
    )
    return replace(row, **changed)


def sample_front(**changed: Any) -> Front:
    front = Front(
        verdict="fail",
        meaning="At least one criterion is not met.",
        title="FAIL: lab, acceptance, r1",
        notices=("Functional demonstration. Its numbers mean nothing.",),
        counts={"fail": 1, "not shown": 1, "undecided": 1, "skipped": 0, "pass": 2},
        areas=(
            AreaSummary("links", {"fail": 1, "pass": 2}, (sample_headline(),)),
            AreaSummary("programs", {"undecided": 1}, ()),
        ),
        node_map=SmallMap(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
            '<path fill="var(--fail)" d="M0 0h8v8h-8z"/></svg>',
            "4 nodes: 2 pass, 1 fail, 1 absent",
            (("fail", 1, "cn03"), ("absent", 1, "cn04")),
        ),
        needs=("about 4 more allocations: PairSweep latency_8B",),
        act_on=(ActOn("cn03", ("bw_4MiB is 23.50 MB/s", "2 of its 2 pairs fail")),),
        not_shown=(ActOn("cn05", ("not shown by 20 allocations",)),),
        look_at=(ActOn("cn01, cn02", ("undecided; within the limits",)),),
        absent=(ActOn("cn04", ("down: Not responding",)),),
        parts=(ActOn("cable c00097: leaf01 port 9 - spine01 port 1", ("slow",)),),
        in_common=("all 1 failing nodes run firmware 20.31",),
        worth_a_look=("cn01", "cn02"),
        not_tested="28 criteria: no OSU Micro-Benchmarks (24), no perftest (4)",
        reasons=("cn03, run r1: DIMM replaced (signed by a@b)",),
        optional=("OsuClock msg_rate_8B",),
        facts=(("Run", "r1"), ("Nodes present", "3 of 4")),
        signer="sealed by alice: ED25519",
        digest="d1" * 32,
        manifest_sha256="5a" * 32,
    )
    return replace(front, **changed)


def sample_headline(**changed: Any) -> Headline:
    headline = Headline(
        verdict="fail",
        metric="bw_4MiB",
        where="PairSweep, openmpi",
        place="cn03 - cn04",
        value="23.50 MB/s",
        limit="at least 60 MB/s",
        margin="\N{MINUS SIGN}60.8 %",
    )
    return replace(headline, **changed)


def sample_figure(name: str, wide: bool = False, **changed: Any) -> Figure:
    """Return a chart of two lines, with the colours of the page."""
    values = [{"x": x, "y": x * k, "l": f"line {k}"} for k in (1, 2) for x in (1, 2, 4)]
    colour = {"domain": ["line 1", "line 2"], "range": ["var(--line-1)", "var(--fail)"]}
    spec = {
        "mark": {"type": "line", "stroke": "var(--ink)"},
        "data": {"values": values},
        "description": "Two lines.",
        "height": 120,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "y", "type": "quantitative"},
            "stroke": {"field": "l", "scale": colour, "type": "nominal"},
        },
        "config": {"axis": {"labelColor": "var(--muted)"}, "legend": {}},
    }
    table = Table(("size", "line 1"), (("1 B", "1"), ("2 B", "2"), ("4 B", "4")))
    figure = Figure(name, f"Chart {name}", "us, lower is better", spec, table, "", wide)
    return replace(figure, **changed)


def sample_content(**changed: Any) -> Content:
    nodes = Table(("node", "verdict"), tuple((f"cn{n}", "pass") for n in range(50)))
    rows = (
        sample_row(),
        sample_row("undecided", name="PairSweep latency_8B", interval=""),
        sample_row("pass", name="ImbRing bw_4MiB"),
    )
    content = Content(
        front=sample_front(),
        criteria=rows,
        folded=rows,
        chapters=(
            Chapter(
                "curves",
                "Curves",
                "What was measured over size.",
                (
                    sample_figure("one"),
                    sample_figure("two", note="a note"),
                    sample_figure("map", wide=True),
                ),
            ),
            Chapter("nodes", "Nodes", "", (), (("All nodes", nodes),), ("A note.",)),
            Chapter("drift", "Drift", "", empty="Nothing was measured twice."),
        ),
    )
    return replace(content, **changed)


def spoiled(value: Any, name: str) -> Any:
    """Put a name into every text of a content, but for what the suite itself says."""
    if isinstance(value, str):
        return f"{value} {name}"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(spoiled(each, name) for each in value)
    if isinstance(
        value,
        Front
        | ActOn
        | AreaSummary
        | Headline
        | SmallMap
        | CriterionRow
        | Chapter
        | Figure
        | Table,
    ):
        kept = (
            "verdict",
            "digest",
            "manifest_sha256",
            "name",
            "counts",
            "svg",
            "drawing",
        )
        found = {
            key: each
            if key in kept and not (key == "name" and isinstance(value, CriterionRow))
            else spoiled(each, name)
            for key, each in vars(value).items()
        }
        return replace(value, **found)
    if isinstance(value, Content):
        return replace(
            value, **{key: spoiled(each, name) for key, each in vars(value).items()}
        )
    if isinstance(value, dict) and "encoding" in value:
        lines = [{**row, "l": f"{row['l']} {name}"} for row in value["data"]["values"]]
        labels = list(dict.fromkeys(row["l"] for row in lines))
        changed = {**value, "data": {"values": lines}, "description": name}
        stroke = value["encoding"]["stroke"]
        scale = {**stroke["scale"], "domain": labels}
        encoding = {**value["encoding"], "stroke": {**stroke, "scale": scale}}
        return {**changed, "encoding": encoding}
    return value
