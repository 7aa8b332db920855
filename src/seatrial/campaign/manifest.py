"""Run metadata, without measurements."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import seatrial
from seatrial.campaign.node_log import Loss, in_words
from seatrial.campaign.schedule import Agenda
from seatrial.model.manifest import NEWEST_SCHEMA
from seatrial.runs.closed_sessions import ClosedSession
from seatrial.runs.open_run import utc_text
from seatrial.system.description import NodeState, System


def run_manifest(
    agenda: Agenda,
    system: System,
    states: Sequence[NodeState],
    closed: Sequence[ClosedSession],
    starts: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Describe a run with all its sessions closed, without checksums.

    System and states are those at the last of the `starts` of its driver.
    """
    weights = agenda.campaign.get("weights")  # agendas of older versions have none
    return {
        "schema": NEWEST_SCHEMA,
        "run": agenda.run,
        "system": system.name,
        "description": system.description,
        "campaign": agenda.campaign["name"],
        "checks": agenda.campaign["checks"],
        "weights": weights and {key: weights[key] for key in ("name", "sha256")},
        "partial": agenda.partial,
        "started": agenda.created,
        "ended": utc_text(),
        "demonstration": system.demonstration,
        "replay": agenda.replay,
        "software": {
            "seatrial": seatrial.__version__,
            "git_commit": system.suite.get("git_commit"),
            "dirty": system.suite.get("dirty"),
            "reframe": version("reframe-hpc"),
            "python": platform.python_version(),
            "slurm": system.software.get("slurm"),
            "stacks": system.software.get("stacks", []),
            "spack": system.software.get("spack"),
        },
        "nodes": [_node(state, closed) for state in states],
        "starts": list(starts),
        "sessions": [session.record for session in closed],
    }


def _node(state: NodeState, closed: Sequence[ClosedSession]) -> dict[str, Any]:
    """Describe a delivered node: present in the whole run, absent or lost.

    A node that was absent in some sessions, and came back, was absent; one that Slurm
    gave up during a session, or an administrator drained, is lost.
    """
    name = state.node.name
    records = [session.record for session in closed]
    absences = [each["absent"][name] for each in records if name in each["absent"]]
    reason = absences[-1] if absences else ""
    share = f"in {len(absences)} of {len(closed)} sessions"
    if 0 < len(absences) < len(closed):
        reason = f"{share}: {reason}"
    # Sessions that an older version closed have no key `lost`.
    rows = [row for record in records for row in record.get("lost", ())]
    losses = [Loss(**row) for row in rows if row["node"] == name]
    if losses:
        reason = in_words(losses) + (f"; absent {share}" if absences else "")
    return {
        "name": name,
        "facts": state.node.facts,
        "state": "lost" if losses else "absent" if absences else "present",
        "reason": reason,
    }
