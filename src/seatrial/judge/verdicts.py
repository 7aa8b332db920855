"""Rulings on the places of a group: verdict, level, bounds and reason."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criterion import LEAST_COUNTED, Criterion
from seatrial.criteria.methods import smallest_n
from seatrial.judge import bounds
from seatrial.judge.attribution import attributed, bad_parts
from seatrial.judge.findings import METHODS, Finding, Verdict
from seatrial.judge.sampling import Marks, Sampled, Values
from seatrial.judge.screening import Tried, total_for
from seatrial.judge.variance_components import components
from seatrial.model.units import rounded

FAIL, UNDECIDED, PASS = 0, 1, 2
VERDICTS: tuple[Verdict, ...] = ("fail", "undecided", "pass")
"""A verdict by its code."""

_MOST_FOR_SPREAD = 20_000
_EVEN = 0.5
"""A suspect with a larger p looks compliant in the further allocations."""


@dataclass(frozen=True)
class Ruling:
    """A criterion with its verdict at each place; all arrays are (places,).

    `names` has the columns of PLACE, and WAY if the places are nodes or leafs of pairs
    (`of_nodes`); `part` is their kind. Values, bounds and limit are in the unit of
    `subject`. `more` is -1 if unknown. `reason` returns the reason for one place.
    `hidden` marks places without a finding of their own: they do not pass, nor does the
    part that they are attributed to.
    """

    subject: Finding
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
    part: str = ""

    def finding(self, place: int, name: str, more_words: str = "") -> Finding:
        """Return the finding on one place, with `more_words` after its reason."""
        return self.subject.judged(
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


def counted(subject: Finding, criterion: Criterion, data: Sampled) -> Ruling:
    """Judge every single value: one that misses the limit is a fail."""
    sign = 1 if criterion.direction == "higher" else -1
    assert criterion.limit is not None, "a criterion of model every has a limit"
    measured = np.isfinite(data.values)
    missed = (measured & (sign * data.values < sign * criterion.limit)).sum(axis=1)
    n = measured.sum(axis=1)
    unknown = data.spoilt | (n < LEAST_COUNTED)
    verdict = np.where(missed > 0, FAIL, np.where(unknown, UNDECIDED, PASS))
    worst = np.where(measured, sign * data.values, np.inf).min(axis=1)

    def reason(place: int) -> str:
        if missed[place]:
            return (
                f"a value misses the limit in {missed[place]} of {n[place]} allocations"
            )
        if data.spoilt[place]:
            return "a value is no number"
        if n[place] < LEAST_COUNTED:
            return f"{_allocations(n[place])}; it takes at least {LEAST_COUNTED}"
        return f"all values of {n[place]} allocations meet the limit"

    return Ruling(
        subject=subject,
        names=data.places,
        of_nodes=False,
        verdict=verdict.astype(np.int8),
        n=n,
        value=sign * worst,
        lower=np.full(n.size, np.nan),
        upper=np.full(n.size, np.nan),
        more=np.maximum(LEAST_COUNTED - n, 0),
        hidden=np.zeros(n.size, dtype=bool),
        discovered=np.zeros(n.size, dtype=bool),
        reason=reason,
    )


def rulings(trials: Sequence[Tried]) -> Iterator[Ruling]:
    """Yield the ruling on every group after the trial."""
    suspects = sum(int(trial.suspected.sum()) for trial in trials)
    ruled = [(trial, _Ruler(trial, suspects).ruling()) for trial in trials]
    bad = bad_parts((trial.group, ruling.verdict != PASS) for trial, ruling in ruled)
    for trial, ruling in ruled:
        of_bad = attributed(trial.group, bad[trial.group.case])
        hidden = trial.covered & of_bad & (ruling.verdict != PASS)
        yield replace(ruling, hidden=hidden)


class _Ruler:
    """The computation of the ruling on one group."""

    def __init__(self, tried: Tried, suspects: int) -> None:
        self.tried = tried
        self.group, self.criterion = tried.group, tried.group.criterion
        self.scale = self.group.scale
        self.suspects = suspects
        group, scale = self.group, self.scale
        upper = bounds.upper_bound(group.levels, scale.method, group.seller)
        ends = (scale.values(group.lower), scale.values(upper))
        self.lower, self.upper = ends if scale.sign > 0 else ends[::-1]
        self.more = self._more()
        # The cap ends the allocations, even without a decision.
        self.capped = group.sound & (group.n >= self.criterion.cap)
        may_fail = self.capped & (group.doubt == "")
        self.verdict = np.where(group.passes, PASS, UNDECIDED).astype(np.int8)
        if self.criterion.bears == "seller":
            self.verdict[may_fail & (self.verdict == UNDECIDED)] = FAIL
        self.verdict[tried.convicted] = FAIL

    def ruling(self) -> Ruling:
        group = self.group
        return Ruling(
            subject=group.subject,
            names=group.names,
            of_nodes=group.of_nodes,
            verdict=self.verdict,
            n=group.n,
            value=self.scale.values(group.centre),
            lower=self.lower,
            upper=self.upper,
            more=np.where(self.verdict == UNDECIDED, self.more, 0),
            hidden=np.zeros(len(self.verdict), dtype=bool),
            discovered=self.tried.discovered,
            reason=self.reason,
            spread=self._spread(),
            part=group.part,
        )

    def reason(self, place: int) -> str:
        group, verdict = self.group, self.verdict[place]
        if group.trouble[place]:
            return str(group.trouble[place])
        if verdict == PASS:
            higher = self.scale.sign > 0
            bound = (self.lower if higher else self.upper)[place]
            return (
                f"at {'least' if higher else 'most'} {self._value(bound)} with "
                f"{_percent(1 - group.buyer)} confidence, "
                f"by {_allocations(group.n[place])}"
            )
        if self.tried.convicted[place]:
            return self._conviction(place)
        if verdict == FAIL:
            return (
                f"{self._between(place)}: not decided by the most allocations that "
                f"were agreed on ({self.criterion.cap}); the seller bears that"
            )
        return self._undecided(place)

    def _between(self, place: int) -> str:
        low, high = self.lower[place], self.upper[place]
        if not isfinite(low) or not isfinite(high):
            return self._value(self.scale.values(self.group.centre)[place])
        return f"between {rounded(low)} and {self._value(high)}"

    def _conviction(self, place: int) -> str:
        group, first = self.group, self.tried.screened
        miss = int((group.levels[place] < self.scale.limit).sum())
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
        method, said = self.scale.method, group.subject.method
        if method == "t" and bounds.all_equal(group.levels[[place]])[0]:
            method, said = "order", f"{METHODS['any']}, as all values are equal,"
        smallest = smallest_n(method, group.buyer)
        if n < smallest:
            return (
                f"{_allocations(n)}; {said} takes at least "
                f"{smallest} at a risk of {_percent(group.buyer)}"
            )
        words = [self._between(place)]
        if group.doubt[place] and group.centre[place] < self.scale.limit:
            return f"{words[0]}; {group.doubt[place]}"
        if group.drifts:
            words.append("the values drift, so that all would have to agree")
        if self.tried.p[place] <= _EVEN:
            suspects = f"{self.suspects} suspect{'s' * (self.suspects > 1)}"
            p = f"p = {self.tried.p[place]:.2g} for {suspects}"
            words.append(f"suspected and not convicted: {p}")
        if self.tried.covered[place]:
            words.append("a part of its path is a suspect")
        return "; ".join([*words, self._remedy(place)])

    def _remedy(self, place: int) -> str:
        """Describe how an undecided place would be decided."""
        further = self.more[place]
        if self.capped[place]:
            return f"only {self.criterion.cap} are agreed on; the buyer bears that"
        if further < 0:
            return f"more than {bounds.MOST_FURTHER_UNITS} more would be needed"
        if further > 0:
            return f"about {further} more would decide"
        if abs(self.group.centre[place] - self.scale.limit) > self.scale.width:
            return "the first allocations raised no suspicion; a new run would decide"
        zone = _percent(self.criterion.zone)
        return f"it is within the indifference zone around the limit ({zone})"

    def _more(self) -> npt.NDArray[np.int64]:
        """Project how many further allocations would decide at each undecided place.

        For a fail they are added to those that pick the suspects.
        """
        group, first = self.group, self.tried.screened
        result = np.zeros(len(group.levels), dtype=np.int64)
        undecided = group.sound & ~group.passes & ~self.tried.convicted
        bad = group.centre < self.scale.limit
        good = undecided & ~bad
        result[good] = self._further(group.levels[good])
        failing = np.flatnonzero(undecided & bad)
        fresh = group.levels[failing, first:]
        further = self._further(fresh)
        needed = further + np.isfinite(fresh).sum(axis=1)
        total = [total_for(units) if first else units for units in needed.tolist()]
        more = np.maximum(np.array(total, dtype=np.int64) - group.n[failing], further)
        result[failing] = np.where(further > 0, more, further)
        return result

    def _further(self, levels: Values) -> npt.NDArray[np.int64]:
        return bounds.more_units(
            levels,
            self.scale.limit,
            self.scale.method,
            self.group.buyer,
            self.group.seller / max(self.suspects, 1),
            self.scale.width,
        )

    def _spread(self) -> str:
        """Describe the scatter of the numbers by its components."""
        usable = self.group.levels[self.group.sound]
        if not usable.size or len(usable) > _MOST_FOR_SPREAD or usable.shape[1] < 2:
            return ""
        spread = components(usable)
        parts = {
            "between places": spread.place,
            "between allocations": spread.unit,
            "else": spread.rest,
        }
        unit = self.group.subject.unit
        return ", ".join(
            f"{_percent(sd) if self.scale.logs else f'{rounded(sd)} {unit}'} {name}"
            for name, sd in parts.items()
            if isfinite(sd) and sd > 0
        )

    def _value(self, value: float) -> str:
        return f"{rounded(value)} {self.group.subject.unit}".removesuffix(" 1")


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _percent(share: float) -> str:
    return f"{rounded(float(f'{100 * share:.3g}'))} %"


def _allocations(n: int) -> str:
    return f"{n} allocation{'' if n == 1 else 's'}"
