"""The jobs of a stability phase: names of size, seconds and number, `50%x600-3`.

A job of the mix is a case of `StabilityJob`. A number belongs to one class of nodes and
one MPI stack; ReFrame learns both from `MIX_VARIABLE`.
"""

import re
from collections.abc import Iterable

CHECK = "StabilityJob"
"""The check whose cases are the jobs of the mix."""

MIX_VARIABLE = "SEATRIAL_MIX"
"""Environment variable: the jobs, `4x600-1@CLASS+STACK,50%x60-1`; the place of a job is
optional."""

SMALLEST = "1x4-1"
"""The mix without a stability phase: one job of one node."""

MOST_JOBS = 4_000
"""Jobs of a round: their names are one argument of ReFrame's command."""

_JOB = re.compile(r"(?P<size>[1-9]\d*%?)x(?P<seconds>[1-9]\d*)-(?P<number>[1-9]\d*)")


def parse_mix(variable: str) -> dict[str, str]:
    """Return the places of the jobs of a value of `MIX_VARIABLE`, '' for any.

    Raises ValueError if one is malformed.
    """
    parts = (part.partition("@") for part in variable.split(","))
    places = {name: place for name, _, place in parts}
    for name in places:
        job_of(name)
    return places


def format_mix(jobs: Iterable[tuple[str, str]]) -> str:
    """Return the value of `MIX_VARIABLE` for jobs and their places."""
    return ",".join(f"{name}@{place}" if place else name for name, place in jobs)


def job_of(name: str) -> tuple[str, int, int]:
    """Return size, seconds and number of a job; ValueError if it is none."""
    match = _JOB.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r}: expected NODESxSECONDS-NUMBER")
    return match["size"], int(match["seconds"]), int(match["number"])


def nodes_of(size: str, nodes: int) -> int:
    """Return the nodes of a job of a size in a class, at least 1."""
    if size.endswith("%"):
        return max(1, round(int(size[:-1]) * nodes / 100))
    return int(size)
