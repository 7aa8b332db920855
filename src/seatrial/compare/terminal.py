"""A comparison on a terminal."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from seatrial.compare.formats import most_telling
from seatrial.compare.records import Comparison, Ratio
from seatrial.compare.wording import sentence
from seatrial.console import Terminal, folding_table
from seatrial.model.units import rounded

MOST_NUMBERS, _MOST_REASONS = 40, 8


def print_comparison(comparison: Comparison, console: Terminal) -> None:
    """Print the sentence first, then ranking, groups, numbers, and what is missing."""
    console.print_line(sentence(comparison))
    if comparison.more_repeats is not None:
        console.print_line(
            f"About {comparison.more_repeats} more repeats of each would probably "
            "separate the first two."
        )
    for part in _parts(comparison):
        if isinstance(part, str):
            console.print_line(part)
        else:
            console.print(part)


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield ""
    yield _ranking(comparison)
    if comparison.groups:
        yield ""
        yield _groups(comparison)
    yield ""
    yield _numbers(comparison)
    left = len(comparison.numbers) - MOST_NUMBERS
    if left > 0:
        yield f"and {left} more: --format csv has all"
    if comparison.claims:
        yield ""
        yield _claims(comparison)
    if comparison.unpaired:
        yield ""
        yield from _unpaired(comparison)
    for note in comparison.notes:
        yield f"note: {note}"
    confidence = f"{100 * comparison.confidence:g} %"
    baseline = comparison.sides[0].name
    yield (
        f"ratios: how many times better than {baseline}, with intervals of {confidence}"
        ", each by itself; + better, - worse by more than chance over all numbers"
    )


def _ranking(comparison: Comparison) -> Table:
    table = folding_table("", "side", "score", "first in", "what", "")
    by_name = {side.name: side for side in comparison.sides}
    for each in comparison.ranking:
        side = by_name[each.side]
        what = (
            f"published, {side.started}"
            if side.published
            else f"{side.source} of {side.system}, {side.nodes} nodes, "
            f"{side.repeats} repeats"
        )
        cells = [what, side.environment, "replay" if side.replay else "", side.verdict]
        share = "" if each.selected is None else f"{100 * each.selected:.1f} %"
        table.add_row(
            *(str(each.rank), each.side, ratio_text(each.score), share),
            ", ".join(filter(None, cells)),
            each.excluded,
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
    names = [side.name for side in comparison.sides]
    total = len(comparison.unpaired)
    yield f"not on all sides: {total} case{'s' * (total > 1)} or metrics"
    first = sorted(comparison.unpaired, key=lambda each: not each.group)
    for each in first[:_MOST_REASONS]:
        case = each.case and f"({each.case})"
        what = " ".join(filter(None, [each.check, each.metric, case]))
        counts = " (counts)" if each.group else ""
        reasons = "; ".join(
            f"{name}: {reason}"
            for name, reason in zip(names, each.reasons, strict=True)
            if reason
        )
        yield f"  {what}{counts}: {reasons}"
    if total > _MOST_REASONS:
        yield f"  and {total - _MOST_REASONS} more: --format json has all"


def ratio_text(ratio: Ratio | None) -> str:
    """Write a ratio with its interval: `1.12 (1.09 to 1.15)`."""
    if ratio is None:
        return ""
    if ratio.lower is None or ratio.upper is None:
        return f"{ratio.value:.3f}"
    return f"{ratio.value:.3f} ({ratio.lower:.3f} to {ratio.upper:.3f})"
