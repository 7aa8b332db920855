"""`halo2d`: the halo exchange of a periodic grid of ranks."""

from collections.abc import Iterator

from seatrial.standins.collectives import time_us
from seatrial.standins.rows import OWN_OPTIONS, Value, run_rows, times, validation
from seatrial.standins.run import Run, UsageError

_PROTOCOLS = {
    "sendrecv": 1.3,
    "irecv_isend": 1.0,
    "persistent": 0.97,
    "neighbor_alltoall": 1.05,
    "put_fence": 1.6,
}
"""Time of an exchange by each protocol, over that of irecv_isend."""


def halo2d(run: Run) -> Iterator[str]:
    """Print the time of an exchange for every size of a sub-domain."""
    run.expect(*OWN_OPTIONS, "--protocol", "--sizes", "--repetitions")
    protocol = run.options.get("--protocol", "irecv_isend")
    if protocol not in _PROTOCOLS:
        raise UsageError(f"--protocol {protocol}, expected {', '.join(_PROTOCOLS)}")
    ranks = run.job.ranks
    px = next(p for p in range(int(ranks**0.5), 0, -1) if ranks % p == 0)
    repetitions = run.number("--repetitions", 5)
    count = repetitions * run.number("--iterations", 1000)

    def row(subdomain: int) -> dict[str, Value]:
        size = 8 * subdomain
        time = _PROTOCOLS[protocol] * time_us(run, "exchange", size)
        of_time = times(run.machine, time * run.machine.noise())
        run.seconds += count * time / 1e6
        return {
            "protocol": protocol,
            "px": px,
            "py": ranks // px,
            "repetitions": repetitions,
            "size_bytes": size,
            "subdomain": subdomain,
            "time_median_us": of_time["mean_us"],
            "time_min_us": of_time["p50_us"],
            **of_time,
            "n": count,
            **validation(run),
        }

    return run_rows(run, map(row, run.span("--sizes", "0:1024")))


PROGRAMS = {"halo2d": halo2d}
