"""The plan of a build: each package's source, and its time in recorded builds."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from seatrial.system.spack_lock import Lock, Spec


class Origin(StrEnum):
    """Where a package comes from."""

    INSTALLED = "installed"
    EXTERNAL = "external"
    CACHE = "cache"
    SOURCE = "source"


@dataclass(frozen=True)
class Timing:
    """How long a package once took, in seconds: from the build cache or from source."""

    hash: str
    name: str
    cache: bool
    seconds: float


@dataclass(frozen=True)
class Step:
    """One package of the plan of an environment.

    `seconds` is the estimated time: 0 for what is there, None where no build of the
    package was ever recorded. `basis` says from which records: `same build`, `other
    builds`, or nothing.
    """

    environment: str
    package: str
    version: str
    hash: str
    origin: Origin
    seconds: float | None
    basis: str = ""

    @property
    def to_do(self) -> bool:
        """Return True if Spack has to install it."""
        return self.origin in (Origin.CACHE, Origin.SOURCE)

    def __str__(self) -> str:
        return f"{self.package}@{self.version}"


@dataclass(frozen=True)
class Total:
    """The packages to install, and their time.

    `seconds` sums up the known times; `unknown` packages have none.
    """

    source: int
    cache: int
    seconds: float
    unknown: int


def plan(
    environment: str,
    lock: Lock,
    roots: Iterable[str],
    installed: Collection[str],
    cached: Collection[str],
    timings: Sequence[Timing],
) -> tuple[Step, ...]:
    """Plan an environment: what its roots need, what is needed first comes first.

    Like Spack it leaves out what only builds a package that is not to be built.
    """

    def origin(spec: Spec) -> Origin:
        if spec.external:
            return Origin.EXTERNAL
        if spec.hash in installed:
            return Origin.INSTALLED
        return Origin.CACHE if spec.hash in cached else Origin.SOURCE

    def follow(hash_: str) -> Iterator[Step]:
        if hash_ in seen:
            return
        seen.add(hash_)
        spec = lock.specs[hash_]
        where = origin(spec)
        needs = spec.building if where is Origin.SOURCE else spec.needed
        for each in needs if where is not Origin.EXTERNAL else ():
            yield from follow(each)
        seconds, basis = estimate(spec, where, timings)
        yield Step(environment, spec.name, spec.version, hash_, where, seconds, basis)

    seen: set[str] = set()
    return tuple(step for root in roots for step in follow(root))


def estimate(
    spec: Spec, origin: Origin, timings: Sequence[Timing]
) -> tuple[float | None, str]:
    """Estimate the seconds for a package, and say from which records.

    The last record of the very same build counts, else the mean of the package's other
    builds, with another MPI for example.
    """
    if origin in (Origin.INSTALLED, Origin.EXTERNAL):
        return 0.0, ""
    ours = [
        timing
        for timing in timings
        if timing.name == spec.name and timing.cache == (origin is Origin.CACHE)
    ]
    same = [timing.seconds for timing in ours if timing.hash == spec.hash]
    if same:
        return same[-1], "same build"
    if ours:
        return sum(timing.seconds for timing in ours) / len(ours), "other builds"
    return None, ""


def total(steps: Iterable[Step]) -> Total:
    """Count what is to be installed, and add up its time."""
    waiting = [step for step in steps if step.to_do]
    known = [step.seconds for step in waiting if step.seconds is not None]
    return Total(
        source=sum(step.origin is Origin.SOURCE for step in waiting),
        cache=sum(step.origin is Origin.CACHE for step in waiting),
        seconds=sum(known),
        unknown=len(waiting) - len(known),
    )
