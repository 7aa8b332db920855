# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""HPL by its own program: ranks and threads, size, and the rate over the peak."""

from pathlib import Path
from typing import Any

from reframe.core.builtins import run_after, run_before, variable

from seatrial.checks.base import SeatrialCheck, cores_of
from seatrial.checks.hpcc_input import MATRIX_S_OF_HPL, hpl_seconds, order_within
from seatrial.checks.sized import Room, SizedCheck, check_matrix, time_limit_s


class HplLoad(SizedCheck, SeatrialCheck):
    """A check that runs `xhpl`, of HPL or of a vendor, with an HPL.dat of its own.

    `ppn` 0 is a rank on every core. With fewer ranks, each has threads on its share of
    the cores, as programs of vendors want it.
    """

    n = variable(int, value=1000)
    """Order of the matrix, unless `memory_fraction` is set."""
    block = variable(int, value=192)
    """Order of the blocks of the matrix: HPL's NB."""
    longest_s = variable(int, value=0)
    """Typical seconds of HPL at most, with `memory_fraction`; 0: no bound."""

    ppn = 0
    run_limit_s: float = 600.0
    """Seconds of a run of HPL at most; those of a matrix by memory follow from it."""

    valid_prog_environs = ["+hpl"]
    reference_file = "hpl.yaml"
    executable = "xhpl"

    def case_parameters(self) -> dict[str, Any]:
        """Add the order of a matrix by memory to the parameters."""
        chosen = {"memory_fraction": self.memory_fraction, "n": self.n}
        return {**super().case_parameters(), **(chosen if self.memory_fraction else {})}

    def nodes_of_matrix(self, room: Room) -> int:
        """Return the nodes that share the largest matrix."""
        return room.nodes

    def fill(self, room: Room) -> float:
        """Choose the order of the matrix."""
        nodes = self.nodes_of_matrix(room)
        cores = nodes * cores_of(self.current_partition)
        memory = nodes * room.node_bytes
        self.n = order_within(memory, cores, self.block, self.longest_s)
        seconds = (1 + MATRIX_S_OF_HPL) * hpl_seconds(self.n, cores)
        self.run_limit_s = time_limit_s(seconds)
        return seconds

    @run_after("setup")
    def place(self) -> None:
        """Place the ranks; divide the cores of a node among those of a rank."""
        super().place()
        check_matrix(self.n, self.block)
        processor = self.current_partition.processor
        self.cores = cores_of(self.current_partition)
        self.threads = max(1, self.cores // self.ppn)
        self.env_vars = {**self.env_vars, "OMP_NUM_THREADS": str(self.threads)}
        self.skip_if(
            self.threads > 1 and "mpirun" in self.current_environ.extras,
            f"{self.ppn} ranks with {self.threads} threads each need launcher: srun, "
            "which gives each rank its cores; set ppn to 0",
        )
        self.cpus = self.threads * (processor.num_cpus_per_core or 1)

    @run_before("run")
    def set_program(self) -> None:
        """Start the program that the inventory names, each rank with its cores."""
        self.executable = self.current_environ.extras.get("hpl", self.executable)
        if self.threads > 1:
            self.job.launcher.options += [f"--cpus-per-task={self.cpus}"]

    def efficiency(self, gflops: float, nodes: int) -> float | None:
        """Return the rate over the peak of the nodes in %; None if none is declared."""
        peak = self.current_partition.extras.get("peak_gflops")
        return 100 * gflops / (nodes * float(peak)) if peak else None

    def write_input(self, text: str) -> None:
        """Write HPL.dat into the stage folder."""
        Path(self.stagedir, "HPL.dat").write_text(text, encoding="ascii")
        self.keep_files = [*self.keep_files, "HPL.dat"]
