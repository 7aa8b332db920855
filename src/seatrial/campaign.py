"""A campaign: which checks run, in which blocks, how many times."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from seatrial.errors import SeatrialError
from seatrial.paths import campaigns_dir

_KEYS = {"description", "repeats", "blocks", "minimum_samples"}
_BLOCK_KEYS = {"name", "checks", "variables"}


@dataclass(frozen=True)
class Block:
    """One small ReFrame session: class names of checks, ReFrame -S variables."""

    name: str
    checks: tuple[str, ...]
    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Campaign:
    """A named choice of checks; every block runs `repeats` times."""

    name: str
    description: str
    repeats: int
    blocks: tuple[Block, ...]
    minimum_samples: int

    @property
    def checks(self) -> tuple[str, ...]:
        """All its checks, each once, in order of first use."""
        return tuple(dict.fromkeys(c for block in self.blocks for c in block.checks))


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
    campaign = Campaign(
        name=name,
        description=str(data.get("description", "")),
        repeats=_count(file, data, "repeats"),
        blocks=tuple(_block(file, block) for block in blocks),
        minimum_samples=_count(file, data, "minimum_samples"),
    )
    names = [block.name for block in campaign.blocks]
    _expect(file, len(set(names)) == len(names), "every block has a name of its own")
    return campaign


def only_checks(campaign: Campaign, checks: tuple[str, ...]) -> Campaign:
    """Keep only some checks of a campaign; SeatrialError if one is not in it."""
    unknown = [check for check in checks if check not in campaign.checks]
    if unknown:
        raise SeatrialError(
            f"campaign {campaign.name!r} has no check {', '.join(unknown)}; "
            f"its checks: {', '.join(campaign.checks)}"
        )
    blocks = (
        replace(block, checks=tuple(c for c in block.checks if c in checks))
        for block in campaign.blocks
    )
    return replace(campaign, blocks=tuple(block for block in blocks if block.checks))


def _block(file: Path, data: Any) -> Block:
    _expect(file, isinstance(data, dict), "every block is a mapping")
    name = data.get("name")
    _expect(
        file,
        isinstance(name, str) and name.replace("_", "").replace("-", "").isalnum(),
        f"every block has a name of letters, digits, - and _, found {name!r}",
    )
    _expect_keys(file, f"block {name!r}", data, _BLOCK_KEYS, {"checks"})
    checks = data["checks"]
    _expect(
        file,
        isinstance(checks, list)
        and bool(checks)
        and all(isinstance(check, str) and check.isidentifier() for check in checks),
        f"block {name!r} lists class names of checks, found {checks!r}",
    )
    variables = data.get("variables") or {}
    _expect(
        file, isinstance(variables, dict), f"block {name!r}: variables is a mapping"
    )
    return Block(name, tuple(checks), variables)


def _count(file: Path, data: dict[str, Any], key: str) -> int:
    value = data.get(key, 1)
    _expect(
        file,
        isinstance(value, int) and not isinstance(value, bool) and value >= 1,
        f"{key}: a whole number of at least 1, found {value!r}",
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
