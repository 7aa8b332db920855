"""Numbers that papers published, where a curve measures the same.

A number belongs to a curve if the metric and its unit are the same, the experiment is
one that the check repeats, and it is at a size of the curve: exactly, or "small" or
"large", which papers use for the ends of theirs.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from seatrial.criteria.published import Published, load_published
from seatrial.criteria.published_numbers import Number
from seatrial.model.metrics import METRICS
from seatrial.paths import published_dir
from seatrial.report.render import text

_ENDS = {"small": min, "large": max}


@dataclass(frozen=True)
class PublishedPoint:
    """A number of a published system at one x; `title` describes the system.

    `words` say what it is, `place` names the paper and the place in it.
    """

    system: str
    title: str
    x: float
    value: float
    words: str
    place: str


@dataclass(frozen=True)
class Overlay:
    """Published numbers, and the experiments that each check of the run repeats."""

    published: Published | None
    experiments: Mapping[str, Collection[str]]

    def points(
        self, check: str, metric: str, unit: str, sizes: Iterable[float]
    ) -> tuple[PublishedPoint, ...]:
        """Return what was published of a metric of a check, at these sizes in bytes."""
        known = sorted(sizes)
        if self.published is None or not known:
            return ()
        repeats = self.experiments.get(check, ())
        return tuple(
            PublishedPoint(
                system.name,
                system.description,
                x,
                number.value,
                _words(number),
                f"{number.paper}, {number.place}",
            )
            for system in self.published.systems.values()
            for number in self.published.numbers(system.name)
            if (number.metric, number.kind) == (metric, "absolute")
            and number.value is not None
            and number.conflict is None
            and number.unit == unit == METRICS[metric].unit
            and (number.experiment is None or number.experiment in repeats)
            and (x := _at(number, known)) is not None
        )


def overlay(home: Path, experiments: Mapping[str, Collection[str]]) -> Overlay:
    """Read what was published; nothing if the suite has none, which is no error.

    `experiments` are those of each check. SeatrialError if a file is damaged.
    """
    folder = published_dir(home)
    return Overlay(load_published(folder) if folder.is_dir() else None, experiments)


def _at(number: Number, sizes: list[float]) -> float | None:
    """Return the size of a curve that a number is at; None if it has none."""
    if number.size_bytes is not None:
        return number.size_bytes if number.size_bytes in sizes else None
    end = _ENDS.get(number.size or "")
    return end(sizes) if end else None


def _words(number: Number) -> str:
    """Format the number as the paper does: 'about 4.1 us: MPI; ports 2'."""
    about = f"{number.qualifier} " if number.qualifier else ""
    size = f" ({number.size} messages)" if number.size else ""
    more = "".join(f"; {key} {value}" for key, value in number.parameters.items())
    value = text.quantity(text.exact(number.value), number.unit or "")
    return f"{about}{value}: {number.what}{size}{more}"
