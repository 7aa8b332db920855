"""A campaign: its checks, their blocks, order and repeats."""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from seatrial.campaign.stability_phase import (
    StabilityKeys,
    StabilityPhase,
    read_phase,
)
from seatrial.checks.job_mix import CHECK
from seatrial.criteria.weights import Weights
from seatrial.errors import SeatrialError
from seatrial.model.yaml_file import Count, Place, YamlFile
from seatrial.paths import campaigns_dir, known_campaigns, weights_file

CONTROLS = "controls"
"""The name of the block of the control checks."""

Chosen = Mapping[str, tuple[str, ...]]
"""Selected values of the parameters of a check, as text."""


@dataclass(frozen=True)
class Block:
    """A group of checks by class name, with ReFrame's -S variables.

    `parameters` restricts some checks to some values of their parameters.
    """

    name: str
    checks: tuple[str, ...]
    variables: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Chosen] = field(default_factory=dict)


@dataclass(frozen=True)
class FrozenWeights:
    """The weights of a bake-off, frozen before its first measurement."""

    name: str
    sha256: str
    text: str


@dataclass(frozen=True)
class Campaign:
    """A named selection of checks; every block runs `repeats` times, by turns.

    A block of more than `block_size` checks (each with its parameters) is run in
    parts. In every repeat the blocks come as listed, or shuffled by `seed`. `controls`
    run first, after every `controls_every` parts, and last. A case that fails is tried
    `retries` times more. At most `max_jobs` of its jobs are in the queue at a time.
    Cases that need the same nodes and ranks share a job with a time limit of at most
    `pack_minutes`, and of what its partition allows; 0: each case is a job.
    A `stability` phase has rounds for repeats, and jobs of a mix in each.
    It runs on these `classes` of nodes, on those of these Slurm `partitions`, and with
    these MPI `stacks`; an empty choice is all of them. Its runs are compared by
    `weights`; each run keeps them.
    """

    name: str
    description: str
    repeats: int
    blocks: tuple[Block, ...]
    retries: int = 0
    max_jobs: int = 1
    pack_minutes: int = 0
    classes: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    order: str = "listed"
    seed: int = 0
    block_size: int | None = None
    controls: Block | None = None
    controls_every: int = 1
    weights: FrozenWeights | None = None
    stability: StabilityPhase | None = None

    @property
    def checks(self) -> tuple[str, ...]:
        """All its checks, each once, in order of first use."""
        checks = (check for block in self.all_blocks for check in block.checks)
        return tuple(dict.fromkeys(checks))

    @property
    def all_blocks(self) -> tuple[Block, ...]:
        """The controls, if there are any, and its blocks."""
        return self.blocks if self.controls is None else (self.controls, *self.blocks)


_Name = Annotated[
    str,
    Meta(
        pattern=r"^[\w-]*[^\W_][\w-]*$",
        description="a name of letters, digits, - and _",
    ),
]
_Values = Annotated[tuple[Any, ...], Meta(min_length=1, description="a list of values")]
_Names = Annotated[tuple[str, ...], Meta(description="a list of names")]
_FromZero = Annotated[int, Meta(ge=0, description="a whole number >= 0")]


class _Checks(Struct, forbid_unknown_fields=True, kw_only=True):
    checks: Annotated[
        tuple[str | dict[str, dict[str, _Values]], ...],
        Meta(min_length=1, description="a list of checks"),
    ]
    variables: dict[str, Any] = {}


class _Controls(_Checks):
    every: Count = 1


class _Block(_Checks):
    name: _Name


class _Campaign(Struct, forbid_unknown_fields=True, kw_only=True):
    blocks: Annotated[
        tuple[_Block, ...], Meta(min_length=1, description="a list of blocks")
    ]
    description: str | None = None
    repeats: Count = 1
    retries: _FromZero = 0
    max_jobs: Count = 1
    pack_minutes: _FromZero = 0
    classes: _Names = ()
    partitions: _Names = ()
    stacks: _Names = ()
    order: Literal["listed", "shuffled"] = "listed"
    seed: _FromZero = 0
    block_size: Count | None = None
    controls: _Controls | None = None
    weights: _Name | None = None
    stability: StabilityKeys | None = None


