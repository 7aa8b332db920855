"""A program on every node beside the others, such as the sensors, told by lines."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seatrial.checks.nodesweep.launch import MOST_ALONE, TRIES, NodeStep, common_step
from seatrial.checks.srun_steps import Ended, Step
from seatrial.checks.step_launcher import Launcher


@dataclass
class Companions:
    """Runs a program on all nodes until its input ends.

    It is one job step with a task on each node. Nodes that do not answer in it get
    steps of their own, which show the cause. Start and end may each take the limit of
    the steps.
    """

    launcher: Launcher
    _common: Step | None = field(default=None, init=False)
    _together: list[NodeStep] = field(default_factory=list, init=False)
    _alone: list[NodeStep] = field(default_factory=list, init=False)

    def start(
        self, steps: Sequence[NodeStep], is_ready: Callable[[NodeStep], bool]
    ) -> dict[NodeStep, Ended]:
        """Start the program on all nodes; return the ends of those where it ended."""
        left, alone = [*steps], list[NodeStep]()
        for _ in range(TRIES):
            if len(left) < 2 or self._start_common(left, is_ready):
                break
            late = [step for step in left if not is_ready(step)]
            if len(late) <= MOST_ALONE:
                alone += late
                left = list(filter(is_ready, left))
        if self._common is None:
            alone, left = alone + left, []
        self._alone = alone  # those that run are ended after any error
        self.launcher.start(alone)
        ended = self.launcher.wait(alone, is_ready)
        self._alone = [step for step in alone if step not in ended]
        self._together = [step for step in left if not step.has_status()]
        ends = ((step, step.common_end(is_late=False)) for step in left)
        return ended | {step: end for step, end in ends if end}

    def _start_common(
        self, steps: Sequence[NodeStep], is_ready: Callable[[NodeStep], bool]
    ) -> bool:
        """Start one step on all nodes; return True if all answer in time."""
        self._common = common_step(steps, is_told=True)
        self.launcher.start([self._common])
        ended = self.launcher.wait(
            [self._common],
            lambda _: all(is_ready(step) or step.has_status() for step in steps),
        )
        if ended:
            shutil.rmtree(self._common.folder, ignore_errors=True)
            self._common = None
        return not ended

    def tell(self, line: str) -> None:
        """Send a line to the programs of all nodes."""
        for step in self._running():
            step.tell(line)

    def finish(self) -> dict[NodeStep, Ended]:
        """End the input of all programs; return their ends."""
        running = self._running()
        for step in running:
            step.tell(None)
            step.watch.begin()
        ended = self.launcher.wait(running)
        ends = {step: ended[step] for step in self._alone}
        for step in self._together:
            assert self._common is not None
            own = step.common_end(is_late=self._common.is_late)
            ends[step] = own or _unfinished(step, ended[self._common])
        self.end()
        return ends

    def end(self) -> None:
        """End the programs that still run."""
        self.launcher.end(self._running())
        if self._common is not None:
            shutil.rmtree(self._common.folder, ignore_errors=True)
        self._common, self._together, self._alone = None, [], []

    def _running(self) -> list[Step]:
        return [*([self._common] if self._common else []), *self._alone]


def _unfinished(step: NodeStep, common: Ended) -> Ended:
    """Return the end of a program that the common step lost, with srun's errors."""
    named = tuple(line for line in common.errors if step.node in line)
    return Ended(common.status or None, (), named)
