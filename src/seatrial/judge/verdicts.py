"""Rulings on the places of a group: verdict, level, bounds and reason."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criterion import LEAST_COUNTED, Criterion
from seatrial.criteria.methods import smallest_n
from seatrial.judge import bounds
from seatrial.judge.findings import Finding, Subject, Verdict
from seatrial.judge.sampling import Marks, Sampled, Values
from seatrial.judge.screening import Tried, total_for, touching
from seatrial.judge.variance_components import components
from seatrial.model.units import rounded

FAIL, UNDECIDED, PASS = 0, 1, 2
VERDICTS: tuple[Verdict, ...] = ("fail", "undecided", "pass")
"""A verdict by its code."""

_MOST_FOR_SPREAD = 20_000
_EVEN = 0.5
"""A suspect with a larger p looks well, now that more is known."""


@dataclass(frozen=True)
class Ruling:
    """A criterion and what became of it at each place; all arrays are (places,).

    `names` has the columns of PLACE, and WAY if the places are nodes of pairs
    (`of_nodes`). Values, bounds and limit are in the unit of `subject`. `more` is -1 if
    unknown. `reason` returns the reason for one place. `hidden` marks pairs without a
    finding of their own: they do not pass, and one of their nodes does not either.
    """

    subject: Subject
    names: pl.DataFrame
    of_nodes: bool
    verdict: npt.NDArray[np.int8]
    n: npt.NDArray[np.int64]
    value: Values
    lower: Values
    upper: Values
    more: npt.NDArray[np.int64]
    hidden: Marks
    discovered: Marks
    reason: Callable[[int], str]
    spread: str = ""

    def finding(self, place: int, name: str, more_words: str = "") -> Finding:
        """Return the finding on one place, with `more_words` after its reason."""
        return self.subject.finding(
            VERDICTS[self.verdict[place]],
            self.reason(place) + more_words,
            place=name,
            n=int(self.n[place]),
            value=_finite(self.value[place]),
            lower=_finite(self.lower[place]),
            upper=_finite(self.upper[place]),
            more=int(self.more[place]) if self.more[place] >= 0 else None,
            spread=self.spread,
        )


def counted(subject: Subject, criterion: Criterion, found: Sampled) -> Ruling:
    """Judge every single value: one that misses the limit is a fail."""
    sign = 1 if criterion.direction == "higher" else -1
    assert criterion.limit is not None, "it has no other kind of limit"
    measured = np.isfinite(found.values)
    missed = (measured & (sign * found.values < sign * criterion.limit)).sum(axis=1)
    n = measured.sum(axis=1)
    unknown = found.spoilt | (n < LEAST_COUNTED)
    verdict = np.where(missed > 0, FAIL, np.where(unknown, UNDECIDED, PASS))
    worst = np.where(measured, sign * found.values, np.inf).min(axis=1)
    nothing = np.full(n.size, np.nan)

    def reason(place: int) -> str:
        if missed[place]:
            return f"{missed[place]} of {n[place]} values miss the limit"
        if found.spoilt[place]:
            return "a value is no number"
        if n[place] < LEAST_COUNTED:
            return f"{_allocations(n[place])}; it takes at least {LEAST_COUNTED}"
        return f"all {n[place]} values meet the limit"

    return Ruling(
        subject=subject,
        names=found.places,
        of_nodes=False,
        verdict=verdict.astype(np.int8),
        n=n,
        value=sign * worst,
        lower=nothing,
        upper=nothing,
        more=np.maximum(LEAST_COUNTED - n, 0),
        hidden=np.zeros(n.size, dtype=bool),
        discovered=np.zeros(n.size, dtype=bool),
        reason=reason,
    )


def rulings(tried: list[Tried]) -> Iterator[Ruling]:
    """Yield the ruling on every group after the trial."""
    suspects = sum(int(each.suspected.sum()) for each in tried)
    found = [_Ruler(each, suspects).ruling() for each in tried]
    bad: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for each, ruling in zip(tried, found, strict=True):
        if ruling.of_nodes:
            marks = pl.Series(ruling.verdict != PASS)
            bad[each.group.case].update(ruling.names["node"].filter(marks))
    for each, ruling in zip(tried, found, strict=True):
        named = touching(ruling.names, bad[each.group.case])
        hidden = each.covered & named & (ruling.verdict != PASS)
        yield replace(ruling, hidden=hidden)


class _Ruler:
    """One group on its way to a ruling."""

    def __init__(self, tried: Tried, suspects: int) -> None:
        self.tried = tried
        self.group, self.criterion = tried.group, tried.group.criterion
        self.suspects = suspects
        scale = self.group.scale
        self.smallest = smallest_n(scale.method, self.group.buyer)
        upper = bounds.upper_bound(
            self.group.levels,
            scale.method,
            self.criterion.risks.seller * self.group.share,
        )
        ends = (scale.values(self.group.lower), scale.values(upper))
        self.lower, self.upper = ends if scale.sign > 0 else ends[::-1]
        self.more = self._more()
        # The cap ends the allocations, even without a decision.
        self.capped = self.group.sound & (self.group.n >= self.criterion.cap)

    def ruling(self) -> Ruling:
        group = self.group
        verdict = np.full(len(group.levels), UNDECIDED, dtype=np.int8)
        verdict[group.passes] = PASS
        if self.criterion.bears == "seller":
            verdict[self.capped & (verdict == UNDECIDED)] = FAIL
        verdict[self.tried.convicted] = FAIL
        self.verdict = verdict
        return Ruling(
            subject=group.subject,
            names=group.names,
            of_nodes=group.of_nodes,
            verdict=verdict,
            n=group.n,
            value=group.scale.values(group.centre),
            lower=self.lower,
            upper=self.upper,
            more=np.where(verdict == UNDECIDED, self.more, 0),
            hidden=np.zeros(len(verdict), dtype=bool),
            discovered=self.tried.discovered,
            reason=self.reason,
            spread=self._spread(),
        )

    def reason(self, place: int) -> str:
        group, verdict = self.group, self.verdict[place]
        if group.trouble[place]:
            return str(group.trouble[place])
        if verdict == PASS:
            return f"{self._reaches(place)}, by {_allocations(group.n[place])}"
        if self.tried.convicted[place]:
            return self._conviction(place)
        if verdict == FAIL:
            return (
                f"{self._between(place)}: not decided by the most allocations that "
                f"were agreed on ({self.criterion.cap}); the seller bears that"
            )
        return self._undecided(place)

    def _reaches(self, place: int) -> str:
        better = self.lower if self.group.scale.sign > 0 else self.upper
        words = "at least" if self.group.scale.sign > 0 else "at most"
        value, confidence = self._value(better[place]), _percent(1 - self.group.buyer)
        return f"{words} {value} with {confidence} confidence"

    def _between(self, place: int) -> str:
        low, high = self.lower[place], self.upper[place]
        if not isfinite(low) or not isfinite(high) or (low <= 0 < high == np.inf):
            return self._value(self.group.scale.values(self.group.centre)[place])
        return f"between {rounded(low)} and {self._value(high)}"

    def _conviction(self, place: int) -> str:
        group, first = self.group, self.tried.screened
        miss = int((group.levels[place] < group.scale.limit).sum())
        text = f"{miss} of {group.n[place]} values miss the limit"
        if not first:
            return text
        family = f" (Holm over {self.suspects} suspects)" if self.suspects > 1 else ""
        return (
            f"{text}; suspected by the first {first} of {group.units} allocations, "
            f"convicted by the others, p = {self.tried.p[place]:.1g}{family}"
        )

    def _undecided(self, place: int) -> str:
        group, n = self.group, int(self.group.n[place])
        if n < self.smallest:
            return (
                f"{_allocations(n)}; {group.subject.method} takes at least "
                f"{self.smallest} at a risk of {_percent(group.buyer)}"
            )
        words = [self._between(place)]
        if group.drifts:
            words.append("the values drift, so that all would have to agree")
        if self.tried.p[place] <= _EVEN:
            suspects = f"{self.suspects} suspect{'s' * (self.suspects > 1)}"
            p = f"p = {self.tried.p[place]:.2g} for {suspects}"
            words.append(f"suspected and not convicted: {p}")
        if self.tried.covered[place]:
            words.append("one of its nodes is a suspect")
        return "; ".join([*words, self._what_next(place)])

    def _what_next(self, place: int) -> str:
        further = self.more[place]
        if self.capped[place]:
            return f"only {self.criterion.cap} are agreed on; the buyer bears that"
        if further < 0:
            return f"more than {bounds.MOST_FURTHER_UNITS} more would be needed"
        off = abs(self.group.centre[place] - self.group.scale.limit)
        if further == 0 and off > self.group.scale.width:
            return "the first allocations raised no suspicion; a new run would decide"
        if further == 0:
            zone = _percent(self.criterion.zone)
            return f"it is within the indifference zone around the limit ({zone})"
        return f"about {further} more would decide"

    def _more(self) -> npt.NDArray[np.int64]:
        """Project how many further allocations would decide at each undecided place.

        What heads for a fail needs them beside those that pick the suspects.
        """
        group, first = self.group, self.tried.screened
        result = np.zeros(len(group.levels), dtype=np.int64)
        undecided = group.sound & ~group.passes & ~self.tried.convicted
        bad = group.centre < group.scale.limit
        good = undecided & ~bad
        result[good] = self._further(group.levels[good])
        heading = np.flatnonzero(undecided & bad)
        fresh = group.levels[heading, first:]
        further = self._further(fresh)
        needed = further + np.isfinite(fresh).sum(axis=1)
        total = [total_for(int(each)) if first else int(each) for each in needed]
        more = np.maximum(np.array(total, dtype=np.int64) - group.n[heading], further)
        result[heading] = np.where(further > 0, more, further)
        return result

    def _further(self, levels: Values) -> npt.NDArray[np.int64]:
        scale, seller = self.group.scale, self.criterion.risks.seller
        return bounds.more_units(
            levels,
            scale.limit,
            scale.method,
            self.group.buyer,
            seller * self.group.share / max(self.suspects, 1),
            scale.width,
        )

    def _spread(self) -> str:
        """Describe the scatter of the numbers by its components."""
        group = self.group
        usable = group.levels[group.sound]
        if not usable.size or len(usable) > _MOST_FOR_SPREAD or usable.shape[1] < 2:
            return ""
        spread = components(usable)
        words = ("between places", "between allocations", "else")
        parts = (spread.place, spread.unit, spread.rest)
        return ", ".join(
            f"{self._scatter(sd)} {word}"
            for sd, word in zip(parts, words, strict=True)
            if isfinite(sd) and sd > 0
        )

    def _scatter(self, sd: float) -> str:
        unit = self.group.subject.unit
        return _percent(sd) if self.group.scale.logs else f"{rounded(sd)} {unit}"

    def _value(self, value: float) -> str:
        return f"{rounded(value)} {self.group.subject.unit}".removesuffix(" 1")


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _percent(share: float) -> str:
    return f"{rounded(float(f'{100 * share:.3g}'))} %"


def _allocations(n: int) -> str:
    return f"{n} allocation{'' if n == 1 else 's'}"
