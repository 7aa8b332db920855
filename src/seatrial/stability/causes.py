"""Causes of failures, by Slurm's reasons and by what failed jobs printed.

The rules are a first guess with its evidence: a person corrects it (`reasons.yaml`).
The first rule that fits decides.
"""

import re
from collections.abc import Sequence

from seatrial.model.causes import Cause

_Rules = Sequence[tuple[Cause, re.Pattern[str]]]


_OF_NODES: _Rules = [
    ("power", re.compile(r"\b(power|psu|pdu|ups|voltage|breaker)\b", re.IGNORECASE)),
    (
        "file system",
        re.compile(
            r"\b(lustre|gpfs|beegfs|nfs|mount\w*|stale|file ?systems?|disk|ost|mds)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "network",
        re.compile(
            r"\b(link|ib|ib\d+|infiniband|hca|mlx\w*|nic|network|switch|cable|ethernet|"
            r"fabric|port)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "scheduler",
        re.compile(
            r"\b(slurmctld|slurmdbd|prolog|epilog|munge|kill task failed|"
            r"duplicate job ?id)\b",
            re.IGNORECASE,
        ),
    ),
]

_OF_JOBS: _Rules = [
    (
        "scheduler",
        re.compile(
            r"unable to (create step|confirm allocation|contact slurm)|the job never "
            r"started|job credential|slurm_load_\w+ error|socket timed out on "
            r"send/recv|error: task launch for|slurmstepd: error: .*credential|no end "
            r"\(job",
            re.IGNORECASE,
        ),
    ),
    (
        "file system",
        re.compile(
            r"stale (nfs )?file handle|input/output error|read-only file system|no "
            r"space left|disk quota|transport endpoint is not connected|file changed "
            r"on the file system|remote i/o error",
            re.IGNORECASE,
        ),
    ),
    (
        "network",
        re.compile(
            r"no route to host|network is (unreachable|down)|connection (reset by peer|"
            r"timed out|refused)|retry (counter )?exceeded|retry_exc|ibv_\w+|"
            r"\bUCX\s+(ERROR|DIAG)|failed to TCP connect|btl_tcp\w*|lost connection|"
            r"transport retry|link (is )?down|pmix.*unreach|endpoint .*timed? ?out",
            re.IGNORECASE,
        ),
    ),
    (
        "node",
        re.compile(
            r"node failure on|machine check|uncorrect\w+ (ecc|memory)|edac|\bxid\b|"
            r"bus error",
            re.IGNORECASE,
        ),
    ),
    (
        "ours",
        re.compile(
            r"traceback \(most recent|reframe|seatrial: |module: command not found|"
            r"no such module|expected .* steps|it takes \d+ ranks",
            re.IGNORECASE,
        ),
    ),
    (
        "application",
        re.compile(
            r"segmentation fault|abort(ed)?\b|assert|floating point exception|out of "
            r"memory|oom|validation|core dumped|exit status [1-9]|mpi_abort",
            re.IGNORECASE,
        ),
    ),
]


def cause_of_node(reason: str) -> tuple[Cause, str]:
    """Return the cause of a lost node by Slurm's reason, and the words that say it."""
    return _first(_OF_NODES, [reason]) or ("node", "")


def cause_of_job(phase: str, reason: str, lines: Sequence[str]) -> tuple[Cause, str]:
    """Return the cause of a failed job, and the line that shows it.

    `lines` are the last ones that it printed. What failed before it ran, or after all
    was printed, is ours.
    """
    if phase and phase not in ("run", "sanity"):
        return "ours", reason
    # Errors of one library hide behind the end of the others: newest lines first.
    found = _first(_OF_JOBS[:-1], [reason, *lines[::-1]])
    return found or _first(_OF_JOBS[-1:], [reason, *lines[::-1]]) or ("unknown", "")


def _first(rules: _Rules, texts: Sequence[str]) -> tuple[Cause, str] | None:
    for cause, pattern in rules:
        for text in texts:
            if pattern.search(text):
                return cause, " ".join(text.split())
    return None
