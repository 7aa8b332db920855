"""The file of `seatrial.checks.hplsweep`: HPL of several groups of nodes at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import Decoder, decode_object, require


@dataclass(frozen=True)
class RunRow:
    """The start: the number of groups, and the ranks of each node."""

    type: Literal["run"]
    program: Literal["hplsweep"]
    version: str
    groups: int
    ppn: int
    block: int
    start_time: float


@dataclass(frozen=True)
class HplRow:
    """HPL of a group of nodes, whose names are separated by spaces."""

    type: Literal["hpl"]
    group: str
    nodes: str
    n: int
    block: int
    rows: int
    columns: int
    seconds: float
    gflops: float
    residual: float
    start_time: float

    def verify(self) -> None:
        """Raise ValueError if the numbers prove no result."""
        require(bool(self.nodes.split()), "no nodes")
        require(self.gflops > 0, "gflops is not positive")
        require(self.residual < 16, f"a residual of {self.residual}")


@dataclass(frozen=True)
class FailedRow:
    """A group without a result, and the reason."""

    type: Literal["failed"]
    group: str
    nodes: str
    reason: str
    start_time: float

    @property
    def text(self) -> str:
        """Return the failure in one line."""
        return f"{self.group}: HPL: {self.reason}"


@dataclass(frozen=True)
class EndRow:
    """The end: how many groups passed and failed."""

    type: Literal["end"]
    passed: int
    failed: int
    elapsed_s: float


@dataclass(frozen=True)
class HplSweep:
    """A whole sweep; results and failures are in the order of the file."""

    run: RunRow
    results: tuple[HplRow, ...]
    failures: tuple[FailedRow, ...]

    def verify_groups(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Raise ParseError unless there is a row for each group, with its nodes."""
        every: tuple[HplRow | FailedRow, ...] = (*self.results, *self.failures)
        rows = {row.group: row.nodes.split() for row in every}
        for name in sorted({*rows} ^ {*groups}):
            state = "no row" if name in groups else "a row of an unknown group"
            raise ParseError(0, f"{name}: {state}")
        for name, nodes in groups.items():
            if sorted(rows[name]) != sorted(nodes):
                reason = f"{name}: ran on {' '.join(rows[name])}"
                raise ParseError(0, f"{reason}, expected {' '.join(nodes)}")


_TYPES: dict[str, type[Any]] = {
    "run": RunRow,
    "hpl": HplRow,
    "failed": FailedRow,
    "end": EndRow,
}


def parse_hplsweep(text: str) -> HplSweep:
    """Read a whole sweep.

    Raises ParseError, with the line, on anything but one sweep from its first row to
    its last: cut, repeated or unknown rows, and counts that differ from the rows.
    """
    decoders = {kind: Decoder(row_type) for kind, row_type in _TYPES.items()}
    rows: dict[str, list[Any]] = {kind: [] for kind in _TYPES}
    groups: set[str] = set()
    line = 0
    for line, content in enumerate(text.splitlines(), start=1):
        values = decode_object(line, content)
        kind = values.get("type")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise ParseError(line, f"a row of type {kind!r}")
        if (kind == "run") != (line == 1) or rows["end"]:
            raise ParseError(line, f"a row of type {kind!r} is out of place")
        row = decoders[kind](line, values)
        if kind in ("hpl", "failed"):
            if row.group in groups:
                raise ParseError(line, f"{row.group}: a second time")
            groups.add(row.group)
        rows[kind].append(row)
    if not rows["end"]:
        raise ParseError(line, "the sweep has no end")
    (run,), (end,) = rows["run"], rows["end"]
    sweep = HplSweep(run, tuple(rows["hpl"]), tuple(rows["failed"]))
    counted = (len(sweep.results), len(sweep.failures))
    if (end.passed, end.failed) != counted or run.groups != sum(counted):
        raise ParseError(line, f"{run.groups} groups, {counted} passed and failed")
    return sweep
