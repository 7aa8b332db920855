# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""LAMMPS: real applications, from many small messages to hardly any."""

from functools import partial

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.job_steps import Step
from seatrial.checks.lammps_problems import ATOMS, MOST_ATOMS, PROBLEMS, STEPS
from seatrial.checks.node_numbers import doubled
from seatrial.checks.scaling import ScalingCheck
from seatrial.checks.sized import SizedCheck
from seatrial.model.records import Sample
from seatrial.parsers.lammps import parse_lammps


class LammpsCheck(SizedCheck, ScalingCheck):
    """A benchmark of LAMMPS: 100 steps of 32,000 atoms, in all or for every rank.

    `loop_time` is LAMMPS' own "Loop time". Energies at the first and the last step,
    rebuilds of the neighbour list and dangerous ones are those of the logs that LAMMPS
    ships (see seatrial.checks.lammps_problems). `communication_share` is the share of
    LAMMPS' section Comm in the loop time, the mean of the ranks: messages to neighbours
    and waiting for them, without the FFTs of rhodo's Kspace.

    There is a rank on every node; `ppn` sets another number, 0 one for every core.
    `scaling` makes runs on 1, 2, 4, ... nodes and with the ranks in block and cyclic
    order, in the same job.

    With `memory_fraction` there are copies of the 32,000 atoms, as many as fit in that
    share of the memory of all nodes, a power of two; with `scaling`, of one node.
    LAMMPS numbers at most 2^31 atoms.
    """

    scaled = variable(bool, value=False)
    """Adds a system of 32,000 atoms for every rank."""
    copies = variable(int, value=1)
    """Systems of 32,000 atoms, in all or for every rank; set by `memory_fraction`."""

    valid_prog_environs = ["+lammps"]
    reference_file = "lammps.yaml"
    preamble = (
        r"LAMMPS \(.*|OMP_NUM_THREADS .*|  using \d+ OpenMP .*|Lattice spacing .*"
        r"|Reading data file .*|(Created| ) orthogonal box .*"
        r"|  \d+ by \d+ by \d+ MPI processor grid|  reading \w+ \.\.\."
    )
    env_vars = {"OMP_NUM_THREADS": 1}
    step_s = 600
    tags = {Tag.APPLICATION}
    tool = "LAMMPS, its folder bench"
    judged = ["loop_time"]

    def case_parameters(self):
        """Add the number of atoms to the parameters, in all or for every rank."""
        if self.copies == 1:
            return super().case_parameters()
        name = "atoms_per_rank" if self.scaled else "atoms"
        return {**super().case_parameters(), name: self.copies * ATOMS}

    def fill(self, room):
        """Choose the number of copies by memory."""
        problem = PROBLEMS[self.problem]
        counts = doubled(room.nodes) if self.scaling else [room.nodes]
        memory, ranks = counts[0] * room.node_bytes, counts[0] * room.ppn
        self.copies = problem.copies_in(memory, ranks)
        if self.scaled:
            most = MOST_ATOMS // ATOMS // room.ranks
            self.copies = min(self.copies // ranks, most)
        self.skip_if(
            not self.copies,
            f"{room.ranks} ranks have no room for {self.problem}: {ATOMS} atoms "
            f"{'for each ' if self.scaled else ''}take more memory, or numbers, than "
            "there are",
        )
        orders = 2 if self.scaling else 1
        runs = [(self.total(n * room.ppn), n * room.ppn) for n in counts]
        return orders * sum(problem.typical_s(*run) for run in runs)

    def total(self, ranks):
        """Return the number of copies of a run."""
        return self.copies * (ranks if self.scaled else 1)

    def inputs(self):
        """Return all files that a run reads, the input first."""
        return PROBLEMS[self.problem].needs(scaled=self.scaled or self.copies > 1)

    @run_after("setup")
    def need_inputs(self):
        """Skip the case if the folder of inputs lacks one."""
        needed = self.inputs()
        known = self.current_environ.extras.get("lammps_inputs", [])
        missing = [name for name in needed if name not in known]
        self.skip_if(
            bool(missing),
            f"{', '.join(missing)} not among LAMMPS' inputs; copy LAMMPS' folder bench "
            "to the system and name it in mpi_lammps_bench",
        )

    @run_before("run")
    def copy_inputs(self):
        """Copy the inputs, which read data from their own folder."""
        folder = '"${SEATRIAL_LAMMPS_BENCH:?must name the folder of in.rhodo}"'
        self.prerun_cmds = [f"cp {folder}/{name} ." for name in self.inputs()]

    def steps(self):
        """Return a step for every spot."""
        problem = PROBLEMS[self.problem]
        name = self.inputs()[0]
        steps = []
        for spot in self.spots():
            sizes = zip("xyz", problem.grid(self.total(spot.ranks)), strict=True)
            options = [f"-var {axis} {count}" for axis, count in sizes]
            copied = self.scaled or self.copies > 1
            command = " ".join(
                ["lmp -log none", *(options if copied else []), f"-in {name}"]
            )
            ranks, read = (spot.num_nodes, spot.ppn), partial(self.read, spot)
            steps.append(Step(spot.name, command, *ranks, read, spot.srun_options))
        return steps

    def work_rates(self, samples):
        """Return the steps of an atom per second, of a job with one run."""
        times = [sample.value for sample in samples if sample.metric == "loop_time"]
        spots = self.spots()
        if len(times) != 1 or len(spots) != 1:
            return {}
        atoms = self.total(spots[0].ranks) * ATOMS
        return {"atom_steps": atoms * STEPS / times[0]}

    def read(self, spot, output):
        """Return loop time and share of communication of a verified result."""
        problem = PROBLEMS[self.problem]
        copies = self.total(spot.ranks)
        steps = [*problem.energies]
        run = parse_lammps(output.text, spot.ranks, copies * ATOMS, steps)
        problem.verify(run, copies)
        values = {
            "loop_time": run.loop_time_s,
            "communication_share": 100 * run.comm_share,
        }
        return [
            Sample(metric, value, parameters=spot.parameters)
            for metric, value in values.items()
        ]


@rfm.simple_test
class LammpsRhodo(LammpsCheck):
    """How long does a real application take, and is its physics right?

    The rhodopsin benchmark (bench/in.rhodo). Its 32,000 atoms are few enough to
    strong-scale into communication. With `scaling` and cyclic order on 4 to 16 ranks it
    is the papers' E07.
    """

    problem = "rhodo"

    descr = "LAMMPS rhodopsin, 32,000 atoms, 100 steps"
    experiments = ("E07",)
    typical_s = 15


@rfm.simple_test
class LammpsFixed(LammpsCheck):
    """How long do applications of other kinds take, of one and the same size?

    lj: a fluid, short-ranged; eam: a metal, two exchanges in every step; chain: a
    polymer melt, few neighbours and bonds; chute: grains with friction. By default
    32,000 atoms on any number of ranks.
    """

    problem = parameter(["lj", "eam", "chain", "chute"])

    descr = "LAMMPS benchmarks of 32,000 atoms, 100 steps"
    experiments = ()
    typical_s = 10


@rfm.simple_test
class LammpsScaled(LammpsCheck):
    """Does a problem that grows with the machine take as long as on one rank?

    Every rank adds 32,000 atoms: copies of the system beside each other, in a grid that
    is nearly cubic (chute: square). With `scaling`, a machine that scales has
    the same loop time on any number of nodes.
    """

    problem = parameter(["rhodo", "lj", "eam", "chain", "chute"])
    scaled = True

    descr = "LAMMPS benchmarks of 32,000 atoms per rank, 100 steps"
    experiments = ()
    typical_s = 60
