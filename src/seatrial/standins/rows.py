"""Rows of our own benchmarks: JSON Lines, with numbers of 15 digits."""

from collections.abc import Iterable, Iterator, Sequence

from seatrial.standins.machine import Machine
from seatrial.standins.run import Run

OWN_OPTIONS = ("--iterations", "--warmup", "--time", "--validate", "--json")
"""Options of all of them."""

Value = str | int | float | None


def row_text(row: dict[str, Value]) -> str:
    """Format a row as our C programs do."""
    return f"{{{', '.join(f'{_text(key)}: {_text(row[key])}' for key in row)}}}"


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    return (
        "null"
        if value is None
        else f'"{value}"'
        if isinstance(value, str)
        else str(value)
    )


def run_rows(run: Run, rows: Iterable[dict[str, Value]]) -> Iterator[str]:
    """Print the rows of a run, each with program, settings and number."""
    numbered = [*rows]
    for number, row in enumerate(numbered, start=1):
        head: dict[str, Value] = {
            "program": run.program,
            "version": "0.1.0",
            "commit": "model",
            "mpi": "model",
            "np": run.job.ranks,
            "iterations": run.number("--iterations", 1000),
            "warmup": run.number("--warmup", 100),
            "row": number,
            "rows": len(numbered),
        }
        yield row_text({**head, **row})


def times(machine: Machine, middle: float, unit: str = "us") -> dict[str, float]:
    """Return statistics of single operations around a median, with the usual tail."""
    least = middle * (1 - 0.01 - machine.jitter(0.04))
    late = middle * (1.08 + machine.jitter(0.1))
    return {
        f"min_{unit}": least,
        f"p50_{unit}": middle,
        f"p99_{unit}": late,
        f"max_{unit}": late * (1.2 + machine.jitter(2)),
        f"mean_{unit}": middle * (1.002 + machine.jitter(0.01)),
    }


def validation(run: Run) -> dict[str, Value]:
    """Return the field that tells whether contents were verified."""
    return {"validation": "pass" if "--validate" in run.options else "off"}


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of the line with the least squares of deviations."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    pairs = [(a - mean_x, b - mean_y) for a, b in zip(x, y, strict=True)]
    return sum(a * b for a, b in pairs) / sum(a * a for a, _ in pairs)
