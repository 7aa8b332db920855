"""Output of `osnoise --node --json` of many nodes: noise of the operating system."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import Decoder, Setting, decode_object, require


@dataclass(frozen=True)
class OsNoiseRow:
    """One node; percentages are of the time of a core, times in us are of a quantum.

    `lost_percent` is the mean of all cores, the others are of the worst core in that
    respect, whose CPU is beside them. The period is None if detours recur on no core.
    """

    program: Literal["osnoise"]
    version: Setting[str]
    commit: Setting[str]
    host: str
    time_ms: Setting[int]
    quantum_us: Setting[int]
    odds: Setting[int]
    iterations: int
    cores: int
    lost_percent: float
    worst_lost_percent: float
    worst_cpu: int
    p99_9_us: float
    p99_9_cpu: int
    max_us: float
    max_cpu: int
    periodic_cores: int
    period_us: float | None
    period_lost_percent: float | None
    period_cpu: int | None
    n: int
    validation: Literal["pass", "off"]

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(0 < self.cores <= self.n, f"{self.n} quanta of {self.cores} cores")
        most = self.lost_percent * self.cores * (1 + 1e-9)
        in_order = self.lost_percent <= self.worst_lost_percent * (1 + 1e-9) <= most
        require(in_order, "worst_lost_percent is of no core with this mean")
        require(self.worst_lost_percent <= 100, "more than all time is lost")
        require(self.p99_9_us <= self.max_us, "p99_9_us is above max_us")
        require(self.periodic_cores <= self.cores, "too many periodic_cores")
        kinds = {self.periodic_cores > 0, self.period_us is not None}
        kinds |= {self.period_lost_percent is not None, self.period_cpu is not None}
        require(len(kinds) == 1, "a part of the period is missing")
        require(self.period_us is None or self.period_us > 0, "period_us is 0")


def parse_osnoise(text: str, nodes: Collection[str]) -> list[OsNoiseRow]:
    """Read the row of each node, in the order of `nodes`.

    Raises ParseError if a node has no row or two, if a row is damaged, or if settings
    differ. Lines without a brace at their start are passed over.
    """
    decode = Decoder(OsNoiseRow)
    rows: dict[str, OsNoiseRow] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("{"):
            continue
        values = decode_object(number, line)
        if values.get("validation") == "fail":
            raise ParseError(number, f"{values.get('host')}: wrong results")
        row = decode(number, values)
        node = row.host.partition(".")[0]
        if node in rows or node not in nodes:
            kind = "a second row" if node in rows else "not a node of the job"
            raise ParseError(number, f"{row.host}: {kind}")
        decode.verify_settings(number, row, next(iter(rows.values()), row))
        rows[node] = row
    if missing := [node for node in nodes if node not in rows]:
        raise ParseError(0, f"no row of {', '.join(missing)}")
    return [rows[node] for node in nodes]
