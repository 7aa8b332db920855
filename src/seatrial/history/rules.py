"""The rules that a site declares for its nights."""

from dataclasses import dataclass

GOOD_NIGHTS = 3
"""Good nights in a row, in which a node was measured, that end an alarm."""


@dataclass(frozen=True)
class Rules:
    """Rules of the nights of a system.

    `alarms_a_year` is the largest expected number of false alarms: half by history,
    half by the limits of each night. Each node is measured within `every` nights. A
    loss of less than `margin` (a share) is no alarm. `autocorrelation` is the
    correlation of successive nights. A suspect is watched for at most `most_visits`
    nights. More than `most_suspects` new convictions in one night have a common cause.
    """

    alarms_a_year: float = 1.0
    every: int = 5
    margin: float = 0.01
    autocorrelation: float = 0.3
    most_visits: int = 12
    most_suspects: int = 1
