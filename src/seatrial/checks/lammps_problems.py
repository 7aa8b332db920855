"""The five benchmarks of LAMMPS (folder bench), and their expected energies.

Energies are those of the logs beside the inputs: log.15Jul25.*.fixed.g++.1 and .4 in
the release of 22 July 2025; those of log.6Oct16.* agree in the compared digits. The
scaled tolerances fit the logs called scaled of 6 October 2016, of 128,000 atoms.

Energies of copies are not exact multiples: lj and eam draw other velocities, chain
other random forces, and rhodo has another grid for its long-range forces.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import cbrt

from seatrial.checks.hpcc_input import process_grid
from seatrial.parsers.errors import ParseError
from seatrial.parsers.lammps import LammpsRun

STEPS = 100
ATOMS = 32_000
MOST_ATOMS = 2**31 - 1
"""LAMMPS numbers atoms with 32 bits, as it is usually built."""
RANK_BYTES = 100 << 20
"""Memory of a rank without atoms."""


@dataclass(frozen=True)
class LammpsProblem:
    """One benchmark; `files` are those that its input reads.

    `energies` by step are those of `column` in `unit`, of the system or (`per_atom`) of
    an atom. `tolerance` is for one system, `scaled_tolerance` for each of many copies.
    `builds` are rebuilds of the neighbour list in the logs; many copies rebuild more
    often. A `flat` problem grows in x and y. A problem with a data file has a separate
    input for many copies. `mib` is the memory of a copy of 32,000 atoms on one of four
    ranks with their neighbours' atoms, by "Per MPI rank memory allocation" in the log
    of 22 July 2025; `seconds` are typical ones of its steps on a busy core.
    """

    name: str
    unit: str
    energies: Mapping[int, float]
    tolerance: float
    scaled_tolerance: float
    builds: int
    mib: float
    seconds: float
    files: tuple[str, ...] = ()
    column: str = "TotEng"
    per_atom: bool = False
    flat: bool = False
    looks_for_danger: bool = True

    def needs(self, *, scaled: bool) -> tuple[str, ...]:
        """Return all files that a run reads, the input first; `scaled`: of copies."""
        suffix = ".scaled" if scaled and f"data.{self.name}" in self.files else ""
        return (f"in.{self.name}{suffix}", *self.files)

    def grid(self, copies: int) -> tuple[int, int, int]:
        """Return the grid of copies, as cubic as possible."""
        if self.flat:
            columns, rows = process_grid(copies)
            return rows, columns, 1
        return cubic_grid(copies)

    def copies_in(self, memory_bytes: float, ranks: int) -> int:
        """Return a number of copies on all ranks that fit in their memory; 0 if none.

        It is a power of two, which a small change of the memory does not change.
        """
        copies = (memory_bytes - ranks * RANK_BYTES) / (self.mib * (1 << 20))
        most = min(int(copies), MOST_ATOMS // ATOMS)
        return 1 << most.bit_length() - 1 if most > 0 else 0

    def typical_s(self, copies: int, ranks: int) -> float:
        """Return the typical seconds of a run; each rank looks at all atoms to copy."""
        return self.seconds * copies / ranks + 2e-8 * ATOMS * copies

    def verify(self, run: LammpsRun, copies: int = 1) -> None:
        """Raise ParseError unless a run has the energies of this number of copies."""
        energies = run.by_step(self.column)
        factor = 1 if self.per_atom else copies
        tolerance = (self.tolerance if copies == 1 else self.scaled_tolerance) * factor
        faults = [
            f"{self.column} is {energies[step]} {self.unit} at step {step}, "
            f"expected {energy * factor:.10g} +- {tolerance:g}"
            for step, energy in self.energies.items()
            if not abs(energies[step] - energy * factor) <= tolerance
        ]
        builds, or_more = run.neighbour_builds, " or more" if copies > 1 else ""
        if builds < self.builds or (copies == 1 and builds > self.builds):
            expected = f"{self.builds}{or_more}"
            faults.append(f"{builds} neighbour list builds, expected {expected}")
        dangerous = 0 if self.looks_for_danger else None
        if run.dangerous_builds != dangerous:
            faults.append(f"{run.dangerous_builds} dangerous builds, not {dangerous}")
        if faults:
            raise ParseError(0, "; ".join(faults))


PROBLEMS = {
    problem.name: problem
    for problem in (
        LammpsProblem(
            name="rhodo",
            files=("data.rhodo",),
            unit="kcal/mol",
            energies={0: -25356.21, 50: -25330.03, STEPS: -25290.73},
            tolerance=0.1,
            scaled_tolerance=5,
            builds=11,
            mib=142.4,
            seconds=30,
        ),
        LammpsProblem(
            name="lj",
            unit="epsilon",
            energies={0: -4.61344, STEPS: -4.62236},
            tolerance=1e-4,
            scaled_tolerance=1e-3,
            builds=5,
            mib=14.2,
            seconds=3,
            per_atom=True,
            looks_for_danger=False,
        ),
        LammpsProblem(
            name="eam",
            files=("Cu_u3.eam",),
            unit="eV",
            energies={0: -106662.09, 50: -106640.13, STEPS: -106640.77},
            tolerance=0.1,
            scaled_tolerance=5,
            builds=13,
            mib=17.2,
            seconds=8,
        ),
        LammpsProblem(
            name="chain",
            files=("data.chain",),
            unit="epsilon",
            energies={0: 22.39476, STEPS: 22.40},
            tolerance=0.05,
            scaled_tolerance=0.05,
            builds=25,
            mib=15.1,
            seconds=3,
            per_atom=True,
        ),
        LammpsProblem(
            name="chute",
            files=("data.chute",),
            column="KinEng",
            unit="m sigma^2/tau^2",
            energies={0: 784139.13, STEPS: 784292.08},
            tolerance=0.1,
            scaled_tolerance=1,
            builds=2,
            mib=23.8,
            seconds=2,
            flat=True,
        ),
    )
}


def cubic_grid(ranks: int) -> tuple[int, int, int]:
    """Return three factors of the ranks, as equal as possible, largest last."""
    best = (1, *process_grid(ranks))
    for first in range(round(cbrt(ranks)), 1, -1):
        if ranks % first == 0:
            grid = tuple(sorted((first, *process_grid(ranks // first))))
            best = min(best, (grid[0], grid[1], grid[2]), key=sum)
    return best
