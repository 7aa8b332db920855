"""`seatrial fabric watch`: read counters twice, and print what grew."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.console import Terminal, folding_table
from seatrial.errors import Exit
from seatrial.fabric.counters import Grown, Reading, counted, grown, read_reading
from seatrial.fabric.records import Fabric

_CONFIDENCE = 0.95
_MOST_SHOWN = 50

COLUMNS = (
    *("device", "port", "seconds", "bits_received", "bit_error_rate_below"),
    *("errors", "cleared", "full"),
)
"""Columns of ports."""


def watched(
    fabric: Fabric, before: Path | None, seconds: float
) -> tuple[Reading, list[Grown]]:
    """Return the last reading, and what grew; SeatrialError if a tool fails."""
    if before is not None:
        last = counted(fabric)
        return last, grown(read_reading(before), last)
    first = counted(fabric)
    with Terminal(stderr=True).status(f"waiting {seconds / 60:.0f} minutes"):
        time.sleep(seconds)
    last = counted(fabric)
    return last, grown(first, last)


def is_clean(change: Grown) -> bool:
    """Return True if a port has no new error, and no cleared or full counter."""
    return not (change.errors or change.cleared or change.full)


def as_rows(changes: Sequence[Grown]) -> list[dict[str, Any]]:
    """Return all ports as records."""
    return [
        {
            "device": one.end.device,
            "port": one.end.port,
            "seconds": round(one.seconds, 1),
            "bits_received": one.bits,
            "bit_error_rate_below": one.bit_error_rate(_CONFIDENCE),
            "errors": _text(one),
            "cleared": " ".join(one.cleared),
            "full": " ".join(one.full),
        }
        for one in changes
    ]


def print_changes(changes: Sequence[Grown]) -> None:
    """Print the ports with errors, and the bound of all others together."""
    console = Terminal()
    table = folding_table("port", "errors", "bits received", "error rate below", "note")
    shown = [one for one in changes if not is_clean(one)]
    for one in sorted(shown, key=lambda port: -sum(port.errors.values()))[:_MOST_SHOWN]:
        notes = [f"{name} was cleared by somebody else" for name in one.cleared]
        notes += [f"{name} is full: there may be more" for name in one.full]
        rate = one.bit_error_rate(_CONFIDENCE)
        table.add_row(
            str(one.end),
            _text(one),
            f"{one.bits:.3g}",
            "-" if rate is None else f"{rate:.2g}",
            "\n".join(notes),
        )
    if shown:
        console.print(table)
    text = f"{len(shown)} of {len(changes)} ports have errors or doubtful counters"
    clean = [one for one in changes if is_clean(one)]
    loaded = [one for one in clean if one.bits]
    if loaded:
        least = min(loaded, key=lambda one: one.bits)
        text += f"; each other: 0 errors in {least.bits:.2g} bits or more, "
        text += f"error rate below {least.bit_error_rate(_CONFIDENCE):.2g} at 95 %"
    if idle := len(clean) - len(loaded):
        text += f"; {idle} received nothing"
    console.print(text, soft_wrap=True)


def exit_status(changes: Sequence[Grown]) -> Exit:
    """Return FAILED with an error, UNDECIDED if a counter was cleared or is full."""
    if any(one.errors for one in changes):
        return Exit.FAILED
    doubtful = any(one.cleared or one.full for one in changes)
    return Exit.UNDECIDED if doubtful else Exit.PASS


def _text(change: Grown) -> str:
    return " ".join(f"{name} {count}" for name, count in change.errors.items())
