"""One session, cut into parts by lost nodes."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from seatrial.campaign.collect import collect
from seatrial.campaign.collected import Collected
from seatrial.campaign.node_log import SILENCE_S, Loss, NodeLog, attribute
from seatrial.campaign.schedule import Planned
from seatrial.campaign.session import Outcome, run_session
from seatrial.campaign.session_command import Session
from seatrial.model.cases import Case, ListedCase
from seatrial.progress import Display
from seatrial.system import slurm_nodes
from seatrial.system.description import NodeState, usable_nodes

_MOST_WAITS = 2
"""Jobs of a case that may wait for lost nodes; then the case is given up."""


@dataclass(frozen=True)
class Finished:
    """A finished session; `absent`: reasons by node, in any of its parts."""

    outcome: Outcome
    collected: Collected
    losses: list[Loss]
    absent: dict[str, str]


def run_parts(
    session: Session, display: Display, states: Callable[[], tuple[NodeState, ...]]
) -> Finished:
    """Run a session; after lost nodes, run the rest of it on the remaining ones.

    Cases that ended before stay. `states` looks at the nodes before each part. Raises
    as `run_session` and `collect` do.
    """
    whole = Collected()
    absent: dict[str, str] = {}
    now = states()
    log = NodeLog(state.node.name for state in now if state.present)
    began, waits = time.time(), Counter[ListedCase]()
    parts = [session.planned]
    if session.by_place:
        parts = _by_place(session.planned, session.planned.cases)
    while parts:
        absent |= {state.node.name: state.reason for state in now if not state.present}
        session = replace(
            session,
            planned=parts.pop(0),
            usable_nodes=usable_nodes(session.system, now),
            tries=Counter(str(case.key.listed) for case in whole.cases),
        )
        outcome = Outcome(time.time(), time.time())
        if session.planned.cases:
            outcome = run_session(session, display, log)
        display.note("collecting results")
        collected = collect(session, outcome)
        whole.cases += collected.cases
        whole.measurements += collected.measurements
        whole.tables += collected.tables
        whole.node_failures += collected.node_failures
        if outcome.cut:
            left = _left(session, outcome, collected, waits)
            left += [case for part in parts for case in part.cases]
            parts = _by_place(session.planned, left)
            display.warn(
                f"session {session.name} goes on without the lost nodes; cases left: "
                f"{len(left)}"
            )
            now = states()
        session = replace(session, part=session.part + 1)
    if session.system.uses_slurm:
        _last_look(log, began)
        log.add(whole.node_failures)
    whole.cases, losses = attribute(whole.cases, log.events)
    for loss in losses:
        absent.pop(loss.node, None)
    return Finished(replace(outcome, started=began), whole, losses, absent)


def _last_look(log: NodeLog, since: float) -> None:
    """Note unseen losses since then, also if Slurm only begins to see them.

    A node that is silent now counts if another answers: then slurmctld is not new.
    """
    log.add(slurm_nodes.past_losses(since))
    look = slurm_nodes.look()
    if look is not None and look.usable & log.names:
        log.note(look, time.time() + SILENCE_S)


def _left(
    session: Session,
    outcome: Outcome,
    collected: Collected,
    waits: Counter[ListedCase],
) -> list[ListedCase]:
    """Return the cases that did not end, or failed and may be tried again.

    A job that waited for lost nodes was no try; `waits` counts such jobs.
    """
    tries: dict[ListedCase, list[Case]] = defaultdict(list)
    for case in collected.cases:
        tries[case.key.listed].append(case)

    def may_run(listed: ListedCase) -> bool:
        if not (ended := tries[listed]):
            return True
        if ended[-1].job_id in outcome.blocked:
            waits[listed] += 1
            return waits[listed] < _MOST_WAITS
        return ended[-1].result == "fail" and len(ended) <= session.retries

    return [listed for listed in session.planned.cases if may_run(listed)]


def _by_place(planned: Planned, cases: Iterable[ListedCase]) -> list[Planned]:
    """Plan a part for each partition and environment: ReFrame selects by them."""
    places: dict[tuple[str, str], tuple[ListedCase, ...]] = defaultdict(tuple)
    for case in cases:
        places[case.partition, case.environment] += (case,)
    return [replace(planned, cases=own, missing={}) for own in places.values()]
