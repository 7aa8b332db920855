"""A criterion and its places of one kind: pairs, their parts, nodes, an allocation."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from math import log
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.judge.findings import Finding
from seatrial.judge.levels import Levels, levels
from seatrial.judge.multiple_testing import share_of_look
from seatrial.judge.network_parts import Leafs
from seatrial.judge.order_statistics import HALF
from seatrial.judge.sampling import Marks, Scale, Values
from seatrial.judge.scatter import SCATTER_FLOOR, Times

Texts = npt.NDArray[np.object_]

SHAPE_SHARE = 0.02
"""Part of each risk that the test of the noise's shape may spend."""

_MOST_BAD = 3
"""A place passes only if at most one of so many allocations misses the limit."""


def no_words(places: int) -> Texts:
    """Return '' for each place: one text that all share, for reading only."""
    return np.broadcast_to(np.array("", dtype=object), places)


@dataclass(frozen=True)
class Group:
    """A criterion and its places of one kind, in one case.

    `levels` has the shape (places, allocations), on the scale of the criterion;
    `names` has a row per place: the columns of `PLACE`, and `WAY` for parts of pairs.
    `trouble` (places,) is the reason why a place cannot be judged, or ''. `doubt`
    (places,) is the reason why a place that looks bad is not blamed, or ''. `part` is
    the kind of the places, if they are pairs or are judged by pairs; `leafs` has the
    leaf of each node. `share` is the part of the risks that this look may spend.
    `times` are the correlations of successive allocations in the metrics of the case;
    None: as these values show them.
    """

    subject: Finding
    criterion: Criterion
    scale: Scale
    names: pl.DataFrame
    levels: Values
    trouble: Texts
    doubt: Texts
    leafs: Leafs
    part: Literal["", "leaf", "way", "node", "pair"] = ""
    share: float = field(default_factory=partial(share_of_look, 1))
    times: Times | None = None

    @property
    def alike(self) -> bool:
        """Whether places are held to the typical one, not to a limit."""
        return self.criterion.kind == "sameness"

    @property
    def shares(self) -> bool:
        """Whether allocations have an effect on several places, which means show."""
        return not self.alike and self.scale.method == "t" and len(self.levels) > 1

    @property
    def of_pairs(self) -> bool:
        """Whether the places are pairs, which are judged after their nodes."""
        return self.part == "pair"

    @property
    def of_nodes(self) -> bool:
        """Whether the places are nodes, or leafs, judged by their pairs."""
        return self.part in ("leaf", "node")

    @property
    def case(self) -> tuple[str, ...]:
        """The key of the case."""
        return (self.subject.check, self.subject.case, self.subject.environment)

    @property
    def units(self) -> int:
        """All allocations, complete or not."""
        return int(self.levels.shape[1])

    @property
    def buyer(self) -> float:
        """The buyer's risk at this look."""
        return self.criterion.risks.buyer * self.share * (1 - SHAPE_SHARE)

    @property
    def seller(self) -> float:
        """The seller's risk at this look."""
        return self.criterion.risks.seller * self.share * (1 - SHAPE_SHARE)

    @cached_property
    def at(self) -> Levels:
        """The levels of the places, with their bounds."""
        scale, least = self.scale, SCATTER_FLOOR
        if not scale.logs:
            least *= abs(scale.limit)
        sound = self.levels
        if not self.sound.all():
            sound = np.where(self.sound[:, np.newaxis], sound, np.nan)
        return levels(
            sound,
            scale.method,
            below=scale.below,
            shared=not self.alike,
            floor=least,
            worst=self.worst,
            times=self.times,
        )

    @cached_property
    def worst(self) -> float:
        """Return the level that a missing number has in a mean.

        Half of the limit, or the lowest level of all if that is less.
        """
        half = HALF * abs(self.scale.limit)
        low = self.scale.limit - (log(2) if self.scale.logs else half)
        finite = self.levels[np.isfinite(self.levels)]
        return float(min(low, finite.min(initial=low)))

    @property
    def n(self) -> npt.NDArray[np.int64]:
        """Allocations in which each place was measured."""
        return self.at.n

    @cached_property
    def lower(self) -> Values:
        """The lower bound of each level, at the buyer's risk."""
        return self.at.lower(self.buyer)

    @cached_property
    def sound(self) -> Marks:
        """Places that can be judged at all."""
        return np.asarray(self.trouble == "", dtype=bool)

    @cached_property
    def misses(self) -> npt.NDArray[np.int64]:
        """Allocations in which each place misses the limit."""
        return np.asarray((self.levels < self.scale.limit).sum(axis=1))

    @cached_property
    def intermittent(self) -> Marks:
        """Places that miss the limit too often to pass at any level."""
        most = self.n // _MOST_BAD
        return np.asarray((self.misses > most) & (self.scale.below == HALF))

    @cached_property
    def passes(self) -> Marks:
        """Places that reach the limit, at the buyer's risk."""
        reached: Marks = self.sound & (self.lower >= self.scale.limit)
        return reached & ~self.intermittent
