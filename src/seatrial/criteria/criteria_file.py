"""Reading criteria.yaml: every fault is an error with file, line and expectation."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from seatrial.criteria.criterion import (
    Criterion,
    Kind,
    Model,
    Risks,
    fewest_allocations,
)
from seatrial.criteria.yaml_values import CriteriaValues, Given
from seatrial.model.metrics import split_flat_name

_SCHEMA = 1
_TOP = ("schema", "risks", "defaults", "criteria")
_AGREES = 1e-6
"""Relative difference between a limit and its formula."""

_NEVER_DEFAULT = ("check", "limits", "metrics", "name")
_DEFAULTS = {
    "model": "any",
    "zone": 0.05,
    "cap": 20,
    "looks": 1,
    "bears": "seller",
    "optional": False,
}
"""What holds where nothing is written."""

_NEEDED: dict[Kind, tuple[str, ...]] = {
    "promised": ("document", "clause"),
    "theoretical": ("formula",),
    "measured": ("run", "fingerprint"),
    "sameness": ("tolerance",),
}
_OF_KIND: dict[str, Kind] = {
    "formula": "theoretical",
    **dict.fromkeys(("run", "fingerprint", "coverage", "confidence", "n"), "measured"),
    "tolerance": "sameness",
}
"""Keys that belong to one kind only; those of other kinds in defaults do not count."""

_PROVENANCE = (
    "document",
    "clause",
    "who",
    "date",
    "method",
    "formula",
    "run",
    "coverage",
    "confidence",
    "n",
)


class CriteriaFile(CriteriaValues):
    """One criteria.yaml on its way to criteria."""

    def read(self) -> tuple[Risks, tuple[Criterion, ...]]:
        """Return the machine's risks, and all criteria in the order of the file."""
        top = self.mapping(self.root, ", ".join(_TOP))
        for name, (key, _) in top.items():
            if name not in _TOP:
                self.refuse(key, f"unknown key {name!r}; expected {', '.join(_TOP)}")
        for name in ("schema", "risks", "criteria"):
            if name not in top:
                self.refuse(self.root, f"no {name}; expected it at the top level")
        schema = self.value(top["schema"][1])
        if type(schema) is not int or schema != _SCHEMA:
            self.refuse(top["schema"][1], f"schema is {schema!r}; expected {_SCHEMA}")
        risks = self.machine_risks(top["risks"][1])
        defaults = self.defaults(top["defaults"][1]) if "defaults" in top else {}
        listed = top["criteria"][1]
        if not isinstance(listed, yaml.SequenceNode) or not listed.value:
            self.refuse(listed, "no criteria; expected a list of them")
        there: dict[Any, int] = {}
        criteria = []
        for node in listed.value:
            entry = _Entry(self, node, defaults, risks)
            for criterion, place in entry.criteria():
                self.verify_alone(criterion, place, there)
                criteria.append(criterion)
        return risks, tuple(criteria)

    def defaults(self, node: yaml.Node) -> dict[str, Given]:
        """Read what holds for every criterion that does not say otherwise."""
        defaults = self.given(node)
        for name in _NEVER_DEFAULT:
            if name in defaults:
                where = defaults[name].node
                self.refuse(where, f"{name} in defaults; expected it in a criterion")
        return defaults

    def verify_alone(
        self, criterion: Criterion, node: yaml.Node, there: dict[Any, int]
    ) -> None:
        """Raise an error for a repeated criterion or a repeated name."""
        line = node.start_mark.line + 1
        cases = frozenset((key, repr(each)) for key, each in criterion.where.items())
        what = (criterion.check, criterion.metric, criterion.kind, criterion.statistic)
        if (what, cases) in there:
            self.refuse(
                node,
                f"contradictory: line {there[what, cases]} says what is "
                f"{criterion.kind} of {criterion.check} {criterion.metric} on the same "
                "cases; expected one place",
            )
        if criterion.name in there:
            self.refuse(
                node,
                f"the criterion of line {there[criterion.name]} is called "
                f"{criterion.name!r}, too; expected another name",
            )
        there[what, cases] = there[criterion.name] = line


