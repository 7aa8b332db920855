"""The summary as Markdown: what it says, and that names in it stay text."""

import re

import pytest
from markdown_it import MarkdownIt
from report_samples import (
    HOSTILE,
    sample_content,
    sample_front,
    sample_row,
    spoiled,
)

from seatrial.report.markdown import MOST_CRITERIA, plain, summary
from seatrial.report.render import text

INVISIBLE = "\N{WORD JOINER}"

SUMMARY = """\
# FAIL: lab, acceptance, r1

> Functional demonstration. Its numbers mean nothing.

**FAIL.** At least one criterion is not met.

| Criteria | failed | not shown | undecided | skipped | passed |
|---|---:|---:|---:|---:|---:|
| | 1 | 1 | 1 | 0 | 2 |

**Not tested:** 28 criteria: no OSU Micro-Benchmarks (24), no perftest (4).

## Act on

- **cn03**: bw_4MiB is 23.50 MB/s; 2 of its 2 pairs fail

## Parts of the fabric, decide nothing

- **cable c00097: leaf01 port 9 - spine01 port 1**: slow

## Absent or lost nodes

- **cn04**: down: Not responding

## Facts that failing nodes share

- all 1 failing nodes run firmware 20.31

## Not shown

- **cn05**: not shown by 20 allocations

## Look at

- **cn01, cn02**: undecided; within the limits

## Worth a look, decides nothing

- cn01, cn02

## Needed for undecided criteria

- about 4 more allocations: PairSweep latency_8B

## Optional criteria that were not measured

- OsuClock msg_rate_8B

## Signed reasons for missing numbers

- cn03, run r1: DIMM replaced (signed by a@\N{WORD JOINER}b)

## Numbers with the least margin

| Area | Criteria | Number | Worst place | Value | Limit | Margin |
|---|---|---|---|---:|---|---:|
| links | 1 failed, 2 passed | bw_4MiB (PairSweep, openmpi) | cn03 - cn04 | \
23.50 MB/s | at least 60 MB/s | \N{MINUS SIGN}60.8 % |
| programs | 1 undecided |  |  |  |  |  |

## Criteria that do not pass

| Verdict | Criterion | Clause | Limit | Estimate | Reason |
|---|---|---|---|---|---|
| fail | PairSweep bw_4MiB, openmpi | offer, 3.2 | at least 60 MB/s | 23.50 MB/s \
(23.40 to 23.60) at cn03 - cn04 | 4 of 4 values miss the limit |
| undecided | PairSweep latency_8B, openmpi | offer, 3.2 | at least 60 MB/s | \
23.50 MB/s at cn03 - cn04 | 4 of 4 values miss the limit |

## Run

- Run: r1
- Nodes present: 3 of 4

Signature: sealed by alice: ED25519.
Digest of the judgement: `DIGEST`.
SHA-256 of the manifest: `MANIFEST`.

The whole report: `report.html`, `report.pdf`; every criterion: `criteria.csv`; \
every finding: `findings.csv`, `junit.xml`; every measurement: \
`seatrial query RUN --format csv`.
"""


def test_summary() -> None:
    expected = SUMMARY.replace("DIGEST", "d1" * 32).replace("MANIFEST", "5a" * 32)
    assert summary(sample_content()) == expected


def test_summary_says_nothing_of_what_there_is_not() -> None:
    front = sample_front(
        verdict="pass",
        notices=(),
        act_on=(),
        parts=(),
        absent=(),
        in_common=(),
        needs=(),
        worth_a_look=(),
        areas=(),
        not_shown=(),
        look_at=(),
        optional=(),
        reasons=(),
        not_tested="",
        manifest_sha256="",
    )
    content = sample_content(front=front, folded=(sample_row("pass"),))
    titles = re.findall("^#.*", summary(content), re.MULTILINE)
    assert titles == ["# FAIL: lab, acceptance, r1", "## Run"]
    assert "manifest" not in summary(content)


def test_summary_counts_the_criteria_that_it_leaves_out() -> None:
    rows = (sample_row(),) * (MOST_CRITERIA + 5)
    written = summary(sample_content(folded=rows))
    assert written.count("\n| fail |") == MOST_CRITERIA
    assert "\n\nand 5 more: `criteria.csv`\n" in written


@pytest.mark.parametrize(
    "name",
    [
        *HOSTILE,
        "- item",
        "1. item",
        "12) item",
        "1.5 MB/s",
        "# head",
        "+ item",
        "=====",
        ":tada: a:1:b",
    ],
)
def test_name_in_markdown_is_text(name: str) -> None:
    """No markup; nothing that GitHub or GitLab makes a link or a mention of."""
    paragraph = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = paragraph.parse(f"- {plain(name)}")
    kinds = [token.type for token in tokens]
    assert kinds == [
        *("bullet_list_open", "list_item_open", "paragraph_open", "inline"),
        *("paragraph_close", "list_item_close", "bullet_list_close"),
    ]
    (inline,) = [token for token in tokens if token.type == "inline"]
    assert {child.type for child in inline.children or ()} == {"text"}
    said = "".join(child.content for child in inline.children or ())
    shown = " ".join(text.clean(name).split())
    assert said.replace(INVISIBLE, "") == text.shortened(shown, 1000)
    assert not re.search(r"[@#!~%&$]\w|://|www\.|:[a-z]+:", said)


@pytest.mark.parametrize("name", HOSTILE)
def test_table_in_markdown_keeps_its_cells(name: str) -> None:
    written = summary(spoiled(sample_content(), name))
    tokens = MarkdownIt("commonmark").enable("table").parse(written)
    assert sum(token.type == "table_open" for token in tokens) == 3
    assert sum(token.type == "td_open" for token in tokens) == 6 + 2 * 7 + 2 * 6
    assert sum(token.type == "heading_open" for token in tokens) == 14
    assert not {"html_block", "fence"} & {token.type for token in tokens}
