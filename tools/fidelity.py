"""Compare our ping-pong and bandwidth with IMB-MPI1 and OSU, on the same MPI.

Both programs run in turn, many times, on two ranks of this machine. Compared is time:
of a round trip, or of a byte (the reciprocal of a bandwidth). Per message size, the
median over the turns of ours / theirs is shown, and our shortest time of all turns over
their shortest, which a busy machine disturbs less; a program beside itself shows what
the machine adds. IMB-MPI1 comes with Intel MPI's wheel: our build for MPICH runs on the
same library, as both keep MPICH's binary interface (mpich.org/abi). OSU_BIN names the
folder of an OSU build (osu_latency and others) made with the same Open MPI as ours.
"""

import math
import os
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from rich.table import Table

from seatrial.model.units import size_label
from seatrial.parsers.imb import parse_imb
from seatrial.parsers.mpair import MpairRow, parse_mpair

ROOT = Path(__file__).resolve().parent.parent
TURNS = 15
Numbers = dict[int, float]
"""Time in us by message size."""


@dataclass(frozen=True)
class Span:
    """Sizes from 2^low to 2^high B, with a number of round trips or windows.

    Before them come `warmup` times as many untimed ones.
    """

    low: int
    high: int
    round_trips: int
    windows: int
    warmup: float

    @property
    def sizes(self) -> list[int]:
        """All its sizes."""
        return [1 << power for power in range(self.low, self.high + 1)]

    @property
    def text(self) -> str:
        """Its sizes as an option of OSU and of our programs."""
        return f"{1 << self.low}:{1 << self.high}"


SPANS = (Span(0, 13, 20000, 1000, 0.1), Span(14, 20, 500, 50, 1.0))


class Program:
    """A program on two ranks of this machine, with the variables of its MPI."""

    def __init__(self, launcher: Sequence[str | Path], env: Mapping[str, str]) -> None:
        self._launcher = launcher
        self._env = {**os.environ, **env}

    def run(self, *command: str | Path) -> str:
        """Run it and return standard output. CalledProcessError if it fails."""
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
    """Build one of our programs with an MPI; return the folder of the programs."""
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
    """Fetch Intel MPI's wheel with IMB; return the folder of its files."""
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


@dataclass(frozen=True)
class Ratio:
    """Our time over theirs at a size: of the turns, and of the shortest times."""

    median: float
    best: float


Ratios = dict[int, Ratio]


def compare(
    ours: Callable[[Span], Numbers], theirs: Callable[[Span], Numbers]
) -> Ratios:
    """Run both in turn, alternating the order."""
    own: dict[int, list[float]] = {}
    other: dict[int, list[float]] = {}
    for turn, span in product(range(TURNS), SPANS):
        both = [(ours, own), (theirs, other)]
        for run, times in both if turn % 2 else reversed(both):
            measured = run(span)
            if list(measured) != span.sizes:
                raise ValueError(f"sizes {list(measured)}, expected {span.sizes}")
            for size, time_us in measured.items():
                times.setdefault(size, []).append(time_us)
    return {
        size: Ratio(
            statistics.median(
                a / b for a, b in zip(own[size], other[size], strict=True)
            ),
            min(own[size]) / min(other[size]),
        )
        for size in own
    }


