"""A campaign: which checks run, in which blocks, in what order, how many times."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from seatrial.criteria.weights import Weights
from seatrial.errors import SeatrialError
from seatrial.paths import campaigns_dir, weights_file

CONTROLS = "controls"
"""The name of the block of the control checks."""

ORDERS = ("listed", "shuffled")

_KEYS = {
    "description",
    "repeats",
    "retries",
    "max_jobs",
    "order",
    "seed",
    "block_size",
    "blocks",
    "weights",
    CONTROLS,
}
_BLOCK_KEYS = {"name", "checks", "variables"}
_CONTROL_KEYS = {"checks", "variables", "every"}

Chosen = Mapping[str, tuple[str, ...]]
"""Values, as text, of parameters of a check: those that are to run."""


@dataclass(frozen=True)
class Block:
    """What belongs together: class names of checks, ReFrame -S variables.

    `parameters` restricts some checks to some values of their parameters.
    """

    name: str
    checks: tuple[str, ...]
    variables: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Chosen] = field(default_factory=dict)


@dataclass(frozen=True)
class FrozenWeights:
    """The weights of a bake-off as they were before its first number was taken."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Campaign:
    """A named choice of checks; every block runs `repeats` times, by turns.

    A block of more than `block_size` checks (each with its parameters) is run in
    parts. In every repeat the blocks come as listed, or shuffled by `seed`. `controls`
    run first, after every `controls_every` parts, and last. A case that fails is tried
    `retries` times more. At most `max_jobs` of its jobs are in the queue at a time.
    `weights` are those by which runs of it are compared; each run keeps them.
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
        """All its checks, each once, in order of first use."""
        blocks = self.blocks if self.controls is None else (self.controls, *self.blocks)
        return tuple(dict.fromkeys(c for block in blocks for c in block.checks))


def known_campaigns(home: Path) -> list[str]:
    """Name the campaigns of this suite."""
    return sorted(file.stem for file in campaigns_dir(home).glob("*.yaml"))


def load_campaign(home: Path, name: str) -> Campaign:
    """Read a campaign; SeatrialError if it is unknown or badly written."""
    file = campaigns_dir(home) / f"{name}.yaml"
    if name not in known_campaigns(home):
        known = ", ".join(known_campaigns(home)) or "none"
        raise SeatrialError(f"unknown campaign {name!r}; known campaigns: {known}")
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        raise SeatrialError(f"{file}:{line} not valid YAML: {error}") from error
    _expect(file, isinstance(data, dict), "a mapping at the top")
    _expect_keys(file, "the campaign", data, _KEYS, {"blocks"})
    blocks = data["blocks"]
    _expect(file, isinstance(blocks, list) and bool(blocks), "blocks: a list")
    order = data.get("order", ORDERS[0])
    _expect(file, order in ORDERS, f"order: {' or '.join(ORDERS)}, found {order!r}")
    controls = data.get(CONTROLS)
    campaign = Campaign(
        name=name,
        description=str(data.get("description", "")),
        repeats=_count(file, data, "repeats"),
        blocks=tuple(_block(file, block) for block in blocks),
        retries=_count(file, data, "retries", least=0),
        max_jobs=_count(file, data, "max_jobs"),
        order=order,
        seed=_count(file, data, "seed", least=0),
        block_size=_count(file, data, "block_size") if "block_size" in data else None,
        controls=None if controls is None else _controls(file, controls),
        controls_every=1 if controls is None else _count(file, controls, "every"),
        weights=_weights(file, home, data["weights"]) if "weights" in data else None,
    )
    names = [block.name for block in campaign.blocks]
    _expect(file, len(set(names)) == len(names), "every block has a name of its own")
    _expect(
        file,
        campaign.controls is None or CONTROLS not in names,
        f"no other block is called {CONTROLS}",
    )
    return campaign


def _weights(file: Path, home: Path, name: Any) -> FrozenWeights:
    """Read the weights that a campaign names; a fault in them ends it here."""
    _expect(
        file,
        isinstance(name, str) and name.replace("_", "").replace("-", "").isalnum(),
        f"weights: the name of a file in {weights_file(home, '').parent}, "
        f"found {name!r}",
    )
    named = weights_file(home, name)
    Weights.load(named)
    return FrozenWeights(name, named.read_bytes().decode())


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


def _controls(file: Path, data: Any) -> Block:
    _expect(file, isinstance(data, dict), f"{CONTROLS}: a mapping")
    _expect_keys(file, CONTROLS, data, _CONTROL_KEYS, {"checks"})
    return _filled_block(file, CONTROLS, data)


def _block(file: Path, data: Any) -> Block:
    _expect(file, isinstance(data, dict), "every block is a mapping")
    name = data.get("name")
    _expect(
        file,
        isinstance(name, str) and name.replace("_", "").replace("-", "").isalnum(),
        f"every block has a name of letters, digits, - and _, found {name!r}",
    )
    _expect_keys(file, f"block {name!r}", data, _BLOCK_KEYS, {"checks"})
    return _filled_block(file, name, data)


def _filled_block(file: Path, name: str, data: dict[str, Any]) -> Block:
    listed = data["checks"]
    _expect(
        file,
        isinstance(listed, list) and bool(listed),
        f"block {name!r} lists class names of checks, found {listed!r}",
    )
    parameters = {}
    checks = []
    for entry in listed:
        check, chosen = _check(file, name, entry)
        checks.append(check)
        if chosen:
            parameters[check] = chosen
    _expect(
        file,
        len(set(checks)) == len(checks),
        f"block {name!r} lists every check once, found {', '.join(checks)}",
    )
    variables = data.get("variables") or {}
    _expect(
        file, isinstance(variables, dict), f"block {name!r}: variables is a mapping"
    )
    return Block(name, tuple(checks), variables, parameters)


def _check(file: Path, block: str, entry: Any) -> tuple[str, Chosen]:
    """Read `ImbRing`, or `ImbRing: {parameter: [values]}`."""
    chosen: Any = {}
    check = entry
    if isinstance(entry, dict) and len(entry) == 1:
        check, chosen = next(iter(entry.items()))
    _expect(
        file,
        isinstance(check, str)
        and check.isidentifier()
        and isinstance(chosen, dict)
        and all(isinstance(v, list) and v for v in chosen.values()),
        f"block {block!r} lists class names of checks, or `Check: {{parameter: "
        f"[values]}}`, found {entry!r}",
    )
    return check, {
        str(name): tuple(str(value) for value in values)
        for name, values in chosen.items()
    }


def _count(file: Path, data: dict[str, Any], key: str, least: int = 1) -> int:
    value = data.get(key, least)
    _expect(
        file,
        isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"{key}: a whole number of at least {least}, found {value!r}",
    )
    return int(value)


def _expect_keys(
    file: Path, what: str, data: dict[str, Any], known: set[str], needed: set[str]
) -> None:
    unknown = sorted(str(key) for key in data.keys() - known)
    _expect(
        file, not unknown, f"{what} knows {sorted(known)}, found {', '.join(unknown)}"
    )
    missing = sorted(needed - data.keys())
    _expect(file, not missing, f"{what} has {', '.join(missing)}")


def _expect(file: Path, condition: bool, expected: str) -> None:
    if not condition:
        raise SeatrialError(f"{file}: expected: {expected}")
