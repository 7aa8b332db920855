"""What a Spack environment is made of: its lock file, the graph of concrete specs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError


@dataclass(frozen=True)
class Spec:
    """A package as Spack solved it, down to its hash.

    `external` ones are the system's own. `needed` are the hashes of what it needs once
    it is there; `building` of what it needs to be built, those of `needed` among them.
    """

    hash: str
    name: str
    version: str
    external: bool
    needed: tuple[str, ...]
    building: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Lock:
    """A solved environment: the hashes that were asked for, and all specs by hash."""

    roots: tuple[str, ...]
    specs: Mapping[str, Spec]

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the roots of these names, or all; SeatrialError if one is missing."""
        known = {self.specs[root].name: root for root in self.roots}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SeatrialError(
                f"no package {', '.join(unknown)} in this environment of Spack; it has "
                f"{', '.join(sorted(known))}"
            )
        return tuple(known[name] for name in names) or self.roots


def read_lock(file: Path) -> Lock:
    """Read a spack.lock; SeatrialError if it is damaged. It must exist."""
    try:
        return parse_lock(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SeatrialError(
            f"{file}: not a lock file of Spack: {error!r}; remove it, or take it from "
            "the last run's folder system/, and run playbooks/site.yml again"
        ) from error


def parse_lock(content: Any) -> Lock:
    """Make a lock from the content of a spack.lock (versions 5 to 7 of its format).

    Raises KeyError, TypeError or AttributeError if it is none.
    """
    specs = {
        key: Spec(
            key,
            spec["name"],
            str(spec["version"]),
            "external" in spec,
            tuple(_dependencies(spec, {"link", "run"})),
            tuple(_dependencies(spec, {"link", "run", "build"})),
        )
        for key, spec in content["concrete_specs"].items()
    }
    roots = tuple(root["hash"] for root in content["roots"])
    for hash_ in (*roots, *(each for s in specs.values() for each in s.building)):
        specs[hash_]  # a hole in the graph is a KeyError here, and nowhere later
    return Lock(roots, specs)


def _dependencies(spec: Mapping[str, Any], types: set[str]) -> Iterator[str]:
    for each in spec.get("dependencies", ()):
        if types & set(each["parameters"]["deptypes"]):
            yield each["hash"]
