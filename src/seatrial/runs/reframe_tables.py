"""The cases and measurements of a ReFrame session.

A session can have a million numbers: values of a case or a series are stored once, and
joined to the rows at the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.model.cases import Case, parameters_of, parameters_text
from seatrial.model.records import OF_REFRAME
from seatrial.runs.measurement_table import SCHEMA
from seatrial.runs.reframe_report import Entry, ReframeSession
from seatrial.runs.reframe_series import Key, Series, name_of

BLOCK = "reframe"

_REASONS = {
    "skip": "ReFrame's records do not say why",
    "xfail": "expected to fail, and did: a known defect",
    "xpass": "expected to fail, and passed: the known defect is gone",
    "abort": "ReFrame ended before this case did",
}
_CASE_COLUMNS = [field.name for field in fields(Case) if field.name in SCHEMA]
_SERIES_COLUMNS = ("metric", "size_bytes", "unit", "direction")
_FAILED = ("fail", "abort")
_Place = tuple[str, str, str]


class Tables:
    """Fills tables with the runs of a session.

    A run that repeats only failed cases of the run before is a retry: the next
    `attempt`. Any other is a rerun: the next `repeat`.
    """

    def __init__(self, series: Mapping[Key, Series]) -> None:
        self.cases: list[Case] = []
        self.not_finite = 0
        self._known = tuple(series.items())
        self._numbers = {key: number for number, key in enumerate(series)}
        self._factors = [known.factor for known in series.values()]
        self._declared: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._case_of: list[int] = []
        self._series_of: list[int] = []
        self._values: list[float] = []

    def add(self, session: ReframeSession) -> None:
        """Read all cases; SeatrialError if one is damaged, or was not surveyed."""
        repeat, attempt = 0, 0
        failed: set[_Place] = set()
        for run in session.runs:
            if repeat and all(_place(entry) in failed for entry in run):
                attempt += 1
            else:
                repeat, attempt = repeat + 1, 1
            failed = set()
            for entry in run:
                if entry.result in _FAILED:
                    failed.add(_place(entry))
                try:
                    self._add(entry, repeat, attempt)
                except KeyError as error:
                    raise SeatrialError(
                        f"{run.source}: changed while it was imported; import it again"
                    ) from error

    @property
    def converted(self) -> tuple[str, ...]:
        """Return the metrics that are not in the unit in which they were reported."""
        used = (self._known[number] for number in set(self._series_of))
        texts = {
            f"{name_of(key)} of {check} from {unit} to {series.unit}"
            for (check, key, unit), series in used
            if series.factor != 1.0
        }
        return tuple(sorted(texts))

    def measurements(self, run: str, system: str) -> pl.DataFrame:
        """Return all numbers as a table of `SCHEMA`."""
        same = {
            "run": run,
            "system": system,
            "block": BLOCK,
            "statistic": "mean",
            "n": 1,
        }
        cases = _frame(map(_case_row, self.cases), _CASE_COLUMNS)
        series = _frame((vars(series) for _, series in self._known), _SERIES_COLUMNS)
        values = pl.DataFrame({"value": self._values}, schema={"value": pl.Float64})
        table = values.hstack(cases[self._case_of]).hstack(series[self._series_of])
        return table.select(
            pl.col(name)
            if name in table.columns
            else pl.lit(same.get(name)).cast(kind).alias(name)
            for name, kind in SCHEMA.items()
        )

    def _add(self, entry: Entry, repeat: int, attempt: int) -> None:
        bad = []
        position = len(self.cases)
        check = entry.check
        for key, reported in entry.perfvalues.items():
            value = reported.value
            if isinstance(value, float):
                number = self._numbers[check, key, reported.unit]
                self._case_of.append(position)
                self._series_of.append(number)
                self._values.append(value * self._factors[number])
            elif value is not None:
                bad.append(f"{name_of(key)} is {value}")
        self.not_finite += len(bad)
        self.cases.append(self._case(entry, repeat, attempt, bad))

    def _case(self, entry: Entry, repeat: int, attempt: int, bad: list[str]) -> Case:
        result = OF_REFRAME.get(entry.result, "fail")
        phase = entry.fail_phase
        reason = entry.fail_reason or _REASONS.get(entry.result)
        if bad:
            more = f"; {reason}" if reason else ""
            result, phase = "fail", phase or "performance"
            reason = f"{', '.join(bad)}: no number{more}"
        nodes = entry.job_nodelist
        keys = tuple(entry.perfvalues)
        if keys not in self._declared:
            self._declared[keys] = tuple(sorted(map(name_of, keys)))
        return Case(
            session=f"{BLOCK}-{repeat}",
            repeat=repeat,
            check=entry.check,
            case=entry.display_name,
            partition=f"{entry.system}:{entry.partition}",
            environment=entry.environ,
            parameters=_parameters(entry.display_name)[0],
            result=result,
            phase=phase,
            reason=" ".join(reason.split()) if reason else None,
            job_id=str(entry.jobid) if entry.jobid else None,
            # ReFrame has no list, or `<undefined>`, if the job never ran.
            nodes=tuple(map(str, nodes)) if isinstance(nodes, list) else (),
            start_time=_number(entry.job_submit_time),
            elapsed_s=_number(entry.time_total),
            declared=self._declared[keys],
            attempt=attempt,
        )


def _frame(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema={name: SCHEMA[name] for name in names})


def _case_row(case: Case) -> dict[str, Any]:
    return {
        **{name: getattr(case, name) for name in _CASE_COLUMNS},
        "parameters": _parameters(case.case)[1],
        "nodes": " ".join(case.nodes),
    }


@lru_cache(maxsize=1 << 16)  # the sessions of a database are mostly of the same cases
def _parameters(display_name: str) -> tuple[dict[str, str], str]:
    parameters = parameters_of(display_name)
    return parameters, parameters_text(parameters)


def _place(entry: Entry) -> _Place:
    return entry.display_name, entry.partition, entry.environ


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
