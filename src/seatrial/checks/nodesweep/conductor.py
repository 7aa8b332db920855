"""The sweep over single nodes from its first reading to its last."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seatrial
from seatrial.checks.hpcc_input import hpcc_input, order_for_memory
from seatrial.checks.nodesweep.launch import Launcher, NodeStep
from seatrial.checks.nodesweep.outputs import (
    Row,
    fixedwork_row,
    hpcc_numbers,
    memlat_rows,
    node_row,
    sensors_rows,
)
from seatrial.checks.nodesweep.place import Place, bound, place_of
from seatrial.errors import Exit, SeatrialError
from seatrial.parsers.errors import ParseError
from seatrial.parsers.nodesweep_rows import Program

SHORTEST_MS = 2000
"""Least time of fixedwork: two of the longest periods of a CPU quota that Linux has."""

_FIXEDWORK_S, _FIXEDWORK_TIMES = 60.0, 4.0
"""Limit of fixedwork: its start, and so many times what it is to take."""


@dataclass(frozen=True)
class Settings:
    """What is measured, and how long each program may take, in seconds.

    `n` 0: the matrix of HPL fills `memory_percent` of a node's memory. `memlat` is its
    command line, empty with the reason in `no_memlat`; likewise `fixedwork`.
    """

    hpcc: Sequence[str]
    n: int
    memory_percent: float
    block: int
    memlat: Sequence[str]
    no_memlat: str | None
    memlat_sizes: tuple[int, int]
    fixedwork: Sequence[str]
    no_fixedwork: str | None
    fixedwork_ms: int
    quiet_s: float
    start_s: float
    memlat_s: float
    hpcc_s: float


class Conductor:
    """Leads the sweep over the nodes of this job.

    `folder` takes what the programs write, on a file system that all nodes share;
    what is left there afterwards is of programs that failed.
    """

    def __init__(
        self,
        nodes: Mapping[str, int],
        launcher: Launcher,
        file: Path,
        folder: Path,
        settings: Settings,
    ) -> None:
        """`nodes`: the CPUs that Slurm has given on each."""
        self._nodes = nodes
        self._launcher = launcher
        self._file = file
        self._folder = folder
        self._settings = settings
        self._places: dict[str, Place] = {}
        self._sensors: dict[str, NodeStep] = {}
        self._passed = self._events = 0
        self._last_event = ""

    def run(self) -> None:
        """Measure all nodes; SeatrialError if HPCC ends well on none of them."""
        began = time.monotonic()
        self._begin()
        try:
            self._start_sensors()
            time.sleep(self._settings.quiet_s)
            self._measure()
            self._stop_sensors()
        finally:
            self._launcher.end(list(self._sensors.values()))
        elapsed_s = time.monotonic() - began
        end = {"type": "end", "passed": self._passed, "events": self._events}
        self._write({**end, "elapsed_s": round(elapsed_s, 3)})
        say("done")

    def _begin(self) -> None:
        settings = self._settings
        self._write(
            {
                "type": "run",
                "program": "nodesweep",
                "version": seatrial.__version__,
                "nodes": len(self._nodes),
                "n": settings.n,
                "memory_percent": settings.memory_percent,
                "block": settings.block,
                "no_memlat": settings.no_memlat,
                "memlat_min_bytes": settings.memlat_sizes[0],
                "memlat_max_bytes": settings.memlat_sizes[1],
                "no_fixedwork": settings.no_fixedwork,
                "fixedwork_ms": settings.fixedwork_ms,
                "start_time": time.time(),
            }
        )

    def _start_sensors(self) -> None:
        """Learn what every node is made of; its sensors are read from now on."""
        say(f"{len(self._nodes)} nodes: what are they made of?")
        program = (sys.executable, "-I", "-m", "seatrial.checks.nodesweep.sensors")
        self._sensors = {
            node: NodeStep(node, program, self._folder / node / "sensors", is_told=True)
            for node in self._nodes
        }
        steps = list(self._sensors.values())
        limit_s = self._settings.start_s
        self._launcher.start(steps, limit_s)
        ended = self._launcher.wait(
            steps, limit_s, lambda step: node_row(step.output()) is not None
        )
        for step in steps:
            if how := ended.get(step.node):
                del self._sensors[step.node]
                self._event(step.node, "sensors", None, how.reason, left_out=True)
                continue
            told = node_row(step.output())
            assert told is not None
            place = place_of(step.node, told, self._nodes[step.node])
            self._places[step.node] = place
            self._write(place.row())
        if not self._places:
            raise SeatrialError(f"no node answers; {self._last_event}", Exit.FAILED)

    def _measure(self) -> None:
        sockets = range(max(len(place.sockets) for place in self._places.values()))
        if not self._settings.no_memlat:
            self._tell("memlat")
            for socket in sockets:
                self._memlat(socket)
        self._tell("hpcc")
        self._hpcc(None)
        if not self._settings.no_fixedwork:
            self._tell("fixedwork")
            self._fixedwork()
        for place in self._places.values():
            if reason := place.why_no_sockets:
                skip = {"type": "skip", "node": place.node, "program": "hpcc"}
                self._write({**skip, "reason": reason})
        if all(place.why_no_sockets for place in self._places.values()):
            return
        self._tell("hpcc_sockets")
        for socket in sockets:
            self._hpcc(socket)

    def _memlat(self, socket: int) -> None:
        """Measure on one core of this socket, on every node that has it.

        Where ranks cannot be bound, it is measured once, wherever the core may be.
        """
        steps = []
        for place in self._with_socket(socket):
            if place.unbound and socket > 0:
                continue
            cpu = place.sockets[socket][-1]  # the first one has the interrupts
            bind = () if place.unbound else ("taskset", "-c", str(cpu))
            program = (*bind, *self._settings.memlat)
            folder = self._folder / place.node / f"memlat-{socket}"
            where = None if place.unbound else socket
            steps.append(NodeStep(place.node, program, folder, socket=where))

        def rows(step: NodeStep) -> Iterator[Row]:
            yield from memlat_rows(step.output(), self._settings.memlat_sizes)

        self._run("memlat", steps, self._settings.memlat_s, rows)

    def _hpcc(self, socket: int | None) -> None:
        """Measure on all cores of every node, or of one socket where it has several."""
        settings = self._settings
        orders: dict[str, int] = {}
        steps = []
        places = (
            list(self._places.values())
            if socket is None
            else [each for each in self._with_socket(socket) if not each.why_no_sockets]
        )
        for place in places:
            cpus = place.cores if socket is None else place.sockets[socket]
            ranks = place.ranks if socket is None else len(cpus)
            share = ranks / place.ranks
            try:
                n = settings.n or order_for_memory(
                    place.memory_bytes * settings.memory_percent / 100 * share,
                    settings.block,
                )
                place.require_room(n)
            except ValueError as error:
                self._event(place.node, "hpcc", socket, str(error))
                continue
            name = "hpcc" if socket is None else f"hpcc-{socket}"
            folder = self._folder / place.node / name
            folder.mkdir(parents=True)
            text = hpcc_input(n, settings.block, ranks)
            (folder / "hpccinf.txt").write_text(text, encoding="ascii")
            program = settings.hpcc if place.unbound else bound(settings.hpcc, cpus)
            step = NodeStep(
                place.node, program, folder, socket=socket, ranks=ranks, mpi=True
            )
            steps.append(step)
            orders[place.node] = n

        def rows(step: NodeStep) -> Iterator[Row]:
            n = orders[step.node]
            try:
                text = (step.folder / "hpccoutf.txt").read_text(errors="replace")
            except OSError as error:
                raise ParseError(0, f"hpccoutf.txt: {error.strerror}") from None
            yield {
                "ranks": step.ranks,
                "n": n,
                "block": settings.block,
                "seconds": round(step.elapsed_s, 3),
                **hpcc_numbers(text, step.ranks, n, settings.block),
            }

        passed = self._run("hpcc", steps, settings.hpcc_s, rows)
        if socket is None and not passed:
            raise SeatrialError(
                f"HPCC ended well on no node; {self._last_event}", Exit.FAILED
            )

    def _fixedwork(self) -> None:
        """Measure on all cores of every node, which HPCC has warmed up before."""
        settings = self._settings
        steps = []
        for place in self._places.values():
            cores = ("--threads", str(place.ranks))
            if not place.unbound:
                cores = ("--cpus", ",".join(map(str, place.cores)))
            program = (*settings.fixedwork, *cores)
            folder = self._folder / place.node / "fixedwork"
            steps.append(NodeStep(place.node, program, folder))

        def rows(step: NodeStep) -> Iterator[Row]:
            ranks = self._places[step.node].ranks
            yield fixedwork_row(step.output(), ranks, settings.fixedwork_ms)

        limit_s = _FIXEDWORK_S + _FIXEDWORK_TIMES * settings.fixedwork_ms / 1e3
        self._run("fixedwork", steps, limit_s, rows)

    def _run(
        self,
        program: Program,
        steps: Sequence[NodeStep],
        limit_s: float,
        rows: Callable[[NodeStep], Iterable[Row]],
    ) -> int:
        """Run a program on all nodes at the same time, and write what it gave.

        Gives the number of nodes on which it ended well.
        """
        before = self._passed
        say(f"{program}: {len(steps)} nodes")
        self._launcher.start(steps, limit_s)
        ended = self._launcher.wait(steps, limit_s)
        for step in steps:
            how = ended[step.node]
            if how.status != 0:
                self._event(step.node, program, step.socket, how.reason, step.is_lost)
                continue
            try:
                numbers = list(rows(step))
            except ParseError as error:
                reason = f"{error}; {how.reason}" if how.errors else str(error)
                self._event(step.node, program, step.socket, reason)
                continue
            about = {"type": program, "node": step.node, "socket": step.socket}
            for row in numbers:
                self._write({**about, **row, "start_time": step.start_time})
            self._passed += 1
            _remove(step.folder)
        return self._passed - before

    def _stop_sensors(self) -> None:
        """Collect the readings of all nodes that still give some."""
        steps = list(self._sensors.values())
        for step in steps:
            step.tell(None)
        ended = self._launcher.wait(steps, self._settings.start_s)
        for step in steps:
            how = ended[step.node]
            rows = sensors_rows(step.output())
            if how.status != 0 or not any(row["type"] == "counters" for row in rows):
                self._event(step.node, "sensors", None, how.reason)
                continue
            for row in rows:
                kind = row.pop("type")
                self._write({"type": kind, "node": step.node, **row})
            self._passed += 1
            _remove(step.folder)
        self._sensors = {}

    def _tell(self, phase: str) -> None:
        for step in self._sensors.values():
            step.tell(phase)

    def _with_socket(self, socket: int) -> list[Place]:
        places = self._places.values()
        return [place for place in places if socket < len(place.sockets)]

    def _event(
        self,
        node: str,
        program: Program,
        socket: int | None,
        reason: str,
        left_out: bool = False,
    ) -> None:
        """Record that a program gave no numbers on a node."""
        event = "left_out" if left_out else "failed"
        where = "" if socket is None else f" on socket {socket}"
        self._last_event = f"{node}: {program}{where}: {reason}"
        say(f"{event.replace('_', ' ')}: {self._last_event}")
        if left_out:
            self._places.pop(node, None)
        row: dict[str, Any] = {"type": "event", "event": event, "node": node}
        row |= {"program": program, "socket": socket, "reason": reason}
        self._write({**row, "time": time.time()})
        self._events += 1

    def _write(self, row: Mapping[str, Any]) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def say(text: str) -> None:
    """Tell people how it goes."""
    print(f"{time.strftime('%H:%M:%S')} nodesweep: {text}", flush=True)


def _remove(folder: Path) -> None:
    """Remove the files of a program, and the folder of its node if it is the last."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()
