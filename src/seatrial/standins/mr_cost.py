"""`mr_cost`: registration of memory with the adapter, and its end."""

from collections.abc import Iterator

from seatrial.standins.rows import (
    OWN_OPTIONS,
    Value,
    run_rows,
    slope,
    times,
    validation,
)
from seatrial.standins.run import Run, UsageError
from seatrial.standins.verbs import CLOCK_US, devices, iterations, sizes

_PAGE = 4096
_FIXED_US = {"warm": 18.0, "cold": 20.0, "untouched": 20.0}
_PAGE_US = {"warm": 0.06, "cold": 0.07, "untouched": 0.25}
_GIVEN_UP = 0.4
"""Time of ibv_dereg_mr, over that of ibv_reg_mr of memory that is in use."""


def mr_cost(run: Run) -> Iterator[str]:
    """Print the times of every state of the memory, and size."""
    run.expect(
        *OWN_OPTIONS, "--device", "--state", "--huge-pages", "--timeout", "--sizes"
    )
    run.options.setdefault("--iterations", "200")
    run.options.setdefault("--warmup", "10")
    if run.job.ranks != 1:
        raise UsageError(f"found {run.job.ranks} ranks: mr_cost measures one process")
    chosen = run.options.get("--state", "all")
    return run_rows(
        run,
        (
            row
            for state in ("warm", "cold", "untouched")
            if chosen in ("all", state)
            for row in _state_rows(run, state)
        ),
    )


def _state_rows(run: Run, state: str) -> Iterator[dict[str, Value]]:
    """Return the rows of a state, each with the lines through all of them."""
    regions = [*sizes(run, "4096:268435456")]
    both = [_measure(run, state, size) for size in regions]
    lines = _line(regions, [reg for reg, _ in both], "")
    lines |= _line(regions, [dereg for _, dereg in both], "dereg_")
    pages = run.options.get("--huge-pages", "off")
    for size, (reg, dereg) in zip(regions, both, strict=True):
        yield {
            "device": devices(run)[0],
            "state": state,
            "huge_pages": pages,
            "size_bytes": size,
            "huge_bytes": 0 if pages == "off" else size,
            "page_bytes": _PAGE,
            "clock_us": CLOCK_US,
            **reg,
            "n": iterations(run, reg["p50_us"] + dereg["p50_us"]),
            **{f"dereg_{name}": value for name, value in dereg.items()},
            **lines,
            **validation(run),
        }


def _line(
    regions: list[int], measured: list[dict[str, float]], prefix: str
) -> dict[str, Value]:
    """Return the line through the medians, over pages; None of a single size."""
    names = (f"{prefix}fixed_us", f"{prefix}us_per_page")
    if len(regions) == 1:
        return dict.fromkeys(names)
    pages = [size / _PAGE for size in regions]
    medians = [of_time["p50_us"] for of_time in measured]
    per_page = slope(pages, medians)
    fixed = (sum(medians) - per_page * sum(pages)) / len(pages)
    return dict(zip(names, (fixed, per_page), strict=True))


def _measure(
    run: Run, state: str, size: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the times of both calls: the kernel walks the pages in memory."""
    machine = run.machine
    slow = machine.slowness(run.job.node, "memory")
    both = [
        part * slow * (_FIXED_US[of] + size / _PAGE * _PAGE_US[of]) * machine.noise()
        for part, of in ((1.0, state), (_GIVEN_UP, "warm"))
    ]
    run.seconds += sum(both) * iterations(run, sum(both)) / 1e6
    return times(machine, both[0]), times(machine, both[1])


PROGRAMS = {"mr_cost": mr_cost}
