# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""HPCG: the solver whose rate is that of memory and network."""

from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError

from seatrial.checks.base import SeatrialCheck, Tag
from seatrial.checks.hpcg_input import (
    COUNTED_BYTES,
    OFFICIAL_S,
    OFFICIAL_SHARE,
    hpcg_input,
    hpcg_seconds,
    points_within,
)
from seatrial.checks.sized import SizedCheck
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcg import parse_hpcg

DEMONSTRATION_S = 5
"""Seconds at most on nodes that share one machine."""


def too_little(share):
    """Describe data that fill too small a share of the memory."""
    return (
        f"its data fill {100 * share:.1f} % of the memory, a rating takes "
        f"{100 * OFFICIAL_SHARE:.0f} %: raise memory_fraction"
    )


@rfm.simple_test
class Hpcg(SizedCheck, SeatrialCheck):
    """Which rating does HPCG reach on the whole class of nodes, and is it official?

    HPCG solves a sparse system by conjugate gradients with a multigrid preconditioner.
    Its limits are memory and neighbours; those of HPL are the cores. A result counts
    only if HPCG calls it valid and its four tests passed. By HPCG's rules, an official
    rating takes at least 1,800 s of the timed part, and data of at least a quarter of
    the memory. A run that asks for both (`seconds` 1800, `memory_fraction` 0.3) reports
    `hpcg_rating`, and fails if it misses one. Any other run reports `hpcg_trial`, which
    never meets a limit for a rating. `hpcg_memory` is the share of the memory.

    The program is the `xhpcg` of the MPI stack. Spack and site.yml build the reference
    code, with a rank on every core. The vendor's program, which `programs.hpcg` names,
    is faster.
    """

    points = variable(typ.Tuple[int, int, int], value=(16, 16, 16))
    """Points of each rank in x, y and z, unless `memory_fraction` is set."""
    seconds = variable(int, value=5)
    """Seconds of the timed part; the sets of HPCG are rounded up."""

    descr = "HPCG on all nodes of the class"
    valid_prog_environs = ["+hpcg"]
    reference_file = "hpcg.yaml"
    executable = "xhpcg"
    ppn = 0
    output_file = "hpcg.txt"
    env_vars = {"OMP_NUM_THREADS": 1}
    tags = {Tag.COMPUTE, Tag.NETWORK}
    tool = "HPCG 3.1 (xhpcg)"
    experiments = ()
    typical_s = 15
    step_s_per_node = 0.5
    judged = ["hpcg_trial"]
    judged_if_there = ["hpcg_rating"]

    def case_parameters(self):
        """Add size and time to the parameters: they make a rating or a trial."""
        chosen = {"points": "x".join(map(str, self.points)), "seconds": self.seconds}
        return {**super().case_parameters(), **chosen}

    @run_after("setup")
    def take_recording(self):
        """Measure for a few seconds only if all nodes share one machine."""
        if self.current_partition.extras.get("demonstration"):
            self.seconds = min(self.seconds, DEMONSTRATION_S)
        super().take_recording()

    def fill(self, room):
        """Choose the points of a rank."""
        self.points = points_within(room.node_bytes / room.ppn)
        return hpcg_seconds(self.points, self.seconds)

    def programs_s(self):
        """Add the timed part."""
        return super().programs_s() + 2 * self.seconds

    @property
    def is_official(self):
        """Return True if the run asks for an official rating."""
        is_model = bool(self.current_partition.extras.get("demonstration"))
        by_memory = self.memory_fraction >= OFFICIAL_SHARE
        return self.seconds >= OFFICIAL_S and by_memory and not is_model

    @run_after("setup")
    def choose_metric(self):
        """Judge a rating if the run asks for one; refuse HPCG's quick path."""
        if self.seconds < 1 or min(self.points) < 16:
            raise ReframeError(
                f"seconds is {self.seconds}, points are {self.points}: expected a "
                "second or more, and sides of at least 16"
            )
        if not self.is_official:
            return
        self.judged = ["hpcg_rating"]
        x, y, z = self.points
        mib = self.current_partition.extras["memory_mib"]
        share = COUNTED_BYTES * x * y * z * self.ppn / (mib * 2**20)
        if share < OFFICIAL_SHARE and self.recording is None:
            raise ReframeError(too_little(share))

    @run_before("run")
    def write_input(self):
        """Write hpcg.dat; HPCG names its result by date and time."""
        self.executable = self.current_environ.extras.get("hpcg", self.executable)
        text = hpcg_input(self.points, self.seconds)
        Path(self.stagedir, "hpcg.dat").write_text(text, encoding="ascii")
        self.keep_files = [*self.keep_files, "hpcg.dat"]
        self.prerun_cmds = [*self.prerun_cmds, "rm -f HPCG-Benchmark*.txt"]
        collect = f"cat HPCG-Benchmark*.txt >{self.output_file} 2>/dev/null"
        self.postrun_cmds = [*self.postrun_cmds, collect]

    def extract(self, text):
        """Return the rating, or the rate of a trial."""
        run = parse_hpcg(text, self.num_tasks, tuple(self.points))
        mib = self.current_partition.extras.get("memory_mib")
        samples = []
        if mib:
            share = 100 * run.memory_bytes / (self.num_nodes * mib * 2**20)
            samples.append(Sample("hpcg_memory", share))
        if not self.is_official:
            return [Sample("hpcg_trial", run.gflops), *samples]
        if run.seconds < OFFICIAL_S:
            reason = f"HPCG ran for {run.seconds:g} s, a rating takes {OFFICIAL_S} s"
            raise ParseError(0, reason)
        if share < 100 * OFFICIAL_SHARE:
            raise ParseError(0, too_little(share / 100))
        return [Sample("hpcg_rating", run.gflops), *samples]
