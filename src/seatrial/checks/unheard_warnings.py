"""Spares ReFrame the search for the caller whom a warning concerns that none hears.

With every line that ReFrame 4.10 logs about a check, to whatever level, it reads all
variables of the check. One of them, `variables`, is deprecated. It suppresses that
warning, but only after it has looked up the source of every frame of the stack for it:
0.3 s per case. (core/logging.py: _update_check_extras; core/fields.py: DeprecatedField;
core/warnings.py.)
"""

import warnings
from collections.abc import Callable
from functools import wraps

from reframe.core import fields
from reframe.core.warnings import ReframeDeprecationWarning

_Warn = Callable[..., None]


def spare_unheard_warnings() -> None:
    """Let ReFrame's deprecated variables warn only where somebody hears it."""
    fields.user_deprecation_warning = if_heard(fields.user_deprecation_warning)


def if_heard(warn: _Warn) -> _Warn:
    """Make a function that warns unless ReFrame has just suppressed its warnings."""

    @wraps(warn)
    def warn_if_heard(message: str, from_version: str = "0.0.0") -> None:
        newest = warnings.filters[0] if warnings.filters else ("", None, Warning)
        if (newest[0], newest[2]) != ("ignore", ReframeDeprecationWarning):
            warn(message, from_version)

    return warn_if_heard
