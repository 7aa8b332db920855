"""Time limits of the partitions of Slurm."""

import math
import re
import subprocess
from collections.abc import Sequence
from functools import cache

from seatrial.system.survey.slurm_records import parse_limit

_PARTITION = re.compile(r"(?:^|\s)(?:--partition[= ]|-p ?)(\S+)")


def longest_job_s(options: Sequence[str]) -> float:
    """Return the seconds that the partition of these options of sbatch allows a job.

    Infinity: it has no limit, or Slurm does not tell. Of several partitions the
    strictest counts; without one, the default.
    """
    limits = _limits_s()
    found = filter(None, map(_PARTITION.search, options))
    names = [name for match in found for name in match[1].split(",")] or [""]
    return min(limits.get(name, math.inf) for name in names)


@cache
def _limits_s() -> dict[str, float]:
    """Return the limit of each partition that has one; '': that of the default."""
    command = ["sinfo", "--noheader", "--format=%P %l"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    limits: dict[str, float] = {}
    for line in shown.stdout.splitlines():
        name, _, text = line.partition(" ")
        limit = parse_limit(text)
        if limit is not None:
            limits[name.rstrip("*")] = limit
            if name.endswith("*"):
                limits[""] = limit
    return limits
