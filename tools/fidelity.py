"""Our ping-pong and bandwidth beside those of IMB-MPI1 and of OSU, on the same MPI.

Both programs run in turn, several times, on two ranks of this machine; of every turn
the ratio of ours to theirs is taken per message size, and the median of the turns is
shown. IMB-MPI1 comes with Intel MPI's wheel: our build for MPICH runs on the same
library, as both keep MPICH's binary interface (mpich.org/abi). OSU_BIN names the folder
of an OSU build (osu_latency and others) made with the same Open MPI as ours.
"""

import os
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table

from seatrial.parsers.imb import parse_imb
from seatrial.parsers.mpair import MpairRow, parse_mpair
from seatrial.units import size_label

ROOT = Path(__file__).resolve().parent.parent
TURNS = 9
LARGEST_LOG2 = 20
SIZES = [1 << power for power in range(LARGEST_LOG2 + 1)]
Numbers = dict[int, float]


class Program:
    """A program on two ranks of this machine, with what its MPI needs."""

    def __init__(self, launcher: Sequence[str | Path], env: Mapping[str, str]) -> None:
        self._launcher = launcher
        self._env = {**os.environ, **env}

    def run(self, *command: str | Path) -> str:
        """Run it; give standard output. CalledProcessError if it fails."""
        done = subprocess.run(
            [*self._launcher, *command],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=600,
            check=True,
        )
        return done.stdout


def build(mpi: str, program: str = "mpair") -> Path:
    """Build one of our programs with an MPI; give the folder of the programs."""
    folder = ROOT / "build" / "bench" / mpi
    configure = [f"-DMPI_C_COMPILER=mpicc.{mpi}", "-DBUILD_TESTING=ON"]
    commands: tuple[list[str | Path], ...] = (
        ["cmake", "-S", ROOT / "benchmarks", "-B", folder, *configure],
        ["cmake", "--build", folder, "--target", program],
    )
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "bin"


def intel_mpi() -> Path:
    """Fetch Intel MPI's wheel with IMB; give the folder it is unpacked in."""
    folder = ROOT / "build" / "bench" / "impi"
    if not (folder / "bin" / "IMB-MPI1").is_file():
        lock = ROOT / "playbooks" / "roles" / "mpi" / "files" / "impi-rt.txt"
        subprocess.run(["python3", "-m", "venv", folder], check=True)
        install = ["pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r"]
        subprocess.run([folder / "bin" / "python", "-m", *install, lock], check=True)
    abi = folder / "lib" / "libmpich.so.12"
    if not abi.exists():
        abi.symlink_to("libmpi.so.12")
    return folder


def ratios(ours: Callable[[], Numbers], theirs: Callable[[], Numbers]) -> Numbers:
    """Run both in turn; give the median ratio per size that both measured."""
    turns: dict[int, list[float]] = {}
    for turn in range(TURNS):
        if turn % 2:
            other, own = theirs(), ours()
        else:
            own, other = ours(), theirs()
        for size in own.keys() & other.keys():
            turns.setdefault(size, []).append(own[size] / other[size])
    return {size: statistics.median(turns[size]) for size in sorted(turns)}


def against_imb() -> dict[str, Numbers]:
    """Ratios of latency and bandwidth to IMB-MPI1 PingPong, on Intel MPI."""
    folder = intel_mpi()
    program = Program(
        [folder / "bin" / "mpiexec.hydra", "-n", "2"],
        {"LD_LIBRARY_PATH": str(folder / "lib"), "I_MPI_FABRICS": "shm"},
    )
    mpair = build("mpich") / "mpair"

    def imb() -> Numbers:
        options = ["-msglog", f"0:{LARGEST_LOG2}", "-iter", "2000,2000", "-time", "60"]
        text = program.run(folder / "bin" / "IMB-MPI1", "PingPong", *options)
        rows = parse_imb(text, "PingPong", 2, [0, *SIZES])
        # Bandwidth has more digits than the time of a short message.
        return {
            row.size_bytes: row.size_bytes / row.bandwidth_mb_per_s
            for row in rows
            if row.bandwidth_mb_per_s
        }

    def own() -> Numbers:
        return {
            row.size_bytes: row.mean_us - row.clock_us / 2
            for row in ours(program, mpair, "latency", 2000, 200)
        }

    latency = ratios(own, imb)
    bandwidth = {size: 1 / ratio for size, ratio in latency.items()}
    return {"IMB PingPong latency": latency, "IMB PingPong bandwidth": bandwidth}


def against_osu(folder: Path) -> dict[str, Numbers]:
    """Ratios of latency, bandwidth and message rate to an OSU build, on Open MPI."""
    program = Program(
        ["mpiexec.openmpi", "-n", "2"],
        {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )
    mpair = build("openmpi") / "mpair"
    compared = {}
    for name, mode, iterations, warmup, more in (
        ("osu_latency", "latency", 1000, 100, []),
        ("osu_bw", "bw", 100, 10, []),
        ("osu_bibw", "bibw", 100, 10, []),
        ("osu_mbw_mr", "rate", 100, 10, ["-W", "64"]),
    ):
        options = ["-m", f"1:{SIZES[-1]}", "-i", f"{iterations}", "-x", f"{warmup}"]

        def own(
            mode: str = mode, count: int = iterations, warm: int = warmup
        ) -> Numbers:
            rows = ours(program, mpair, mode, count, warm)
            return {row.size_bytes: row.mb_per_s or row.mean_us for row in rows}

        theirs = partial(osu, program, folder / name, [*options, *more])
        compared[name] = ratios(own, theirs)
    return compared


def osu(program: Program, name: Path, options: Sequence[str]) -> Numbers:
    """Run a program of OSU; give the first number of each size."""
    rows = [line.split() for line in program.run(name, *options).splitlines()]
    numbers = {int(row[0]): float(row[1]) for row in rows if row and row[0].isdigit()}
    if list(numbers) != SIZES:
        raise ValueError(f"{name}: sizes {list(numbers)}, expected {SIZES}")
    return numbers


def ours(
    program: Program, mpair: Path, mode: str, iterations: int, warmup: int
) -> list[MpairRow]:
    """Run mpair with one pair within a node, as IMB and OSU run on one machine."""
    loops = ["--iterations", f"{iterations}", "--windows", f"{iterations}"]
    what = ["--intra", "--mode", mode, "--pairs", "1:1", "--sizes", f"1:{SIZES[-1]}"]
    return parse_mpair(
        program.run(mpair, *what, *loops, "--warmup", f"{warmup}", "--json")
    )


def tables() -> list[Table]:
    """Compare with everything that is here; one table each."""
    compared = against_imb()
    if "OSU_BIN" in os.environ:
        compared |= against_osu(Path(os.environ["OSU_BIN"]))
    return [table(name, numbers) for name, numbers in compared.items()]


def table(name: str, numbers: Numbers) -> Table:
    """Show the ratios per size, their median, and the target."""
    shown = Table("size", "ours / theirs", title=f"ours / {name}")
    for size, ratio in numbers.items():
        shown.add_row(size_label(size), f"{ratio:.3f}")
    middle = statistics.median(numbers.values())
    shown.add_section()
    shown.add_row("median", f"{middle:.3f} (target 0.97 to 1.03)")
    return shown
