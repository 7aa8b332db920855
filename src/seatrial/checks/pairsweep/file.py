"""The file of a sweep, while nothing else writes to it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial.parsers.pairsweep_rows import pair_key

_CHUNK = 1 << 16


class SweepFile:
    """JSON Lines that the program and the conductor append to in turns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._pairs = 0

    def size(self) -> int:
        """Return its size in bytes as its server knows it: opening it asks there."""
        try:
            with self.path.open("rb") as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return 0

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row, in place of a last one that was not written to its end."""
        with self.path.open("ab+") as file:
            file.truncate(_end_of_last_line(file.fileno()))
            file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def pairs(self) -> int:
        """Count the pairs that are measured; what was counted is not read again."""
        if self.size() > self._offset:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._offset += len(line)
                    self._pairs += b'"sweep"' in line and b'"ok"' in line
        return self._pairs

    def is_measured(self, source: str, destination: str, rail: int) -> bool:
        """Return True if this pair was measured on this rail, in either order."""
        wanted = pair_key(source, destination, rail)
        with self.path.open("rb") as file:
            rows = (json.loads(line) for line in file if b'"ok"' in line)
            return any(
                pair_key(row["source"], row["destination"], row["rail"]) == wanted
                for row in rows
            )


def _end_of_last_line(descriptor: int) -> int:
    """Return the place behind the last newline."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _CHUNK)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
