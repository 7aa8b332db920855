"""Rows of the sensors beside a load, as `seatrial.checks.loadsensors` prints them.

`LOAD_FILE` of a job has a row `began` and a row `load` of each node, in any order. The
readings say nothing of the result of the load, so what is missing is a reason here.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from seatrial.model.energy import per_joule
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError

LOAD_FILE = "loadsensors.jsonl"
LOAD_STEP = "seatrial-loadsensors"
"""Name of the step that reads the sensors; Slurm's accounting has it, too."""

COUNTERS = ("throttle_events", "power_limit_events")
_LATE = "the sensors did not begin, or did not end in time"


class Power(msgspec.Struct):
    """Joules of one source, mean and highest power of a node in watts."""

    joules: float
    mean_w: float
    peak_w: float


class NodeLoad(msgspec.Struct):
    """The readings of a node; `absent` has the reasons of those that are None."""

    node: str
    seconds: float
    samples: int
    rapl: Power | None = None
    board: Power | None = None
    temperature_max_c: float | None = None
    throttle_events: int | None = None
    power_limit_events: int | None = None
    absent: dict[str, str] = {}


class _Row(msgspec.Struct):
    type: str


@dataclass(frozen=True)
class LoadReadings:
    """The readings of the nodes of a job; `absent`: nodes by reason."""

    loads: Sequence[NodeLoad] = ()
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def watts(self, source: str, nodes: int) -> float | None:
        """Return the mean power of all nodes; None if one of them has none."""
        powers = [getattr(load, source) for load in self.loads]
        if len(powers) != nodes or None in powers:
            return None
        return math.fsum(power.mean_w for power in powers)

    def samples(self, nodes: int, rates: Mapping[str, float]) -> Iterator[Sample]:
        """Yield the numbers of each node, and energy and results per joule of all.

        `rates` has the work per second of the job's program, by kind.
        """
        for source in ("rapl", "board"):
            for load in self.loads:
                power: Power | None = getattr(load, source)
                if power is not None:
                    name, n = f"{source}_power", load.samples
                    yield Sample(name, power.mean_w, None, "mean", n, load.node)
                    yield Sample(name, power.peak_w, None, "max", n, load.node)
            watts = self.watts(source, nodes)
            if watts:
                joules = math.fsum(getattr(load, source).joules for load in self.loads)
                yield Sample(f"{source}_energy", joules)
                yield from results_per_joule(source, watts, rates)
        for load in self.loads:
            if (hottest := load.temperature_max_c) is not None:
                name, n = "temperature_max", load.samples
                yield Sample(name, hottest, None, "max", n, load.node)
            for name in COUNTERS:
                if (events := getattr(load, name)) is not None:
                    yield Sample(name, float(events), node=load.node)


def results_per_joule(
    source: str, watts: float, rates: Mapping[str, float]
) -> Iterator[Sample]:
    """Yield the work per second over the power in watts, for each kind of work."""
    for work, rate in rates.items():
        yield Sample(per_joule(work, source), rate / watts)


def parse_load_sensors(text: str, nodes: Sequence[str]) -> LoadReadings:
    """Read the rows of the nodes of a job; ParseError if one is damaged."""
    loads: dict[str, NodeLoad] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if msgspec.json.decode(line, type=_Row).type != "load":
                continue
            load = msgspec.json.decode(line, type=NodeLoad)
        except msgspec.DecodeError as error:
            raise ParseError(number, f"{error}; expected a row of JSON") from None
        if load.node not in nodes or load.node in loads:
            raise ParseError(number, f"node {load.node!r}; expected one of the job's")
        loads[load.node] = load
    absent: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        known = loads.get(node)
        for reason in [_LATE] if known is None else known.absent.values():
            absent[reason].append(node)
    return LoadReadings([*loads.values()], absent)
