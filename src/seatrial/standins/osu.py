"""The OSU Micro-Benchmarks, in the format of version 7.4."""

from collections.abc import Iterator

from seatrial.standins.collectives import time_us
from seatrial.standins.run import Run, UsageError

_EXCHANGE = "Personalized Exchange Latency Test"
_TITLES = {
    "osu_latency": "OSU MPI Latency Test",
    "osu_bw": "OSU MPI Bandwidth Test",
    "osu_bibw": "OSU MPI Bi-Directional Bandwidth Test",
    "osu_mbw_mr": "OSU MPI Multiple Bandwidth / Message Rate Test",
    "osu_multi_lat": "OSU MPI Multi Latency Test",
    "osu_put_latency": "OSU MPI_Put Latency Test",
    "osu_get_latency": "OSU MPI_Get latency Test",
    "osu_put_bw": "OSU MPI_Put Bandwidth Test",
    "osu_alltoall": f"OSU MPI All-to-All {_EXCHANGE}",
    "osu_bcast": "OSU MPI Broadcast Latency Test",
    "osu_allgather": "OSU MPI Allgather Latency Test",
    "osu_scatter": "OSU MPI Scatter Latency Test",
    "osu_allreduce": "OSU MPI Allreduce Latency Test",
    "osu_barrier": "OSU MPI Barrier Latency Test",
}
_OPTIONS = "-m -M -W -f -c -u -i -x -b -T"
_COLLECTIVES = [*_TITLES][8:]
_LARGE = 8192
_WIDTH = 18
_ITERATIONS_WIDTH = 12


class Table:
    """The table of one benchmark: its columns, and whether it is validated."""

    def __init__(self, run: Run) -> None:
        run.expect(*_OPTIONS.split())
        self.run = run
        self.name = run.program.removeprefix("osu_")
        self.is_validated = "-c" in run.options
        self.is_full = "-f" in run.options
        self.window = run.number("-W", 64)

    def sizes(self) -> list[int]:
        """Return all message sizes; 0 for a barrier, which has none."""
        if self.name == "barrier":
            return [0]
        low, _, high = self.run.options.get("-m", "1:4194304").partition(":")
        return [
            size
            for size in (1 << k for k in range(31))
            if int(low) <= size <= int(high)
        ]

    def iterations(self, size: int) -> int:
        """Return OSU's default number, or that of -i."""
        return self.run.number("-i", 100 if size > _LARGE else 1000)

    def header(self) -> str:
        """Return the line with the names of the columns."""
        names = ["Avg Latency(us)"]
        if self.name == "mbw_mr":
            names = ["MB/s", "Messages/s"]
        elif self.name.endswith("bw"):
            names = ["Bandwidth (MB/s)"]
        if self.is_full:
            names += ["Min Latency(us)", "Max Latency(us)", "Iterations"]
        names += ["Validation"] if self.is_validated else []
        cells = self._cells(names)
        return f"# {cells[2:]}" if self.name == "barrier" else f"# Size    {cells}"

    def row(self, size: int) -> str:
        """Return the line of a size."""
        values = self.values(size)
        cells = [f"{value:.2f}" for value in values]
        if self.is_full:
            cells += [f"{values[0] * 0.96:.2f}", f"{values[0] * 1.05:.2f}"]
            cells.append(str(self.iterations(size)))
        cells += ["Pass"] if self.is_validated else []
        text = self._cells(cells)
        return text if self.name == "barrier" else f"{size:<10}{text}"

    def _cells(self, cells: list[str]) -> str:
        """Set a line's cells in the widths of their columns."""
        iterations = 3 if self.is_full else -1
        return "".join(
            f"{cell:>{_ITERATIONS_WIDTH if at == iterations else _WIDTH}}"
            for at, cell in enumerate(cells)
        )

    def values(self, size: int) -> list[float]:
        """Return the numbers of a size: a time, a bandwidth, or that and a rate."""
        run, noise = self.run, self.run.machine.noise()
        if run.program in _COLLECTIVES:
            time = time_us(run, self.name, size) * noise
            run.seconds += self.iterations(size) * time / 1e6
            return [time]
        pair = (run.job.node_of(0), run.job.node_of(run.job.ranks - 1))
        pairs = max(1, run.job.ranks // 2)
        if self.name.endswith(("latency", "lat")):
            time = self._latency(pair, pairs, size) * noise
            run.seconds += 2 * self.iterations(size) * time / 1e6
            return [time]
        link = run.machine.pair(*pair)[1] / size
        usual = run.machine.clock_khz
        clock = (run.job.clock_khz or usual) / usual
        rate = pairs * clock * run.machine.window_rate(*pair, size)
        rate = min(rate, link) * noise
        rate *= 1.9 if self.name == "bibw" else 1.0
        run.seconds += pairs * self.iterations(size) * self.window / rate / 1e6
        return [rate * size, rate * 1e6] if self.name == "mbw_mr" else [rate * size]

    def _latency(self, pair: tuple[str, str], pairs: int, size: int) -> float:
        """Return the time of a message when that many pairs share the link."""
        latency, bandwidth = self.run.machine.pair(*pair)
        scale = {"put_latency": 1.1, "get_latency": 1.9}.get(self.name, 1.0)
        return scale * latency * (1 + 0.02 * (pairs - 1)) + pairs * size / bandwidth


def benchmark(run: Run) -> Iterator[str]:
    """Print the table of a benchmark."""
    table = Table(run)
    if table.name == "mbw_mr" and run.job.ranks % 2:
        raise UsageError(f"{run.job.ranks} ranks, expected an even number")
    yield "# A model of a machine: nothing was measured"
    yield f"# {_TITLES[run.program]} v7.4"
    if table.name == "mbw_mr":
        yield f"# [ pairs: {run.job.ranks // 2} ] [ window size: {table.window} ]"
    yield "# Datatype: MPI_CHAR."
    yield table.header()
    for size in table.sizes():
        yield table.row(size)


def osu_init(run: Run) -> Iterator[str]:
    """Print how long MPI_Init takes: it grows with the ranks."""
    run.expect()
    mean_ms = (100 + 0.5 * run.job.ranks) * run.machine.noise()
    run.seconds = mean_ms / 1e3
    yield "# A model of a machine: nothing was measured"
    yield "# OSU MPI Init Test v7.4"
    times = f"min: {0.95 * mean_ms:.0f} ms, max: {1.05 * mean_ms:.0f} ms"
    yield f"nprocs: {run.job.ranks}, {times}, avg: {mean_ms:.0f} ms"


PROGRAMS = {**dict.fromkeys(_TITLES, benchmark), "osu_init": osu_init}
