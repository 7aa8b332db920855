"""The chapters of the report that have charts, in their order."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seatrial.judge.judge import Judgement
from seatrial.report.below_mpi import below_mpi_chapter
from seatrial.report.common_facts import RISK, common_facts
from seatrial.report.content import Chapter, Content
from seatrial.report.criteria_rows import criterion_rows
from seatrial.report.curve_chart import curve_figure
from seatrial.report.drift_chapter import drift_chapter
from seatrial.report.exclusions import exclusions
from seatrial.report.fabric_chapter import fabric_chapter
from seatrial.report.folding import fold_criteria, skip_reasons
from seatrial.report.front_page import front
from seatrial.report.load_chapter import load_chapter
from seatrial.report.measured_curves import curves
from seatrial.report.methods_chapter import configuration, methods
from seatrial.report.node_heatmap import node_heat
from seatrial.report.node_map import node_map
from seatrial.report.node_table import MAX_NODES, node_tables
from seatrial.report.pair_heatmap import matrix_figure, retested_table, title_of
from seatrial.report.pair_matrix import MAX_RETESTED, matrices
from seatrial.report.published_overlay import overlay
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import short
from seatrial.report.scaling import growth_figure, growths
from seatrial.report.settings_chapter import settings_chapter
from seatrial.report.stability_chapter import stability_chapter
from seatrial.runs.closed_run import Run
from seatrial.runs.stated import stated


def contents(
    run: Run, judgement: Judgement, home: Path, notes: Sequence[str] = ()
) -> Content:
    """Build the content of a report, notes first.

    `home` has known signers and published numbers.
    """
    rows = criterion_rows(run, judgement)
    page = front(run, judgement, home, rows)
    return Content(
        front=replace(page, notices=(*notes, *page.notices)),
        criteria=rows,
        folded=fold_criteria(rows, skip_reasons(run)),
        chapters=(
            exclusions(run, judgement),
            *chapters(run, judgement, home),
            methods(run, judgement),
            configuration(run),
        ),
    )


def chapters(run: Run, judgement: Judgement, home: Path) -> tuple[Chapter, ...]:
    """Build the chapters: nodes, pairs, curves, scaling, drift, settings, common facts.

    What lies below MPI has one if the run measured it, so have the sensors beside the
    loads and the fabric, and a stability phase is the first. `home` may have published
    numbers.
    Raises SeatrialError if one of their files is damaged.
    """
    return (
        *stability_chapter(run, judgement),
        _nodes(run, judgement),
        _pairs(run, judgement),
        _curves(run, judgement, home),
        _scaling(run, judgement),
        *below_mpi_chapter(run),
        *load_chapter(run),
        drift_chapter(run, judgement),
        settings_chapter(run, judgement),
        *fabric_chapter(run, judgement),
        _common(run, judgement),
    )


def _nodes(run: Run, judgement: Judgement) -> Chapter:
    if not judgement.nodes:
        return Chapter("nodes", "Nodes", "", empty="No node was delivered.")
    heat = node_heat(run, judgement)
    left_out = (
        f"The tables have {MAX_NODES} of {text.exact(len(judgement.nodes))} nodes, "
        "failing ones first; all are in manifest.json."
    )
    return Chapter(
        "nodes",
        "Nodes",
        "All delivered nodes. Numbers measured between pairs: the value of a node is "
        "the better quartile of its pairs, and the worst of these over environments, "
        "rails and directions. A bad node spoils all its pairs; a sound node has "
        "mostly sound pairs.",
        figures=(node_map(judgement), *([heat] if heat else [])),
        tables=tuple(node_tables(run, judgement)),
        notes=(left_out,) if len(judgement.nodes) > MAX_NODES else (),
    )


def _pairs(run: Run, judgement: Judgement) -> Chapter:
    all_pairs = matrices(run, judgement)
    tables, notes = [], []
    for matrix in all_pairs:
        if matrix.retested:
            tables.append(
                (f"Tested again alone: {title_of(matrix)}", retested_table(matrix))
            )
        if len(matrix.retested) > MAX_RETESTED:
            notes.append(
                f"{title_of(matrix)}: the table has the worst {MAX_RETESTED} of "
                f"{text.exact(len(matrix.retested))} retested pairs; "
                "measurements.parquet has all of them."
            )
    return Chapter(
        "pairs",
        "Pairs of nodes",
        "One square per pair of nodes. A stronger colour is a worse value, compared "
        "with the median of all pairs. \N{MULTIPLICATION X} before a name: this node "
        "is a cause. Point at a square for its value, walk over the squares with the "
        "arrow keys, or open the table below a chart: \N{BLACK DOWN-POINTING TRIANGLE}"
        " marks values more than 20 % worse than the median."
        if all_pairs
        else "",
        figures=tuple(
            matrix_figure(matrix, f"matrix-{number}")
            for number, matrix in enumerate(all_pairs, 1)
        ),
        tables=tuple(tables),
        notes=tuple(notes),
        empty="No check of this run measured every pair of nodes.",
    )


def _curves(run: Run, judgement: Judgement, home: Path) -> Chapter:
    shown = curves(run, judgement)
    checks = {curve.check for curve in shown}
    stated_numbers = stated(run, checks) if shown else {}
    experiments = {name: own.experiments for name, own in stated_numbers.items()}
    published = overlay(home, experiments) if shown else None
    figures = []
    for number, curve in enumerate(shown, 1):
        sizes = {point.x for line in curve.lines for point in line.points}
        if published is not None and not curve.over:
            points = published.points(curve.check, curve.metric, curve.unit, sizes)
            curve = replace(curve, published=points)
        figures.append(curve_figure(curve, f"curve-{number}"))
    return Chapter(
        "curves",
        "Curves over message size",
        "Axes of wide ranges are logarithmic. A short bar with words is the limit at "
        "that size; values in the shade fail. Point at a mark for its value, or open "
        "the table below a chart."
        if figures
        else "",
        figures=tuple(figures),
        empty="This run has no number over message size or another parameter.",
    )


def _scaling(run: Run, judgement: Judgement) -> Chapter:
    shown = growths(run, judgement)
    return Chapter(
        "scaling",
        "Scaling",
        "Numbers over the number of nodes. The tables have the efficiency relative to "
        "the fewest nodes of the same line; 100 % is ideal. Of many message sizes, the "
        "charts have the smallest and the largest."
        if shown
        else "",
        figures=tuple(
            growth_figure(growth, f"scaling-{number}")
            for number, growth in enumerate(shown, 1)
        ),
        empty="No check of this run measured several numbers of nodes; campaign "
        "scaling does.",
    )


def _common(run: Run, judgement: Judgement) -> Chapter:
    facts = common_facts(run, judgement)
    rows = tuple(
        (
            short(fact.fact),
            short(fact.value),
            f"{fact.failing} of {fact.of_failing}",
            f"{fact.others} of {fact.of_others}",
            f"{fact.p:.2g}",
            fact.words,
        )
        for fact in facts
    )
    heads = ("fact", "value", "of the failing", "of the others", "p", "in words")
    method = (
        "p: Fisher's exact test, one-sided. Rows with 'too few to tell' claim nothing; "
        f"at most {100 * RISK:g} % of the others are expected to be wrong (Benjamini "
        "and Hochberg, over all values of all tested facts)."
    )
    return Chapter(
        "common",
        "Facts that outliers share",
        "Facts that failing nodes share and most other nodes lack; then the same for "
        "nodes worth a look. A shared fact may be the cause or only come with it; it "
        "has no influence on the verdict.",
        tables=(("Shared facts", Table(heads, rows)),) if facts else (),
        notes=(method,) if facts else (),
        empty="No node fails, and none is worth a look."
        if not judgement.convicted and not judgement.worth_a_look
        else "The nodes that fail, or are worth a look, share no known fact that most "
        "other nodes lack.",
    )
