"""`logp`: the parameters of the LogP model of a pair of nodes."""

from collections.abc import Iterator

from seatrial.standins.rows import OWN_OPTIONS, Value, run_rows, validation
from seatrial.standins.run import Run

_CLOCK_US = 0.022
_SAMPLES = 100
_PRECISION = 0.01


def logp(run: Run) -> Iterator[str]:
    """Print overheads, gaps and round trips of size 0, and of all sizes."""
    run.expect(*OWN_OPTIONS, "--sizes", "--inserts", "--send", "--receive")
    sizes = [0, *run.span("--sizes", "8:1048576")]
    values = [_measure(run, size) for size in sizes]
    rows = (
        _row(run, size, value, values[0])
        for size, value in zip(sizes, values, strict=True)
    )
    return run_rows(run, rows)


def _measure(run: Run, size: int) -> dict[str, float]:
    """Return the times of a size: both overheads, the gap, and the round trip."""
    machine = run.machine
    nodes = (run.job.node_of(0), run.job.node_of(run.job.ranks - 1))
    gap = 1 / machine.window_rate(*nodes, size) * machine.noise()
    trip = 2 * machine.half_trip(*nodes, size) * machine.noise()
    run.seconds += 3 * _SAMPLES * trip / 1e6
    copy = size / machine.numbers["shared_bandwidth_mb_per_s"]
    return {
        "os": min(0.5 * trip, 0.08 + 0.1 * copy) * machine.noise(),
        "or": (0.12 + 0.4 * copy) * machine.noise(),
        "rtt": trip,
        "flood": gap,
    }


def _row(
    run: Run, size: int, value: dict[str, float], empty: dict[str, float]
) -> dict[str, Value]:
    count = min(_SAMPLES, run.number("--iterations", 1000))
    gap = value["rtt"] - empty["rtt"] + empty["flood"]
    row: dict[str, Value] = {
        "send": run.options.get("--send", "isend"),
        "receive": run.options.get("--receive", "recv"),
        "least": 30,
        "eps_percent": 3,
        "confidence_percent": 95,
        "flood": 131072,
        "inserts": run.number("--inserts", 4),
        "delay_us": 0,
        "nodes": len(run.job.nodes),
        "clock_us": _CLOCK_US,
        "l_us": empty["rtt"] / 2 - empty["flood"],
        "size_bytes": size,
    }
    for name, time in (("os", value["os"]), ("or", value["or"]), ("g", gap)):
        row |= {f"{name}_p50_us": time, f"{name}_mean_us": time}
        row |= {f"{name}_half_us": _PRECISION * abs(time), f"{name}_n": count}
    return {
        **row,
        "g_flood_us": value["flood"],
        "g_flood_change": 0.001,
        "g_flood_n": 2048,
        "rtt_p50_us": value["rtt"],
        "rtt_mean_us": value["rtt"],
        "rtt_half_us": _PRECISION * value["rtt"],
        "rtt_n": count,
        "precise": "yes",
        "inserted": "no",
        **validation(run),
    }


PROGRAMS = {"logp": logp}
