# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The base class of checks of the file systems that the inventory declares."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime

from seatrial.checks.base import SeatrialCheck, cores_of
from seatrial.checks.job_steps import conduct
from seatrial.checks.time_limits import start_s
from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import decode_object
from seatrial.parsers.steps import StepOutput, split_steps

NONE = "none"
"""Parameter of a case on a system that declares no file system."""


def declared_file_systems() -> list[str]:
    """Return the names of the file systems of this system; NONE if there is none."""
    partitions = runtime().system.partitions
    names = {
        entry["name"]: None
        for partition in partitions
        for entry in partition.extras.get("file_systems", [])
    }
    return [*names] or [NONE]


class FileSystemCheck(SeatrialCheck):
    """A benchmark of one file system, conducted by seatrial.checks.storage.

    A check has a parameter `file_system` of `declared_file_systems()`.
    """

    most_ranks = variable(int, value=16)
    """Ranks per node at most; fewer on nodes with fewer cores."""
    step_limit = variable(int, value=1800)
    """Seconds that one run of the program may take; then it is ended."""
    patience = variable(int, value=600)
    """Seconds to wait for another job that uses the same file system."""

    tool_name: str
    """Program, of the feature ior."""
    runs: int
    """Number of its runs."""
    file_system: str
    needs_nodes = 2  # one would read what its own memory still has
    reference_file = "storage.yaml"
    output_file = "storage.txt"
    valid_prog_environs = ["+ior"]

    @run_after("setup")
    def find_file_system(self) -> None:
        """Find the declaration; skip the case without it, or without the program."""
        self.skip_if(
            self.file_system == NONE,
            "no file system is declared: name those to measure in suite_file_systems",
        )
        programs = self.current_environ.extras.get("programs", [])
        self.skip_if(
            self.tool_name not in programs,
            f"{self.current_environ.name} has no {self.tool_name}; put it into the "
            "folder that programs.ior of mpi_stacks names",
        )
        entries = self.current_partition.extras.get("file_systems", [])
        found = [entry for entry in entries if entry["name"] == self.file_system]
        if len(found) != 1:
            raise ReframeError(
                f"partition {self.current_partition.fullname} has {len(found)} file "
                f"systems {self.file_system}; run site.yml again"
            )
        self.declaration: dict[str, Any] = found[0]

    @run_after("setup")
    def place(self) -> None:
        """Choose ranks per node from the cores that ReFrame's settings name."""
        self.ppn = min(cores_of(self.current_partition), self.most_ranks)
        super().place()

    def programs_s(self) -> float:
        """Add up the limits of the runs, and the wait for another job."""
        run_s = start_s(self.num_nodes) + self.step_limit
        return float(self.patience + self.runs * run_s)

    @abstractmethod
    def sizes(self) -> dict[str, Any]:
        """Return the options of seatrial.checks.storage for sizes."""

    @run_before("run")
    def conduct_program(self) -> None:
        """Run seatrial.checks.storage, which keeps within the share and cleans up."""
        entry = self.declaration
        values = {
            "tool": self.tool_name,
            "name": entry["name"],
            "path": f"'{entry['path']}'",
            "share": entry["share"],
            "ppn": self.ppn,
            "start-limit": int(start_s(self.num_nodes)),
            "step-limit": self.step_limit,
            "patience": self.patience,
            **self.sizes(),
        }
        if "stripe_count" in entry:
            values["stripe-count"] = entry["stripe_count"]
        options = [f"--{name}={value}" for name, value in values.items()]
        conduct(self, "seatrial.checks.storage", options)
        self.prerun_cmds = [*self.prerun_cmds, "rm -rf steps"]

    def outputs(self, text: str, names: Sequence[str]) -> tuple[StepOutput, ...]:
        """Return the outputs of the steps `names`, after the row of the space.

        Raises ParseError if a step is missing, or if the run took more than its share.
        """
        space, *outputs = split_steps(text, ["space", *names])
        with space.located():
            lines = space.text.splitlines()
            row = decode_object(1, lines[0]) if len(lines) == 1 else {}
            verify_space(row, self.file_system)
        return tuple(outputs)


def verify_space(row: dict[str, Any], name: str) -> None:
    """Raise ParseError unless a run kept within the share of this file system."""
    wanted = {"type": "space", "name": name}
    if {key: row.get(key) for key in wanted} != wanted:
        raise ParseError(1, f"space of {json.dumps(row)[:60]}, expected {wanted}")
    for kind in ("bytes", "files"):
        used, allowed = row.get(f"used_{kind}", 0), row.get(f"allowed_{kind}")
        if allowed is not None and not 0 <= used <= allowed:
            raise ParseError(1, f"{used} {kind}, its share allows {allowed}")
