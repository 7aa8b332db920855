"""Rulings on the places of a group: verdict, level, bounds and reason."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.methods import T_SMALLEST_N
from seatrial.judge.attribution import attributed, bad_parts
from seatrial.judge.findings import METHODS, Finding, Verdict
from seatrial.judge.order_statistics import MOST_FURTHER_UNITS, fewest
from seatrial.judge.sampling import Marks, Values, missing_words
from seatrial.judge.screening import Tried, total_for
from seatrial.judge.variance_components import components
from seatrial.model.units import rounded

FAIL, NOT_SHOWN, UNDECIDED, PASS = 0, 1, 2, 3
VERDICTS: tuple[Verdict, ...] = ("fail", "not shown", "undecided", "pass")
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


def rulings(trials: Sequence[Tried]) -> Iterator[Ruling]:
    """Yield the ruling on every group after the trial."""
    both = [(trial, _Ruler(trial).ruling()) for trial in trials]
    bad = bad_parts((trial.group, ruling.verdict != PASS) for trial, ruling in both)
    for trial, ruling in both:
        of_bad = attributed(trial.group, bad[trial.group.case])
        hidden = trial.covered & of_bad & (ruling.verdict != PASS)
        yield replace(ruling, hidden=hidden)


class _Ruler:
    """The computation of the ruling on one group."""

    def __init__(self, tried: Tried) -> None:
        self.tried = tried
        self.group, self.criterion = tried.group, tried.group.criterion
        self.scale, self.at = self.group.scale, self.group.at
        group, scale = self.group, self.scale
        ends = (scale.values(group.lower), scale.values(self.at.upper(group.seller)))
        self.lower, self.upper = ends if scale.sign > 0 else ends[::-1]
        # The cap ends the allocations, even without a decision.
        capped = group.sound & (group.n >= self.criterion.cap)
        undecided = np.where(capped, NOT_SHOWN, UNDECIDED)
        self.verdict = np.where(group.passes, PASS, undecided).astype(np.int8)
        self.verdict[tried.convicted] = FAIL
        self.more = np.where(self.verdict == UNDECIDED, self._more(), 0)

    def ruling(self) -> Ruling:
        group = self.group
        return Ruling(
            subject=group.subject,
            names=group.names,
            of_nodes=group.of_nodes,
            verdict=self.verdict,
            n=group.n,
            value=self.scale.values(self.at.centre),
            lower=self.lower,
            upper=self.upper,
            more=self.more,
            hidden=np.zeros(len(self.verdict), dtype=bool),
            discovered=self.tried.discovered,
            reason=lambda place: (
                self.reason(place) + missing_words(group.levels[place])
            ),
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
                f"by {allocations_text(group.n[place])}"
            )
        if self.tried.convicted[place]:
            return self._conviction(place)
        if verdict == NOT_SHOWN:
            return (
                f"{self._state(place)}: not shown by the {self.criterion.cap} "
                "allocations that were agreed on; "
                f"the {self.criterion.bears} bears that"
            )
        return self._undecided(place)

    def _between(self, place: int) -> str:
        low, high = self.lower[place], self.upper[place]
        if np.isneginf(self.at.centre[place]):
            return "half of the numbers or more are missing"
        if not isfinite(low) or not isfinite(high):
            return self._value(self.scale.values(self.at.centre)[place])
        return f"between {rounded(low)} and {self._value(high)}"

    def _state(self, place: int) -> str:
        """Describe a place that neither passes nor is convicted."""
        group = self.group
        if not group.intermittent[place]:
            return self._between(place)
        return (
            f"{group.misses[place]} of {group.n[place]} allocations miss the limit; "
            "with more than a third no place passes"
        )

    def _conviction(self, place: int) -> str:
        group, first, n = self.group, self.tried.screened, self.group.n[place]
        miss = f"{group.misses[place]} of {n} values miss the limit"
        p = f"p = {self.tried.p[place]:.1g}"
        if not self.at.ordered:
            text = f"{self._between(place)}; {miss}"
        elif first:
            text = (
                f"{miss}; suspected by the first {first} of {group.units} "
                "allocations, convicted by the others"
            )
        else:
            return miss
        family = self.tried.family
        return f"{text}, {p} (Holm over {family})" if family > 1 else f"{text}, {p}"

    def _undecided(self, place: int) -> str:
        group, n = self.group, int(self.group.n[place])
        smallest = self._smallest(place)
        if n < smallest:
            method = group.subject.method
            if self.at.holed[place] and not self.at.ordered:
                method = f"{METHODS['any']}, for missing values,"
            return (
                f"{allocations_text(n)}; {method} takes at least "
                f"{smallest} at a risk of {_percent(group.buyer)}"
            )
        words = [self._state(place)]
        if group.doubt[place] and self.at.centre[place] < self.scale.limit:
            return f"{words[0]}; {group.doubt[place]}"
        if group.intermittent[place]:
            return f"{words[0]}; find out what comes and goes"
        if self.tried.p[place] <= _EVEN:
            family = self.tried.family
            words.append(f"suspected, p = {self.tried.p[place]:.2g} of {family}")
        if self.tried.covered[place]:
            words.append("a part of its path is a suspect")
        return "; ".join([*words, self._remedy(place)])

    def _smallest(self, place: int) -> int:
        """Return the fewest allocations that the method takes for a pass."""
        if self.at.ordered or self.at.holed[place]:
            return fewest(self.at.order, self.group.buyer)
        return T_SMALLEST_N

    def _remedy(self, place: int) -> str:
        """Describe how an undecided place would be decided."""
        further = self.more[place]
        if further < 0:
            return f"more than {MOST_FURTHER_UNITS} more would be needed"
        if further > 0:
            return f"about {further} more would decide"
        far = abs(self.at.centre[place] - self.scale.limit) > self.scale.width
        if far and self.at.ordered:
            return "the first allocations raised no suspicion; a new run would decide"
        zone = _percent(self.criterion.zone)
        return f"it is within the indifference zone around the limit ({zone})"

    def _more(self) -> npt.NDArray[np.int64]:
        """Project how many further allocations would decide at each undecided place.

        By order statistics, those that pick the suspects are added for a fail.
        """
        group, at, first = self.group, self.at, self.tried.screened
        risks = group.buyer, group.seller / max(self.tried.family, 1)
        more = at.more(self.scale.limit, risks, self.scale.width)
        undecided = group.sound & ~group.passes & ~self.tried.convicted
        failing = undecided & (at.centre < self.scale.limit)
        if first and at.ordered:
            total = [total_for(units) for units in (group.n - first + more).tolist()]
            longer = np.maximum(np.array(total, dtype=np.int64) - group.n, more)
            more = np.where(failing & (more > 0), longer, more)
        more = np.where(group.intermittent, -1, more)
        return np.where(undecided, more, 0)

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


def allocations_text(n: int) -> str:
    """Format a number of allocations."""
    return f"{n} allocation{'' if n == 1 else 's'}"
