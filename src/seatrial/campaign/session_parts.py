"""One session in as many parts as lost nodes cut it into."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from seatrial.campaign.collect import Collected, collect
from seatrial.campaign.node_log import SILENCE_S, Loss, NodeLog, attribute
from seatrial.campaign.schedule import Planned
from seatrial.campaign.session import Outcome, run_session
from seatrial.campaign.session_command import Session
from seatrial.model.cases import ListedCase
from seatrial.progress import Display
from seatrial.system import slurm_nodes
from seatrial.system.description import NodeState, System, usable_nodes

_MOST_CUTS = 8
"""How often lost nodes may cut a session; after that jobs wait until their limit."""


@dataclass(frozen=True)
class Finished:
    """What a whole session left: `absent` are nodes and why, in any of its parts."""

    outcome: Outcome
    collected: Collected
    losses: list[Loss]
    absent: dict[str, str]


def run_parts(
    session: Session,
    system: System,
    checks: Path,
    home: Path,
    display: Display,
    states: Callable[[], tuple[NodeState, ...]],
) -> Finished:
    """Run a session; go on with what is left of it on the remaining nodes.

    What ended before stays. `states` looks at the nodes before each part. Raises as
    `run_session` and `collect` do.
    """
    whole = Collected()
    absent: dict[str, str] = {}
    now = states()
    log = NodeLog(state.node.name for state in now if state.present)
    began, cuts = time.time(), 0
    parts = [session.planned]
    while parts:
        absent |= {each.node.name: each.reason for each in now if not each.present}
        session = replace(
            session,
            planned=parts.pop(0),
            num_nodes=usable_nodes(system, now),
            tries=Counter(str(case.key.listed) for case in whole.cases),
            may_cut=cuts < _MOST_CUTS,
        )
        outcome = Outcome(time.time(), time.time())
        if session.planned.cases:
            outcome = run_session(session, system, checks, home, display, log)
        display.note("collecting results")
        found = collect(session, outcome, system)
        whole.cases += found.cases
        whole.measurements += found.measurements
        whole.node_failures += found.node_failures
        if outcome.cut:
            cuts += 1
            left = [
                *_left(session, outcome, found),
                *(c for p in parts for c in p.cases),
            ]
            parts = _by_place(session.planned, left)
            display.warn(
                f"session {session.name} goes on without the lost nodes; cases left: "
                f"{len(left)}"
            )
            now = states()
        session = replace(session, part=session.part + 1)
    if system.uses_slurm:
        _last_look(log, began)
        log.add(whole.node_failures)
    whole.cases, losses = attribute(whole.cases, log.events)
    for loss in losses:
        absent.pop(loss.event.node, None)
    return Finished(replace(outcome, started=began), whole, losses, absent)


def _last_look(log: NodeLog, since: float) -> None:
    """Note what was lost since then and not seen, also if Slurm only begins to see it.

    A node that is silent now counts if another answers: then slurmctld is not new.
    """
    log.add(slurm_nodes.past_losses(since))
    look = slurm_nodes.look()
    if look is not None and look.usable & log.names:
        log.note(look, time.time() + SILENCE_S)


def _left(
    session: Session, outcome: Outcome, found: Collected
) -> tuple[ListedCase, ...]:
    """List the cases that did not end, or failed and may be tried again.

    A job that waited for lost nodes was no try.
    """
    ended = defaultdict(list)
    for case in found.cases:
        ended[case.key.listed].append(case)
    return tuple(
        listed
        for listed in session.planned.cases
        if not ended[listed]
        or ended[listed][-1].job_id in outcome.blocked
        or (
            ended[listed][-1].result == "fail" and len(ended[listed]) <= session.retries
        )
    )


def _by_place(planned: Planned, cases: Iterable[ListedCase]) -> list[Planned]:
    """Plan a part for each partition and environment: ReFrame chooses cases by them."""
    places: dict[tuple[str, str], list[ListedCase]] = defaultdict(list)
    for case in cases:
        places[case.partition, case.environment].append(case)
    return [
        replace(planned, cases=tuple(chosen), missing={}) for chosen in places.values()
    ]
