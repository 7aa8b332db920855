"""Weights of a bake-off, fixed before the first number.

A group has a weight; its share in the whole score is that over the sum of all. Within a
group all checks count the same, in a check all cases (parameters, environment,
partition, number of nodes), in a case all metrics, in a metric all sizes: how many
sizes a benchmark happens to print changes no weight.
"""

import hashlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import yaml

from seatrial.checks.sources import known_checks
from seatrial.criteria.criterion import matches
from seatrial.criteria.yaml_values import CriteriaValues
from seatrial.model.metrics import split_flat_name
from seatrial.model.yaml_file import yaml_bytes
from seatrial.paths import checks_dir

RankBy = Literal["performance", "price", "power"]
"""Rank by what is measured, by that per price, or by that per power."""

_SCHEMA = 1
_TOP = ("schema", "rank_by", "margin", "groups")
_GROUP = ("name", "weight", "numbers")
_CHOICE = ("check", "metrics", "where")


@dataclass(frozen=True)
class Choice:
    """Numbers of one check: of all metrics if none are named, of all cases or some.

    `metrics` are flat names; one without a size, where it has sizes, means all of them.
    """

    check: str
    metrics: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def takes_metric(self, metric: str, size_bytes: int | None) -> bool:
        """Return True if a metric is selected."""
        if not self.metrics:
            return True
        named = [split_flat_name(flat) for flat in self.metrics]
        return any(
            each.name == metric and size in (None, size_bytes) for each, size in named
        )

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


@dataclass(frozen=True)
class Group:
    """Numbers that count together."""

    name: str
    weight: float
    numbers: tuple[Choice, ...]


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
    def load(cls, path: Path, known: Collection[str] | None = None) -> "Weights":
        """Read and validate a file of weights.

        `known` are the classes of checks that may be named (none: any may); by default
        those of the suite that the file is in. Raises SeatrialError with file, line and
        what was expected there.
        """
        if known is None:
            known = known_checks(checks_dir(path.resolve().parents[2]))
        return cls.parse(yaml_bytes(path), path, known)

    @classmethod
    def parse(cls, content: bytes, path: Path, known: Collection[str]) -> "Weights":
        """Parse the content of a file of weights; `load` says what else."""
        rank_by, margin, groups = _WeightsFile(path, known, content).read()
        digest = hashlib.sha256(content).hexdigest()
        return cls(path.stem, digest, rank_by, margin, groups)


class _WeightsFile(CriteriaValues):
    """One file of weights; checks and cases are named as in criteria.yaml."""

    def read(self) -> tuple[RankBy, float, tuple[Group, ...]]:
        """Return the ranking key, the margin, and the groups."""
        top = self.entries(self.root, "the weights", _TOP, ("schema", "groups"))
        schema = self.value(top["schema"])
        if type(schema) is not int or schema != _SCHEMA:
            self.refuse(top["schema"], f"schema is {schema!r}; expected {_SCHEMA}")
        rank_by: RankBy = "performance"
        if "rank_by" in top:
            rank_by = self.value(top["rank_by"])
            if rank_by not in get_args(RankBy):
                names = ", ".join(get_args(RankBy))
                self.refuse(
                    top["rank_by"], f"rank_by is {rank_by!r}; expected one of {names}"
                )
        margin = 0.0
        if "margin" in top:
            expected = "a share from 0 to below 1"
            margin = self.number(
                "margin", top["margin"], lambda x: 0 <= x < 1, expected
            )
        groups: dict[str, Group] = {}
        for node in self.sequence(top["groups"], "groups"):
            group = self.group(node)
            if group.name in groups:
                self.refuse(node, f"there is a group {group.name!r} already")
            groups[group.name] = group
        if not sum(group.weight for group in groups.values()) > 0:
            self.refuse(top["groups"], "the weights sum to 0; expected one above 0")
        return rank_by, margin, tuple(groups.values())

    def group(self, node: yaml.Node) -> Group:
        """Read one group."""
        given = self.entries(node, "a group", _GROUP, _GROUP)
        weight = self.number(
            "weight",
            given["weight"],
            lambda x: math.isfinite(x) and x >= 0,
            "a number from 0",
        )
        choices = self.sequence(given["numbers"], "numbers")
        return Group(
            self.text("name", given["name"]), weight, tuple(map(self.choice, choices))
        )

    def choice(self, node: yaml.Node) -> Choice:
        """Read which numbers of a check are meant."""
        given = self.entries(node, "numbers", _CHOICE, ("check",))
        where = self.where("where", given["where"]) if "where" in given else {}
        if "$system" in where:
            self.refuse(given["where"], "$system differs between sides; leave it out")
        metrics = (
            tuple(self.metrics("metrics", given["metrics"]))
            if "metrics" in given
            else ()
        )
        return Choice(self.check("check", given["check"]), metrics, where)

    def sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        """Return the nodes of a non-empty list."""
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.refuse(node, f"{what}: expected a list with at least one entry")
        return list(node.value)

    def entries(
        self,
        node: yaml.Node | None,
        what: str,
        known: tuple[str, ...],
        needed: tuple[str, ...],
    ) -> dict[str, yaml.Node]:
        """Return the values of a mapping that has these keys."""
        names = ", ".join(known)
        found = {}
        for name, (key, value) in self.mapping(node, names).items():
            if name not in known:
                self._unknown(key, name, names)
            found[name] = value
        for name in needed:
            if name not in found:
                self.refuse(node, f"{what}: no {name}; expected {names}")
        return found

    def _unknown(self, key: yaml.Node, name: Any, names: str) -> NoReturn:
        self.refuse(key, f"unknown key {name!r}; expected {names}")
