"""Count what adaptive sweeps find on many model machines: rates, and measured pairs."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context

from seatrial.calibration.simulate.adaptive import Outcome, swept_and_judged
from seatrial.calibration.simulate.fabric import Fabric
from seatrial.calibration.simulate.machine import Machine
from seatrial.calibration.simulate.rates import Rate
from seatrial.calibration.simulate.runs import criteria_for
from seatrial.criteria.criteria import Criteria

TOLERANCE = 0.05
"""Loss of a pair that the criteria allow."""

FAULTS: dict[str, Fabric] = {
    "none": Fabric(bad_nodes=0, bad_links=0),
    "3 nodes 10 %, 2 up-links 50 %": Fabric(),
    "3 nodes 8 %": Fabric(node_level=0.92, bad_links=0),
    "3 nodes 7 %": Fabric(node_level=0.93, bad_links=0),
    "2 up-links 20 %": Fabric(bad_nodes=0, link_level=0.8),
    "2 up-links 10 %": Fabric(bad_nodes=0, link_level=0.9),
}
"""Machines by their faults, with the loss of bandwidth of each bad part."""


def criteria(repeats: int) -> Criteria:
    """Return the criteria of the sweeps: 1 is the number of a sound pair."""
    pairs = criteria_for(Machine(kind="pairs", repeats=repeats), "lognormal")
    limits = {"higher": 1 - TOLERANCE, "lower": 1 / (1 - TOLERANCE)}
    return replace(
        pairs,
        criteria=tuple(
            replace(one, limit=limits[one.direction]) for one in pairs.criteria
        ),
    )


@dataclass(frozen=True)
class SweepRow:
    """The outcomes of the machines with one kind of faults."""

    faults: str
    fabric: Fabric
    repeats: int
    outcomes: tuple[Outcome, ...]

    @property
    def rates(self) -> dict[str, Rate]:
        """Rates of wrong verdicts (of machines), and of found faults (of faults)."""
        machines, bad = len(self.outcomes), self.fabric.bad_nodes
        links = self.fabric.bad_links
        sound = not (bad or links)
        return {
            "false_fail": Rate(
                sum(one.fails for one in self.outcomes) if sound else 0,
                machines if sound else 0,
            ),
            "sound_blamed": Rate(
                sum(bool(one.sound_blamed) for one in self.outcomes), machines
            ),
            "nodes_found": Rate(
                sum(one.nodes_found for one in self.outcomes), machines * bad
            ),
            "links_found": Rate(
                sum(one.links_found for one in self.outcomes), machines * links
            ),
        }

    @property
    def share(self) -> float:
        """The largest share of all pairs that the sweeps of a machine measured."""
        return max(one.share for one in self.outcomes)

    @property
    def rounds(self) -> float:
        """The mean number of rounds of a sweep."""
        return sum(one.rounds for one in self.outcomes) / len(self.outcomes)


def sweep_rows(
    fabrics: Mapping[str, Fabric],
    *,
    repeats: int,
    machines: int,
    seed: int,
    workers: int = 1,
    swept: Callable[[int], object] = lambda _: None,
) -> Iterator[SweepRow]:
    """Sweep so many machines of each kind; the same seed, the same outcomes.

    `swept` is called with the number of machines that are done.
    """
    declared = criteria(repeats)
    seeds = range(seed, seed + machines)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for faults, fabric in fabrics.items():
            outcomes = []
            sweep = partial(_swept, fabric, declared, repeats)
            for outcome in pool.map(sweep, seeds):
                outcomes.append(outcome)
                swept(1)
            yield SweepRow(faults, fabric, repeats, tuple(outcomes))


def _swept(fabric: Fabric, declared: Criteria, repeats: int, seed: int) -> Outcome:
    return swept_and_judged(fabric, declared, repeats=repeats, seed=seed)
