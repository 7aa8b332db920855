# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Options of every check: tuning and placement; the programs that it needs."""

from typing import Any

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, run_before, variable


class Adjustable(rfm.RegressionTestPlugin):
    """A check with a tuned MPI and placed ranks, both recorded as parameters."""

    tuning = variable(str, value="")
    """Set of variables of the MPI stack, by its name in `mpi_stacks`; '': none."""
    placement = variable(typ.Str[r"|block|cyclic"], value="")
    """`srun --distribution`: fill each node, or alternate; '': Slurm's own choice."""

    @run_after("setup")
    def take_tuning(self) -> None:
        """Set the variables of a tuning; skip a stack that has none of this name."""
        if not self.tuning:
            return
        known = self.current_environ.extras.get("tuning", {})
        self.skip_if(
            self.tuning not in known,
            f"mpi_stacks names no tuning {self.tuning!r} for "
            f"{self.current_environ.name}; it has {', '.join(known) or 'none'}",
        )
        variables = {name: str(value) for name, value in known[self.tuning].items()}
        self.env_vars = {**self.env_vars, **variables}

    @run_before("run")
    def distribute(self) -> None:
        """Set the option of srun for the placement."""
        if self.placement and self.job.launcher.registered_name == "srun":
            self.job.launcher.options += [f"--distribution={self.placement}"]

    def case_parameters(self) -> dict[str, Any]:
        """Return the values that identify a case: parameters, tuning and placement."""
        values = {name: getattr(self, name) for name in type(self).raw_params}
        chosen = {"tuning": self.tuning, "placement": self.placement}
        return values | {name: value for name, value in chosen.items() if value}

    def need_programs(self, feature: str, *names: str) -> None:
        """Skip the case if the MPI stack lacks one of the programs of a feature."""
        programs = self.current_environ.extras.get("programs", [])
        missing = [name for name in names if name not in programs]
        remedy = f"name its folder in programs.{feature} of mpi_stacks"
        if feature == "imb":
            remedy = "put it beside IMB-MPI1, which programs.imb of mpi_stacks names"
        self.skip_if(
            bool(missing),
            f"{self.current_environ.name} has no {', '.join(missing)}, of the feature "
            f"{feature}; install it, and {remedy}",
        )
