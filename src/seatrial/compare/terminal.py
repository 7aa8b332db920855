"""A comparison on a terminal."""

from collections.abc import Iterator

from rich.table import Table

from seatrial.compare.formats import most_telling
from seatrial.compare.records import Comparison, Ratio
from seatrial.compare.wording import correlation_words, sentence
from seatrial.console import Terminal, folding_table
from seatrial.model.units import counted, rounded

MOST_NUMBERS, _MOST_REASONS = 40, 8


def print_comparison(comparison: Comparison, console: Terminal) -> None:
    """Print the sentence first, then ranking, groups, numbers, and what is missing."""
    console.print_line(sentence(comparison))
    if comparison.more_repeats is not None:
        console.print_line(
            f"About {comparison.more_repeats} more repeats of each would probably "
            "separate the first two."
        )
    tables = [_ranking(comparison)]
    tables += [_groups(comparison)] if comparison.groups else []
    for table in (*tables, _numbers(comparison)):
        console.print_line("")
        console.print(table)
    left = len(comparison.numbers) - MOST_NUMBERS
    if left > 0:
        console.print_line(f"and {left} more: --format csv has all")
    if comparison.claims:
        console.print_line("")
        console.print(_claims(comparison))
    for line in _unpaired(comparison):
        console.print_line(line)
    for note in comparison.notes:
        console.print_line(f"note: {note}")
    if comparison.ranking[0].selected is not None:
        words = correlation_words(comparison.correlation)
        console.print_line(f"correlation of successive repeats: {words}")
    console.print_line(
        f"ratios: how many times better than {comparison.sides[0].name}, with "
        f"intervals of {100 * comparison.confidence:g} %, each by itself; + better, "
        "- worse by more than chance over all numbers"
    )


def _ranking(comparison: Comparison) -> Table:
    table = folding_table("", "side", "score", "first in", "what", "")
    by_name = {side.name: side for side in comparison.sides}
    for standing in comparison.ranking:
        side = by_name[standing.side]
        source = (
            f"published, {side.started}"
            if side.published
            else f"{side.source} of {side.system}, {counted(side.nodes, 'node')}, "
            f"{counted(side.repeats, 'repeat')}"
        )
        replay = "replay" if side.replay else ""
        cells = [source, side.environment, replay, side.verdict]
        selected = standing.selected
        table.add_row(
            *(str(standing.rank), side.name, ratio_text(standing.score)),
            "" if selected is None else f"{100 * selected:.1f} %",
            ", ".join(filter(None, cells)),
            standing.excluded,
        )
    return table


def _groups(comparison: Comparison) -> Table:
    others = [side.name for side in comparison.sides[1:]]
    table = folding_table("group", "share", "numbers", *others)
    for group in comparison.groups:
        table.add_row(
            *(group.name, f"{100 * group.weight:.0f} %", str(group.numbers)),
            *(ratio_text(ratio) for ratio in group.ratios[1:]),
        )
    return table


def _numbers(comparison: Comparison) -> Table:
    names = [side.name for side in comparison.sides]
    table = folding_table(
        "number", *names, "unit", *(f"{name} /" for name in names[1:])
    )
    for number in most_telling(comparison, MOST_NUMBERS):
        values = ("" if v is None else rounded(v) for v in number.values)
        marks = {"better": " +", "worse": " -", "": ""}
        ratios = (
            ratio_text(ratio) + marks[mark]
            for ratio, mark in zip(number.ratios[1:], number.marks[1:], strict=True)
        )
        table.add_row(str(number), *values, number.unit, *ratios)
    return table


def _claims(comparison: Comparison) -> Table:
    table = folding_table("the paper says", "stated", "computed", "agree")
    agrees = {True: "yes", False: "no", None: ""}
    for claim in comparison.claims:
        place = f"{claim.paper}, {claim.place}: {claim.side} over {claim.baseline}"
        table.add_row(
            f"{place}, {claim.what}, {claim.metric} {claim.size}".rstrip(),
            claim.words
            if claim.stated is None
            else f"{claim.qualifier} {rounded(claim.stated, 3)}",
            "" if claim.computed is None else rounded(claim.computed, 3),
            "contradicted" if claim.conflict else agrees[claim.agrees],
        )
    return table


def _unpaired(comparison: Comparison) -> Iterator[str]:
    total = len(comparison.unpaired)
    if not total:
        return
    yield ""
    yield f"not on all sides: {total} case{'s' * (total > 1)} or metrics"
    first = sorted(comparison.unpaired, key=lambda entry: not entry.group)
    for entry in first[:_MOST_REASONS]:
        counts = " (counts)" if entry.group else ""
        reasons = "; ".join(
            f"{side.name}: {reason}"
            for side, reason in zip(comparison.sides, entry.reasons, strict=True)
            if reason
        )
        yield f"  {entry.name}{counts}: {reasons}"
    if total > _MOST_REASONS:
        yield f"  and {total - _MOST_REASONS} more: --format json has all"


def ratio_text(ratio: Ratio | None) -> str:
    """Write a ratio with its interval: `1.12 (1.09 to 1.15)`."""
    if ratio is None:
        return ""
    bounds = " to ".join(f"{bound:.3f}" for bound in ratio.bounds)
    return f"{ratio.value:.3f}" + (f" ({bounds})" if bounds else "")
