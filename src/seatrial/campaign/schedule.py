"""The agenda of a run (plan.json): its sessions, frozen before the first of them.

A resumed run follows it, even if campaign or checks have changed since.
"""

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from seatrial.campaign.campaign_file import Block, Campaign
from seatrial.campaign.stability_phase import StabilityPhase, phase_of
from seatrial.errors import SeatrialError
from seatrial.limits import CASES_SIZE
from seatrial.model.cases import ListedCase
from seatrial.model.manifest import decoded
from seatrial.names import checked_name
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import AGENDA_FILE

SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Planned:
    """One small ReFrame session: a block, or a part of it, in one repeat.

    `missing`: the missing features of the system, by check without a case.
    """

    name: str
    block: str
    repeat: int
    checks: tuple[str, ...]
    variables: dict[str, Any]
    cases: tuple[ListedCase, ...]
    missing: dict[str, str] = field(default_factory=dict)

    def numbered(self, repeat: int) -> "Planned":
        """Return the session of a repeat."""
        return replace(self, name=f"{self.name}-{repeat}", repeat=repeat)


@dataclass(frozen=True)
class Agenda:
    """The plan of a run. `created` is in UTC; `replay` a folder of recordings.

    `campaign` has its name, description, repeats, retries, max_jobs, pack_minutes,
    checks, weights, a stability phase, and the classes, partitions and stacks it
    chooses. `nodes` are the delivered nodes by class; agendas of older versions have
    none. `repeat_of`: the run whose spoiled cases it makes again, '' for others.
    """

    run: str
    system: str
    created: str
    campaign: dict[str, Any]
    sessions: tuple[Planned, ...]
    partial: bool = False
    replay: str | None = None
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    repeat_of: str = ""

    @property
    def is_of_places(self) -> bool:
        """Whether only some partitions or MPI stacks of a check may be chosen."""
        chosen = map(self.campaign.get, ("classes", "partitions", "stacks"))
        return bool(self.repeat_of) or any(chosen)

    @property
    def stability(self) -> StabilityPhase | None:
        """The declared stability phase; None if it is another campaign."""
        return phase_of(self.campaign.get("stability"))

    @property
    def round_s(self) -> float:
        """Seconds that a session of a stability phase lasts at least; 0 for others.

        The sessions of a round share its time.
        """
        phase = self.stability
        if phase is None:
            return 0.0
        return phase.duration_s / max(len(self.sessions), 1)

    def write(self) -> bytes:
        """Return it as JSON."""
        content = {"schema": SCHEMA_VERSION, **asdict(self)}
        return (json.dumps(content, indent=1) + "\n").encode()


def read_agenda(folder: Path) -> Agenda:
    """Read the agenda of a run's folder; SeatrialError if it is missing or damaged."""
    file = folder / AGENDA_FILE
    return parse_agenda(read_plain(file, CASES_SIZE), file)


def parse_agenda(content: bytes, file: Path) -> Agenda:
    """Parse the content of a plan.json; SeatrialError if it is damaged."""
    schema = decoded(content, file, _Head, "the agenda of a run").schema
    if schema != SCHEMA_VERSION:
        raise SeatrialError(
            f"{file}: not the agenda of a run: schema {schema}, expected "
            f"{SCHEMA_VERSION}"
        )
    agenda = decoded(content, file, Agenda, "the agenda of a run")
    sessions = (session.name for session in agenda.sessions)
    for name in (agenda.run, agenda.system, *sessions):
        checked_name(name, f"{file}: run, system or session")
    return agenda


class _Campaign(msgspec.Struct):
    """Checked fields of an agenda's campaign."""

    name: str
    retries: int = 0
    max_jobs: int = 1
    pack_minutes: int = 0
    checks: tuple[str, ...] = ()


class _Head(msgspec.Struct):
    schema: int
    campaign: _Campaign | msgspec.UnsetType = msgspec.UNSET


def frozen(campaign: Campaign) -> dict[str, Any]:
    """Return the fields of a campaign that an agenda keeps."""
    names = ("name", "description", "repeats", "retries", "max_jobs", "pack_minutes")
    kept = {name: getattr(campaign, name) for name in names}
    choices = ("classes", "partitions", "stacks", "checks")
    kept |= {name: list(getattr(campaign, name)) for name in choices}
    kept["weights"] = campaign.weights and asdict(campaign.weights)
    if campaign.stability:
        kept["stability"] = campaign.stability.frozen()
    return kept


def plan_sessions(
    campaign: Campaign, listed: Sequence[ListedCase], missing: Mapping[str, str]
) -> tuple[Planned, ...]:
    """Plan the sessions of a campaign.

    `listed` are all cases of the system; `missing`: the missing features, by check
    without a case. Raises SeatrialError if a parameter has none of the chosen values.
    """
    parts = {
        block.name: _parts(block, campaign.block_size, listed, missing)
        for block in campaign.blocks
    }
    sessions = [
        part.numbered(repeat)
        for repeat in range(1, campaign.repeats + 1)
        for name in _order(campaign, repeat)
        for part in parts[name]
    ]
    if campaign.controls is None:
        return tuple(sessions)
    (control,) = _parts(campaign.controls, None, listed, missing)
    between = campaign.controls_every
    planned = [control.numbered(1)]
    for number, start in enumerate(range(0, len(sessions), between), 2):
        planned += [*sessions[start : start + between], control.numbered(number)]
    return tuple(planned)


def _order(campaign: Campaign, repeat: int) -> list[str]:
    """Return the names of the blocks in the order of one repeat."""
    names = [block.name for block in campaign.blocks]
    if campaign.order == "shuffled":
        random.Random(f"{campaign.seed}:{repeat}").shuffle(names)
    return names


def _parts(
    block: Block,
    size: int | None,
    listed: Sequence[ListedCase],
    missing: Mapping[str, str],
) -> list[Planned]:
    """Cut a block into parts of at most `size` checks with their parameters.

    A part has the name of the block, with a number if there are several.
    """
    variants: dict[str, list[ListedCase]] = defaultdict(list)
    for check in block.checks:
        for case in _cases(block, check, listed):
            variants[case.case].append(case)
    names = list(variants)
    size = size or max(len(names), 1)
    chunks = [names[start : start + size] for start in range(0, len(names), size)]
    lacking = {check: missing[check] for check in block.checks if check in missing}
    return [
        Planned(
            name=block.name if len(chunks) < 2 else f"{block.name}.{number}",
            block=block.name,
            repeat=1,
            checks=tuple(dict.fromkeys(variants[name][0].check for name in chunk)),
            variables=block.variables,
            cases=tuple(case for name in chunk for case in variants[name]),
            missing=lacking if number == 1 else {},
        )
        for number, chunk in enumerate(chunks or [[]], 1)
    ]


def _cases(block: Block, check: str, listed: Sequence[ListedCase]) -> list[ListedCase]:
    """Return the cases of a check that have the chosen parameters."""
    cases = [case for case in listed if case.check == check]
    for name, values in block.parameters.get(check, {}).items():
        known = {case.parameters.get(name) for case in cases}
        unknown = [value for value in values if value not in known]
        if cases and unknown:
            have = ", ".join(sorted(str(value) for value in known - {None}))
            raise SeatrialError(
                f"block {block.name!r}: no case of {check} with {name}="
                f"{', '.join(unknown)}; its values here: {have or 'none'}"
            )
        cases = [case for case in cases if case.parameters.get(name) in values]
    return cases
