"""A stability phase: its duration, its load, and the mix of its jobs.

The phase is a campaign whose repeats are rounds. The jobs of a round together take the
declared share of the machine's node-hours in that time, so a round of jobs that run as
planned leaves the machine idle for the rest of it.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any

from msgspec import Meta, Struct

from seatrial.checks.job_mix import CHECK, MOST_JOBS, format_mix, nodes_of
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.model.spans import Span, span_s
from seatrial.model.yaml_file import YamlFile

_Load = Annotated[
    float, Meta(gt=0, le=1, description="a share of the machine, above 0, at most 1")
]
_Weight = Annotated[float, Meta(gt=0, description="a number above 0")]
_Nodes = Annotated[
    str | int,
    Meta(description="a number of nodes, or a share of the class such as 25%"),
]


class _Job(Struct, frozen=True, forbid_unknown_fields=True):
    nodes: _Nodes
    time: Span
    weight: _Weight = 1.0


class StabilityKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """The key `stability` of a campaign."""

    duration: Span
    jobs: Annotated[
        tuple[_Job, ...], Meta(min_length=1, description="a list of kinds of jobs")
    ]
    load: _Load = 0.9
    round: Span = "4 h"


@dataclass(frozen=True)
class JobKind:
    """A kind of jobs: `size` is a number of nodes or a share of the class, `50%`.

    `weight` is its part of the node-hours of the mix.
    """

    size: str
    seconds: int
    weight: float

    def nodes_of(self, nodes: int) -> int:
        """Return the nodes of a job in a class with these nodes, at least 1."""
        return min(nodes_of(self.size, nodes), nodes)


@dataclass(frozen=True)
class StabilityPhase:
    """A declared phase: duration, share of the nodes kept busy, rounds, and mix."""

    duration_s: float
    load: float
    round_s: float
    jobs: tuple[JobKind, ...]

    @property
    def rounds(self) -> int:
        """Return the number of rounds."""
        return max(1, ceil(self.duration_s / self.round_s - 1e-9))

    def counts(self, nodes: int) -> list[int]:
        """Return the jobs of each kind in a round, in a class with these nodes."""
        weights = sum(kind.weight for kind in self.jobs)
        busy = self.load * nodes * self.round_s
        return [
            max(1, round(busy * k.weight / weights / (k.nodes_of(nodes) * k.seconds)))
            for k in self.jobs
        ]

    def mix(self, classes: Mapping[str, int]) -> str:
        """Return `MIX_VARIABLE` for classes by their numbers of nodes, without places.

        Raises SeatrialError if a round has too many jobs.
        """
        counts = [self.counts(nodes) for nodes in classes.values()]
        jobs = [
            (f"{kind.size}x{kind.seconds}-{number}", "")
            for kind, *own in zip(self.jobs, *counts, strict=True)
            for number in range(1, sum(own) + 1)
        ]
        if len(jobs) > MOST_JOBS:
            raise SeatrialError(
                f"stability: {len(jobs)} jobs in a round, expected at most "
                f"{MOST_JOBS}; shorten the rounds, or take longer or larger jobs"
            )
        return format_mix(jobs)

    def chosen(
        self, cases: Sequence[ListedCase], classes: Mapping[str, int]
    ) -> tuple[ListedCase, ...]:
        """Assign each job of the mix to one class, and to its MPI stacks by turns.

        `classes` counts the nodes of each. Other cases stay as they are.
        """
        stacks: dict[str, list[str]] = {}
        for case in cases:
            own = stacks.setdefault(_class_of(case), [])
            if case.check == CHECK and case.environment not in own:
                own.append(case.environment)
        places: dict[str, tuple[str, str]] = {}
        taken = [0] * len(self.jobs)
        for name, turn in stacks.items():
            counts = self.counts(classes[name]) if turn else []
            for kind, count in enumerate(counts):
                job = self.jobs[kind]
                for number in range(count):
                    at = f"{job.size}x{job.seconds}-{taken[kind] + number + 1}"
                    places[at] = (name, turn[number % len(turn)])
                taken[kind] += count
        return tuple(
            case
            for case in cases
            if case.check != CHECK
            or places.get(case.parameters["mix"]) == (_class_of(case), case.environment)
        )

    def frozen(self) -> dict[str, Any]:
        """Return the fields that the plan of a run keeps."""
        jobs = [vars(kind) for kind in self.jobs]
        names = ("duration_s", "load", "round_s")
        return {**{name: getattr(self, name) for name in names}, "jobs": jobs}


def mix_of(session: str, cases: Iterable[ListedCase]) -> str:
    """Return `MIX_VARIABLE` for the cases of a session; '' if none is of a mix.

    Jobs of all sizes come mixed, in another order in each session.
    """
    jobs = [
        (case.parameters["mix"], f"{_class_of(case)}+{case.environment}")
        for case in cases
        if case.check == CHECK
    ]
    random.Random(session).shuffle(jobs)
    return format_mix(jobs)


def _class_of(case: ListedCase) -> str:
    return case.partition.rpartition(":")[2]


def phase_of(frozen: Mapping[str, Any] | None) -> StabilityPhase | None:
    """Return the phase that the plan of a run kept; None if it is no such run."""
    if not frozen:
        return None
    jobs = tuple(JobKind(**kind) for kind in frozen["jobs"])
    return StabilityPhase(**{**frozen, "jobs": jobs})


def read_phase(file: YamlFile, keys: StabilityKeys) -> StabilityPhase:
    """Check the key `stability` of a campaign.

    Raises SeatrialError with file and line.
    """
    duration_s, round_s = span_s(keys.duration), span_s(keys.round)
    if round_s > duration_s:
        expected = f"at most the duration of {keys.duration}"
        file.expected(expected, keys.round, ("stability", "round"))
    kinds: list[JobKind] = []
    for index, job in enumerate(keys.jobs):
        place = ("stability", "jobs", index)
        size = str(job.nodes).replace(" ", "")
        if not _is_size(size):
            expected = "nodes from 1, or a share from 1% to 100%"
            file.expected(expected, job.nodes, (*place, "nodes"))
        seconds = round(span_s(job.time))
        if not 1 <= seconds <= round_s:
            expected = f"a time from 1 s to the round of {keys.round}"
            file.expected(expected, job.time, (*place, "time"))
        if any((size, seconds) == (k.size, k.seconds) for k in kinds):
            file.refuse(place, "a job of this size and time is listed already.")
        kinds.append(JobKind(size, seconds, job.weight))
    return StabilityPhase(duration_s, keys.load, round_s, tuple(kinds))


def _is_size(size: str) -> bool:
    number = size.removesuffix("%")
    if not number.isascii() or not number.isdecimal() or int(number) < 1:
        return False
    return not size.endswith("%") or int(number) <= 100
