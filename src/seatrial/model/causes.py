"""Causes of failures in a stability phase."""

from typing import Literal, get_args

Cause = Literal[
    "node",
    "network",
    "file system",
    "scheduler",
    "application",
    "power",
    "ours",
    "unknown",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)

COUNTED: tuple[Cause, ...] = (
    *("node", "network", "file system", "scheduler", "power", "unknown"),
)
"""Causes that count against the machine unless a criterion names others."""
