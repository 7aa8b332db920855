"""The states of the nodes during a session, as the driver saw them: nodes.jsonl.

The first line names the nodes, each further one a moment. A line has `away` at the
first look, and if other nodes are lost than before, and `silent` if Slurm's controller
did not answer. A line at least every `BEAT_S` shows that the driver was at work.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.model.cases import NodeEvent

JOURNAL = "nodes.jsonl"
"""Name of the journal in the folder of a session below raw/."""

BEAT_S = 60.0
"""Longest time between two lines of a driver at work, beside its looks."""

_PARTS = ("state", "reason", "user", "time")


@dataclass
class NodeJournal:
    """Writes the journal of a session; without a `file` it writes nothing."""

    file: Path | None = None
    _away: Mapping[str, NodeEvent] = field(default_factory=dict, init=False)
    _silent: bool = field(default=False, init=False)
    _fresh: bool = field(default=True, init=False)
    _last: float = field(default=0.0, init=False)

    def begin(self, nodes: Iterable[str], now: float) -> None:
        """Write the first line."""
        self._write({"t": now, "nodes": sorted(nodes)})

    def note(self, away: Mapping[str, NodeEvent], now: float) -> None:
        """Write the lost nodes if they changed; else a line now and then."""
        known = {name: (event.state, event.reason) for name, event in away.items()}
        before = {name: (e.state, e.reason) for name, e in self._away.items()}
        if known != before or self._silent or self._fresh:
            lost = {
                name: {part: getattr(event, part) for part in _PARTS}
                for name, event in sorted(away.items())
            }
            self._write({"t": now, "away": lost})
            self._away, self._silent, self._fresh = dict(away), False, False
        elif now - self._last >= BEAT_S:
            self._write({"t": now})

    def unanswered(self, now: float) -> None:
        """Write that the controller does not answer."""
        if not self._silent or now - self._last >= BEAT_S:
            self._write({"t": now, "silent": True})
            self._silent = True

    def end(self, now: float) -> None:
        """Write the last line: the driver was at work until now."""
        self._write({"t": now})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._last = line["t"]
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
