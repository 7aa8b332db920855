# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Metrics that are held to references; closes the traps that ReFrame leaves open.

ReFrame 4.10 only warns when a metric cannot be extracted and when a unit differs
from the reference's; it passes a metric that has no reference, or one without
bounds, and takes a class that is missing from the YAML file for one without
references; a missing or broken reference file makes the check disappear. Each of
these fails a case here. (core/pipeline.py: check_performance, _ReferenceDict;
frontend/loader.py.)
"""

from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError, ReframeError
from reframe.core.runtime import runtime

from seatrial.errors import SeatrialError
from seatrial.model.metrics import judged_statistic, split_flat_name
from seatrial.model.records import Sample
from seatrial.paths import home, references_dir


class JudgedMetrics(rfm.RegressionTestPlugin):
    """A check with samples; `judged` names the few that are held to references.

    ReFrame sees the worst sample of each.
    """

    calibrate = variable(typ.Bool, value=False)
    """Let metrics pass that have no reference yet."""
    judged = variable(typ.List[str])
    """Flat names of the metrics that are held to references."""
    reference_file = variable(str)
    """File below the reference prefix, read as ReFrame's `$ref`."""

    samples: list[Sample]

    @run_after("setup")
    def read_references(self) -> None:
        """Read the references late, where an error fails the case and is seen.

        While ReFrame loads the checks, the same error would only drop this one.
        The folder is ReFrame's reference prefix, else the one of this system. (The
        schema of ReFrame 4.10.4 knows no reference_prefix in a configuration file.)
        """
        prefix = runtime().get_option("general/0/reference_prefix")
        try:
            folder = prefix or references_dir(home(), self.current_system.name)
            file = Path(folder, self.reference_file).resolve()
            reference: dict[str, Any] = {"$ref": str(file)}
            if file.is_file() or not self.calibrate:
                self.reference = reference
        except (OSError, TypeError, AttributeError, SeatrialError) as error:
            raise ReframeError(f"references {self.reference_file}: {error}") from None

    @run_before("performance")
    def state_metrics(self) -> None:
        """Pass the judged metrics to ReFrame, derived from the samples."""
        if not self.is_dry_run():
            self.perf_variables = {
                flat: sn.make_performance_function(self.worst, unit_of(flat), flat)
                for flat in self.judged
            }

    @run_after("performance", always_last=True)
    def close_traps(self) -> None:
        """Fail the case for all faults that ReFrame's performance stage lets pass."""
        if self.is_dry_run():
            return
        reported = {key.split(":")[-1]: row for key, row in self.perfvalues.items()}
        faults = [] if self.judged else ["the check declares no metric"]
        for flat in sorted({*self.judged, *self.perf_variables, *reported}):
            faults += self._faults(flat, reported.get(flat))
        if faults:
            raise PerformanceError("; ".join(faults))

    def _faults(self, flat: str, reported: list[Any] | None) -> list[str]:
        """List what is wrong with one metric and its reference."""
        if flat not in self.judged:
            return [f"{flat}: reported, but not declared"]
        if reported is None:
            return [f"{flat}: declared, but it could not be extracted"]
        *_, unit, result = reported
        if unit != unit_of(flat):
            return [f"{flat}: reported in {unit!r}, expected {unit_of(flat)!r}"]
        reference = self._references().get(flat)
        if reference is None:
            missing = (
                f"no reference in {self.reference_file}, class {type(self).__name__}"
            )
            return [] if self.calibrate else [f"{flat}: {missing}"]
        _, lower, upper, *reference_unit = getattr(reference, "data", reference)
        faults = []
        if lower is None and upper is None:
            faults.append(f"{flat}: its reference has no bound")
        if reference_unit != [unit]:
            other = reference_unit[0] if reference_unit else None
            faults.append(f"{flat}: its reference is in {other!r}, expected {unit!r}")
        if result == "fail":
            faults.append(f"{flat}: does not meet its reference")
        return faults

    def __ref_missing_num_nodes__(self, data: dict[Any, Any], key: int) -> Any:
        """Return the reference of any number of nodes; KeyError if there is none."""
        return data[".*"]

    def _references(self) -> dict[str, Any]:
        """Return the references of this case; none if the class or a key is missing.

        References without `$index` do not count: `reframe_references` writes none.
        """
        if not getattr(self.reference, "index", None):
            return {}
        try:
            references: dict[str, Any] = self.reference[self]
        except KeyError:
            return {}
        return references

    def worst(self, flat: str) -> float:
        """Return the worst sample of a judged metric; ValueError if there is none.

        Of several statistics one counts. Samples with parameters of their own
        describe, and are not judged.
        """
        metric, size_bytes = split_flat_name(flat)
        samples = [
            sample
            for sample in self.samples
            if (sample.metric, sample.size_bytes) == (metric.name, size_bytes)
            and not sample.parameters
        ]
        statistic = judged_statistic({sample.statistic for sample in samples})
        values = [sample.value for sample in samples if sample.statistic == statistic]
        return min(values) if metric.direction == "higher" else max(values)


def unit_of(flat: str) -> str:
    """Return the unit of a flat metric; ValueError if it is unknown."""
    metric, _ = split_flat_name(flat)
    return metric.unit
