"""The chance of machines a little inside their limits to pass, before anything runs.

Machines are drawn, and judged by the judge itself. Criteria that are judged alike,
scatter alike, and have as many places are one class. The places of one case are judged
together, for they teach each other their scatter and correlation; those of further
cases, and beyond a bound, are taken for independent. Convictions are a risk of the
machine, and do not grow with its places. So chances are right within some percent.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from seatrial.calibration.detection_limits import Prospect
from seatrial.calibration.simulate.criteria_rates import Study
from seatrial.calibration.simulate.machines import Setting, Truth, draw
from seatrial.calibration.simulate.noises import Noise
from seatrial.criteria.criteria import Criteria, Criterion
from seatrial.judge.verdicts import FAIL, VERDICTS

INSIDE = (0.0, 0.01, 0.02, 0.05)
"""Distances of the machines from their limits, shares of the limit."""

STATED = (0.01, 0.05)
"""Scatter of what no run recorded."""

NOISE: dict[Noise, str] = {"lognormal": "independent", "ar1": "AR(1), rho 0.5"}
SURE, ASKED = 0.9, 0.05
"""The chance to pass, and how far inside, for which repeats are planned."""

MOST_REPEATS = 60
"""More are not tried."""

_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
_LEAST_ALIKE, _MOST_PLACES = 3, 512
_JUDGED = 400
"""Groups of places that are judged for the chances."""

_LEAST_DRAWS, _PLACES_DRAWN = 3, 2560
"""Machines of few places are drawn more often."""

_SEED = 21


@dataclass(frozen=True)
class Chance:
    """The chances of a machine that is `inside` its limits, by verdict.

    Of each class there are at most `draws`. `scatter` is what is taken for criteria
    that no run recorded. `needed` are the fewest repeats with which it passes with a
    chance of 0.9, for a machine 5 % inside; None: not within 60.
    """

    scatter: float
    noise: str
    inside: float
    verdicts: Mapping[str, float]
    draws: int
    needed: int | None = None


@dataclass(frozen=True)
class _Class:
    """Criteria that are judged alike: one of them, and all their places.

    `together` are the places of one case.
    """

    criterion: Criterion
    scatter: float
    units: int
    together: int
    places: int

    @property
    def alike(self) -> bool:
        """Whether it is all the same how far inside the limits a machine is."""
        return self.criterion.kind == "sameness" or self.criterion.model == "every"

    @property
    def simulated(self) -> int:
        """The places that are judged; places held to each other are at least three."""
        least = _LEAST_ALIKE if self.criterion.kind == "sameness" else 1
        return min(max(self.together, least), _MOST_PLACES)


def chances(
    criteria: Criteria,
    prospects: Sequence[Prospect],
    nodes: int,
    shared: float = Setting.shared,
) -> list[Chance]:
    """Return the chances for each stated scatter and noise.

    A criterion without records has a place on each of the `nodes`. `shared` is the part
    of the variance that all places of an allocation have in common.
    """
    by_scatter = {
        stated: _classes(criteria, prospects, nodes, stated) for stated in STATED
    }
    if len({*map(tuple, by_scatter.values())}) == 1:
        del by_scatter[STATED[1]]  # all is recorded
    every = {each for classes in by_scatter.values() for each in classes}
    if not every:
        return []
    levels = sum(1 if one.alike else len(INSIDE) for one in every)
    most = max(_JUDGED // (levels * len(NOISE)), 3 * _LEAST_DRAWS)
    found = []
    for scatter, classes in by_scatter.items():
        for noise, words in NOISE.items():
            needed = _needed(classes, noise, shared, most // 3)
            for inside in INSIDE:
                verdicts = _chances(classes, noise, inside, shared, most)
                asked = needed if inside == ASKED else None
                found.append(Chance(scatter, words, inside, verdicts, most, asked))
    return found


def _classes(
    criteria: Criteria, prospects: Sequence[Prospect], nodes: int, stated: float
) -> list[_Class]:
    """Sort criteria into classes, those that scatter most first."""
    rules = {rule.name: rule for rule in criteria.criteria}
    places: dict[tuple[object, ...], int] = defaultdict(int)
    firsts: dict[tuple[object, ...], _Class] = {}
    for each in prospects:
        rule = rules[each.criterion]
        scatter = _rounded(stated if each.scatter is None else each.scatter)
        if rule.model == "every":
            scatter = 0.0
        method = (rule.model, rule.kind == "sameness", rule.tolerance, rule.risks)
        agreed = (rule.cap, rule.bears, rule.bad_share)
        together = each.places or max(nodes, 1)
        key = (method, agreed, each.units, scatter, together)
        places[key] += together * max(each.cases, 1)
        firsts.setdefault(key, _Class(rule, scatter, each.units, together, 0))
    classes = [replace(one, places=places[key]) for key, one in firsts.items()]
    return sorted(classes, key=lambda one: -one.scatter)


def _rounded(scatter: float) -> float:
    """Round up to a step, times a power of ten."""
    power = 10.0 ** np.floor(np.log10(scatter) + 1e-9)
    steps = [step * power for step in _STEPS if step * power >= scatter * (1 - 1e-9)]
    return float(f"{min(steps, default=10 * power):.3g}")


def _chances(
    classes: Sequence[_Class], noise: Noise, inside: float, shared: float, most: int
) -> dict[str, float]:
    """Return the chance of each verdict on a machine of these classes."""
    reached = np.ones(len(VERDICTS))
    wrong = []
    for one in classes:
        level = 0.0 if one.alike else inside
        of_class, convicted = _reached(one, noise, level, shared, most)
        reached *= of_class
        wrong.append(convicted)
    reached[FAIL + 1 :] *= 1 - np.mean(wrong)  # each is judged as a whole machine
    exactly = reached - np.append(reached[1:], 0.0)
    return dict(zip(VERDICTS, exactly.tolist(), strict=True))


@cache
def _reached(
    one: _Class, noise: Noise, inside: float, shared: float, most: int
) -> tuple[np.ndarray, float]:
    """Return the chances that all places reach each verdict or a better one.

    Also the share of draws with a conviction, which is not in the chances.
    """
    size, risks = one.simulated, one.criterion.risks
    study = Study(
        criteria=Criteria(risks=risks, criteria=(one.criterion,)),
        layouts={},
        setting=Setting(size, one.units, noise, one.scatter, shared),
        truth=Truth("", "", inside=inside),
    )
    metrics = [asked.metric for asked, _, _ in study.asked]
    shares, convicted = [], 0
    draws = int(np.clip(_PLACES_DRAWN // size, _LEAST_DRAWS, most))
    for generator in np.random.default_rng(_SEED).spawn(draws):
        drawn = draw(study.truth, study.setting, metrics, generator)
        (ruling,), trials = study.ruled(drawn.runs[0])
        guilty = trials[0].convicted if trials else ruling.verdict == FAIL
        others = ruling.verdict[~guilty]
        convicted += bool(guilty.any())
        codes = np.arange(len(VERDICTS))[:, np.newaxis]
        if others.size:
            shares.append(np.mean(others >= codes, axis=1))
    if not shares:
        return np.ones(len(VERDICTS)), 1.0
    together = min(size, one.together)
    of_case = np.mean(_certain(np.array(shares), size) ** together, axis=0)
    of_all = of_case ** max(1.0, one.places / together)
    return np.asarray(of_all), convicted / draws


def _certain(shares: np.ndarray, places: int) -> np.ndarray:
    """Return the chances of a place in each draw (rows), from the shares of places.

    Shares scatter by what places of a draw have in common, and by the luck of each:
    this part of their variance is taken out.
    """
    mean = shares.mean(axis=0)
    variance = shares.var(axis=0)
    luck = mean * (1 - mean) / places
    with np.errstate(invalid="ignore", divide="ignore"):
        common = np.where(variance > luck, 1 - luck / variance, 0.0)
    certain = mean + np.sqrt(common) * (shares - mean)
    return np.asarray(np.clip(certain, 0.0, 1.0))


def _needed(
    classes: Sequence[_Class], noise: Noise, shared: float, most: int
) -> int | None:
    """Return the fewest repeats that let a machine 5 % inside pass; None: too many.

    More repeats are taken to pass more often.
    """

    def passes(units: int) -> bool:
        chance = 1.0
        for one in classes:
            planned = replace(one, units=units)
            level = 0.0 if one.alike else ASKED
            chance *= _reached(planned, noise, level, shared, most)[0][-1]
            if chance < SURE:
                return False
        return True

    enough = 4
    while not passes(enough):
        if enough == MOST_REPEATS:
            return None
        enough = min(2 * enough, MOST_REPEATS)
    least = enough // 2
    while least < enough:
        middle = (least + enough) // 2
        least, enough = (least, middle) if passes(middle) else (middle + 1, enough)
    return enough
