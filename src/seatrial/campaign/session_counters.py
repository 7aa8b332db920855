"""Counters of the ports: read before and after each session of a campaign."""

import gzip
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from seatrial.audit.collect import Collected, collect, login_script
from seatrial.audit.raw_archive import packed
from seatrial.campaign.schedule import Planned
from seatrial.errors import SeatrialError
from seatrial.fabric.counters import Reading, counted, grown
from seatrial.fabric.declaration import load_declaration
from seatrial.fabric.node_counters import (
    NodeCounters,
    node_script,
    parse_node_counters,
)
from seatrial.fabric.port_growth import (
    PortGrowth,
    growth_of_fabric,
    growth_of_node,
)
from seatrial.fabric.quantities import ERRORS
from seatrial.fabric.records import read_fabric
from seatrial.model.metrics import METRICS
from seatrial.model.records import Measurement, Sample
from seatrial.paths import DISCOVERED_FILE, FABRIC_FILE
from seatrial.runs.closed_run import COUNTERS_TABLE
from seatrial.runs.counters_table import (
    CHECK,
    counters_parquet,
    counters_table,
    is_exact,
    partition_of,
)
from seatrial.runs.open_run import write_file
from seatrial.runs.settings_table import Moment
from seatrial.system.description import System

_SAME_S = 60.0
"""A reading at the end of a session is that at the start of the next one, if the next
one begins within this time."""


