# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""The entry of a check in the catalogue (`seatrial checks`)."""

import inspect

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, variable


class FactSheet(rfm.RegressionTestPlugin):
    """A check with an entry in the catalogue; its question opens its docstring."""

    tool = variable(str)
    """What measures: the program, and how it is used, in a few words."""
    experiments = variable(typ.Tuple[str], typ.List[str])
    """Numbers of `seatrial.checks.experiments` that it repeats; () for none."""
    typical_s = variable(int, float)
    """Seconds that a case takes on a few nodes, before any was recorded."""

    question = variable(str, value="")
    """Opens the docstring."""
    needs = variable(typ.List[str], value=[])
    """Features that system and MPI stack must have, whatever is skipped here."""

    @run_after("init", always_last=True)
    def sum_up(self) -> None:
        """Copy docstring and features to variables: `--describe` shows only these."""
        self.question = inspect.cleandoc(type(self).__doc__ or "").partition("\n")[0]
        self.needs = [*self.valid_systems, *self.valid_prog_environs]
