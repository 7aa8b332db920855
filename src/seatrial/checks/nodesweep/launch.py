"""Programs of single nodes at the same time, each in a folder of its own.

A program without MPI is one job step with a task on every node (`run_on_nodes`). MPI
takes a step of its own for each node, as the ranks of a step are one MPI job.
"""

import resource
import shlex
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from seatrial.checks.job_control import Limit
from seatrial.checks.srun_steps import Ended, Step
from seatrial.checks.step_launcher import Launcher
from seatrial.parsers.mpi_start import StartCrash

_SCRIPT = """\
date +%s.%N >began
{program} >out 2>err{source}
echo $? >ended && mv ended status
"""
"""Runs a program in its folder; `status` is written last, and whole."""

_TASK = ("sh", "-c", 'cd "$1/$SLURMD_NODENAME/$2" && exec sh ./run', "sh")
MOST_ALONE = 32
"""Nodes without a result that get steps of their own; more get a common one again."""
TRIES = 3


class NodeStep(Step):
    """A program on one node, where it runs in its folder; it may take `limit_s`."""

    def __init__(
        self,
        node: str,
        program: Sequence[str],
        folder: Path,
        limit_s: float,
        *,
        socket: int | None = None,
        ranks: int = 1,
        mpi: bool = False,
        is_told: bool = False,
    ) -> None:
        """`socket`: the program's own; `is_told`: it reads standard input."""
        options = (f"--chdir={folder}", "--cpu-bind=none")
        super().__init__(
            [node],
            program,
            folder,
            Limit(limit_s),
            name=f"{folder.name} {node}",
            ranks=ranks,
            options=options if mpi else (*options, "--mpi=none"),
            is_told=is_told,
        )
        self.node = node
        self.socket = socket
        self.limit_s = limit_s
        self.is_late = self.is_aborting = False
        self._mpi = mpi
        self._inputs = {"out", "err", *(file.name for file in folder.iterdir())}

    def common_end(self, *, is_late: bool) -> Ended | None:
        """Return the end of the program in a step of many nodes; None: it has none.

        `is_late`: the time limit ended that step.
        """
        try:
            self.start_time = float((self.folder / "began").read_text())
        except (OSError, ValueError):
            return None
        with suppress(OSError, ValueError):
            status = int((self.folder / "status").read_text())
            return self._end(status)
        self.is_late = is_late
        return self._end(None) if is_late else None

    def has_status(self) -> bool:
        """Return True if the program ended in a step of many nodes."""
        return (self.folder / "status").exists()

    def _end(self, status: int | None) -> Ended:
        output, errors = self.output().splitlines(), self.errors().splitlines()
        return Ended(status, tuple(output), tuple(errors))

    def crash(self, ended: Ended) -> StartCrash | None:
        """Return the crash at start, unless the program wrote to a file of its own."""
        files = self.folder.iterdir()
        wrote = any(f.stat().st_size for f in files if f.name not in self._inputs)
        return super().crash(ended) if self._mpi and not wrote else None

    @property
    def is_lost(self) -> bool:
        """Return True if the failed step hangs, or Slurm has taken its node."""
        return self.is_late or self.is_aborting or self.is_taken()


def run_on_nodes(
    launcher: Launcher, steps: Sequence[NodeStep], patience_s: float
) -> dict[NodeStep, Ended]:
    """Run a program without MPI on several nodes, in one job step with a task on each.

    The task of a node that fails or is lost does not end the others. Nodes without a
    result, for example because Slurm could not start one of them, are repeated: many
    in a common step, few in steps of their own, which show the cause.
    """
    ended: dict[NodeStep, Ended] = {}
    left = [*steps]
    for attempt in range(TRIES):
        if len(left) < 2 or (attempt and len(left) <= MOST_ALONE):
            break
        ended |= _run_common(launcher, left, patience_s)
        left = [step for step in left if step not in ended]
    launcher.start(left)
    return ended | launcher.wait(left)


class _CommonStep(Step):
    """A step with a task on each node, whose programs write to their own folders."""

    def crash(self, ended: Ended) -> StartCrash | None:
        """Return None: there is no MPI."""
        return None


def _run_common(
    launcher: Launcher, steps: Sequence[NodeStep], patience_s: float
) -> dict[NodeStep, Ended]:
    """Run one step on all nodes; return the ends of the programs that have one."""
    common = common_step(steps, patience_s)
    try:
        launcher.start([common])
        launcher.wait([common])
    finally:
        launcher.end([common])
        shutil.rmtree(common.folder, ignore_errors=True)
    ends = ((step, step.common_end(is_late=common.is_late)) for step in steps)
    return {step: end for step, end in ends if end is not None}


def common_step(
    steps: Sequence[NodeStep], patience_s: float = 0.0, *, is_told: bool = False
) -> Step:
    """Return a step with a task on each node, which runs the program of its node.

    It may take `patience_s` longer than its programs. `is_told`: all programs read its
    standard input.
    """
    name, root = steps[0].folder.name, steps[0].folder.parents[1]
    source = "" if is_told else " </dev/null"
    for step in steps:
        for file in ("status", "began", "out"):
            (step.folder / file).unlink(missing_ok=True)
        script = _SCRIPT.format(program=shlex.join(step.program), source=source)
        (step.folder / "run").write_text(script, encoding="utf-8")
    return _CommonStep(
        [step.node for step in steps],
        (*_TASK, str(root), name),
        root / f"all-{name}",
        Limit(max(step.limit_s for step in steps) + patience_s),
        name=name,
        options=(
            "--mpi=none",
            "--cpu-bind=none",
            "--kill-on-bad-exit=0",
            "--wait=0",
            "--no-kill",
        ),
        is_told=is_told,
    )


def allow_files(nodes: int) -> None:
    """Raise the limit of open files: one for each node, besides the usual ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = nodes + 256
    if soft != resource.RLIM_INFINITY and soft < needed:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
