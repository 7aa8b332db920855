"""Upper bounds for data from elsewhere: packs, runs, recordings, YAML files.

They are at least what a run of 1,000 nodes takes: 523,776 pairs on two rails, five
numbers of each, five repeats. The environment variable SEATRIAL_LIMITS raises all of
them.
"""

import os
from dataclasses import dataclass

from seatrial.errors import SeatrialError

VARIABLE = "SEATRIAL_LIMITS"

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Limit:
    """The most that something may be, in `unit`."""

    what: str
    amount: int
    unit: str

    @property
    def most(self) -> int:
        """The limit times SEATRIAL_LIMITS; SeatrialError if that is no number."""
        return self.amount * _factor()

    def check(self, size: int, where: object) -> None:
        """Raise SeatrialError if something is larger than the limit."""
        if size > self.most:
            raise self.exceeded(where)

    def exceeded(self, where: object) -> SeatrialError:
        """Make the error of something that is larger than the limit."""
        return SeatrialError(
            f"{where}: {self.what}: more than {self.most:,} {self.unit}, the limit for "
            f"data from elsewhere. If you trust its origin, set {VARIABLE}="
            f"{10 * _factor()} to raise all limits tenfold."
        )


PACK_SIZE = Limit("size of the files in a pack", 16 * _GIB, "bytes")
PACK_FILES = Limit("number of files in a pack", 1_000_000, "files")
PACK_HEADER = Limit("header of a file in a pack", _MIB, "bytes")
PACK_MEMORY = Limit("memory to decompress a pack", 256 * _MIB, "bytes")

PACK_RATIO = Limit("compression of a pack", 200, "times its size")
"""Packs of real runs are 12 to 15 times smaller than their files."""
PACK_SMALL = 64 * _MIB
"""Bytes up to which the compression does not matter."""

MANIFEST_SIZE = Limit("size of the file", 64 * _MIB, "bytes")
CASES_SIZE = Limit("size of the file", 256 * _MIB, "bytes")
TABLE_SIZE = Limit("size of the file", 2 * _GIB, "bytes")
LEDGER_SIZE = Limit("size of the file", 64 * _MIB, "bytes")
SIGNATURE_SIZE = Limit("size of the file", 64 * _KIB, "bytes")
RAW_SIZE = Limit("size of a recorded file, decompressed", 2 * _GIB, "bytes")

TABLE_ROWS = Limit("number of measurements", 40_000_000, "rows")
TABLE_DENSITY = Limit("number of measurements for the size of the file", 10, "per byte")
"""Tables of real runs take 2 bytes a row or more."""
TABLE_SMALL = 1_000_000
"""Rows up to which the size of the file does not matter."""

YAML_SIZE = Limit("size of the file", _MIB, "bytes")
YAML_NODES = Limit("number of values, aliases written out", 100_000, "values")
YAML_SCALAR = Limit("length of one value", 64 * _KIB, "characters")


def _factor() -> int:
    text = os.environ.get(VARIABLE, "1")
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) < 10**6:
        raise SeatrialError(
            f"{VARIABLE}={text!r}: expected a whole number from 1, by which all limits "
            "for data from elsewhere are multiplied"
        )
    return int(text)
