"""Lets ReFrame see the end of a job that lost a node and went on (`--no-kill`).

Slurm's accounting keeps such a job twice, as RESIZING until then and with its real
state after. ReFrame 4.10 takes the two for the parts of a job array: it waits for
both to end, and cancels the job as one that is pending for too long. (core/
schedulers/slurm.py: slurm_state_completed, slurm_state_pending.)
"""

from collections.abc import Callable
from functools import wraps

from reframe.core.schedulers import slurm

_Judge = Callable[[str | None], bool]


def see_the_end_of_resized_jobs() -> None:
    """Let ReFrame's Slurm backend pass over what a job was before it was resized."""
    for name in ("slurm_state_completed", "slurm_state_pending"):
        setattr(slurm, name, of_the_rest(getattr(slurm, name)))


def of_the_rest(judge: _Judge) -> _Judge:
    """Make a test of states, separated by commas, that passes over RESIZING."""

    @wraps(judge)
    def judge_the_rest(state: str | None) -> bool:
        rest = [each for each in (state or "").split(",") if each != "RESIZING"]
        return judge(",".join(rest) or state)

    return judge_the_rest
