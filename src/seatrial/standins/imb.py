"""The Intel MPI Benchmarks, IMB-MPI1 and IMB-RMA, in the format of 2021.11."""

import time
from collections.abc import Iterator

from seatrial.standins.collectives import time_us
from seatrial.standins.run import Run, UsageError

_OPTIONS = "-npmin -msglog -iter -time -zero_size -multi -map -aggregate_mode"
_MESSAGES = {"Sendrecv": 2, "Exchange": 4}
"""Messages whose bytes count as one call's."""
_COLLECTIVES = ("Alltoall", "Bcast", "Allgather", "Scatter", "Allreduce", "Barrier")
_PAIRS = ("Uniband", "Biband")
_ONE_SIDED = {"Unidir_put": 1.1, "Unidir_get": 1.9}
_HEAD = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.11, {part} part
#----------------------------------------------------------------
# Date                  : {clock}
# Machine               : model
# System                : model: nothing was measured
# MPI Version           : 4.1
# MPI Thread Environment:


# Calling sequence was:

# {command}

# Minimum message length in bytes:   {low}
# Maximum message length in bytes:   {high}
#
# MPI_Datatype                   :   MPI_BYTE
# MPI_Datatype for reductions    :   MPI_FLOAT
# MPI_Op                         :   MPI_SUM
#
#

# List of Benchmarks to run:

