"""What a site declares about its nights."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Rules of the nights of a system.

    `alarms_a_year` is the number of false alarms that is expected at most: half by
    history, half by the limits of each night. Each node is measured within `every`
    nights. A loss of less than `margin` (a share) is no alarm. `autocorrelation` is
    that of successive nights. A suspect is watched for `most_visits` nights at most.
    """

    alarms_a_year: float = 1.0
    every: int = 5
    margin: float = 0.01
    autocorrelation: float = 0.3
    most_visits: int = 12
