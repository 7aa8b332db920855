"""Patches of ReFrame 4.10, beside packed_jobs.py.

Slurm's accounting keeps a job that lost a node and went on (`--no-kill`) twice, as
RESIZING until then and with its real state after. ReFrame reads them as parts of a job
array: it waits for both to end, and cancels the job because it is pending for too long.
(core/schedulers/slurm.py: slurm_state_completed, slurm_state_pending.)

With every line that ReFrame logs about a check, it reads all variables of the check:
some 70 times for each case, most of ReFrame's time. Only the performance log shows
them, so they are read for that alone. (core/logging.py: _update_check_extras.)

- One of them is the list of the job's nodes, for which ReFrame starts `scontrol` once
  the job ended. Here it starts once for all jobs on the same nodes.
  (core/schedulers/slurm.py: _SlurmJob.nodelist.)
- Another one, `variables`, is deprecated. ReFrame suppresses that warning, but only
  after it has looked up the source of every frame of the stack for it: 0.3 s per case
  that runs, and some milliseconds per case that is loaded.
  (core/fields.py: DeprecatedField; core/variables.py; core/warnings.py.)

It parses the file of references again for every case. Here it does so once for each
content. (core/pipeline.py: _read_ref_file.)
"""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from types import SimpleNamespace
from typing import IO, Any

import yaml
from reframe.core import fields, logging, pipeline, variables
from reframe.core.schedulers import slurm
from reframe.core.warnings import ReframeDeprecationWarning

from seatrial.checks.packed_jobs import pack_jobs


@cache
def patch_reframe() -> None:
    """Apply all patches, once in a process."""
    pack_jobs()
    for name in ("slurm_state_completed", "slurm_state_pending"):
        setattr(slurm, name, without_resizing(getattr(slurm, name)))
    nodelist = slurm._SlurmJob.nodelist.fget
    slurm._SlurmJob.nodelist = property(once_for_nodes(nodelist))
    adapter = logging.LoggerAdapter
    adapter._update_check_extras = for_performance_only(adapter._update_check_extras)
    for module in (fields, variables):
        warn = module.user_deprecation_warning
        module.user_deprecation_warning = unless_suppressed(warn)
    pipeline.yaml = SimpleNamespace(safe_load=load_references)


def without_resizing(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test of comma-separated states that ignores RESIZING."""

    @wraps(test)
    def test_other_states(state: str | None) -> bool:
        states = [name for name in (state or "").split(",") if name != "RESIZING"]
        return test(",".join(states) or state)

    return test_other_states


def once_for_nodes(expand: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that expands the nodes of ended jobs, each list once."""
    known: dict[str, Any] = {}

    @wraps(expand)
    def expand_new(job: Any) -> Any:
        if not slurm.slurm_state_completed(job.state):
            return expand(job)
        if job._nodespec not in known:
            known[job._nodespec] = expand(job)
        return known[job._nodespec]

    return expand_new


def for_performance_only(update: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a method that adds a check's variables to lines of the performance log."""

    @wraps(update)
    def update_shown_fields(adapter: Any) -> None:
        if adapter.check is not None and adapter.logger is logging._logger:
            adapter.extra["check_info"] = adapter.check.info()
        else:
            update(adapter)

    return update_shown_fields


def unless_suppressed(warn: Callable[..., None]) -> Callable[..., None]:
    """Return a function that warns unless ReFrame has just suppressed its warnings."""

    @wraps(warn)
    def warn_unless_suppressed(message: str, from_version: str = "0.0.0") -> None:
        newest = warnings.filters[0] if warnings.filters else ("", None, Warning)
        if (newest[0], newest[2]) != ("ignore", ReframeDeprecationWarning):
            warn(message, from_version)

    return warn_unless_suppressed


def load_references(file: IO[str]) -> Any:
    """Return the content of a YAML file; its readers do not change it."""
    return _parse_references(file.read())


@cache
def _parse_references(text: str) -> Any:
    return yaml.safe_load(text)
