"""Patches of ReFrame 4.10, beside packed_jobs.py.

Slurm's accounting keeps a job that lost a node and went on (`--no-kill`) twice, as
RESIZING until then and with its real state after. ReFrame reads them as parts of a job
array: it waits for both to end, and cancels the job because it is pending for too long.
(core/schedulers/slurm.py: slurm_state_completed, slurm_state_pending.)

With every line that ReFrame logs about a check, it reads all variables of the check.
One of them, `variables`, is deprecated. ReFrame suppresses that warning, but only after
it has looked up the source of every frame of the stack for it: 0.3 s per case.
(core/logging.py: _update_check_extras; core/fields.py: DeprecatedField;
core/warnings.py.)
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from reframe.core import fields
from reframe.core.schedulers import slurm
from reframe.core.warnings import ReframeDeprecationWarning

from seatrial.checks.packed_jobs import pack_jobs


def patch_reframe() -> None:
    """Apply all patches, once in a process."""
    pack_jobs()
    for name in ("slurm_state_completed", "slurm_state_pending"):
        setattr(slurm, name, without_resizing(getattr(slurm, name)))
    fields.user_deprecation_warning = unless_suppressed(fields.user_deprecation_warning)


def without_resizing(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test of comma-separated states that ignores RESIZING."""

    @wraps(test)
    def test_other_states(state: str | None) -> bool:
        states = [name for name in (state or "").split(",") if name != "RESIZING"]
        return test(",".join(states) or state)

    return test_other_states


def unless_suppressed(warn: Callable[..., None]) -> Callable[..., None]:
    """Return a function that warns unless ReFrame has just suppressed its warnings."""

    @wraps(warn)
    def warn_unless_suppressed(message: str, from_version: str = "0.0.0") -> None:
        newest = warnings.filters[0] if warnings.filters else ("", None, Warning)
        if (newest[0], newest[2]) != ("ignore", ReframeDeprecationWarning):
            warn(message, from_version)

    return warn_unless_suppressed
