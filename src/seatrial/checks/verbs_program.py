# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""The base class of the checks that run our own programs of verbs."""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from reframe.core.builtins import variable

from seatrial.checks.job_steps import Step
from seatrial.checks.verbs_check import MPI_OVER_TCP, VerbsCheck
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.steps import StepOutput


@dataclass(frozen=True)
class VerbsRun:
    """A program with its options, and its samples, which have no place yet.

    `rails` are those that it takes, one or two. `read` gets them with the output, and
    raises ParseError.
    """

    command: str
    rails: tuple[str, ...]
    read: Callable[[str, tuple[str, ...]], Iterable[Sample]]


class VerbsProgram(VerbsCheck):
    """A check that runs our own programs over every rail, without MPI's messages.

    MPI starts the ranks and tells each how to reach its partner, by TCP where it takes
    UCX: a rail that is down then stops the program, which names it, and not MPI. Every
    program verifies the contents of its messages, and makes fewer iterations if a size
    would take longer than `milliseconds_per_size`.
    """

    iterations = variable(int, value=1000)
    warmup = variable(int, value=100)
    milliseconds_per_size = variable(int, value=100)
    min_size = variable(int, value=8)
    max_size = variable(int, value=65536)
    size_factor = variable(int, value=2)
    """From one size to the next one; beyond 2 the largest is measured in any case."""
    rdma_cm = variable(bool, value=False)
    """Connect by rdma_cm, as iWARP needs; tried over RoCE only."""
    env_vars = MPI_OVER_TCP

    @abstractmethod
    def runs(self) -> list[VerbsRun]:
        """List the runs, after nodes and ranks are known."""

    def steps(self) -> list[Step]:
        """Return a step for each run."""
        common = (
            f"--sizes {self.min_size}:{self.max_size} "
            f"--iterations {self.iterations} --warmup {self.warmup} "
            f"--time {self.milliseconds_per_size} --validate --json"
        )
        if self.size_factor > 2:
            common += f" --factor {self.size_factor}"
        return [
            Step(
                f"{run.command.split()[0]},{number}",
                f"{run.command} --device {','.join(run.rails)} {common}",
                self.num_nodes,
                self.ppn,
                partial(self._read, run),
            )
            for number, run in enumerate(self.runs(), 1)
        ]

    @property
    def sizes(self) -> list[int]:
        """The sizes that the program measures."""
        sizes, size = [], self.min_size
        while size <= self.max_size:
            sizes.append(size)
            size *= self.size_factor
        is_last = sizes[-1] == self.max_size or self.size_factor == 2
        return sizes if is_last else [*sizes, self.max_size]

    def gid(self, rail: str) -> str:
        """Return the option for the GID index of a rail, '' if the program chooses.

        With rdma_cm the address of the rail chooses.
        """
        if self.rdma_cm:
            return " --rdma-cm"
        index = self.gid_indexes.get(rail)
        return "" if index is None else f" --gid-index {index}"

    def verify_rows(self, rows: Sequence[Any], rail: str) -> None:
        """Raise ParseError unless the rows are valid, and of the requested run."""
        wanted = {
            "np": self.num_nodes * self.ppn,
            "iterations": self.iterations,
            "warmup": self.warmup,
            "validation": "pass",
        }
        values = {name: getattr(rows[0], name) for name in wanted}
        if values != wanted:
            raise ParseError(0, f"a run of {values}, expected {wanted}")
        sizes = list(dict.fromkeys(row.size_bytes for row in rows))
        if sizes != self.sizes:
            raise ParseError(0, f"sizes {sizes}, expected {self.sizes}")
        if rows[0].device.partition(":")[0] != rail.partition(":")[0]:
            raise ParseError(0, f"a run of {rows[0].device}, expected {rail}")

    def _cause(self) -> str:
        """Quote the first rank that says what is wrong."""
        text = Path(self.stagedir, self.job.stderr).read_text(errors="replace")
        match = re.search(r"^\w+: rank \d+ on \S+: .*", text, re.MULTILINE)
        return f"says: {match[0]!r}" if match else super()._cause()

    def _read(self, run: VerbsRun, output: StepOutput) -> Iterable[Sample]:
        """Return the samples of a run with their place."""
        place: dict[str, Any] = {"node": self.nodes[0]}
        if len(self.nodes) > 1:
            place = {"source": self.nodes[0], "destination": self.nodes[1]}
        for sample in run.read(output.text, run.rails):
            yield replace(sample, **place, hca=sample.hca or ",".join(run.rails))
