"""One session, cut into parts by lost nodes."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from seatrial.campaign.collect import collect
from seatrial.campaign.collected import Collected
from seatrial.campaign.node_journal import JOURNAL, NodeJournal
from seatrial.campaign.node_log import SILENCE_S, Loss, NodeLog, attribute
from seatrial.campaign.pace import hold, observe
from seatrial.campaign.schedule import Planned
from seatrial.campaign.session import Outcome, run_session
from seatrial.campaign.session_command import Session
from seatrial.model.cases import TOO_FEW, Case, ListedCase, NodeEvent
from seatrial.progress import Display
from seatrial.system import slurm_nodes
from seatrial.system.description import NodeState, System, usable_nodes

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
    lost: dict[str, NodeEvent] = {}
    now = states()
    log = _node_log(session, now)
    began, waits = time.time(), Counter[ListedCase]()
    parts = [session.planned]
    if session.by_place:
        parts = _by_place(session.planned, session.planned.cases)
    while parts:
        away = {state.node.name: state.reason for state in now if not state.present}
        absent |= away
        lost |= _lost(away)
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
        whole.loads.absent |= collected.loads.absent
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
    if session.round_s:
        hold(began + session.round_s, log, display)
        outcome.ended = time.time()
        log.journal.end(outcome.ended)
    if session.system.uses_slurm:
        _last_look(log, began)
        log.add(whole.node_failures)
        lost |= {event.node: event for event in log.events}
        whole.cases = _in_want(whole.cases, session.system, lost)
    whole.cases, losses = attribute(whole.cases, log.events)
    for loss in losses:
        absent.pop(loss.node, None)
    return Finished(replace(outcome, started=began), whole, losses, absent)


def _node_log(session: Session, states: Sequence[NodeState]) -> NodeLog:
    """Begin the log of a session; a round of a stability phase keeps a journal."""
    names = [state.node.name for state in states if state.present]
    if not session.round_s:
        return NodeLog(names)
    session.raw.mkdir(parents=True, exist_ok=True)
    now = time.time()
    absent = [
        NodeEvent(state.node.name, "absent", state.reason, "", now)
        for state in states
        if not state.present
    ]
    log = NodeLog(names, NodeJournal(session.raw / JOURNAL), absent)
    log.journal.begin([state.node.name for state in states], now)
    observe(log)
    return log


def _last_look(log: NodeLog, since: float) -> None:
    """Note unseen losses since then, also if Slurm only begins to see them.

    A node that is silent now counts if another answers: then slurmctld is not new.
    """
    log.add(slurm_nodes.past_losses(since))
    look = slurm_nodes.look()
    if look is not None and look.usable & log.names:
        log.note(look, time.time() + SILENCE_S)


def _lost(absent: Collection[str]) -> dict[str, NodeEvent]:
    """Return the losses of absent nodes, as Slurm has them now."""
    look = slurm_nodes.look() if absent else None
    lost = {} if look is None else look.lost
    return {name: event for name, event in lost.items() if name in absent}


def _in_want(
    cases: list[Case], system: System, lost: Mapping[str, NodeEvent]
) -> list[Case]:
    """Return the cases; those that were skipped for want of lost nodes name these.

    A class that has too few nodes when it is whole lost none for them.
    """
    answer = []
    for case in cases:
        words = case.reason or ""
        if case.result == "skip" and words.startswith(TOO_FEW):
            nodes = system.classes[case.partition.rpartition(":")[2]].nodes
            needed = int(words.removeprefix(TOO_FEW).partition(",")[0])
            if needed <= len(nodes):
                waited = tuple(lost[name] for name in nodes if name in lost)
                case = replace(case, waited_for=waited)
        answer.append(case)
    return answer


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
