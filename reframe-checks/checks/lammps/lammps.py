# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""LAMMPS: one real application with many small messages."""

import reframe as rfm
from reframe.core.builtins import run_before

from seatrial.check import SeatrialCheck, Tag
from seatrial.parsers.errors import ParseError
from seatrial.parsers.lammps import parse_lammps
from seatrial.records import Sample

STEPS = 100
ATOMS = 32_000
ENERGY_KCAL_PER_MOL = -25290.73
ENERGY_TOLERANCE = 0.1
NEIGHBOUR_BUILDS = 11


@rfm.simple_test
class LammpsRhodo(SeatrialCheck):
    """How long does a real application take, and is its physics right?

    100 steps of LAMMPS' rhodopsin benchmark (bench/in.rhodo, 32,000 atoms: small
    enough to strong-scale into communication). `loop_time` is LAMMPS' own "Loop
    time". Total energy at step 100, neighbour list builds and dangerous builds are
    those of the logs that LAMMPS ships.
    """

    descr = "LAMMPS rhodopsin, 32,000 atoms, 100 steps"
    valid_prog_environs = ["+lammps"]
    reference_file = "lammps.yaml"
    executable = "lmp"
    executable_opts = ["-in in.rhodo"]
    env_vars = {"OMP_NUM_THREADS": 1}
    time_limit = "10m"
    tags = {Tag.APPLICATION}
    judged = ["loop_time"]

    @run_before("run")
    def link_inputs(self):
        """Link the inputs: in.rhodo wants its data beside itself."""
        folder = '"${SEATRIAL_LAMMPS_BENCH:?must name the folder of in.rhodo}"'
        self.prerun_cmds = [f"ln -sf {folder}/{{in,data}}.rhodo ."]

    def extract(self, text):
        """Give the loop time, after proving the result."""
        run = parse_lammps(text)
        energy = run.total_energy.get(STEPS)
        for name, found, expected in (
            ("processes", run.processes, self.num_tasks),
            ("steps", run.steps, STEPS),
            ("atoms", run.atoms, ATOMS),
            ("neighbour list builds", run.neighbour_builds, NEIGHBOUR_BUILDS),
            ("dangerous builds", run.dangerous_builds, 0),
        ):
            if found != expected:
                raise ParseError(0, f"{found} {name}, expected {expected}")
        if energy is None or abs(energy - ENERGY_KCAL_PER_MOL) > ENERGY_TOLERANCE:
            raise ParseError(
                0,
                f"total energy {energy} kcal/mol at step {STEPS}, "
                f"expected {ENERGY_KCAL_PER_MOL} +- {ENERGY_TOLERANCE}",
            )
        return [Sample("loop_time", run.loop_time_s)]
