# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Comparison of metrics with references, without the traps of ReFrame.

ReFrame 4.10 only warns if a metric cannot be extracted or if a unit differs from the
reference's; it passes a metric without a reference or without bounds, and a class that
is missing from the YAML file; a missing or broken reference file removes the check.
Each of these fails a case here. (core/pipeline.py: check_performance, _ReferenceDict;
frontend/loader.py.)
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError, ReframeError
from reframe.core.runtime import runtime

from seatrial.errors import SeatrialError
from seatrial.model.metrics import METRICS, Metric, judged_statistic, split_flat_name
from seatrial.model.records import Sample
from seatrial.paths import home, references_dir


class JudgedMetrics(rfm.RegressionTestPlugin):
    """A check with samples; ReFrame judges the worst sample of each judged metric."""

    calibrate = variable(typ.Bool, value=False)
    """Pass metrics that have no reference yet."""
    judged = variable(typ.List[str])
    """Flat names of the metrics that have references."""
    judged_if_there = variable(typ.List[str], value=[])
    """Further judged metrics, which some nodes do not offer."""
    needs_criteria = True
    """Whether a judged metric without a criterion leaves a run undecided."""
    reference_file = variable(str)
    """File below the reference prefix, read as ReFrame's `$ref`."""

    own_metrics: Sequence[Metric] = ()
    """Metrics that only this check has: a list of `Metric` with constants."""
    samples: list[Sample]

    @run_after("setup")
    def read_references(self) -> None:
        """Read the references here, as an error in the loader would drop this check.

        The folder is ReFrame's reference prefix, else that of this system. (The schema
        of ReFrame 4.10.4 has no reference_prefix in a configuration file.)
        """
        prefix = runtime().get_option("general/0/reference_prefix")
        try:
            folder = prefix or references_dir(home(), self.current_system.name)
            file = Path(folder, self.reference_file).resolve()
            if file.is_file() or not self.calibrate:
                self.reference: dict[str, Any] = {"$ref": str(file)}
        except (OSError, TypeError, AttributeError, SeatrialError) as error:
            raise ReframeError(f"references {self.reference_file}: {error}") from None

    @run_before("performance")
    def state_metrics(self) -> None:
        """Pass the judged metrics to ReFrame, derived from the samples."""
        if not self.is_dry_run():
            self.perf_variables = {
                flat: sn.make_performance_function(self.worst, self._unit(flat), flat)
                for flat in self.judged
            }

    @run_after("performance", always_last=True)
    def close_traps(self) -> None:
        """Fail the case for all faults that ReFrame's performance stage passes."""
        if self.is_dry_run():
            return
        reported = {key.split(":")[-1]: row for key, row in self.perfvalues.items()}
        faults = [] if self.judged else ["the check declares no metric"]
        for flat in sorted({*self.judged, *self.perf_variables, *reported}):
            faults += self._faults(flat, reported.get(flat))
        if faults:
            raise PerformanceError("; ".join(faults))

    def _faults(self, flat: str, reported: list[Any] | None) -> list[str]:
        """List the faults of one metric and its reference."""
        if flat not in self.judged:
            return [f"{flat}: reported, but not declared"]
        if reported is None:
            return [f"{flat}: declared, but it could not be extracted"]
        *_, unit, result = reported
        if unit != self._unit(flat):
            return [f"{flat}: reported in {unit!r}, expected {self._unit(flat)!r}"]
        reference = self._references().get(flat)
        if reference is None:
            place = f"{self.reference_file}, class {type(self).__name__}"
            return [] if self.calibrate else [f"{flat}: no reference in {place}"]
        _, lower, upper, *units = getattr(reference, "data", reference)
        other = units[0] if units else None
        faults = {
            "its reference has no bound": lower is None and upper is None,
            f"its reference is in {other!r}, expected {unit!r}": other != unit,
            "does not meet its reference": result == "fail",
        }
        return [f"{flat}: {fault}" for fault, applies in faults.items() if applies]

    def __ref_missing_num_nodes__(self, data: dict[Any, Any], key: int) -> Any:
        """Return the reference of any number of nodes; KeyError if there is none."""
        return data[".*"]

    def _references(self) -> dict[str, Any]:
        """Return the references of this case; none without class, key or `$index`."""
        references: dict[str, Any] = {}
        if getattr(self.reference, "index", None):
            with suppress(KeyError):
                references = self.reference[self]
        return references

    def worst(self, flat: str) -> float:
        """Return the worst sample of a judged metric; ValueError without a sample.

        One statistic of several counts; samples with parameters are not judged.
        """
        metric, size_bytes = split_flat_name(flat, self.known_metrics)
        samples = [
            sample
            for sample in self.samples
            if (sample.metric, sample.size_bytes) == (metric.name, size_bytes)
            and not sample.parameters
        ]
        statistic = judged_statistic({sample.statistic for sample in samples})
        values = [sample.value for sample in samples if sample.statistic == statistic]
        return min(values) if metric.direction == "higher" else max(values)

    @property
    def known_metrics(self) -> dict[str, Metric]:
        """All metrics that this check may report, by name."""
        return METRICS | {metric.name: metric for metric in self.own_metrics}

    def _unit(self, flat: str) -> str:
        """Return the unit of a flat metric; ValueError if it is unknown."""
        return split_flat_name(flat, self.known_metrics)[0].unit
