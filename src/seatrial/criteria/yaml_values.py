"""Readers of the values of criteria.yaml; errors name the line."""

import datetime
import math
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple, get_args

import yaml

from seatrial.criteria.criterion import Bears, Kind, Model, Risks
from seatrial.criteria.formula import evaluate
from seatrial.model.metrics import Metric, split_flat_name
from seatrial.model.yaml_file import YamlFile

CASE_KEYS = ("$system", "$partition", "$environ", "num_nodes")
"""What tells cases apart beside the parameters of their check; ReFrame's names."""

_HIGHEST_RISK = 0.5


class Given(NamedTuple):
    """A value that was written, and where."""

    value: Any
    node: yaml.Node


class CriteriaValues(YamlFile):
    """Map each criterion key to its reader function."""

    def __init__(self, path: Path, known: Collection[str], content: bytes) -> None:
        super().__init__(path, content)
        self.known = known
        texts = ("name", "document", "clause", "who", "method", "run", "statistic")
        self.readers: dict[str, Callable[[str, yaml.Node], Any]] = {
            "check": self.check,
            **dict.fromkeys(texts, self.text),
            "date": self.date,
            "where": self.where,
            "limits": self.limits,
            "metrics": self.metrics,
            "kind": _choice(self, get_args(Kind)),
            "model": _choice(self, get_args(Model)),
            "bears": _choice(self, get_args(Bears)),
            "direction": _choice(self, ("higher", "lower")),
            "optional": self.yes_or_no,
            "formula": self.formula,
            "fingerprint": self.fingerprint,
            "risks": self.own_risks,
            **dict.fromkeys(("tolerance", "coverage", "confidence"), self.share),
            "zone": self.zone,
            **dict.fromkeys(("cap", "looks", "n"), self.count),
        }

    def given(self, node: yaml.Node) -> dict[str, Given]:
        """Read all that is written for one criterion, or for all of them."""
        found = {}
        for name, (key, value) in self.mapping(node, "keys of a criterion").items():
            if name not in self.readers:
                names = ", ".join(self.readers)
                self.refuse(key, f"unknown key {name!r}; expected one of {names}")
            found[name] = Given(self.readers[name](name, value), value)
        return found

    def yes_or_no(self, name: str, node: yaml.Node) -> bool:
        """Read true or false."""
        value = self.value(node)
        if not isinstance(value, bool):
            self.refuse(node, f"{name} is {value!r}; expected true or false")
        return value

    def machine_risks(self, node: yaml.Node) -> Risks:
        """Read the risks of the verdict on the machine."""
        risks = self.risks(node, ("seller", "buyer", "discovery"))
        for name in ("seller", "buyer"):
            if name not in risks:
                self.refuse(node, f"risks have no {name}; expected e.g. {name}: 0.05")
        return Risks(**risks)

    def own_risks(self, _: str, node: yaml.Node) -> dict[str, float]:
        """Read the smaller risks of a criterion."""
        return self.risks(node, ("seller", "buyer"))

    def risks(self, node: yaml.Node, names: tuple[str, ...]) -> dict[str, float]:
        """Read some risks of these names."""
        risks = {}
        for name, (key, value) in self.mapping(node, ", ".join(names)).items():
            if name not in names:
                self.refuse(key, f"unknown risk {name!r}; expected {', '.join(names)}")
            expected = f"a number above 0, at most {_HIGHEST_RISK}"
            risks[name] = self.number(
                f"risk {name}", value, lambda risk: 0 < risk <= _HIGHEST_RISK, expected
            )
        return risks

    def check(self, name: str, node: yaml.Node) -> str:
        """Read the class of a check."""
        check = self.text(name, node)
        if self.known and check not in self.known:
            names = ", ".join(sorted(self.known))
            self.refuse(node, f"unknown check {check!r}; expected one of {names}")
        return check

    def where(self, _: str, node: yaml.Node) -> dict[str, Any]:
        """Read which cases are meant: keys of a case, or parameters of the check."""
        names = f"{', '.join(CASE_KEYS)} or parameters of the check"
        where = {}
        for name, (key, value) in self.mapping(node, names).items():
            is_name = isinstance(name, str) and name.isidentifier()
            if name not in CASE_KEYS and not is_name:
                self.refuse(key, f"where holds {name!r}; expected {names}")
            where[name] = self.case_value(name, value)
        return where

    def case_value(self, name: str, node: yaml.Node) -> Any:
        """Read what a key of a case must be; refuse what it never can."""
        value = self.value(node)
        if name == "num_nodes" and type(value) is not int:
            self.refuse(node, f"{value!r} is no number of nodes; expected 4, not '4'")
        if name.startswith("$") and not isinstance(value, str):
            self.refuse(node, f"{value!r} is no name for {name}; expected a text")
        if isinstance(value, str):
            try:
                re.compile(value)
            except re.error as error:
                self.refuse(node, f"{value!r} is no regular expression: {error}")
        elif type(value) not in (int, float, bool):
            self.refuse(node, f"{name} is {value!r}; expected a text or a number")
        return value

    def limits(self, _: str, node: yaml.Node) -> dict[str, Given]:
        """Read limits by their flat metrics, with the places of the names."""
        limits = {}
        for name, (key, value) in self.mapping(node, "metrics and limits").items():
            limits[name] = Given(self.limit(self.metric(name, key), name, value), key)
        return limits

    def limit(self, metric: Metric, flat: str, node: yaml.Node) -> float:
        """Read a number with the unit of its metric, such as `5000 us`."""
        written = self.value(node)
        expected = f"expected a number and its unit, such as '5000 {metric.unit}'"
        if not isinstance(written, str) or len(written.split()) != 2:
            self.refuse(node, f"{flat} is {written!r}; {expected}")
        text, unit = written.split()
        if unit != metric.unit:
            self.refuse(node, f"{flat} is in {unit!r}; expected {metric.unit!r}")
        try:
            limit = float(text)
        except ValueError:
            self.refuse(node, f"{flat} is {written!r}; {expected}")
        if not math.isfinite(limit) or limit < 0:
            self.refuse(node, f"{flat} is {written!r}; expected a number >= 0")
        return limit

    def metrics(self, _: str, node: yaml.Node) -> dict[str, Given]:
        """Read flat metrics without limits of their own, with their places."""
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.refuse(node, "expected a list of metrics such as bw_4MiB")
        found: dict[str, Given] = {}
        for each in node.value:
            name = self.value(each)
            self.metric(name, each)
            if name in found:
                self.refuse(each, f"{name} is listed twice")
            found[name] = Given(None, each)
        return found

    def metric(self, name: Any, node: yaml.Node) -> Metric:
        """Find a metric by its flat name."""
        try:
            return split_flat_name(str(name))[0]
        except ValueError as error:
            self.refuse(node, str(error))

    def formula(self, name: str, node: yaml.Node) -> tuple[str, float]:
        """Read a formula, and calculate it."""
        written = self.value(node)
        if type(written) not in (str, int, float):
            self.refuse(node, f"{name} is {written!r}; expected e.g. 4 * 25 / 8")
        try:
            value = evaluate(str(written))
        except ValueError as error:
            self.refuse(node, f"{name} {written!r}: {error}")
        if value < 0:
            self.refuse(node, f"{name} {written!r} is {value:g}; expected >= 0")
        return " ".join(str(written).split()), value

    def fingerprint(self, name: str, node: yaml.Node) -> dict[str, str]:
        """Read the configuration that a limit was measured on."""
        entries = self.mapping(node, "facts such as kernel, and their texts")
        found = {str(key): self.text(str(key), entries[key][1]) for key in entries}
        return found or self.refuse(node, f"{name} is empty; expected e.g. kernel: ...")

    def text(self, name: str, node: yaml.Node) -> str:
        """Read a non-empty string."""
        value = self.value(node)
        if not isinstance(value, str) or not value.strip():
            self.refuse(node, f"{name} is {value!r}; expected a text")
        return " ".join(value.split())

    def date(self, name: str, node: yaml.Node) -> str:
        """Read a date."""
        value = self.value(node)
        if type(value) is not datetime.date:
            self.refuse(node, f"{name} is {value!r}; expected a date as 2026-11-21")
        return value.isoformat()

    def share(self, name: str, node: yaml.Node) -> float:
        """Read a share between 0 and 1."""
        return self.number(name, node, lambda x: 0 < x < 1, "a number between 0 and 1")

    def zone(self, name: str, node: yaml.Node) -> float:
        """Read a share of the limit."""
        return self.number(
            name, node, lambda x: 0 <= x < 1, "a share of the limit, from 0 to below 1"
        )

    def number(
        self,
        name: str,
        node: yaml.Node,
        valid: Callable[[float], bool],
        expected: str,
    ) -> float:
        """Read a number for which a condition holds."""
        value = self.value(node)
        if type(value) not in (int, float) or not valid(value):
            self.refuse(node, f"{name} is {value!r}; expected {expected}")
        return float(value)

    def count(self, name: str, node: yaml.Node) -> int:
        """Read a whole number from 1."""
        value = self.value(node)
        if type(value) is not int or value < 1:
            self.refuse(node, f"{name} is {value!r}; expected a whole number >= 1")
        return value


def _choice(file: YamlFile, names: tuple[str, ...]) -> Callable[[str, yaml.Node], str]:
    """Return a reader of one of some names."""

    def read(name: str, node: yaml.Node) -> str:
        value = file.value(node)
        if not isinstance(value, str) or value not in names:
            file.refuse(
                node, f"{name} is {value!r}; expected one of {', '.join(names)}"
            )
        return value

    return read
