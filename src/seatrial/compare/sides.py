"""The sides of a comparison: closed runs, and systems that papers published."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mode
from typing import Any

from seatrial.compare.records import Side
from seatrial.criteria.published import Published
from seatrial.criteria.published_numbers import PublishedSystem
from seatrial.errors import SeatrialError
from seatrial.model.cases import Case
from seatrial.runs.closed_run import Run, load_run

_PUBLISHED = "published:"
_NAMED = re.compile(r"([^=/]*)=(.*)", re.DOTALL)
_RESTRICTED = re.compile(r"(.*)@([^@/]*)", re.DOTALL)
_FORM = "expected [NAME=]RUN[@ENVIRONMENT] or [NAME=]published:SYSTEM"


@dataclass(frozen=True)
class Entrant:
    """A side with what it measured: a run, or a published system."""

    side: Side
    run: Run | None = None
    system: PublishedSystem | None = None

    def changed(self, **fields: Any) -> "Entrant":
        """Return the entrant with these fields of its side replaced."""
        return replace(self, side=replace(self.side, **fields))


@dataclass(frozen=True)
class Named:
    """A side as it is asked for; `name` and `environment` are '' where not said."""

    source: str
    name: str = ""
    environment: str = ""

    @classmethod
    def read(cls, text: str) -> "Named":
        """Read `[NAME=]RUN[@ENVIRONMENT]`; what is there as a path is a path."""
        source, name, environment = text, None, None
        if not Path(source).exists() and (match := _NAMED.fullmatch(source)):
            name, source = match[1].strip(), match[2]
        is_path = source.startswith(_PUBLISHED) or Path(source).exists()
        if not is_path and (match := _RESTRICTED.fullmatch(source)):
            source, environment = match.groups()
        for problem, part in (
            ("the name is empty", name),
            ("the environment is empty", environment),
            ("no run and no system", source.removeprefix(_PUBLISHED)),
        ):
            if part == "":
                raise SeatrialError(f"side {text!r}: {problem}; {_FORM}")
        return cls(source, name or "", environment or "")


def open_sides(
    texts: Sequence[str],
    find: Callable[[str], Path],
    published: Callable[[], Published],
    signers: Callable[[str], Path | None] = lambda _: None,
) -> list[Entrant]:
    """Open the sides in their order, and give each a name of its own.

    `find` finds a run by path, id or `latest`; `published` reads all that papers
    published; `signers` finds whose signatures are known of a system. Raises
    SeatrialError if one is not there, or if two have one name.
    """
    named = [Named.read(text) for text in texts]
    opened: dict[Path, Run] = {}
    sides = []
    for request in named:
        if request.source.startswith(_PUBLISHED):
            sides.append(_published(request, published()))
            continue
        path = find(request.source).resolve()
        if path not in opened:
            opened[path] = load_run(path)
        sides.append(of_run(opened[path], request.environment, signers))
    given = [request.name for request in named]
    names = _names(given, [entrant.side for entrant in sides])
    return [
        entrant.changed(name=name) for entrant, name in zip(sides, names, strict=True)
    ]


def of_run(
    run: Run,
    environment: str = "",
    signers: Callable[[str], Path | None] = lambda _: None,
) -> Entrant:
    """Return a side of a run, without a name; SeatrialError if its stack is unknown."""
    manifest = run.manifest
    known = sorted({case.environment for case in run.cases})
    if environment and environment not in known:
        raise SeatrialError(
            f"run {manifest['run']} of {manifest['system']} has no environment "
            f"{environment!r}; expected one of {', '.join(known)}"
        )
    file = signers(str(manifest["system"]))
    seal = run.sealed.check(file) if file and run.sealed else None
    cases = [case for case in run.cases if environment in ("", case.environment)]
    weights = manifest.get("weights") or {}
    side = Side(
        name="",
        source=manifest["run"],
        system=manifest["system"],
        campaign=manifest["campaign"],
        started=str(manifest.get("started", "")),
        environment=environment,
        repeats=_repeats(cases),
        nodes=sum(node["state"] == "present" for node in manifest["nodes"]),
        replay=bool(manifest.get("replay")) or any(case.replay for case in cases),
        demonstration=bool(manifest.get("demonstration")),
        model=bool(manifest.get("model")),
        signer=(seal.signer or "") if seal else "",
        weights_sha256=str(weights.get("sha256", "")),
    )
    return Entrant(side, run=run)


def _repeats(cases: Sequence[Case]) -> int:
    """Return the repeats of most cases; controls of a campaign have others."""
    known: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for case in cases:
        known[case.check, case.case, case.environment].add(case.repeat)
    return mode(map(len, known.values())) if known else 0


def _published(named: Named, published: Published) -> Entrant:
    system = published.system(named.source.removeprefix(_PUBLISHED))
    paper = published.papers[system.paper]
    side = Side(
        name="",
        source=system.name,
        system=system.name,
        campaign="",
        started=str(paper.year),
        published=True,
    )
    return Entrant(side, system=system)


def _names(given: Sequence[str], sides: Sequence[Side]) -> list[str]:
    """Name the sides without a given name by as little as distinguishes all."""
    for form in (
        "{0.system}",
        "{0.system}@{0.environment}",
        "{0.source}",
        "{0.source}@{0.environment}",
    ):
        own = [form.format(side).removesuffix("@") for side in sides]
        names = [name or ours for name, ours in zip(given, own, strict=True)]
        if len(set(names)) == len(names):
            return names
    twice = next(name for name, count in Counter(names).items() if count > 1)
    raise SeatrialError(
        f"two sides are called {twice!r}; expected one name for each: NAME=RUN"
    )


def priced(
    entrants: Sequence[Entrant],
    prices: Mapping[str, float],
    powers: Mapping[str, float],
) -> list[Entrant]:
    """Add prices and kW to sides by name; SeatrialError if one is unknown."""
    known = [entrant.side.name for entrant in entrants]
    for option, given in (("price", prices), ("power", powers)):
        for name in given:
            if name not in known:
                raise SeatrialError(
                    f"--{option}: no side {name!r}; expected one of {', '.join(known)}"
                )
    return [
        entrant.changed(price=prices.get(name), power_kw=powers.get(name))
        for entrant, name in zip(entrants, known, strict=True)
    ]


def require_comparable(entrants: Sequence[Entrant]) -> None:
    """Check that sides can be compared.

    Raises SeatrialError if there is one side only, if runs are of different campaigns,
    or if some are replays and others measured.
    """
    sides = [entrant.side for entrant in entrants]
    if len(sides) < 2:
        raise SeatrialError("compare: expected at least two sides, got one")
    runs = [side for side in sides if not side.published]
    for side in runs[1:]:
        first = runs[0]
        if side.campaign != first.campaign:
            raise SeatrialError(
                f"{first.name} is a run of campaign {first.campaign!r}, {side.name} of "
                f"{side.campaign!r}; expected one campaign: only what was asked of all "
                "alike can be compared"
            )
        if side.replay != first.replay:
            replay, other = (side, first) if side.replay else (first, side)
            raise SeatrialError(
                f"{replay.name} is a replay of recorded output, {other.name} was "
                "measured; expected one or the other"
            )
