"""Criteria of a system: reference-data/<system>/criteria.yaml."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from seatrial.criteria.absence import NONE, Absence
from seatrial.criteria.criteria_file import read_criteria
from seatrial.criteria.criterion import Criterion, Risks
from seatrial.criteria.keys import Known
from seatrial.criteria.recorded import Recorded
from seatrial.criteria.signatures import USUAL, required_signatures
from seatrial.errors import SeatrialError
from seatrial.limits import YAML_SIZE
from seatrial.model.manifest import read_manifest
from seatrial.model.metrics import METRICS, own_metrics_of
from seatrial.model.yaml_file import YamlFile, yaml_bytes
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import KEPT_CRITERIA, Run
from seatrial.runs.maintenance import Maintenance

__all__ = [
    "Criteria",
    "Criterion",
    "Risks",
    "changes",
    "kept_criteria",
    "recorded_criteria",
]

_NOT_COMPARED = ("name", "provenance", "risks")


@dataclass(frozen=True)
class Criteria:
    """All criteria of a system, with the risks of the verdict on the whole machine.

    `declared` are those of settings, cables, ports and stability phases, `absence` is
    the allowance for absent nodes, `maintenance` what is planned, `signatures` the
    number of persons that must sign in each role. `sha256` is of `content`, the bytes
    of the file; '' if there is none. `elsewhere` are those of other campaigns, once the
    campaign is known.
    """

    risks: Risks
    criteria: tuple[Criterion, ...]
    sha256: str = ""
    declared: tuple[Recorded, ...] = ()
    absence: Absence = NONE
    signatures: Mapping[str, int] = field(default_factory=lambda: dict(USUAL))
    content: bytes = field(default=b"", repr=False)
    maintenance: tuple[Maintenance, ...] = ()
    elsewhere: tuple[Criterion, ...] = ()

    @classmethod
    def load(cls, file: Path, known: Known | None = None) -> "Criteria":
        """Read and validate a criteria.yaml.

        `known` checks and metrics may have criteria; by default those of the suite
        that the file is in. Raises SeatrialError with file, line, key
        and expectation.
        """
        if not file.is_file():
            raise SeatrialError(
                f"{file}: not there; expected the limits of the system, in the form "
                "of reference-data/lab/criteria.yaml; `seatrial run --no-judge` "
                "measures without"
            )
        if known is None:
            known = Known.beside(file)
        return cls.parse(yaml_bytes(file), file, known)

    @classmethod
    def parse(cls, content: bytes, file: Path, known: Known) -> "Criteria":
        """Parse the content of a criteria.yaml, as `load`."""
        read = YamlFile(file, content)
        return cls(
            **read_criteria(read, known)._asdict(),
            sha256=hashlib.sha256(content).hexdigest(),
            signatures=required_signatures(read),
            content=content,
        )

    def of_campaign(self, campaign: str) -> "Criteria":
        """Return the criteria that runs of a campaign must meet, the rest elsewhere."""
        held = tuple(rule for rule in self.criteria if rule.holds_in(campaign))
        others = tuple(rule for rule in self.criteria if not rule.holds_in(campaign))
        return replace(self, criteria=held, elsewhere=others)


def kept_criteria(run: Run) -> Criteria | None:
    """Parse the criteria of a run at its first data; None if it kept none.

    Raises SeatrialError if they are damaged.
    """
    content = run.kept.get(KEPT_CRITERIA)
    if content is None:
        return None
    return Criteria.parse(content, run.path / KEPT_CRITERIA, Known(metrics=run.metrics))


def recorded_criteria(run_folder: Path) -> Criteria | None:
    """Read the criteria that a run kept, unverified; None if it kept none.

    Raises SeatrialError if they cannot be read.
    """
    file = run_folder / KEPT_CRITERIA
    if not file.is_file():
        return None
    known = Known(metrics=METRICS | own_metrics_of(read_manifest(run_folder)))
    return Criteria.parse(read_plain(file, YAML_SIZE), file, known)


def changes(old: Criteria, new: Criteria) -> dict[str, str]:
    """Return changes by criterion: `limit 5 us, now 6 us`, `new`, `gone`.

    The risks of the machine are under the name '', the allowance for absence under
    `absent nodes`. Provenance is not compared.
    """
    before, after = _by_name(old), _by_name(new)
    differences = {"": _differences(asdict(old.risks), asdict(new.risks))}
    allowed, now = vars(old.absence), vars(new.absence)
    differences["absent nodes"] = _differences(allowed, now)
    windows = [{"maintenance": "; ".join(map(str, c.maintenance))} for c in (old, new)]
    differences["maintenance"] = _differences(*windows)
    for name in {**before, **after}:
        if name not in after:
            differences[name] = "gone"
        elif name not in before:
            differences[name] = "new"
        elif type(before[name]) is not type(after[name]):
            differences[name] = "of another kind"
        else:
            differences[name] = _differences(_facts(before[name]), _facts(after[name]))
    return {name: text for name, text in differences.items() if text}


def _by_name(criteria: Criteria) -> dict[str, Criterion | Recorded]:
    found: dict[str, Criterion | Recorded] = {}
    for one in criteria.criteria:
        found[one.name] = one
    for declared in criteria.declared:
        found[declared.name] = declared
    return found


def _facts(criterion: Criterion | Recorded) -> dict[str, Any]:
    """Return the limit and the risks of a criterion."""
    facts = {k: v for k, v in vars(criterion).items() if k not in _NOT_COMPARED}
    if not isinstance(criterion, Criterion):
        return facts
    if criterion.limit is not None:
        facts["limit"] = f"{criterion.limit:.12g} {criterion.unit}"
    facts["campaigns"] = criterion.campaigns or ("all",)
    risks = criterion.risks  # what share of suspects may be sound, the machine says
    return {**facts, "seller": risks.seller, "buyer": risks.buyer}


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name} {_text(was)}, now {_text(new[name])}"
        for name, was in old.items()
        if was != new[name]
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value or "none")