def against_imb() -> Ratios:
    """Compare with IMB-MPI1 PingPong on Intel MPI.

    Its bandwidth is the size over its latency: both have the same ratio, and the
    bandwidth has more digits. Its latency holds no reading of the clock.
    """
    folder = intel_mpi()
    program = Program(
        [folder / "bin" / "mpiexec.hydra", "-n", "2"],
        {"LD_LIBRARY_PATH": str(folder / "lib"), "I_MPI_FABRICS": "shm"},
    )
    mpair = build("mpich") / "mpair"

    def imb(span: Span) -> Numbers:
        sizes = ["-msglog", f"{span.low}:{span.high}", "-zero_size", "off"]
        loops = ["-iter", f"{span.round_trips}", "-iter_policy", "off", "-time", "60"]
        text = program.run(folder / "bin" / "IMB-MPI1", "PingPong", *sizes, *loops)
        return {
            row.size_bytes: row.size_bytes / (row.bandwidth_mb_per_s or math.nan)
            for row in parse_imb(text, "PingPong", 2, span.sizes)
        }

    def own(span: Span) -> Numbers:
        rows = ours(program, mpair, "latency", span)
        return {row.size_bytes: row.mean_us - row.clock_us / 2 for row in rows}

    return compare(own, imb)


def against_osu(folder: Path) -> dict[str, Ratios]:
    """Compare with an OSU build on Open MPI."""
    program = Program(
        ["mpiexec.openmpi", "-n", "2"],
        {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )
    mpair = build("openmpi") / "mpair"

    def latency(span: Span) -> Numbers:
        rows = ours(program, mpair, "latency", span)
        return {row.size_bytes: row.mean_us for row in rows}

    def per_byte(mode: str, span: Span) -> Numbers:
        rows = ours(program, mpair, mode, span)
        return {row.size_bytes: 1 / (row.mb_per_s or math.nan) for row in rows}

    def osu(name: str, span: Span) -> Numbers:
        is_time = name == "osu_latency"
        count = span.round_trips if is_time else span.windows
        warmup = int(count * span.warmup)
        options = ["-m", span.text, "-i", f"{count}", "-x", f"{warmup}"]
        lines = program.run(folder / name, *options).splitlines()
        rows = [line.split() for line in lines if line[:1].isdigit()]
        numbers = {int(row[0]): float(row[1]) for row in rows}
        return numbers if is_time else {size: 1 / n for size, n in numbers.items()}

    ratios_of = {"osu_latency": compare(latency, partial(osu, "osu_latency"))}
    modes = {"osu_bw": "bw", "osu_bibw": "bibw", "osu_mbw_mr": "rate"}
    for name, mode in modes.items():
        ratios_of[name] = compare(partial(per_byte, mode), partial(osu, name))
    ratios_of["osu_bw, osu_bw"] = compare(
        partial(osu, "osu_bw"), partial(osu, "osu_bw")
    )
    return ratios_of


def ours(program: Program, mpair: Path, mode: str, span: Span) -> list[MpairRow]:
    """Run mpair with one pair within a node, as IMB and OSU run on one machine."""
    loops = ["--iterations", f"{span.round_trips}", "--windows", f"{span.windows}"]
    loops += ["--warmup", f"{int(span.round_trips * span.warmup)}"]
    options = ["--intra", "--mode", mode, "--pairs", "1:1", "--sizes", span.text]
    return parse_mpair(program.run(mpair, *options, *loops, "--json"))


def table() -> Table:
    """Compare with all programs that are available."""
    ratios_of = {"IMB PingPong": against_imb()}
    if "OSU_BIN" in os.environ:
        ratios_of |= against_osu(Path(os.environ["OSU_BIN"]))
    rows = Table("size", *ratios_of, title="our time / theirs: median (best)")
    for span in SPANS:
        for size in span.sizes:
            ratios = [numbers[size] for numbers in ratios_of.values()]
            cells = [f"{ratio.median:.3f} ({ratio.best:.3f})" for ratio in ratios]
            rows.add_row(size_label(size), *cells)
    rows.add_section()
    rows.add_row("median", *map(middle, ratios_of.values()))
    rows.add_row("target", *["0.97 to 1.03" for _ in ratios_of])
    return rows


def middle(ratios: Ratios) -> str:
    """Return the medians over all sizes."""
    median = statistics.median(ratio.median for ratio in ratios.values())
    best = statistics.median(ratio.best for ratio in ratios.values())
    return f"{median:.3f} ({best:.3f})"