def load_campaign(home: Path, name: str) -> Campaign:
    """Read a campaign; SeatrialError if it is unknown or badly written."""
    file = campaigns_dir(home) / f"{name}.yaml"
    if name not in known_campaigns(home):
        known = ", ".join(known_campaigns(home)) or "none"
        raise SeatrialError(f"unknown campaign {name!r}; known campaigns: {known}")
    read = YamlFile(file)
    content = read.convert(_Campaign)
    names = [block.name for block in content.blocks]
    for index, block in enumerate(names):
        if block == CONTROLS or block in names[:index]:
            expected = f"a name of its own, not {CONTROLS}"
            read.expected(expected, block, ("blocks", index, "name"))
    fields = structs.asdict(content) | {"name": name}
    fields["description"] = content.description or ""
    fields["blocks"] = tuple(
        _block(read, block.name, block, ("blocks", index))
        for index, block in enumerate(content.blocks)
    )
    if content.stability:
        phase = read_phase(read, content.stability)
        _check_phase(read, fields["blocks"])
        fields |= {"stability": phase, "repeats": phase.rounds}
    if content.controls:
        fields["controls"] = _block(read, CONTROLS, content.controls, (CONTROLS,))
        fields["controls_every"] = content.controls.every
    if content.weights:
        weights = weights_file(home, content.weights)
        Weights.load(weights)  # a fault in them ends the campaign here
        text = weights.read_bytes()
        digest = hashlib.sha256(text).hexdigest()
        fields["weights"] = FrozenWeights(content.weights, digest, text.decode())
    return Campaign(**fields)


_NOT_OF_PHASES = {
    "repeats": "rounds follow from the duration",
    "retries": "a job that fails is a failure",
}
"""Keys that a stability phase cannot have, and why."""


def _check_phase(file: YamlFile, blocks: Iterable[Block]) -> None:
    """Refuse keys that a stability phase cannot have, and one without its jobs."""
    for key, why in _NOT_OF_PHASES.items():
        if key in file.data:
            expected = f"no such key in a stability phase ({why})"
            file.expected(expected, file.data[key], (key,))
    checks = [check for block in blocks for check in block.checks]
    if CHECK not in checks:
        expected = f"{CHECK}, which runs the jobs of the phase, in one of the blocks"
        file.expected(expected, ", ".join(checks), ("blocks",))


def _block(file: YamlFile, name: str, written: _Checks, place: Place) -> Block:
    """Return a block; its checks are `Check` or `Check: {parameter: [values]}`."""
    parameters: dict[str, Chosen] = {}
    checks: list[str] = []
    for index, entry in enumerate(written.checks):
        chosen = {entry: {}} if isinstance(entry, str) else entry
        check, values = next(iter(chosen.items()), ("", {}))
        if len(chosen) != 1 or not check.isidentifier() or check in checks:
            expected = "the class of one check, once in a block"
            file.expected(expected, entry, (*place, "checks", index))
        checks.append(check)
        if values:
            parameters[check] = {
                key: tuple(map(str, allowed)) for key, allowed in values.items()
            }
    for key, value in written.variables.items():
        check, dot, _ = key.partition(".")
        if dot and check not in checks:
            expected = f"a variable of a check of this block: {checks[0]}.NAME"
            file.expected(expected, key, (*place, "variables", key))
        if isinstance(value, str):  # YAML 1.1 takes 1e400 for a text, ReFrame does not
            with suppress(ValueError):
                file.check_size(float(value), (*place, "variables", key))
    return Block(name, tuple(checks), written.variables, parameters)


def with_repeats(campaign: Campaign, repeats: int | None) -> Campaign:
    """Return the campaign with other repeats; None: its own.

    Raises SeatrialError for a stability phase: its rounds follow from its duration.
    """
    if repeats is not None and campaign.stability:
        raise SeatrialError(
            f"campaign {campaign.name!r} is a stability phase of {campaign.repeats} "
            "rounds; expected no --repeats; write a campaign of another duration"
        )
    return replace(campaign, repeats=repeats or campaign.repeats)


def only_checks(campaign: Campaign, checks: tuple[str, ...]) -> Campaign:
    """Keep only some checks of a campaign; SeatrialError if one is not in it."""
    unknown = [check for check in checks if check not in campaign.checks]
    if unknown:
        raise SeatrialError(
            f"campaign {campaign.name!r} has no check {', '.join(unknown)}; "
            f"its checks: {', '.join(campaign.checks)}"
        )
    blocks = tuple(_only(block, checks) for block in campaign.blocks)
    controls = None if campaign.controls is None else _only(campaign.controls, checks)
    return replace(
        campaign,
        blocks=tuple(block for block in blocks if block.checks),
        controls=controls if controls and controls.checks else None,
    )


def _only(block: Block, checks: tuple[str, ...]) -> Block:
    return replace(block, checks=tuple(c for c in block.checks if c in checks))
