"""Reasons to keep the node of an alarm in service: caps, and actions of others."""

from collections.abc import Collection

from seatrial.history.records import Alarm
from seatrial.nightly.slurm_actions import Slurm, reservation_of
from seatrial.nightly.state import State

FAILED = "failed: "
"""Prefix of the reason of a release if the quarantine itself failed."""


def refusal(
    state: State, alarm: Alarm, slurm: Slurm, out: Collection[str], taken: int
) -> str:
    """Return why the node of an alarm is not taken out; '' if it may be.

    `out` are the nodes that we took out, `taken` counts those of this night.
    """
    (node,), caps = alarm.nodes, state.settings.caps
    same = sum(one.night == alarm.night and one.kind == "node" for one in state.alarms)
    if same > caps.night:
        return (
            f"{same} nodes became suspects in one night, more than caps.night "
            f"({caps.night}); a common cause is likely"
        )
    entries = state.ledger.entries
    last = [e for e in entries if (e.alarm, e.node) == (alarm.name, node) and e.token]
    if last and not last[-1].reason.startswith(FAILED):
        return f"it was out for this alarm before ({last[-1].reason})"
    known, name = slurm.nodes.get(node), reservation_of(node)
    if known is None:
        return "Slurm does not know it"
    if known.out or (state.settings.action == "drain" and known.reason):
        return f"it is {known.state} ({known.reason or 'no reason'}) and left alone"
    if name in slurm.reservations:
        return f"somebody else made a reservation {name}, which is left alone"
    if taken >= caps.night:
        return f"{taken} taken out tonight; caps.night is {caps.night}"
    return _full(state, node, slurm, out)


def _full(state: State, node: str, slurm: Slurm, ours: Collection[str]) -> str:
    """Return why no more nodes of its class may be out; '' if one may."""
    for name, nodes in state.classes.items():
        if node in nodes:
            share = int(state.settings.share * len(nodes))
            most = max(1, min(share, state.settings.caps.at_once))
            known = slurm.nodes
            out = sum(n in ours or n not in known or known[n].out for n in nodes)
            if out < most:
                return ""
            return f"{out} nodes of class {name} are out; at most {most} may be"
    return "it belongs to no class"