@dataclass(frozen=True)
class Snapshot:
    """The counters at one moment: of nodes, or of all ports of the fabric.

    `error` is why the fabric was not read.
    """

    nodes: Collected | None = None
    fabric: Reading | None = None
    error: str = ""

    def write(self, folder: Path, moment: Moment) -> None:
        """Keep what was read, compressed; OSError if that fails."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.nodes is not None:
            write_file(folder / f"counters-{moment}.tar.gz", packed(self.nodes))
        if self.fabric is not None:
            content = msgspec.json.encode(self.fabric)
            file = folder / f"counters-{moment}.json.gz"
            write_file(file, gzip.compress(content, mtime=0))

    @property
    def trouble(self) -> str:
        """Return the nodes that were not read, and the reason; '' without any."""
        return self.nodes.silence() if self.nodes is not None else self.error


class SessionCounters:
    """Reads the counters of a system's ports, where it has some, or is told to.

    Nodes are read by one job step for each class, all ports by ibqueryerrors on this
    machine. Nothing is started for classes without HCAs. Raises SeatrialError if the
    declaration of the fabric is wrong.
    """

    def __init__(self, system: System, work: Path, warn: Callable[[str], None]) -> None:
        declaration = load_declaration(system.folder / FABRIC_FILE)
        declared = declaration.fabric_counters
        self._system, self._work, self._warn = system, work, warn
        self._source, self._interfaces = declared.source, declared.interfaces
        self._last: tuple[float, tuple[str, ...], Snapshot] | None = None
        self._warned = ""

    def read(self, planned: Planned, folder: Path, moment: Moment) -> Snapshot | None:
        """Read the ports of a session, and keep it in `folder`; None if it has none.

        What cannot be read causes a warning, and never ends a session.
        """
        classes = self._classes(planned)
        if not classes:
            return None
        snapshot = self._just_read(classes) if moment == "start" else None
        if snapshot is None:
            of_fabric = self._source == "fabric"
            snapshot = self._of_fabric() if of_fabric else self._of_nodes(classes)
            if snapshot.trouble not in ("", self._warned):
                where = f"counters at the {moment} of session {planned.name}"
                self._warn(f"{where}: {snapshot.trouble}")
            self._warned = snapshot.trouble
        self._last = time.monotonic(), classes, snapshot
        snapshot.write(folder, moment)
        return snapshot

    def table(self, session: str, start: Snapshot, end: Snapshot) -> pl.DataFrame:
        """Return what each port counted between two readings."""
        class_of = {  # of the last one, if a node is in several
            node: name
            for name, described in self._system.classes.items()
            for node in described.nodes
        }
        growths = [*_growths(start, end)]
        return counters_table(growths, session, class_of)

    def _just_read(self, classes: tuple[str, ...]) -> Snapshot | None:
        if self._last is None:
            return None
        at, of, snapshot = self._last
        fresh = of == classes and time.monotonic() - at < _SAME_S
        return snapshot if fresh else None

    def _classes(self, planned: Planned) -> tuple[str, ...]:
        """Return the classes of a session that have ports to read."""
        used = {case.partition.rpartition(":")[2] for case in planned.cases}
        if self._source == "none":
            return ()
        if self._source == "fabric":
            return tuple(sorted(used))
        facts = {node.name: node.facts for node in self._system.nodes}
        told = self._source == "nodes" or bool(self._interfaces)
        return tuple(
            name
            for name, described in self._system.classes.items()
            if name in used
            and described.access is not None
            and (
                told or any(facts.get(node, {}).get("hcas") for node in described.nodes)
            )
        )

    def _of_nodes(self, classes: tuple[str, ...]) -> Snapshot:
        of = {name: self._system.classes[name] for name in classes}
        self._work.mkdir(exist_ok=True)
        script, token = login_script(
            str(self._work),
            [(name, ",".join(one.nodes), one.access or ()) for name, one in of.items()],
            " ".join(self._interfaces),
            self._system.audit_root,
            node_script(),
            "seatrial-counters",
        )
        try:
            collected = collect(["bash", "-s"], script, token)
        except SeatrialError as error:
            collected = Collected(errors=[str(error)])
        collected.classes = {name: [*one.nodes] for name, one in of.items()}
        return Snapshot(nodes=collected)

    def _of_fabric(self) -> Snapshot:
        file = self._system.folder / DISCOVERED_FILE
        try:
            if not file.is_file():
                raise SeatrialError(
                    f"{file}: missing; write it by `seatrial fabric discover "
                    f"{self._system.name} --keep`"
                )
            return Snapshot(fabric=counted(read_fabric(file)))
        except SeatrialError as error:
            return Snapshot(error=str(error))


def _growths(start: Snapshot, end: Snapshot) -> Iterator[PortGrowth]:
    """Yield the counts of all ports, and what is missing, node by node."""
    if start.nodes is not None and end.nodes is not None:
        nodes = {node for of in start.nodes.classes.values() for node in of}
        for node in sorted(nodes):
            yield from _growth_of_node(node, start.nodes, end.nodes)
    elif start.fabric is not None and end.fabric is not None:
        try:
            changes = grown(start.fabric, end.fabric)
        except SeatrialError as error:
            yield PortGrowth(node="", missing=str(error))
            return
        yield from growth_of_fabric(changes, start.fabric.time)
    else:
        yield PortGrowth(node="", missing=start.error or end.error)


def _growth_of_node(
    node: str, start: Collected, end: Collected
) -> Iterator[PortGrowth]:
    readings: list[NodeCounters] = []
    for moment, collected in (("start", start), ("end", end)):
        try:
            if node not in collected.raw:
                raise SeatrialError(_why(node, collected))
            readings.append(parse_node_counters(collected.raw[node]))
        except SeatrialError as error:
            yield PortGrowth(node=node, missing=f"at the {moment}: {error}")
            return
    yield from growth_of_node(node, *readings)


def _why(node: str, collected: Collected) -> str:
    errors = "; ".join(collected.errors)
    return collected.missing.get(node) or errors or "no answer"


def keep_counters(run: Path, tables: Sequence[bytes]) -> None:
    """Join the tables of all sessions in the run; nothing is written without any."""
    if tables:
        joined = pl.concat([pl.read_parquet(table) for table in tables])
        write_file(run / COUNTERS_TABLE, counters_parquet(joined))


def measurements(
    table: pl.DataFrame, same: Mapping[str, object]
) -> Iterator[Measurement]:
    """Yield errors, bits and the bound of the error rate of each port that was read.

    `same` has run, session, block, repeat and system. Counts that somebody else
    cleared, or that stopped, are left out: they are too small.
    """
    fixed = {**same, "environment": "", "parameters": "{}", "job_id": None}
    fixed |= {"check": CHECK, "case": CHECK}
    for row in table.filter(pl.col("missing") == "").iter_rows(named=True):
        numbers = {
            "port_errors": row["errors"] if is_exact(row, ERRORS) else None,
            "port_bits": row["bits_received"],
            "port_bit_error_rate_bound": row["bit_error_rate_below"],
        }
        node = row["node"]
        partition = partition_of(str(same["system"]), row["node_class"])
        place = {"nodes": node, "partition": partition}
        for name, value in numbers.items():
            if value is not None:
                sample = Sample(name, float(value), node=node, hca=row["port"])
                metric, rest = METRICS[name], {"start_time": row["start_time"]}
                rest |= {"unit": metric.unit, "direction": metric.direction}
                yield Measurement(**{**vars(sample), **fixed, **place, **rest})
