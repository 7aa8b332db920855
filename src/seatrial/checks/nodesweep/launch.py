"""Job steps of single nodes: many at the same time, each in a folder of its own."""

import resource
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from seatrial.checks.job_control import Limit
from seatrial.checks.srun_steps import Ended, Step
from seatrial.parsers.mpi_start import StartCrash


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
        self._mpi = mpi
        self._inputs = {"out", "err", *(file.name for file in folder.iterdir())}

    def tell(self, line: str | None) -> None:
        """Send a line to the program; None ends its input. It may be gone already."""
        if self.process is None or self.process.stdin is None:
            return
        with suppress(OSError, ValueError):
            if line is None:
                self.process.stdin.close()
            else:
                self.process.stdin.write(line.encode() + b"\n")
                self.process.stdin.flush()

    def crash(self, ended: Ended) -> StartCrash | None:
        """Return the crash at start, unless the program wrote to a file of its own."""
        files = self.folder.iterdir()
        wrote = any(f.stat().st_size for f in files if f.name not in self._inputs)
        return super().crash(ended) if self._mpi and not wrote else None

    @property
    def is_lost(self) -> bool:
        """Return True if the failed step hangs, or Slurm has taken its node."""
        return self.is_late or self.is_aborting or self.is_taken()


def allow_files(nodes: int) -> None:
    """Raise the limit of open files: one for each node, besides the usual ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = nodes + 256
    if soft != resource.RLIM_INFINITY and soft < needed:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