class _Entry:
    """One entry of the list: criteria of some metrics of one check."""

    def __init__(
        self,
        file: CriteriaFile,
        node: yaml.Node,
        defaults: Mapping[str, Given],
        machine: Risks,
    ) -> None:
        self.file, self.node, self.machine = file, node, machine
        self.own = file.given(node)
        for name in ("check", "kind"):
            if name not in self.own and name not in defaults:
                file.refuse(node, f"the criterion has no {name}")
        self.kind: Kind = {**defaults, **self.own}["kind"].value
        fitting = {
            name: value
            for name, value in defaults.items()
            if _OF_KIND.get(name, self.kind) == self.kind
        }
        self.given = {**fitting, **self.own}
        self.elsewhere = {} if "where" not in defaults else defaults["where"].value

    def criteria(self) -> Iterator[tuple[Criterion, yaml.Node]]:
        """Return the criterion of each metric, and where the metric is named."""
        self.verify_kind()
        risks = self.risks()
        self.verify_repeats(risks)
        metrics = self.metrics()
        for flat, (limit, node) in metrics.items():
            metric, _ = split_flat_name(flat)
            self.verify_metric(flat, limit, metric.direction, node)
            yield (
                Criterion(
                    name=self.name(flat, len(metrics)),
                    check=self.value("check"),
                    where=self.value("where") or {},
                    metric=flat,
                    unit=metric.unit,
                    direction=metric.direction,
                    statistic=self.value("statistic"),
                    kind=self.kind,
                    limit=limit,
                    tolerance=self.value("tolerance"),
                    model=self.value("model"),
                    zone=self.value("zone"),
                    risks=risks,
                    cap=self.value("cap"),
                    looks=self.value("looks"),
                    bears=self.value("bears"),
                    source=self.source(),
                    optional=self.value("optional"),
                    fingerprint=self.value("fingerprint") or {},
                    provenance=self.provenance(),
                ),
                node,
            )

    def value(self, name: str) -> Any:
        """Return the value of a key, or its default."""
        return self.given[name].value if name in self.given else _DEFAULTS.get(name)

    def refuse(self, name: str, reason: str) -> None:
        """Raise SeatrialError where a value is written, else at the criterion."""
        node = self.given[name].node if name in self.given else self.node
        self.file.refuse(node, reason)

    def verify_kind(self) -> None:
        """Refuse what does not belong to the kind, or lacks in it."""
        for name in self.own:
            kind = _OF_KIND.get(name, self.kind)
            if kind != self.kind:
                self.refuse(name, f"{name} belongs to kind {kind}, not {self.kind}")
        for name in _NEEDED[self.kind]:
            if name not in self.given:
                self.refuse("kind", f"kind {self.kind} needs {name}; it is not given")
        if self.kind == "sameness" and "limits" in self.own:
            self.refuse("limits", "kind sameness has no limits; expected metrics")
        if self.kind in ("promised", "measured") and "metrics" in self.own:
            self.refuse("metrics", f"kind {self.kind} has limits; expected no metrics")
        if self.kind == "sameness" and self.value("model") == "every":
            self.refuse("model", "model every holds values to limits, not to others")

    def verify_repeats(self, risks: Risks) -> None:
        """Refuse fewer repeats than can decide, and more looks than repeats."""
        model: Model = self.value("model")
        least, cap = fewest_allocations(model, risks.buyer), self.value("cap")
        if cap < least:
            reason = f"model {model} decides nothing with fewer than {least} repeats"
            self.refuse("cap", f"cap is {cap}, but {reason} at these risks")
        if self.value("looks") > cap:
            reason = f"expected no more than cap, {cap}"
            self.refuse("looks", f"looks are {self.value('looks')}; {reason}")

    def verify_metric(
        self, flat: str, limit: float | None, direction: str, node: yaml.Node
    ) -> None:
        """Refuse what contradicts the metric, its model or the formula."""
        if self.value("direction") not in (None, direction):
            self.refuse("direction", f"{flat} is better {direction}")
        if limit == 0 and self.value("model") == "lognormal":
            self.file.refuse(node, f"{flat}: model lognormal needs a limit above 0")
        if self.kind == "theoretical" and limit is not None:
            formula, result = self.value("formula")
            if abs(limit - result) > _AGREES * result:
                self.file.refuse(
                    node,
                    f"{flat}: contradictory: the limit is {limit:.12g}, the formula "
                    f"{formula} gives {result:.12g}",
                )

    def metrics(self) -> dict[str, Given]:
        """Return all metrics with their limits and places."""
        limits: dict[str, Given] = self.value("limits") or {}
        found: dict[str, Given] = dict(limits)
        for name, given in (self.value("metrics") or {}).items():
            if name in limits:
                self.file.refuse(given.node, f"{name} is in limits already")
            limit = self.value("formula")[1] if self.kind == "theoretical" else None
            found[name] = Given(limit, given.node)
        if not found:
            what = "limits" if self.kind in ("promised", "measured") else "metrics"
            self.file.refuse(self.node, f"no {what}; kind {self.kind} needs some")
        return found

    def risks(self) -> Risks:
        """Return the criterion's risks; they must not exceed the machine's."""
        own: dict[str, float] = self.value("risks") or {}
        for name, risk in own.items():
            most = getattr(self.machine, name)
            if risk > most:
                self.refuse("risks", f"risk {name} is {risk:g}, the machine's {most:g}")
        return Risks(**{**vars(self.machine), **own})

    def name(self, flat: str, metrics: int) -> str:
        """Return the name, by default built from the criterion's distinctive keys."""
        if "name" in self.own:
            name: str = self.value("name")
            return name if metrics == 1 else f"{name} {flat}"
        parts = [self.value("check"), flat, self.value("statistic") or ""]
        parts += [] if self.kind == "promised" else [self.kind]
        apart = ", ".join(
            f"{key}={value}"
            for key, value in (self.value("where") or {}).items()
            if self.elsewhere.get(key) != value
        )
        return " ".join(filter(None, [*parts, apart and f"({apart})"]))

    def source(self) -> str:
        """Return the source of the limit, in a few words."""
        if self.kind == "theoretical":
            return str(self.value("formula")[0])
        if self.kind == "measured":
            return str(self.value("run"))
        named = [self.value("document"), self.value("clause")]
        return ", ".join(filter(None, named)) or f"tolerance {self.value('tolerance')}"

    def provenance(self) -> dict[str, str]:
        """Return the provenance of the limit, as texts."""
        told = {name: self.value(name) for name in _PROVENANCE if name in self.given}
        if "formula" in told:
            told["formula"] = told["formula"][0]
        return {name: str(value) for name, value in told.items()}
