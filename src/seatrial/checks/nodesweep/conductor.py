"""The sweep over single nodes, from start to end."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from seatrial.checks import job_control
from seatrial.checks.hpcc_input import hpcc_input
from seatrial.checks.nodesweep.companions import Companions
from seatrial.checks.nodesweep.launch import NodeStep, run_on_nodes
from seatrial.checks.nodesweep.outputs import (
    Row,
    fixedwork_row,
    hpcc_row,
    memlat_rows,
    node_row,
    sensors_rows,
)
from seatrial.checks.nodesweep.place import Place, bound, place_of
from seatrial.checks.nodesweep.settings import Settings
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import Exit, SeatrialError
from seatrial.parsers.errors import ParseError
from seatrial.parsers.nodesweep_rows import EventRow, Program

say = partial(job_control.say, "nodesweep")


@dataclass
class Conductor:
    """Conducts the sweep over the nodes of this job.

    `nodes` maps their names to the CPUs that Slurm has given. `folder` takes the files
    of the programs, on a file system that all nodes share; those of failed programs
    stay there.
    """

    nodes: Mapping[str, int]
    launcher: Launcher
    file: Path
    folder: Path
    settings: Settings
    _places: dict[str, Place] = field(default_factory=dict, init=False)
    _sensors: dict[str, NodeStep] = field(default_factory=dict, init=False)
    _companions: Companions = field(init=False)
    _passed: int = field(default=0, init=False)
    _events: int = field(default=0, init=False)
    _last_event: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._companions = Companions(self.launcher)

    def run(self) -> None:
        """Measure all nodes; SeatrialError if HPCC ends well on none of them."""
        began = time.monotonic()
        self._write(self.settings.row(len(self.nodes)))
        try:
            self._start_sensors()
            time.sleep(self.settings.quiet)
            self._measure()
            self._stop_sensors()
        finally:
            self._companions.end()
        end = {"type": "end", "passed": self._passed, "events": self._events}
        self._write({**end, "elapsed_s": round(time.monotonic() - began, 3)})
        say("done")

    def _start_sensors(self) -> None:
        """Start the sensors of every node, and read its topology."""
        say(f"{len(self.nodes)} nodes: reading their topology")
        program = (sys.executable, "-I", "-m", "seatrial.checks.nodesweep.sensors")
        limit = self.settings.start_limit
        for node in self.nodes:
            folder = self.folder / node / "sensors"
            self._sensors[node] = NodeStep(node, program, folder, limit, is_told=True)
        steps = list(self._sensors.values())
        ended = self._companions.start(
            steps, lambda step: bool(node_row(step.output()))
        )
        for step in steps:
            if end := ended.get(step):
                del self._sensors[step.node]
                self._event(step.node, "sensors", None, end.reason, left_out=True)
                continue
            row = node_row(step.output())
            assert row is not None
            place = place_of(step.node, row, self.nodes[step.node])
            self._places[step.node] = place
            self._write(place.row())
        if not self._places:
            raise SeatrialError(f"no node answers; {self._last_event}", Exit.FAILED)

    def _measure(self) -> None:
        sockets = range(max(len(place.sockets) for place in self._places.values()))
        if self.settings.memlat:
            self._companions.tell("memlat")
            for socket in sockets:
                self._memlat(socket)
        self._companions.tell("hpcc")
        self._hpcc(None)
        if self.settings.fixedwork:
            self._companions.tell("fixedwork")
            self._fixedwork()
        for place in self._places.values():
            if reason := place.why_no_sockets:
                skip = {"type": "skip", "node": place.node, "program": "hpcc"}
                self._write({**skip, "reason": reason})
        if not all(place.why_no_sockets for place in self._places.values()):
            self._companions.tell("hpcc_sockets")
            for socket in sockets:
                self._hpcc(socket)

    def _memlat(self, socket: int) -> None:
        """Measure on one core of this socket, on every node that has it.

        Where ranks cannot be bound, it is measured once, on any core.
        """
        low, high = sizes = self.settings.memlat_sizes
        options = ("--validate", "--json", "--sizes", f"{low}:{high}")
        steps = []
        for place in self._with_socket(socket):
            if place.unbound and socket > 0:
                continue
            cpu = place.sockets[socket][-1]  # the first one has the interrupts
            bind = () if place.unbound else ("taskset", "-c", str(cpu))
            step = NodeStep(
                place.node,
                (*bind, *self.settings.memlat, *options),
                self.folder / place.node / f"memlat-{socket}",
                self.settings.memlat_limit,
                socket=None if place.unbound else socket,
            )
            steps.append(step)
        self._run("memlat", steps, lambda step: memlat_rows(step.output(), sizes))

    def _hpcc(self, socket: int | None) -> None:
        """Measure on all cores of every node, or of one socket where it has several."""
        settings = self.settings
        orders: dict[NodeStep, int] = {}
        for place in self._with_socket(socket):
            if socket is None:
                name, cpus, ranks = "hpcc", place.cores, place.ranks
            elif place.why_no_sockets:
                continue
            else:
                cpus = place.sockets[socket]
                name, ranks = f"hpcc-{socket}", len(cpus)
            try:
                n = settings.matrix_order(place, ranks)
            except ValueError as error:
                self._event(place.node, "hpcc", socket, str(error))
                continue
            folder = self.folder / place.node / name
            folder.mkdir(parents=True)
            text = hpcc_input(n, settings.block, ranks)
            (folder / "hpccinf.txt").write_text(text, encoding="ascii")
            step = NodeStep(
                place.node,
                settings.hpcc if place.unbound else bound(settings.hpcc, cpus),
                folder,
                settings.hpcc_limit,
                socket=socket,
                ranks=ranks,
                mpi=True,
            )
            orders[step] = n

        def rows(step: NodeStep) -> Iterator[Row]:
            row = hpcc_row(step.folder, step.ranks, orders[step], settings.block)
            yield {"seconds": round(step.elapsed_s, 3), **row}

        if not self._run("hpcc", list(orders), rows) and socket is None:
            raise SeatrialError(
                f"HPCC ended well on no node; {self._last_event}", Exit.FAILED
            )

    def _fixedwork(self) -> None:
        """Measure on all cores of every node, which HPCC has warmed up before.

        Its limit: a minute for its start, and four times its time.
        """
        time_ms = self.settings.fixedwork_ms
        program = (*self.settings.fixedwork, "--validate", "--json")
        steps = []
        for place in self._places.values():
            cores = ("--threads", str(place.ranks))
            if not place.unbound:
                cores = ("--cpus", ",".join(map(str, place.cores)))
            step = NodeStep(
                place.node,
                (*program, "--time", str(time_ms), *cores),
                self.folder / place.node / "fixedwork",
                60.0 + 4 * time_ms / 1e3,
            )
            steps.append(step)

        def rows(step: NodeStep) -> Iterator[Row]:
            ranks = self._places[step.node].ranks
            yield fixedwork_row(step.output(), ranks, time_ms)

        self._run("fixedwork", steps, rows)

    def _run(
        self,
        program: Program,
        steps: Sequence[NodeStep],
        rows: Callable[[NodeStep], Iterable[Row]],
    ) -> int:
        """Run a program on all nodes at the same time, and write its results.

        Returns the number of nodes on which it ended well.
        """
        before = self._passed
        say(f"{program}: {len(steps)} nodes")
        if program == "hpcc":
            self.launcher.start(steps)
            ended = self.launcher.wait(steps)
        else:
            ended = run_on_nodes(self.launcher, steps, self.settings.start_limit)
        for step in steps:
            end, socket = ended[step], step.socket
            if end.status != 0:
                self._event(step.node, program, socket, end.reason, step.is_lost)
                continue
            try:
                numbers = list(rows(step))
            except ParseError as error:
                reason = f"{error}; {end.reason}" if end.errors else str(error)
                self._event(step.node, program, socket, reason)
                continue
            keys = {"type": program, "node": step.node, "socket": socket}
            for row in numbers:
                self._write({**keys, **row, "start_time": step.start_time})
            self._passed += 1
            _remove(step.folder)
        return self._passed - before

    def _stop_sensors(self) -> None:
        """Collect the readings of all nodes."""
        ended = self._companions.finish()
        for step in self._sensors.values():
            rows = sensors_rows(step.output())
            complete = any(row["type"] == "counters" for row in rows)
            if ended[step].status != 0 or not complete:
                self._event(step.node, "sensors", None, ended[step].reason)
                continue
            for row in rows:
                self._write({**row, "node": step.node})
            self._passed += 1
            _remove(step.folder)

    def _with_socket(self, socket: int | None) -> list[Place]:
        """List the nodes that have this socket; None: all."""
        return [p for p in self._places.values() if (socket or 0) < len(p.sockets)]

    def _event(
        self,
        node: str,
        program: Program,
        socket: int | None,
        reason: str,
        left_out: bool = False,
    ) -> None:
        """Record that a program has no numbers of a node."""
        kind: Literal["left_out", "failed"] = "left_out" if left_out else "failed"
        event = EventRow("event", kind, node, program, socket, reason, time.time())
        self._last_event = event.text
        say(f"{kind.replace('_', ' ')}: {event.text}")
        if left_out:
            self._places.pop(node, None)
        self._write(vars(event))
        self._events += 1

    def _write(self, row: Mapping[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def _remove(folder: Path) -> None:
    """Remove the files of a program, and the folder of its node if it is the last."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()
