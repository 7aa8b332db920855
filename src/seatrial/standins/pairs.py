"""`mpair`, `balance` and `rr64`: messages of pairs of ranks."""

from collections.abc import Iterator

from seatrial.standins.rows import OWN_OPTIONS, Value, run_rows, times, validation
from seatrial.standins.run import Run

_CLOCK_US = 0.022
SHARING = 0.02
"""Share by which each further pair raises the latency of all."""


class Pairs:
    """Pairs of ranks on two nodes that share the link between them."""

    def __init__(self, run: Run, source: str, destination: str) -> None:
        self.run = run
        self.nodes = (source, destination)
        self.window = run.number("--window", 64)
        self.windows = run.number("--windows", 100)

    def latency_us(self, size: int, pairs: int) -> float:
        """Return half a round trip, with noise."""
        latency, bandwidth = self.run.machine.pair(*self.nodes)
        shared = latency * (1 + SHARING * (pairs - 1))
        return (shared + pairs * size / bandwidth) * self.run.machine.noise()

    def window_us(self, size: int, pairs: int, scale: float = 1.0) -> float:
        """Return the time of a window of every pair, with noise."""
        machine = self.run.machine
        rate = machine.window_rate(*self.nodes, size)
        if size > 0:
            rate = min(rate, machine.pair(*self.nodes)[1] / size / pairs)
        return scale * self.window / rate * machine.noise()

    def bandwidth(self, size: int, pairs: int = 1, scale: float = 1.0) -> float:
        """Return the bandwidth of all pairs together; 0 of empty messages."""
        return pairs * self.window * size / self.window_us(size, pairs, scale)


def mpair(run: Run) -> Iterator[str]:
    """Print latency, bandwidth, both directions, and message rate of some pairs."""
    run.expect(*OWN_OPTIONS, "--pairs", "--sizes", "--window", "--windows")
    nodes = (run.job.node_of(0), run.job.node_of(run.job.ranks - 1))
    bench = Pairs(run, *nodes)
    sizes, counts = run.span("--sizes", "8:65536"), run.span("--pairs", "1:1")
    return run_rows(
        run,
        (
            _mpair_row(bench, mode, pairs, size)
            for mode in ("latency", "bw", "bibw", "rate")
            for pairs in counts
            for size in sizes
        ),
    )


def _mpair_row(bench: Pairs, mode: str, pairs: int, size: int) -> dict[str, Value]:
    run, count = bench.run, bench.windows
    mb_per_s: float | None = None
    msg_per_s: float | None = None
    if mode == "latency":
        count = run.number("--iterations", 1000)
        of_time = times(run.machine, bench.latency_us(size, pairs))
    else:
        both = mode == "bibw"
        of_time = times(run.machine, bench.window_us(size, pairs, 1.05 if both else 1))
        per_us = pairs * bench.window * (2 if both else 1) / of_time["mean_us"]
        mb_per_s, msg_per_s = per_us * size, per_us * 1e6
    run.seconds += count * of_time["mean_us"] / 1e6
    return {
        "source": bench.nodes[0],
        "destination": bench.nodes[1],
        "window": bench.window,
        "windows": bench.windows,
        "mode": mode,
        "sync": "each" if mode == "rate" else "start",
        "pairs": pairs,
        "size_bytes": size,
        "clock_us": _CLOCK_US,
        "mb_per_s": mb_per_s,
        "msg_per_s": msg_per_s,
        **of_time,
        "n": count * pairs,
        "slowest_us": of_time["mean_us"],
        "start_spread_us": run.machine.jitter(2) if pairs > 1 else 0,
        **validation(run),
    }


def balance(run: Run) -> Iterator[str]:
    """Print how much better the ranks of one node communicate than those of two."""
    run.expect(*OWN_OPTIONS, "--sizes", "--window", "--windows")
    nodes = (run.job.node_of(0), run.job.node_of(run.job.ranks - 1))
    within, between = Pairs(run, nodes[0], nodes[0]), Pairs(run, *nodes)
    pairs = run.job.ranks // 4

    def row(size: int) -> dict[str, Value]:
        latencies = (within.latency_us(size, 1), between.latency_us(size, 1))
        values: dict[str, Value] = {
            "latency_within_us": latencies[0],
            "latency_between_us": latencies[1],
            "latency_ratio": latencies[1] / latencies[0],
            "latency_n": run.number("--iterations", 1000),
        }
        for name, count, scale in (
            ("bw", 1, 1.0),
            ("bibw", 1, 0.53),
            ("multi_bw", pairs, 1.0),
        ):
            inner = within.bandwidth(size, count, scale)
            outer = between.bandwidth(size, count, scale)
            values |= {
                f"{name}_within_mb_per_s": inner,
                f"{name}_between_mb_per_s": outer,
                f"{name}_ratio": inner / outer if size > 0 else 1.0,
                f"{name}_n": count * within.windows,
            }
        run.seconds += 1e-3
        return {
            "source": nodes[0],
            "destination": nodes[1],
            "window": within.window,
            "windows": within.windows,
            "pairs": pairs,
            "size_bytes": size,
            **values,
            **validation(run),
        }

    return run_rows(run, map(row, run.span("--sizes", "8:65536")))


def rr64(run: Run) -> Iterator[str]:
    """Print what messages from many regions of memory cost, and from one."""
    run.expect(*OWN_OPTIONS, "--sizes", "--regions", "--window", "--windows")
    nodes = (run.job.node_of(0), run.job.node_of(run.job.ranks - 1))
    bench = Pairs(run, *nodes)
    memory = 1.15 * run.machine.slowness(nodes[0], "memory")

    def row(size: int) -> dict[str, Value]:
        one, many = bench.latency_us(size, 1), memory * bench.latency_us(size, 1)
        of_one = bench.bandwidth(size)
        of_many = bench.bandwidth(size, 1, memory)
        run.seconds += 1e-3
        iterations = run.number("--iterations", 1000)
        return {
            "nodes": len({*nodes}),
            "regions": run.number("--regions", 64),
            "window": bench.window,
            "windows": bench.windows,
            "size_bytes": size,
            **times(run.machine, many),
            "n": iterations,
            "one_p50_us": one,
            "one_n": iterations,
            "latency_ratio": many / one,
            "bw_mb_per_s": of_many,
            "bw_one_mb_per_s": of_one,
            "bw_ratio": of_many / of_one if size > 0 else None,
            "bw_n": bench.windows,
            "bw_one_n": bench.windows,
            **validation(run),
        }

    return run_rows(run, map(row, run.span("--sizes", "8:65536")))


PROGRAMS = {"mpair": mpair, "balance": balance, "rr64": rr64}
