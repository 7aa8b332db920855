"""Read the sensors of one node before and during load, and its error counters.

    python -m seatrial.checks.nodesweep.sensors

It begins with a row `node`, the topology of the node. Then it reads clocks and
temperatures twice a second. A line on standard input names the phase that begins
(the first is `quiet`), its end ends the program: every phase has a row `sensors` for
each socket. Counters of events are read at both ends; a row `counters` has the
difference. A missing reading is null there, and a row `absent` has the reason.
"""

import argparse
import json
import os
import select
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from seatrial.checks.nodesweep.readings import (
    COUNTERS,
    AbsentError,
    read_clocks,
    read_temperatures,
)
from seatrial.checks.nodesweep.topology import Topology, read_allowed, read_topology

Row = dict[str, Any]


@dataclass
class Phase:
    """The readings of a phase: of each socket the clocks in GHz, the temperatures."""

    name: str
    began: float
    samples: int = 0
    clock: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    slowest: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    hottest: dict[int | None, float] = field(default_factory=dict)

    def add_clocks(self, clocks: dict[int, float], topology: Topology) -> None:
        """Add the clocks of all CPUs: the median of each socket, and its slowest."""
        sockets: dict[int, list[float]] = defaultdict(list)
        for cpu, clock in clocks.items():
            if cpu in topology.socket_of:
                sockets[topology.socket_of[cpu]].append(clock)
        for socket, values in sockets.items():
            self.clock[socket].append(median(values))
            self.slowest[socket].append(min(values))

    def add_temperatures(self, temperatures: dict[int | None, float]) -> None:
        """Add the hottest reading of each socket."""
        for socket, value in temperatures.items():
            self.hottest[socket] = max(value, self.hottest.get(socket, value))

    def rows(self, sockets: int, ended: float) -> Iterator[Row]:
        """Return a row for each socket, and one for what belongs to none of them."""
        unknown = [None] if None in self.hottest else []
        for socket in (*range(sockets), *unknown):
            row: Row = {"type": "sensors", "phase": self.name, "socket": socket}
            row |= {"n": self.samples, "seconds": round(ended - self.began, 3)}
            row["clock_p50_ghz"] = _middle(self.clock, socket)
            row["clock_min_ghz"] = _middle(self.slowest, socket)
            row["temperature_max_c"] = self.hottest.get(socket)
            yield row


class Sampler:
    """Reads all sensors and counters of one node until its input ends."""

    def __init__(self, root: Path, interval_s: float) -> None:
        self._root = root
        self._interval_s = interval_s
        self._topology = read_topology(root)
        self._absent: dict[str, str] = {}
        self._seen: set[str] = set()

    def run(self, next_phase: Callable[[float], str | None]) -> Iterator[Row]:
        """Return all rows, each as soon as it is complete.

        `next_phase` waits some seconds for the name of a new phase; '' goes on, and
        None ends.
        """
        began = time.monotonic()
        yield self._node()
        before = self._counters()
        phase = Phase("quiet", began)
        while True:
            self._sample(phase)
            name = next_phase(self._interval_s)
            if name != "":
                yield from phase.rows(len(self._topology.sockets), time.monotonic())
                phase = Phase(name or "", time.monotonic())
            if name is None:
                break
        yield self._added(before, self._counters(), time.monotonic() - began)
        for name, reason in self._absent.items():
            if name not in self._seen:
                yield {"type": "absent", "what": name, "reason": reason}

    def _node(self) -> Row:
        topology = self._topology
        return {
            "type": "node",
            "sockets": [list(cpus) for cpus in topology.sockets],
            "cpus": len(topology.socket_of),
            "allowed": read_allowed(self._root),
            "cache_bytes": topology.cache_bytes,
            "memory_bytes": topology.memory_bytes,
            "available_bytes": topology.available_bytes,
            "start_time": time.time(),
        }

    def _sample(self, phase: Phase) -> None:
        phase.samples += 1
        with self._noted("clock"):
            phase.add_clocks(read_clocks(self._root), self._topology)
            self._seen.add("clock")
        with self._noted("temperature"):
            phase.add_temperatures(read_temperatures(self._root, self._topology))
            self._seen.add("temperature")

    def _counters(self) -> dict[str, int]:
        """Read all counters of the node."""
        counts = {}
        for name, read in COUNTERS.items():
            with self._noted(name):
                counts[name] = read(self._root, self._topology)
        return counts

    @contextmanager
    def _noted(self, name: str) -> Iterator[None]:
        """Record the reason of an AbsentError in place of raising it."""
        try:
            yield
        except AbsentError as error:
            self._absent[name] = str(error)

    def _added(
        self, before: dict[str, int], after: dict[str, int], seconds: float
    ) -> Row:
        row: Row = {"type": "counters", "seconds": round(seconds, 3)}
        for name in COUNTERS:
            first, last = before.get(name), after.get(name)
            row |= {f"{name}_before": first, name: None}
            if first is None or last is None:
                continue
            if last < first:
                self._absent[name] = f"the counter went back from {first} to {last}"
            else:
                row[name] = last - first
        return row


def _middle(readings: dict[int, list[float]], socket: int | None) -> float | None:
    values = None if socket is None else readings.get(socket)
    return round(median(values), 6) if values else None


class _Input:
    """The lines of standard input, read with a time limit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""

    def next_phase(self, seconds: float) -> str | None:
        """Return the next line, '' if none comes in time, None at the end."""
        if b"\n" not in self._text:
            if not select.select([self._descriptor], [], [], seconds)[0]:
                return ""
            more = os.read(self._descriptor, 4096)
            if not more:
                return None
            self._text += more
        line, newline, rest = self._text.partition(b"\n")
        if not newline:
            return ""
        self._text = rest
        return line.decode().strip()


def main(arguments: Sequence[str]) -> int:
    """Read and write until standard input ends."""
    parser = argparse.ArgumentParser(
        prog="seatrial.checks.nodesweep.sensors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--interval", type=float, default=0.5, metavar="SECONDS")
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        sampler = Sampler(options.root, options.interval)
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: the node's topology: {error}", file=sys.stderr)
        return 1
    for row in sampler.run(_Input(sys.stdin.fileno()).next_phase):
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