# {benchmark}
"""
_LINE = "#-----------------------------------------------------------------------------"


class Benchmark:
    """One benchmark on the ranks of a step, with IMB's options."""

    def __init__(self, run: Run) -> None:
        run.expect(*_OPTIONS.split())
        self.run = run
        self.name = run.words[0] if run.words else ""
        known = (*_COLLECTIVES, *_PAIRS, *_MESSAGES, "PingPong")
        if self.name not in (_ONE_SIDED if run.program == "IMB-RMA" else known):
            raise UsageError(f"no model of the benchmark {self.name!r}")
        self.groups = self._groups() if "-multi" in run.options else []
        self.is_each = run.options.get("-multi") == "1" and len(self.groups) > 1
        low, _, high = run.options.get("-msglog", "0:22").partition(":")
        self.sizes = [1 << k for k in range(int(low), int(high) + 1)]
        if self.name == "Barrier":
            self.sizes = [0]
        elif run.options.get("-zero_size") != "off":
            self.sizes.insert(0, 0)
        self.is_aggregate = run.options.get("-aggregate_mode") == "aggregate"

    def _groups(self) -> list[tuple[int, int]]:
        """Return the ranks of every pair: those of -map, else two that follow."""
        ranks, shape = self.run.job.ranks, self.run.options.get("-map")
        if shape is None:
            return [(rank, rank + 1) for rank in range(0, ranks // 2 * 2, 2)]
        pairs, _, width = shape.partition("x")
        if width != "2" or not pairs.isdecimal():
            raise UsageError(f"-map {shape}, expected PAIRSx2")
        return [(rank, rank + int(pairs)) for rank in range(int(pairs))]

    def repetitions(self, size: int) -> int:
        """Return those of -iter COUNT,MB: fewer if they move more than that."""
        count, _, rest = self.run.options.get("-iter", "1000,40").partition(",")
        most = int(rest.partition(",")[0] or 40) << 20
        return max(1, min(int(count), most // max(1, size)))

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        names = [*(["Group"] if self.is_each else []), "#bytes", "#repetitions"]
        if self.name in _PAIRS:
            return [*names, "Mbytes/sec", "Msg/sec"]
        is_single = self.is_each or not self.groups
        if self.name in _ONE_SIDED or (self.name == "PingPong" and is_single):
            return [*names, "t[usec]", "Mbytes/sec"]
        names += ["t_min[usec]", "t_max[usec]", "t_avg[usec]"]
        if self.name == "Barrier":
            return names[1:]
        return names if self.name in _COLLECTIVES else [*names, "Mbytes/sec"]

    def rows(self, size: int) -> Iterator[list[str]]:
        """Return the cells of a size: one row, or one of each group."""
        if not self.is_each:
            yield self._row(size, self._nodes())
            return
        job = self.run.job
        for group, ranks in enumerate(self.groups):
            first, second = map(job.node_of, ranks)
            yield [str(group), *self._row(size, (first, second))]

    def _row(self, size: int, pair: tuple[str, str]) -> list[str]:
        count = self.repetitions(size)
        cells = [str(count)] if self.name == "Barrier" else [str(size), str(count)]
        if self.name in _PAIRS:
            rate = self._message_rate(size, pair)
            return [*cells, f"{rate * size:.2f}", f"{rate * 1e6:.0f}"]
        time = self._time(size, pair) * self.run.machine.noise()
        self.run.seconds += count * time / 1e6
        times = [time]
        if "t_avg[usec]" in self.columns():
            times = [time * 0.99, time * 1.01, time]
        cells += [f"{value:.2f}" for value in times]
        if "Mbytes/sec" in self.columns():
            slowest = times[1] if len(times) > 1 else time
            bandwidth = _MESSAGES.get(self.name, 1) * size / slowest
            cells.append(f"{bandwidth:.2f}")
        return cells

    def _time(self, size: int, pair: tuple[str, str]) -> float:
        """Return the time of a call in us; half a round trip of PingPong."""
        run = self.run
        if self.name in (*_COLLECTIVES, *_MESSAGES):
            return time_us(run, self.name.lower(), size)
        latency, bandwidth = run.machine.pair(*pair)
        pairs = len(self.groups) if self.groups and not self.is_each else 1
        if self.is_aggregate:
            return 1 / run.machine.window_rate(*pair, max(1, size))
        scale = _ONE_SIDED.get(self.name, 1.0)
        return scale * latency * (1 + 0.02 * (pairs - 1)) + pairs * size / bandwidth

    def _message_rate(self, size: int, pair: tuple[str, str]) -> float:
        """Return the messages per us of all pairs together."""
        run = self.run
        link = run.machine.pair(*pair)[1] / size
        each = run.machine.window_rate(*pair, size)
        rate = min(run.job.ranks // 2 * each, link) * run.machine.noise()
        rate *= 1.9 if self.name == "Biband" else 1.0
        run.seconds += self.repetitions(size) * 256 * run.job.ranks / 2 / rate / 1e6
        return rate

    def _nodes(self) -> tuple[str, str]:
        """Return the nodes of the first rank and of its partner, in the second half."""
        job = self.run.job
        return job.node_of(0), job.node_of(job.ranks // 2 if job.ranks > 1 else 0)

    def title(self) -> Iterator[str]:
        """Return the lines above the columns."""
        yield _LINE
        if len(self.groups) > 1:
            yield f"# Benchmarking Multi-{self.name}"
            together = (
                f"{len(self.groups)} groups of 2 processes each running simultaneous"
            )
            yield f"# ( {together} )"
            for group, (first, second) in enumerate(self.groups):
                yield f"# Group {group:>2}: {first:>5} {second:>4}"
                yield "#"
        else:
            yield f"# Benchmarking {self.name}"
            ranks = 2 if self.name in ("PingPong", *_ONE_SIDED) else self.run.job.ranks
            yield f"# #processes = {ranks}"
        yield _LINE
        if self.name in _ONE_SIDED:
            yield "#"
            yield f"#    MODE: {'' if self.is_aggregate else 'NON-'}AGGREGATE"
            yield "#"


def imb(run: Run) -> Iterator[str]:
    """Print the table of the one benchmark that was asked for."""
    benchmark = Benchmark(run)
    yield _HEAD.format(
        part=run.program.replace("IMB-MPI1", "MPI-1").replace("IMB-RMA", "MPI-RMA"),
        clock=time.ctime(),
        command=" ".join([run.program, *run.arguments]),
        low=benchmark.sizes[0],
        high=benchmark.sizes[-1],
        benchmark=benchmark.name,
    )
    yield from benchmark.title()
    yield "".join(f"{name:>13}" for name in benchmark.columns())
    for size in benchmark.sizes:
        for cells in benchmark.rows(size):
            yield "".join(f"{cell:>13}" for cell in cells)
    yield "\n\n# All processes entering MPI_Finalize\n"


PROGRAMS = {"IMB-MPI1": imb, "IMB-RMA": imb}
