"""The results of a session: its cases, and their numbers until it is closed."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.campaign.session_command import Session
from seatrial.campaign.slurm_energy import Loads
from seatrial.model.cases import Case, NodeEvent, parameters_text
from seatrial.model.metrics import Metric
from seatrial.model.records import COLUMNS, Measurement, Sample
from seatrial.parsers.errors import ParseError
from seatrial.runs.raw_output import RECORD_FILE, SAMPLES_FILE

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class CaseTable:
    """A table of samples, and the columns of measurements that they have in common."""

    file: Path
    same: dict[str, Any]

    def blocks(self) -> "Iterator[pl.DataFrame]":
        """Read its measurements, block by block."""
        from seatrial.runs.measurement_table import sample_rows
        from seatrial.runs.sample_table import read_samples

        return sample_rows(read_samples(self.file), self.same)


@dataclass
class Collected:
    """All results of a session; `node_failures` are those that srun reports.

    `tables` has the cases whose samples are a table on disk, beside `measurements`.
    """

    cases: list[Case] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    tables: list[CaseTable] = field(default_factory=list)
    node_failures: list[NodeEvent] = field(default_factory=list)
    loads: Loads = field(default_factory=Loads)

    def blocks(self) -> "Iterator[pl.DataFrame]":
        """Return all measurements, block by block."""
        from seatrial.runs.measurement_table import table_of

        yield table_of(self.measurements)
        for table in self.tables:
            yield from table.blocks()


def read_record(
    stage: Path, known: Mapping[str, Metric]
) -> tuple[dict[str, Any], list[Sample], str | None]:
    """Read the check's record without its samples, the samples, and its problem.

    A sample of a metric that is not `known` is damage.
    """
    file = stage / RECORD_FILE
    if not file.is_file():
        return {}, [], None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        samples = [Sample(**sample) for sample in record.pop("samples", [])]
        for sample in samples:
            known[sample.metric]
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        return {}, [], f"{RECORD_FILE} of the check is damaged: {error!r}"
    return record, samples, None


def damage(table: Path) -> str | None:
    """Return the damage of a table of samples; None if it is whole or not there."""
    if not table.is_file():
        return None
    from seatrial.runs.sample_table import read_samples

    try:
        for _ in read_samples(table):
            pass
    except ParseError as error:
        return f"{SAMPLES_FILE} of the check is damaged: {error}"
    return None


def same_columns(case: Case, session: Session) -> dict[str, Any]:
    """Return the columns that all measurements of a case have in common."""
    same = {name: value for name, value in vars(case).items() if name in COLUMNS}
    same |= {"run": session.run_id, "system": session.system.name}
    same |= {"block": session.planned.block, "nodes": " ".join(case.nodes)}
    return same | {"parameters": parameters_text(case.parameters)}


def measurements_of(
    case: Case,
    same: Mapping[str, Any],
    samples: Iterable[Sample],
    known: Mapping[str, Metric],
) -> Iterator[Measurement]:
    """Return the rows of a case: its common columns, and each sample."""
    for sample in samples:
        row = {**vars(sample), **same, "value": float(sample.value)}
        metric = known[sample.metric]
        row |= {"unit": metric.unit, "direction": metric.direction}
        if sample.parameters:
            row["parameters"] = parameters_text(case.parameters | sample.parameters)
        row["start_time"] = sample.start_time or case.start_time
        yield Measurement(**row)
