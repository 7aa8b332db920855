"""Lock files of Spack environments: graphs of concrete specs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError


@dataclass(frozen=True)
class Spec:
    """A package as Spack solved it, down to its hash.

    `external` ones are the system's own. `needed` are the hashes of its dependencies at
    run time; `building` of those to build it, `needed` included.
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
    """A solved environment: the hashes of its roots, and all specs by hash."""

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
    """Convert the content of a spack.lock (versions 5 to 7 of its format).

    Raises KeyError, TypeError or AttributeError if it is not one.
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
    for hash_ in (*roots, *(needed for s in specs.values() for needed in s.building)):
        specs[hash_]  # a hole in the graph is a KeyError here, and nowhere later
    return Lock(roots, specs)


def _dependencies(spec: Mapping[str, Any], types: set[str]) -> Iterator[str]:
    for dependency in spec.get("dependencies", ()):
        if types & set(dependency["parameters"]["deptypes"]):
            yield dependency["hash"]
