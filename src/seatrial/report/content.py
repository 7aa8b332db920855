"""Content of a report, the same for all its forms: HTML, PDF, Markdown, CSV.

All texts are plain: each form escapes them in its own way.
"""

from dataclasses import dataclass

from seatrial.judge.findings import Finding
from seatrial.report.render.figure import Figure, Table


@dataclass(frozen=True)
class ActOn:
    """A node or link to act on, and why."""

    place: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Headline:
    """A number of page one: the worst place of a criterion, beside its limit."""

    verdict: str
    metric: str
    where: str
    place: str
    value: str
    limit: str
    margin: str


@dataclass(frozen=True)
class AreaSummary:
    """A part of the machine: criteria by verdict, and headline numbers."""

    area: str
    counts: dict[str, int]
    headlines: tuple[Headline, ...]


@dataclass(frozen=True)
class SmallMap:
    """All delivered nodes in a small picture, and the names of failing ones.

    `svg` has CSS variables as colours; `groups` are state, number of nodes, and names
    ('' where all nodes pass or there are none).
    """

    svg: str
    words: str
    groups: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Front:
    """Page one; `counts` are numbers of criteria by verdict.

    `notices`: replay, demonstration, partial run, changed criteria. `needs`: the data
    that undecided criteria need. `act_on`: convicted nodes, failing links, cases that
    fail as a whole. `not_shown`: other places and cases that are not shown to reach
    their limits. `look_at`: other places with undecided findings. `absent`: delivered
    nodes that were not present. `parts`: of the fabric, those that explain slow pairs,
    and bad cables without a criterion. `in_common`: facts that failing nodes share.
    `not_tested`: skipped criteria by reason. `reasons`: signed ones for missing
    numbers. `optional`: optional criteria that were not measured, by name.
    """

    verdict: str
    meaning: str
    title: str
    notices: tuple[str, ...]
    counts: dict[str, int]
    areas: tuple[AreaSummary, ...]
    node_map: SmallMap | None
    needs: tuple[str, ...]
    act_on: tuple[ActOn, ...]
    not_shown: tuple[ActOn, ...]
    look_at: tuple[ActOn, ...]
    absent: tuple[ActOn, ...]
    parts: tuple[ActOn, ...]
    in_common: tuple[str, ...]
    worth_a_look: tuple[str, ...]
    not_tested: str
    reasons: tuple[str, ...]
    optional: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    signer: str
    digest: str
    manifest_sha256: str


@dataclass(frozen=True)
class CriterionRow:
    """One criterion over all of its cases and places.

    Delivered nodes and cases that must run have rows, too, without a criterion.
    `clause` is document and clause, formula, or run; `limit`, `estimate` (of the worst
    place) and `interval` are in words with their unit. `allocations` are those of the
    worst place, `places` all of them; `scatter` is the spread of allocations.
    `shared`: many places share a finding; its value is their median. `area` is a part
    of the machine or ''. `alike` is the number of criteria in this row.
    """

    name: str
    check: str
    metric: str
    where: str
    kind: str
    clause: str
    limit: str
    estimate: str
    interval: str
    allocations: int
    places: int
    verdict: str
    reason: str
    scatter: str
    worst: Finding
    shared: bool = False
    area: str = ""
    alike: int = 1


@dataclass(frozen=True)
class Chapter:
    """A part of the report: figures with their tables, and tables by themselves.

    `name` is unique (letters, digits, dashes); `empty` replaces missing parts.
    """

    name: str
    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    notes: tuple[str, ...] = ()
    empty: str = ""


@dataclass(frozen=True)
class Content:
    """The whole report; `folded` are the criteria, equal ones in one row."""

    front: Front
    criteria: tuple[CriterionRow, ...]
    folded: tuple[CriterionRow, ...]
    chapters: tuple[Chapter, ...]
