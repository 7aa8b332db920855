# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The base class of the checks that run our own programs of verbs."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from reframe.core.builtins import run_after, variable

from seatrial.checks.base import Tag
from seatrial.checks.job_steps import Step, SteppedCheck
from seatrial.model.records import Sample
from seatrial.parsers.steps import StepOutput


@dataclass(frozen=True)
class VerbsRun:
    """A program with its options, and its samples, which have no place yet.

    `rails` are those that it takes, one or two. `read` raises ParseError.
    """

    command: str
    rails: tuple[str, ...]
    read: Callable[[str], Iterable[Sample]]


class VerbsProgram(SteppedCheck):
    """A check that runs our own programs over every rail, without MPI's messages.

    MPI starts the ranks and tells each how to reach its partner. Every program verifies
    the contents of its messages, and makes fewer iterations if a size would take longer
    than `milliseconds_per_size`.
    """

    iterations = variable(int, value=1000)
    warmup = variable(int, value=100)
    milliseconds_per_size = variable(int, value=100)

    valid_systems = ["+verbs"]
    reference_file = "verbs.yaml"
    tags = {Tag.NETWORK}
    time_limit = "30m"

    @abstractmethod
    def runs(self) -> list[VerbsRun]:
        """List the runs, after nodes and ranks are known."""

    @run_after("setup")
    def take_rails(self) -> None:
        """Read the rails of a node from the inventory; skip a class that has none."""
        extras = self.current_partition.extras
        self.rails = extras.get("rails", [])
        self.gid_indexes = extras.get("gid_indexes", {})
        self.skip_if(
            not self.rails,
            f"node_classes names no rails of the class {self.current_partition.name}: "
            "name device and port of each adapter, such as mlx5_0:1",
        )

    def steps(self) -> list[Step]:
        """Return a step for each run."""
        common = (
            f"--iterations {self.iterations} --warmup {self.warmup} "
            f"--time {self.milliseconds_per_size} --validate --json"
        )
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

    def gid(self, rail: str) -> str:
        """Return the option for the GID index of a rail, '' if the program chooses."""
        index = self.gid_indexes.get(rail)
        return "" if index is None else f" --gid-index {index}"

    def _read(self, run: VerbsRun, output: StepOutput) -> Iterable[Sample]:
        """Return the samples of a run with their place."""
        place = {"source": self.nodes[0], "destination": self.nodes[-1]}
        if len(self.nodes) == 1:
            place = {"node": self.nodes[0]}
        for sample in run.read(output.text):
            yield replace(sample, **place, hca=",".join(run.rails))
