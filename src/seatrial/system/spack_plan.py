"""The plan of a build: the origin of each package, its time, its display."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum

from rich.table import Table

from seatrial.model.csv_text import csv_text
from seatrial.model.units import rounded
from seatrial.progress import duration
from seatrial.system.spack_lock import Lock, Spec


class Origin(StrEnum):
    """Where a package comes from."""

    INSTALLED = "installed"
    EXTERNAL = "external"
    CACHE = "cache"
    SOURCE = "source"


_COLOURS = {Origin.SOURCE: "yellow", Origin.CACHE: "cyan"}


@dataclass(frozen=True)
class Timing:
    """A recorded time of a package in seconds: from the build cache or from source."""

    hash: str
    name: str
    cache: bool
    seconds: float


@dataclass(frozen=True)
class Step:
    """One package of the plan of an environment.

    `seconds` is the estimated time: 0 if installed, None without a recorded build. The
    `basis` are records of the `same build`, of `other builds`, or nothing.
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
    """Return the packages that the roots of an environment need, in build order.

    As in Spack, build dependencies of packages that are not built are left out.
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
        for need in needs if where is not Origin.EXTERNAL else ():
            yield from follow(need)
        seconds, basis = estimate(spec, where, timings)
        yield Step(environment, spec.name, spec.version, hash_, where, seconds, basis)

    seen: set[str] = set()
    return tuple(step for root in roots for step in follow(root))


def estimate(
    spec: Spec, origin: Origin, timings: Sequence[Timing]
) -> tuple[float | None, str]:
    """Return the estimated seconds of a package, and the kind of records behind it.

    The last record of the same build counts, else the mean of the package's other
    builds, for example with another MPI.
    """
    if origin in (Origin.INSTALLED, Origin.EXTERNAL):
        return 0.0, ""
    key = (spec.name, origin is Origin.CACHE)
    builds = [timing for timing in timings if (timing.name, timing.cache) == key]
    same = [timing.seconds for timing in builds if timing.hash == spec.hash]
    if same:
        return same[-1], "same build"
    if builds:
        return sum(timing.seconds for timing in builds) / len(builds), "other builds"
    return None, ""


def total(steps: Iterable[Step]) -> Total:
    """Count what is to be installed, and add up its time."""
    waiting = [step for step in steps if step.to_do]
    source = sum(step.origin is Origin.SOURCE for step in waiting)
    times = [step.seconds for step in waiting if step.seconds is not None]
    unknown = len(waiting) - len(times)
    return Total(source, len(waiting) - source, sum(times), unknown)


def summary(steps: Sequence[Step]) -> str:
    """Return one line: the number of builds and their time."""
    sums = total(steps)
    packages = sums.source + sums.cache
    if not packages:
        return "All of it is installed."
    if sums.unknown == packages:
        time = "time unknown, no build of them is recorded"
    elif sums.unknown:
        time = f"at least {duration(sums.seconds)}, {sums.unknown} of unknown time"
    else:
        time = f"about {duration(sums.seconds)}"
    return f"{sums.source} from source, {sums.cache} from a build cache: {time}"


def format_plan(system: str, steps: Sequence[Step], form: str) -> str:
    """Format a plan as `json`, with its sums, or as `csv`."""
    rows = [asdict(step) for step in steps]
    if form == "json":
        sums = asdict(total(steps))
        content = {"system": system, "total": sums, "steps": rows}
        return json.dumps(content, indent=1) + "\n"
    return csv_text([field.name for field in fields(Step)], rows)


def plan_table(steps: Sequence[Step]) -> Table:
    """Return a table of the steps."""
    table = Table(box=None, pad_edge=False)
    for heading in ("environment", "package", "hash", "from"):
        table.add_column(heading, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("recorded", no_wrap=True)
    for step in steps:
        took = "unknown" if step.seconds is None else f"{rounded(step.seconds, 3)} s"
        table.add_row(
            step.environment,
            str(step),
            step.hash[:7],
            step.origin,
            took if step.to_do else "",
            step.basis,
            style=_COLOURS.get(step.origin, "dim"),
        )
    return table
