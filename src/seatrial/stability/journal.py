"""The observed time of a phase, and when nodes and controller were away in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from seatrial.campaign.node_journal import BEAT_S, JOURNAL
from seatrial.errors import SeatrialError
from seatrial.limits import CASES_SIZE
from seatrial.plain_files import read_plain

GAP_S = 2.5 * BEAT_S
"""Longest time between two lines that still is observed: sessions follow each other."""


class Span(NamedTuple):
    """A time in UTC seconds since the epoch."""

    start: float
    end: float

    def within(self, spans: Iterable["Span"]) -> float:
        """Return the seconds of it that lie in some spans, which do not overlap."""
        return sum(
            max(0.0, min(self.end, span.end) - max(self.start, span.start))
            for span in spans
        )


class Away(NamedTuple):
    """A node that was lost, from its first seen moment to the first without it.

    `state`, `reason` and `user` are Slurm's at its start; `back`: it came back.
    """

    node: str
    span: Span
    state: str
    reason: str
    user: str
    back: bool


@dataclass(frozen=True)
class Journal:
    """Observations of the driver: nodes, spans, lost nodes, silent controller."""

    nodes: tuple[str, ...] = ()
    observed: tuple[Span, ...] = ()
    away: tuple[Away, ...] = ()
    silent: tuple[Span, ...] = ()

    @property
    def seconds(self) -> float:
        """Return the observed seconds."""
        return sum(span.end - span.start for span in self.observed)

    @property
    def gaps(self) -> tuple[Span, ...]:
        """Return the times between observed ones."""
        pairs = zip(self.observed, self.observed[1:], strict=False)
        return tuple(Span(before.end, after.start) for before, after in pairs)

    def clock(self, moment: float) -> float:
        """Return the observed hours until a moment."""
        until = Span(self.observed[0].start, moment) if self.observed else None
        return until.within(self.observed) / 3600 if until else 0.0


class _Lost(msgspec.Struct):
    state: str
    reason: str = ""
    user: str = ""
    time: float = 0.0


class _Line(msgspec.Struct):
    t: float
    nodes: list[str] = []
    away: dict[str, _Lost] | None = None
    silent: bool = False


def read_journal(folder: Path) -> Journal:
    """Read the journals of all sessions of a run, those of interrupted tries too.

    Empty if the run has none. Raises SeatrialError if one is damaged; a cut last line
    is left out.
    """
    files = sorted((folder / "raw").glob(f"*/{JOURNAL}"))
    lines = [line for file in files for line in _lines(file)]
    return journal_of(sorted(lines, key=lambda line: line.t))


def _lines(file: Path) -> Iterator[_Line]:
    decode = msgspec.json.Decoder(_Line).decode
    texts = read_plain(file, CASES_SIZE).split(b"\n")
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            yield decode(text)
        except msgspec.MsgspecError as error:
            if number < len(texts):
                raise SeatrialError(f"{file}:{number}: damaged: {error}") from error


@dataclass
class _Reader:
    """Joins lines in order of time."""

    names: set[str] = field(default_factory=set)
    observed: list[Span] = field(default_factory=list)
    closed: list[Away] = field(default_factory=list)
    open: dict[str, Away] = field(default_factory=dict)
    silent: list[Span] = field(default_factory=list)

    def take(self, line: _Line) -> None:
        last = self.observed[-1] if self.observed else None
        if last and line.t - last.end <= GAP_S:
            self.observed[-1] = Span(last.start, max(last.end, line.t))
        else:
            self.observed.append(Span(line.t, line.t))
        self.names.update(line.nodes)
        if line.silent:
            if self.silent and self.silent[-1].end >= (last.end if last else 0.0):
                self.silent[-1] = Span(self.silent[-1].start, line.t)
            else:
                self.silent.append(Span(line.t, line.t))
        elif self.silent and last and self.silent[-1].end == last.end:
            self.silent[-1] = Span(self.silent[-1].start, line.t)
        if line.away is not None:
            self._note(line.t, line.away)

    def _note(self, now: float, away: Mapping[str, _Lost]) -> None:
        for name in [name for name in self.open if name not in away]:
            known = self.open.pop(name)
            span = Span(known.span.start, now)
            self.closed.append(known._replace(span=span, back=True))
        for name, lost in away.items():
            if name not in self.open:
                parts = (lost.state, lost.reason, lost.user, False)
                self.open[name] = Away(name, Span(now, now), *parts)

    def journal(self) -> Journal:
        end = self.observed[-1].end if self.observed else 0.0
        left = [a._replace(span=Span(a.span.start, end)) for a in self.open.values()]
        known = [a for a in (*self.closed, *left) if a.node in self.names]
        return Journal(
            tuple(sorted(self.names)),
            tuple(self.observed),
            tuple(sorted(known, key=lambda one: (one.span.start, one.node))),
            tuple(self.silent),
        )


def journal_of(lines: Sequence[_Line]) -> Journal:
    """Return the journal of lines in order of time."""
    reader = _Reader()
    for line in lines:
        reader.take(line)
    return reader.journal()
