"""Rules of criteria.yaml: an entry with the defaults becomes criteria."""

import math
from collections.abc import Iterator
from typing import Any, NoReturn

from seatrial.criteria import keys
from seatrial.criteria.absence import read_absence
from seatrial.criteria.criteria_types import Entry, File
from seatrial.criteria.criterion import (
    Criterion,
    Kind,
    Risks,
    fewest_allocations,
    usual_model,
)
from seatrial.criteria.formula import evaluate
from seatrial.criteria.keys import Known
from seatrial.criteria.parts import Parts
from seatrial.criteria.recorded import KINDS, Recorded, recorded
from seatrial.criteria.risk_keys import own_risks
from seatrial.criteria.stability import OWN_KEYS as STABILITY_KEYS
from seatrial.model.yaml_file import Place, YamlFile
from seatrial.runs.maintenance import read_windows

_AGREES = 1e-6
"""Relative difference between a limit and its formula."""

_NEEDED: dict[str, tuple[str, ...]] = {
    "promised": ("document", "clause"),
    "theoretical": ("formula",),
    "measured": ("run", "fingerprint"),
    "sameness": ("tolerance",),
}
_OF_KIND: dict[str, Kind] = {
    "formula": "theoretical",
    **dict.fromkeys(("run", "fingerprint", "coverage", "confidence", "n"), "measured"),
    "tolerance": "sameness",
    "fails": "fabric",
    **dict.fromkeys(STABILITY_KEYS, "stability"),
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


def read_criteria(file: YamlFile, known: Known) -> Parts:
    """Return the parts of a file; SeatrialError with the line of a fault."""
    content = file.convert(File)
    there: dict[Any, int] = {}
    criteria: list[Criterion] = []
    declared: list[Recorded] = []
    for index, entry in enumerate(content.criteria):
        place = ("criteria", index)
        if (entry.kind or content.defaults.kind) in KINDS:
            for found, at in recorded(file, content, entry, place):
                _check_name(file, found.name, at, there)
                declared.append(found)
            continue
        if not entry.check:
            file.expected("a text", None, (*place, "check"))
        if known.checks:
            file.one_of("checks", sorted(known.checks), entry.check, (*place, "check"))
        for criterion, at in _Merged(file, content, index, known).criteria():
            _check_alone(file, criterion, at, there)
            criteria.append(criterion)
    absence = read_absence(file, content.absent_nodes, content.defaults.document)
    windows = tuple(read_windows(file, content.maintenance))
    return Parts(content.risks, tuple(criteria), tuple(declared), absence, windows)


def _check_name(file: YamlFile, name: str, place: Place, there: dict[Any, int]) -> None:
    """Refuse a repeated name."""
    if name in there:
        file.refuse(
            place,
            f"the criterion of line {there[name]} is called {name!r}, too; expected "
            "another name",
        )
    there[name] = file.lines[place]


def _check_alone(
    file: YamlFile, one: Criterion, place: Place, there: dict[Any, int]
) -> None:
    """Refuse a repeated criterion, or a repeated name."""
    cases = frozenset((key, repr(value)) for key, value in one.where.items())
    subject = (one.check, one.metric, one.kind, one.statistic, one.campaigns)
    if (subject, cases) in there:
        file.refuse(
            place,
            f"contradictory: line {there[subject, cases]} says what is "
            f"{one.kind} of {one.check} {one.metric} on the same cases; expected one "
            "place",
        )
    _check_name(file, one.name, place, there)
    there[subject, cases] = file.lines[place]


class _Merged:
    """An entry together with the defaults that fit its kind."""

    def __init__(self, file: YamlFile, content: File, index: int, known: Known) -> None:
        self.file, self.machine, self.known = file, content.risks, known
        self.place: Place = ("criteria", index)
        self.own = file.data["criteria"][index]
        entry, defaults = content.criteria[index], content.defaults
        kind = entry.kind or defaults.kind
        if kind is None:
            file.expected("a kind, here or in defaults", None, (*self.place, "kind"))
        self.kind: Kind = kind
        self.fitting = {
            name: getattr(defaults, name)
            for name in file.data.get("defaults", ())
            if _OF_KIND.get(name, kind) == kind
        }
        given = {**self.fitting, **{name: getattr(entry, name) for name in self.own}}
        if given.get("bad_share"):
            given["model"] = "any"
        for name, value in given.items():
            given[name] = " ".join(value.split()) if isinstance(value, str) else value
        self.given = Entry(**given)
        self.elsewhere = defaults.where
        self.formula = 0.0

    def at(self, *names: Any) -> Place:
        """Return the place of a key: in the entry, in the defaults, or missing."""
        inherited = names[0] in self.fitting and names[0] not in self.own
        return ("defaults", *names) if inherited else (*self.place, *names)

    def refuse(self, name: str, reason: str) -> NoReturn:
        """Raise SeatrialError for a key."""
        self.file.refuse(self.at(name), reason)

    def criteria(self) -> Iterator[tuple[Criterion, Place]]:
        """Return the criterion of each metric, and where the metric is named."""
        file, given = self.file, self.given
        self.check_kind()
        keys.check_where(file, given.where, self.at("where"))
        keys.check_campaigns(file, given.campaigns, self.at("campaigns"), self.known)
        risks = self.risks()
        self.check_repeats(risks)
        self.formula, metrics = self.evaluated(), self.metrics()
        for flat, (limit, place) in metrics.items():
            metric = keys.checked_metric(self.file, flat, place, self.known)
            value = self.limit(flat, limit, place)
            yield (
                Criterion(
                    name=self.name(flat, len(metrics)),
                    check=given.check,
                    where=given.where,
                    metric=flat,
                    unit=metric.unit,
                    direction=metric.direction,
                    statistic=given.statistic,
                    kind=self.kind,
                    limit=value,
                    tolerance=given.tolerance,
                    model=self.given.model or usual_model(metric.unit, value),
                    zone=given.zone,
                    risks=risks,
                    cap=given.cap,
                    bears=given.bears,
                    source=self.source(),
                    optional=given.optional,
                    bad_share=given.bad_share,
                    campaigns=given.campaigns,
                    fingerprint=given.fingerprint or {},
                    provenance=self.provenance(),
                ),
                place,
            )

    def check_kind(self) -> None:
        """Refuse keys that do not belong to the kind, and report missing ones."""
        kind = self.kind
        for name in self.own:
            if _OF_KIND.get(name, kind) != kind:
                self.refuse(name, f"belongs to kind {_OF_KIND[name]}, not {kind}")
        for name in _NEEDED[kind]:
            if getattr(self.given, name) is None:
                self.refuse("kind", f"kind {kind} needs {name}; it is not given")
        if kind == "sameness" and "limits" in self.own:
            self.refuse("limits", "kind sameness has no limits; expected metrics")
        if kind in ("promised", "measured") and "metrics" in self.own:
            self.refuse("metrics", f"kind {kind} has limits; expected no metrics")
        if kind == "sameness" and self.given.model == "every":
            self.refuse("model", "model every holds values to limits, not to others")
        if self.given.bad_share is not None and "model" in self.own:
            self.refuse(
                "bad_share", "a share of allocations has no model; leave it out"
            )

    def check_repeats(self, risks: Risks) -> None:
        """Refuse fewer repeats than can decide."""
        model, cap = self.given.model or "lognormal", self.given.cap
        least = fewest_allocations(model, risks.buyer, self.given.bad_share)
        if cap < least:
            reason = f"model {model} decides nothing with fewer than {least} repeats"
            self.refuse("cap", f"cap is {cap}, but {reason} at these risks")

    def evaluated(self) -> float:
        """Return the result of the formula; 0 without one."""
        if self.given.formula is None:
            return 0.0
        try:
            value = evaluate(str(self.given.formula))
        except ValueError as error:
            self.refuse("formula", f"{self.given.formula!r}: {error}")
        if value < 0:
            self.refuse(
                "formula", f"{self.given.formula!r} is {value:g}; expected >= 0"
            )
        return value

    def metrics(self) -> dict[str, tuple[str | None, Place]]:
        """Return all metrics with their written limits and places."""
        limits, metrics = self.given.limits, self.given.metrics or ()
        keys.check_metrics(self.file, metrics, self.at("metrics"), self.known)
        for index, flat in enumerate(metrics):
            if flat in limits:
                place = self.at("metrics", index)
                self.file.refuse(place, f"{flat} is in limits already")
        if not limits and not metrics:
            name = "limits" if self.kind in ("promised", "measured") else "metrics"
            self.refuse(name, f"expected some for kind {self.kind}, got none")
        return {
            **{flat: (text, self.at("limits", flat)) for flat, text in limits.items()},
            **{f: (None, self.at("metrics", i)) for i, f in enumerate(metrics)},
        }

    def limit(self, flat: str, written: str | None, place: Place) -> float | None:
        """Return the limit of a metric; refuse a contradiction to its definition."""
        metric = keys.checked_metric(self.file, flat, place, self.known)
        if self.given.direction not in (None, metric.direction):
            self.refuse("direction", f"{flat} is better {metric.direction}")
        if written is None:
            return self.formula if self.kind == "theoretical" else None
        text, unit = written.split()
        limit = float(text)
        if unit != metric.unit or not math.isfinite(limit):
            self.file.expected(f"a number in {metric.unit!r}", written, place)
        if limit == 0 and self.given.model == "lognormal":
            self.file.refuse(place, "model lognormal needs a limit above 0")
        if (
            self.kind == "theoretical"
            and abs(limit - self.formula) > _AGREES * self.formula
        ):
            self.file.refuse(
                place,
                f"contradictory: the limit is {limit:.12g}, the formula "
                f"{self.given.formula} gives {self.formula:.12g}",
            )
        return limit

    def risks(self) -> Risks:
        """Return the criterion's risks; they must not exceed the machine's."""
        given = self.given.risks
        return own_risks(
            self.file, self.machine, given, lambda name: self.at("risks", name)
        )

    def name(self, flat: str, metrics: int) -> str:
        """Return the name, by default built from the criterion's distinctive keys."""
        given = self.given
        if given.name is not None:
            return given.name if metrics == 1 else f"{given.name} {flat}"
        parts = [given.check, flat, given.statistic or ""]
        parts += [] if self.kind == "promised" else [self.kind]
        where = given.where.items()
        apart = [f"{k}={value}" for k, value in where if self.elsewhere.get(k) != value]
        apart += given.campaigns if "campaigns" in self.own else ()
        parts += [f"({', '.join(apart)})"] if apart else []
        return " ".join(filter(None, parts))

    def source(self) -> str:
        """Return the source of the limit, in a few words."""
        given = self.given
        if self.kind == "theoretical":
            return str(given.formula)
        if self.kind == "measured":
            return str(given.run)
        named = [given.document, given.clause]
        return ", ".join(filter(None, named)) or f"tolerance {given.tolerance}"

    def provenance(self) -> dict[str, str]:
        """Return the provenance of the limit, as texts."""
        values = {name: getattr(self.given, name) for name in _PROVENANCE}
        return {name: str(v) for name, v in values.items() if v is not None}
