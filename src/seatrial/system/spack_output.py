"""Output of `spack install`: the phases of packages, and failures.

Three layouts are read: that of the installer of Spack before 1.2, of the new installer
while it was optional, and of the new one since it is the default (1.2.0). Spack prints
them where its output is no terminal. A hash may be cut to 7 characters.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from seatrial.system.spack_lock import Spec

STAGE = "stage"
"""The phase before a build: fetch, verify, unpack and patch the source."""

CACHE = "cache"
"""The phase of a package that comes from a build cache."""

_HASH = "[a-z2-7]{32}"
_BEGIN = re.compile(rf"==> (Installing|Extracting) \S+-({_HASH})(?: |$)")
_PHASE = re.compile(r"==> (\S+): Executing phase: '(.+)'$")
_DONE = re.compile(rf"==> \S+: Successfully installed \S+-({_HASH})$")
_STATE = re.compile(r"(?:\[(.)\] )?([a-z2-7]{7}) [^\s@]+@(\S+?):? (\S.*)$")
_DURATION = re.compile(r" \((?:\d+[hms] ?)+\)$")
_CACHE_STATES = ("fetching from build cache", "relocating", "extracting")
_SOURCE_STATES = ("starting", "staging")

_ERROR = "==> Error: "
_BLAME = re.compile(rf"\S+-({_HASH}): (.*)$")
_LOG = re.compile(rf"[^\s@]+@[^\s/]+/({_HASH}): (/.+)$")
_SEE_LOG = re.compile(r"See .*build log for details:$")
_MARKED = re.compile(r" *>> +\d+ {4}(.*)$")
_CONTINUED = re.compile(r" {12}(.*)$")
_TROUBLE = re.compile(
    r"\berror\s?:|\bError \d|\bfatal\b|\w*(Error|Exception): |CMake Error|\*\*\* \["
    r"|undefined reference|cannot find -l",
)
_MOST_LINES = 5


class Kind(StrEnum):
    """Kinds of events of a package."""

    BEGIN = "begin"
    PHASE = "phase"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Event:
    """An event of a package in its current `phase`."""

    kind: Kind
    spec: Spec
    phase: str


@dataclass(frozen=True)
class Failure:
    """A package that was not installed; None if Spack itself failed.

    `log` is the path of its build log, '' if there is none; `lines` are Spack's.
    """

    spec: Spec | None
    phase: str
    log: str
    lines: tuple[str, ...]


@dataclass
class _Fault:
    """A failure while it is read."""

    phase: str
    log: str = ""
    lines: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)


class SpackOutput:
    """Parser of the output of one `spack install`, line by line.

    `specs` are all of the environment, by hash. Lines about packages that are not among
    them, and lines of a layout that is not known, pass without an event.
    """

    def __init__(self, specs: Mapping[str, Spec]) -> None:
        self._specs = specs
        self._short = {hash_[:7]: spec for hash_, spec in specs.items()}
        self._phases: dict[str, str] = {}
        self._ended: set[str] = set()
        self._faults: dict[str, _Fault] = {}
        self._general: list[str] = []
        self._block: _Fault | None = None
        self._log_follows = False  # the next line is the path of the build log
        self._wrapped = False  # a marked line of the log may go on in the next one

    def feed(self, line: str) -> Event | None:
        """Read the next line, without its end; return its event if it has one."""
        line = line.rstrip()
        if line.startswith(_ERROR):
            return self._error(line.removeprefix(_ERROR))
        event = self._news(line)
        if event is not None or line.startswith(("==> ", "[+]")):
            self._block = None
        elif line:
            self._detail(line)
        return event

    def failures(self) -> tuple[Failure, ...]:
        """Return the failures in their order, general ones last."""
        failures = []
        for hash_, fault in self._faults.items():
            lines = tuple((fault.marked or fault.lines)[:_MOST_LINES])
            failures.append(Failure(self._specs[hash_], fault.phase, fault.log, lines))
        if not failures and self._general:
            failures.append(Failure(None, "", "", tuple(self._general[:_MOST_LINES])))
        return tuple(failures)

    def _news(self, line: str) -> Event | None:
        if match := _BEGIN.match(line):
            phase = CACHE if match[1] == "Extracting" else STAGE
            return self._enter(self._specs.get(match[2]), phase)
        if match := _PHASE.match(line):
            running = (self._specs[hash_] for hash_ in self._phases)
            spec = next((spec for spec in running if spec.name == match[1]), None)
            return self._enter(spec, match[2])
        if match := _DONE.match(line):
            return self._end(self._specs.get(match[1]), Kind.DONE)
        if match := _STATE.match(line):
            return self._state(self._short.get(match[2]), match[1] or "", match[4])
        return None

    def _state(self, spec: Spec | None, mark: str, text: str) -> Event | None:
        """Read a line of the new installer: the mark only since 1.2.0."""
        text = _DURATION.sub("", text)
        if mark == "+" or text == "finished":
            return self._end(spec, Kind.DONE)
        if mark == "x" or text == "failed":
            event = self._end(spec, Kind.FAILED)
            if spec is not None and text.startswith("failed: "):
                self._faults[spec.hash].log = text.removeprefix("failed: ")
            return event
        if text in _SOURCE_STATES:
            text = STAGE
        elif text in _CACHE_STATES:
            text = CACHE
        return self._enter(spec, text)

    def _enter(self, spec: Spec | None, phase: str) -> Event | None:
        if spec is None or spec.external or spec.hash in self._ended:
            return None  # "Installing" may come after the end: Spack's lines are late
        kind = Kind.PHASE if spec.hash in self._phases else Kind.BEGIN
        self._phases[spec.hash] = phase
        return Event(kind, spec, phase)

    def _end(self, spec: Spec | None, kind: Kind) -> Event | None:
        if spec is None or spec.external or spec.hash in self._ended:
            return None
        self._ended.add(spec.hash)
        phase = self._phases.pop(spec.hash, "")
        if kind is Kind.FAILED:
            self._faults.setdefault(spec.hash, _Fault(phase or STAGE))
        return Event(kind, spec, phase)

    def _error(self, text: str) -> Event | None:
        """Read `==> Error: ...` of the running package, or of the package it names."""
        self._block = None
        match = _BLAME.match(text)
        spec = self._specs.get(match[1]) if match else None
        if match and spec is not None:
            if self._faults:  # the summary: the failures are known
                return None
            text = match[2]
        elif len(self._phases) == 1:
            spec = self._specs[next(iter(self._phases))]
        if spec is None:
            self._general.append(text)
            return None
        event = self._end(spec, Kind.FAILED)
        self._block = self._faults[spec.hash] if event else None
        if self._block is not None:
            self._block.lines.append(text)
        return event

    def _detail(self, line: str) -> None:
        """Read a line that belongs to an error: its log, or more of its text."""
        if match := _LOG.match(line):
            if fault := self._faults.get(match[1]):
                fault.log = match[2]
            return
        block = self._block
        if block is None:
            return
        if self._log_follows:
            block.log = line.strip()
        self._log_follows = bool(_SEE_LOG.match(line))
        if match := _MARKED.match(line):
            block.marked.append(match[1])
            self._wrapped = True
        elif self._wrapped and (match := _CONTINUED.match(line)):
            block.marked[-1] += match[1]
        else:
            self._wrapped = False
            if not block.marked:
                block.lines.append(line.strip())


def first_errors(log: str) -> tuple[str, ...]:
    """Return the first lines of a build log that look like errors, else the last."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    trouble = [line for line in lines if _TROUBLE.search(line)]
    return tuple(trouble[:_MOST_LINES] or lines[-3:])


def mirror_folders(listing: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split `spack mirror list`: folders of build caches, and URLs of other ones."""
    urls = re.findall(r"^\S+ +\[.b\] (?:fetch: )?(\S+)", listing, re.MULTILINE)
    folders = [url for url in urls if url.startswith(("file://", "/"))]
    others = tuple(url for url in urls if url not in folders)
    return tuple(folder.removeprefix("file://") for folder in folders), others


def listed_hashes(listing: str) -> Iterable[str]:
    """Return the hashes of `spack buildcache list --very-long`."""
    return re.findall(rf"^({_HASH}) ", listing, re.MULTILINE)
