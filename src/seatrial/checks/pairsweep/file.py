"""The file of a sweep over pairs."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.parsers.pairsweep_rows import PairKey, pair_key


@dataclass
class SweepFile:
    """JSON Lines that the program and the conductor append to in turns."""

    path: Path
    _offset: int = 0
    _pairs: int = 0

    def size(self) -> int:
        """Return the size in bytes; opening the file asks its server for it."""
        try:
            with self.path.open("rb") as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return 0

    def append(self, row: Mapping[str, Any]) -> None:
        """Append a row; an incomplete last row is removed."""
        self.pairs()
        with self.path.open("ab") as file:
            file.truncate(self._offset)
            file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def pairs(self) -> int:
        """Count the measured pairs; only new rows are read."""
        if self.size() > self._offset:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._offset += len(line)
                    self._pairs += b'"sweep"' in line and b'"ok"' in line
        return self._pairs

    def is_measured(self, key: PairKey) -> bool:
        """Return True if this pair was measured on this rail."""
        return key in self.measured()

    def measured(self) -> dict[PairKey, dict[str, Any]]:
        """Return the last row of each measured pair: that of the pair alone, if any."""
        with self.path.open("rb") as file:
            rows = [json.loads(line) for line in file if b'"ok"' in line]
        return {
            pair_key(row["source"], row["destination"], row["rail"]): row
            for row in rows
        }
