"""The chapters on methods, limits, configuration and sessions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from seatrial.judge.findings import Finding, Judgement
from seatrial.report.content import Chapter
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import few
from seatrial.report.wording import MAX_CASES, case_detail
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import nodes_and_software
from seatrial.runs.row_parts import batches

_VERDICT = (
    "What counts is an allocation: a job on its nodes; numbers that one job took of "
    "one place count as one, their median. A criterion passes if the confidence bound "
    "of every place reaches the limit; the risk that a machine passes which does not "
    "reach it is declared (the buyer's). A place fails if it is convicted: the first "
    "quarter of the allocations picks suspects, the others must convict them, all "
    "suspects of the machine taken together, so that the risk that any of them is "
    "sound is the declared one (the seller's). Of counts, every single value must meet "
    "the limit. All else is undecided. A place that is undecided after the most "
    "allocations that were agreed on is not shown to reach the limit; the criterion "
    "states who bears that. Places worth a look follow a weaker rule, a false "
    "discovery rate, and decide nothing."
)
_MAX_UNCOVERED = 8
_NUMBERS = (
    "Check",
    "Metric",
    "What it is",
    "Unit",
    "Better",
    "Statistic",
    "Repetitions per number",
    "Numbers",
)
_NOT_STACKS = ("stacks", "dirty", "spack")


def methods(run: Run, judgement: Judgement) -> Chapter:
    """Describe measurement methods, verdict rules and sources of limits."""
    notes = [f"How a verdict comes about. {_VERDICT}"]
    ways = {finding.method for finding in judgement.findings} - {""}
    if ways:
        notes.append(f"Bounds come from: {', '.join(sorted(ways))}.")
    if judgement.uncovered:
        names = ", ".join(few(judgement.uncovered, _MAX_UNCOVERED))
        notes.append(f"Criteria of checks that this campaign does not run: {names}.")
    notes.append(
        "The same run and the same criteria give the same digest, on any machine: "
        f"{judgement.digest}"
    )
    if judgement.criteria_sha256:
        notes.append(f"SHA-256 of the criteria: {judgement.criteria_sha256}")
    tables = (
        ("How each number was obtained", _numbers(run)),
        ("Where the limits come from", _sources(judgement.findings)),
    )
    return Chapter(
        "method",
        "Method and references",
        "",
        tables=tuple((title, table) for title, table in tables if table.rows),
        notes=tuple(notes),
    )


def _numbers(run: Run) -> Table:
    """List the statistic and the repetitions of each check and metric."""
    keys, others = ("check", "metric"), ("unit", "direction")
    known = run.metrics
    tables = [
        rows.group_by(keys, maintain_order=True).agg(
            pl.col(others).first(),
            pl.col("statistic").unique().sort(),
            fewest=pl.col("n").min(),
            most=pl.col("n").max(),
            samples=pl.len(),
        )
        for rows in batches(run.columns(*keys, *others, "statistic", "n"), *keys)
    ]
    return Table(
        _NUMBERS,
        tuple(
            (
                check,
                metric,
                known[metric].meaning if metric in known else "",
                unit,
                direction,
                ", ".join(statistics),
                " to ".join(map(text.exact, sorted({fewest, most}))),
                text.exact(samples),
            )
            for check, metric, unit, direction, statistics, fewest, most, samples in (
                pl.concat(tables).sort(keys).iter_rows()
            )
        ),
    )


def _sources(findings: Iterable[Finding]) -> Table:
    """List the limits' sources: kind, document, metrics and number of findings."""
    sources: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.reference_kind or finding.reference_source:
            key = (finding.reference_kind, finding.reference_source)
            sources[key].append(finding)
    return Table(
        ("Kind", "Source", "Used for", "Findings"),
        tuple(
            (
                kind or "not said",
                source or "not said",
                ", ".join(few(dict.fromkeys(f"{f.check} {f.metric}" for f in rows))),
                text.exact(len(rows)),
            )
            for (kind, source), rows in sorted(sources.items())
        ),
    )


def configuration(run: Run) -> Chapter:
    """Describe the configuration of the system and the sessions of the run."""
    tables = (
        (
            "Configuration fingerprint",
            Table(("What", "Value"), tuple(nodes_and_software(run.manifest).items())),
        ),
        ("Software", Table(("Software", "Version", "Provider"), tuple(_software(run)))),
        ("Sessions", _sessions(run)),
        ("Cases", _cases(run)),
    )
    more = len(run.cases) - MAX_CASES
    left_out = (
        f"The table of cases has the first {MAX_CASES}; {text.exact(more)} more are in "
        "cases.json of the run."
    )
    return Chapter(
        "configuration",
        "Configuration and sessions",
        "A number holds for the configuration that it was taken under. If one of the "
        "values of the fingerprint changes, measured references have expired.",
        tables=tuple((title, table) for title, table in tables if table.rows),
        notes=(left_out,) if more > 0 else (),
    )


def _software(run: Run) -> Iterator[tuple[str, str, str]]:
    software: Mapping[str, Any] = run.manifest.get("software") or {}
    for name, value in software.items():
        if name in _NOT_STACKS:
            continue
        words = "unknown" if value is None else str(value)
        if name == "git_commit" and software.get("dirty"):
            words += ", with changes that are in no commit"
        yield name.replace("_", " "), words, ""
    spack = software.get("spack")
    if spack:
        commits = (spack["commit"][:12], spack["packages_commit"][:12])
        yield "spack", "{}, recipes {}".format(*commits), ""
        for environment in spack["environments"]:
            digest = environment["sha256"][:12]
            lock = f"system/{environment['lock']}, sha256 {digest}"
            yield f"{environment['name']} (solved by Spack)", lock, ""
    for stack in software.get("stacks") or []:
        if not isinstance(stack, Mapping):
            yield f"{stack} (MPI stack)", "", ""
            continue
        version = ", ".join(
            filter(None, (stack.get("version") or "unknown", stack.get("compiler")))
        )
        yield f"{stack['name']} (MPI stack)", version, stack.get("provider") or ""
        for built in stack.get("built") or []:
            digest = built["sha256"][:12]
            source = "release" if built["origin"] == "release" else "user's archive"
            program = f"{built['name']} of {stack['name']}"
            yield program, f"{built['version']}, sha256 {digest}", source


def _sessions(run: Run) -> Table:
    sessions = run.manifest.get("sessions") or []
    return Table(
        ("Session", "Repeat", "Started", "Duration", "Cases"),
        tuple(
            (
                session["name"],
                str(session["repeat"]),
                text.day_and_time(session["started"]),
                text.duration(text.span(session["started"], session["ended"])),
                text.exact(_count(session["cases"])),
            )
            for session in sessions
        ),
    )


def _count(cases: Any) -> int:
    """Count the cases of a session: older manifests list them."""
    return cases if isinstance(cases, int) else len(cases)


def _cases(run: Run) -> Table:
    columns = (
        "Session",
        "Case",
        "Environment",
        "Result in ReFrame",
        "Job",
        "Nodes",
        "Elapsed",
        "Of it the program",
    )
    return Table(
        columns,
        tuple(
            (
                case.session,
                " ".join(
                    filter(None, (case.check, case_detail(case.check, case.case)))
                ),
                case.environment,
                case.result,
                case.job_id or "",
                ", ".join(few(case.nodes, 4)),
                text.duration(case.elapsed_s),
                text.duration(case.payload_s),
            )
            for case in run.cases[:MAX_CASES]
        ),
    )
