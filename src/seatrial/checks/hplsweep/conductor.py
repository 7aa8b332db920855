"""The sweep over groups of nodes, from start to end."""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import seatrial
from seatrial.checks import job_control
from seatrial.checks.hpcc_input import hpl_input, order_within, process_grid
from seatrial.checks.job_control import Limit
from seatrial.checks.srun_steps import Ended, Step
from seatrial.checks.step_launcher import Launcher
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpl import parse_hpl

say = partial(job_control.say, "hplsweep")


@dataclass(frozen=True)
class Size:
    """The size of HPL: order `n`, or 0 for one by the memory of a group's nodes.

    `node_bytes` of each node are for the matrix; `longest_s` bounds the order by time,
    unless it is 0. `ppn` ranks run on the `cores` of a node.
    """

    n: int
    node_bytes: float
    longest_s: float
    block: int
    ppn: int
    cores: int

    def order(self, nodes: int) -> int:
        """Return the order of the matrix of a group; ValueError without room."""
        if self.n:
            return self.n
        memory, cores = nodes * self.node_bytes, nodes * self.cores
        return order_within(memory, cores, self.block, self.longest_s)


@dataclass
class Conductor:
    """Runs HPL on all groups of nodes at once; `folder` is shared by all nodes."""

    groups: Mapping[str, Sequence[str]]
    launcher: Launcher
    program: Sequence[str]
    file: Path
    folder: Path
    size: Size
    limit_s: float
    _failed: int = field(default=0, init=False)

    def run(self) -> None:
        """Measure all groups, and write a row for each."""
        began = time.monotonic()
        first = {"type": "run", "program": "hplsweep", "version": seatrial.__version__}
        sizes = {"ppn": self.size.ppn, "block": self.size.block}
        self._write({**first, "groups": len(self.groups), **sizes}, time.time())
        say(f"{len(self.groups)} groups of nodes")
        steps = {name: self._step(name) for name in self.groups}
        try:
            self.launcher.start(list(steps.values()))
            ended = self.launcher.wait(list(steps.values()))
        finally:
            self.launcher.end(list(steps.values()))
        for name, step in steps.items():
            self._report(name, step, ended[step])
        end = {"type": "end", "passed": len(steps) - self._failed}
        elapsed_s = round(time.monotonic() - began, 3)
        self._write({**end, "failed": self._failed, "elapsed_s": elapsed_s})
        say("done")

    def _step(self, name: str) -> Step:
        nodes, size = self.groups[name], self.size
        folder = self.folder / name
        folder.mkdir(parents=True)
        text = hpl_input(size.order(len(nodes)), size.block, len(nodes) * size.ppn)
        (folder / "HPL.dat").write_text(text, encoding="ascii")
        return Step(
            nodes,
            self.program,
            folder,
            Limit(self.limit_s),
            name=f"hpl {name}",
            ranks=size.ppn,
            options=(f"--chdir={folder}",),
        )

    def _report(self, name: str, step: Step, end: Ended) -> None:
        """Write the row of a group; its folder goes if it passed."""
        nodes = self.groups[name]
        keys = {"group": name, "nodes": " ".join(nodes)}
        grid = process_grid(len(nodes) * self.size.ppn)
        order = self.size.order(len(nodes))
        try:
            if end.status != 0:
                raise ParseError(0, end.reason)
            run = parse_hpl(step.output(), order, self.size.block, grid)
        except ParseError as error:
            reason = error.reason if error.line == 0 else str(error)
            say(f"{name}: {reason}")
            self._failed += 1
            row = {"type": "failed", **keys, "reason": reason}
            self._write(row, step.start_time)
            return
        self._write({"type": "hpl", **keys, **vars(run)}, step.start_time)
        shutil.rmtree(step.folder, ignore_errors=True)

    def _write(self, row: Mapping[str, Any], start_time: float | None = None) -> None:
        times = {} if start_time is None else {"start_time": start_time}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, **times}, separators=(",", ":")) + "\n")
