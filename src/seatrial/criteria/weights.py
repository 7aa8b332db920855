"""Weights of a bake-off, fixed before the first number.

A group has a weight; its share in the whole score is that over the sum of all. Within a
group all checks count the same, in a check all cases (parameters, environment,
partition, number of nodes), in a case all metrics, in a metric all sizes: how many
sizes a benchmark happens to print changes no weight.
"""

import hashlib
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from seatrial.criteria.criterion import matches
from seatrial.criteria.keys import (
    Known,
    Metrics,
    Share,
    Where,
    check_metrics,
    check_where,
)
from seatrial.model.metrics import flat_name
from seatrial.model.yaml_file import Place, Text, YamlFile, yaml_bytes

RankBy = Literal["performance", "price", "power"]
"""Rank by what is measured, by that per price, or by that per power."""

_Weight = Annotated[
    float, Meta(ge=0, le=sys.float_info.max, description="a number >= 0")
]


class Choice(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of one check: of all metrics if none are named, of all cases or some.

    `metrics` are flat names; one without a size, where it has sizes, means all of them.
    """

    check: Text
    metrics: Metrics = ()
    where: Where = {}

    def takes_metric(self, metric: str, size_bytes: int | None) -> bool:
        """Return True if a metric is selected."""
        if not self.metrics:
            return True
        named = {metric, flat_name(metric, size_bytes)}
        return not named.isdisjoint(self.metrics)

    def takes_case(self, check: str, values: Mapping[str, Collection[Any]]) -> bool:
        """Return True if a case is selected; `values` has the keys of each side."""
        return check == self.check and all(
            any(matches(wanted, value) for value in values.get(key, ()))
            for key, wanted in self.where.items()
        )

    def __str__(self) -> str:
        where = ", ".join(f"{key}={value}" for key, value in self.where.items())
        named = ", ".join(self.metrics)
        return " ".join(filter(None, [self.check, named, where and f"({where})"]))


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers that count together."""

    name: Text
    weight: _Weight
    numbers: Annotated[
        tuple[Choice, ...], Meta(min_length=1, description="a list of choices")
    ]


@dataclass(frozen=True)
class Weights:
    """A whole file of weights; `sha256` is of its bytes.

    `margin`: a winner is better by more than this share.
    """

    name: str
    sha256: str
    rank_by: RankBy
    margin: float
    groups: tuple[Group, ...]

    @classmethod
    def load(cls, path: Path, known: Known | None = None) -> "Weights":
        """Read and validate a file of weights.

        `known` checks and metrics may be named; by default those of the suite that
        the file is in. Raises SeatrialError with file, line,
        key and expectation.
        """
        if known is None:
            known = Known.beside(path)
        return cls.parse(yaml_bytes(path), path, known)

    @classmethod
    def parse(cls, content: bytes, path: Path, known: Known) -> "Weights":
        """Parse the content of a file of weights, as `load`."""
        file = YamlFile(path, content)
        read = file.convert(_File)
        _check(file, read, known)
        digest = hashlib.sha256(content).hexdigest()
        return cls(path.stem, digest, read.rank_by, read.margin, read.groups)


class _File(Struct, forbid_unknown_fields=True):
    schema: Literal[1]
    groups: Annotated[
        tuple[Group, ...], Meta(min_length=1, description="a list of groups")
    ]
    rank_by: RankBy = "performance"
    margin: Share = 0.0


def _check(file: YamlFile, content: _File, known: Known) -> None:
    """Refuse repeated groups, weights of 0, unknown checks, cases and metrics."""
    lines: dict[str, int] = {}
    for index, group in enumerate(content.groups):
        place: Place = ("groups", index)
        if group.name in lines:
            line = lines[group.name]
            file.refuse(place, f"line {line} has a group {group.name!r}. Rename one.")
        lines[group.name] = file.lines[place]
        for number, choice in enumerate(group.numbers):
            at = (*place, "numbers", number)
            if known.checks:
                file.one_of(
                    "checks", sorted(known.checks), choice.check, (*at, "check")
                )
            check_metrics(file, choice.metrics, (*at, "metrics"), known)
            check_where(file, choice.where, (*at, "where"))
            if "$system" in choice.where:
                reason = "differs between sides. Leave it out."
                file.refuse((*at, "where", "$system"), reason)
    if not any(group.weight for group in content.groups):
        file.refuse(("groups",), "expected a weight above 0, got a sum of 0.")
