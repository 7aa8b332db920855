"""Node-hours of a sweep over all pairs, and of the adaptive one that samples them."""

from collections.abc import Iterator
from dataclasses import dataclass

from seatrial.campaign.cost import Cost
from seatrial.checks.pairsweep.adaptive import ADAPTIVE_ROUNDS, FURTHER_PHASES
from seatrial.model.units import counted

ROUND_S = 0.35
"""Seconds of a round: latency and two bandwidths of 0.1 s each, and the meeting."""

SWEEPS = ("PairSweep", "VerbsPairSweep")


@dataclass(frozen=True)
class SweepCost:
    """Rounds and node-hours of `jobs` sweeps over `nodes`: of all pairs, and adaptive.

    `start_s` is the time of a sweep outside its rounds. An adaptive sweep has
    `least_rounds` if no node is a suspect, `most_rounds` if many are.
    """

    check: str
    jobs: int
    nodes: int
    start_s: float
    rounds: int
    least_rounds: int
    most_rounds: int

    def node_hours(self, rounds: int) -> float:
        """Return the node-hours of all jobs with so many rounds each."""
        return self.jobs * self.nodes * (self.start_s + rounds * ROUND_S) / 3600

    def __str__(self) -> str:
        full, least, most = (
            f"{self.node_hours(rounds):,.3g}"
            for rounds in (self.rounds, self.least_rounds, self.most_rounds)
        )
        return (
            f"{self.check} on {counted(self.nodes, 'node')}, "
            f"{counted(self.jobs, 'job')}: "
            f"{full} node-hours for all pairs ({self.rounds:,} rounds), {least} to "
            f"{most} for an adaptive sweep ({self.least_rounds} to {self.most_rounds} "
            f"rounds; -S {self.check}.adaptive=yes), at {ROUND_S:g} s a round and "
            f"{self.start_s:.3g} s for the rest"
        )


def sweep_costs(cost: Cost, nodes: int) -> Iterator[SweepCost]:
    """Yield both costs of each sweep of a campaign on `nodes`.

    What a recorded sweep took beyond the rounds of all pairs is its start; typical
    times say nothing about it. Nodes that are fewer than the
    rounds of an adaptive sweep have none.
    """
    rounds = nodes - 1 + nodes % 2
    for check in cost.checks:
        if check.check in SWEEPS and rounds > ADAPTIVE_ROUNDS:
            start = 0.0 if check.typical else check.seconds - rounds * ROUND_S
            yield SweepCost(
                check=check.check,
                jobs=check.jobs,
                nodes=nodes,
                start_s=max(0.0, start),
                rounds=rounds,
                least_rounds=ADAPTIVE_ROUNDS,
                most_rounds=min(rounds, ADAPTIVE_ROUNDS * (1 + FURTHER_PHASES)),
            )
