"""Ratios and who is ahead in words, for page and terminal."""

from seatrial.compare.records import Comparison, Ratio, Side
from seatrial.compare.serial import LEAST_REPEATS, Correlation
from seatrial.judge.serial import ASSUMED
from seatrial.model.units import rounded
from seatrial.report.render.text import short

_TWICE = 2.0
_PER = {"performance": "", "price": " per price", "power": " per power"}


def lead(comparison: Comparison) -> str:
    """Describe the lead of the first over the baseline and the next side.

    If the baseline is first, only over the next.
    """
    first, second = comparison.ranking[:2]
    baseline = comparison.sides[0].name
    per = _PER[comparison.rank_by]
    if first.side == baseline:
        bounds = (1 / bound for bound in reversed(second.score.bounds))
        inverse = Ratio(1 / second.score.value, *bounds)
        parts = [compared(inverse, f"{per} than {short(second.side)}")]
    else:
        parts = [compared(first.score, f"{per} than {short(baseline)}")]
        if second.side != baseline:
            ahead = comparison.lead or Ratio(first.score.value / second.score.value)
            parts.append(compared(ahead, f" than {short(second.side)}, the next"))
    words = f"{short(first.side)} is {', and '.join(parts)}"
    if first.selected is None:
        return f"{words}."
    share = percent(first.selected)
    return f"{words}; first in {share} of {comparison.resamples:,} resamples."


def sentence(comparison: Comparison) -> str:
    """Describe the winner or leader, the lead, and the reasons against a win."""
    words = f"{headline(comparison)}: {lead(comparison)}"
    return words if comparison.winner else f"{words} Why: {'; '.join(comparison.why)}."


def headline(comparison: Comparison) -> str:
    """Return the winner, or that there is none."""
    if comparison.winner is None:
        return "No winner"
    return f"{short(comparison.winner)} wins"


def correlation_words(correlation: Correlation) -> str:
    """Return the correlation of successive repeats, and its source."""
    used = f"{correlation.used:.2f}"
    if correlation.estimate is None or correlation.error is None:
        return f"{used}, assumed: fewer than {LEAST_REPEATS} repeats cannot show it"
    measured = f"{correlation.estimate:.2f} ± {correlation.error:.2f}"
    if correlation.used > ASSUMED:
        return f"{used}, the estimate of the repeats ({measured})"
    if correlation.used == ASSUMED:
        return f"{used}, assumed: the repeats ({measured}) do not exclude it"
    return f"{used}, the upper 95 % bound of the repeats ({measured})"


def compared(ratio: Ratio, than: str) -> str:
    """Format a ratio with its interval: `12.0 % better than A (9.0 to 15.0 %)`."""
    if ratio.value >= _TWICE:
        words = f"better{than} by a factor of {_digits(ratio.value)}"
        return f"{words} ({interval(ratio)})" if ratio.bounds else words
    share = 100 * (ratio.value - 1)
    words = f"{abs(share):.1f} % {'better' if share >= 0 else 'worse'}{than}"
    if not ratio.bounds:
        return words
    lower, upper = ratio.bounds
    if lower < 1 < upper:
        worse, better = 100 * (1 - lower), 100 * (upper - 1)
        return f"{words} (from {worse:.1f} % worse to {better:.1f} % better)"
    ends = sorted(100 * abs(end - 1) for end in (lower, upper))
    return f"{words} ({ends[0]:.1f} to {ends[1]:.1f} %)"


def times(ratio: Ratio | None) -> str:
    """Write a ratio; '' for none."""
    return "" if ratio is None else _digits(ratio.value)


def interval(ratio: Ratio | None) -> str:
    """Write its interval: `1.090 to 1.150`; '' where that is unknown."""
    return " to ".join(map(_digits, ratio.bounds)) if ratio else ""


def _digits(value: float) -> str:
    return f"{value:.3f}" if 0.01 <= value < 10 else rounded(value, 3)


def percent(share: float) -> str:
    """Format a share of 1; one below 1 is at most "over 99.9 %"."""
    text = f"{100 * share:.1f}".removesuffix(".0")
    if text == "100" and share < 1:
        return "over 99.9 %"
    if text == "0" and share > 0:
        return "under 0.1 %"
    return f"{text} %"


def labels(side: Side) -> list[str]:
    """Label published, replayed and demo sides."""
    words = ("published", "replay", "demonstration", "model")
    return [word for word in words if getattr(side, word)]
