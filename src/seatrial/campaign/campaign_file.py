"""A campaign: its checks, their blocks, order and repeats."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from seatrial.criteria.weights import Weights
from seatrial.errors import SeatrialError
from seatrial.paths import campaigns_dir, weights_file
from seatrial.system.description import read_yaml

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
    text: str

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Campaign:
    """A named selection of checks; every block runs `repeats` times, by turns.

    A block of more than `block_size` checks (each with its parameters) is run in
    parts. In every repeat the blocks come as listed, or shuffled by `seed`. `controls`
    run first, after every `controls_every` parts, and last. A case that fails is tried
    `retries` times more. At most `max_jobs` of its jobs are in the queue at a time.
    Its runs are compared by `weights`; each run keeps them.
    """

    name: str
    description: str
    repeats: int
    blocks: tuple[Block, ...]
    retries: int = 0
    max_jobs: int = 1
    order: str = "listed"
    seed: int = 0
    block_size: int | None = None
    controls: Block | None = None
    controls_every: int = 1
    weights: FrozenWeights | None = None

    @property
    def checks(self) -> tuple[str, ...]:
        """Return all its checks, each once, in order of first use."""
        blocks = self.blocks if self.controls is None else (self.controls, *self.blocks)
        return tuple(dict.fromkeys(c for block in blocks for c in block.checks))


_Name = Annotated[str, Meta(pattern=r"\A\w[\w-]*\Z")]
_Values = Annotated[tuple[Any, ...], Meta(min_length=1)]
_Variant = Annotated[dict[str, dict[Any, _Values]], Meta(min_length=1, max_length=1)]
_Count = Annotated[int, Meta(ge=1)]
_Natural = Annotated[int, Meta(ge=0)]


class _Checks(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Checks as `ImbRing`, or `ImbRing: {parameter: [values]}`."""

    # No pattern: msgspec 0.22 corrupts memory at one in a union with a dict.
    checks: Annotated[tuple[str | _Variant, ...], Meta(min_length=1)]
    variables: dict[str, Any] | None = None

    def block(self, name: str) -> Block:
        """Return the checks as a block; ValueError if one is listed twice."""
        chosen: dict[str, Chosen] = {}
        for entry in self.checks:
            variant: _Variant = {entry: {}} if isinstance(entry, str) else entry
            ((check, values),) = variant.items()
            if not check.isidentifier():
                raise ValueError(f"block {name!r}: {check!r} is no class of a check")
            if check in chosen:
                raise ValueError(f"block {name!r}: {check} is listed twice")
            chosen[check] = {str(k): tuple(map(str, v)) for k, v in values.items()}
        parameters = {check: values for check, values in chosen.items() if values}
        return Block(name, tuple(chosen), self.variables or {}, parameters)


class _Controls(_Checks):
    every: _Count = 1


class _Block(_Checks):
    name: _Name


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    description: str = ""
    repeats: _Count = 1
    retries: _Natural = 0
    max_jobs: _Count = 1
    order: Literal["listed", "shuffled"] = "listed"
    seed: _Natural = 0
    block_size: _Count | None = None
    blocks: Annotated[tuple[_Block, ...], Meta(min_length=1)]
    controls: _Controls | None = None
    weights: _Name | None = None


def known_campaigns(home: Path) -> list[str]:
    """Return the names of the campaigns of this suite."""
    return sorted(file.stem for file in campaigns_dir(home).glob("*.yaml"))


def load_campaign(home: Path, name: str) -> Campaign:
    """Read a campaign; SeatrialError if it is unknown or badly written."""
    file = campaigns_dir(home) / f"{name}.yaml"
    if name not in known_campaigns(home):
        known = ", ".join(known_campaigns(home)) or "none"
        raise SeatrialError(f"unknown campaign {name!r}; known campaigns: {known}")
    try:
        content = msgspec.convert(read_yaml(file), _File)
        blocks = tuple(block.block(block.name) for block in content.blocks)
        names = [block.name for block in blocks]
        if len({*names, CONTROLS}) <= len(names):
            raise ValueError(
                f"blocks are called {', '.join(names)}; expected different names, none "
                f"of them {CONTROLS}"
            )
        controls, weights = content.controls, content.weights
        fields = msgspec.structs.asdict(content) | {
            "name": name,
            "blocks": blocks,
            "controls": controls.block(CONTROLS) if controls else None,
            "controls_every": controls.every if controls else 1,
            "weights": _weights(home, weights) if weights else None,
        }
        return Campaign(**fields)
    except ValueError as error:
        raise SeatrialError(f"{file}: {error}; see docs/campaigns.md") from error


def _weights(home: Path, name: str) -> FrozenWeights:
    """Read and check the weights that a campaign names."""
    file = weights_file(home, name)
    Weights.load(file)
    return FrozenWeights(name, file.read_bytes().decode())


def only_checks(campaign: Campaign, checks: tuple[str, ...]) -> Campaign:
    """Keep only some checks of a campaign; SeatrialError if one is not in it."""
    unknown = [check for check in checks if check not in campaign.checks]
    if unknown:
        raise SeatrialError(
            f"campaign {campaign.name!r} has no check {', '.join(unknown)}; "
            f"its checks: {', '.join(campaign.checks)}"
        )

    def only(block: Block) -> Block:
        return replace(block, checks=tuple(c for c in block.checks if c in checks))

    controls = campaign.controls and only(campaign.controls)
    return replace(
        campaign,
        blocks=tuple(block for block in map(only, campaign.blocks) if block.checks),
        controls=controls if controls and controls.checks else None,
    )
