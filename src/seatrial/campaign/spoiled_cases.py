"""Cases that the loss of a node spoiled, by Slurm's evidence.

A case that failed for its own reasons is none of them, also if a node was lost then.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from seatrial.campaign.node_log import (
    clock,
    failed_by_job,
    kills,
    title,
    with_details,
)
from seatrial.model.cases import Case, CaseKey, NodeEvent
from seatrial.names import node_set

_MOST_NAMES = 4


def losses_of(case: Case) -> tuple[NodeEvent, ...]:
    """Return the losses that spoiled a case: () if it is whole, or failed by itself.

    It lost one of its nodes, its job waited in vain for lost ones, or it was skipped
    for want of them. All numbers that came before the loss count.
    """
    if case.waited_for or case.result == "skip":
        return case.waited_for
    return tuple(event for event in case.node_events if kills(event, case))


def undone_by_loss(case: Case) -> bool:
    """Return True if a case failed, or was skipped, because of a lost node."""
    undone = case.result == "skip" or failed_by_job(case)
    return undone and bool(losses_of(case))


def spoiled_cases(cases: Iterable[Case]) -> list[Case]:
    """Return the spoiled cases by their last tries: a later try makes up for one.

    A later try of a whole class that lacks the lost nodes does not: it waited for them.
    """
    tries: dict[tuple[str, CaseKey], list[Case]] = defaultdict(list)
    for case in cases:
        tries[case.session, case.key].append(case)
    last = [_with_losses_before(own) for own in tries.values()]
    return [case for case in last if losses_of(case)]


def _with_losses_before(tries: Sequence[Case]) -> Case:
    """Return the last try; of a whole class, with the nodes that it lacks."""
    *before, last = tries
    if losses_of(last) or not last.whole_class:
        return last
    lost = (event for case in before for event in losses_of(case))
    lacks = tuple(event for event in lost if event.node not in last.nodes)
    return replace(last, waited_for=lacks)


def in_lines(spoiled: Iterable[Case]) -> Iterator[str]:
    """Describe spoiled cases, those of the same lost nodes in one line.

    `node cn07 was lost at 12:03 UTC (bad DIMM, by root): 1 case spoiled: Halo (mpich)
    in halo-2`.
    """
    groups: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    for case in spoiled:
        groups[tuple(dict.fromkeys(e.node for e in losses_of(case)))].append(case)
    for names, cases in groups.items():
        first = min(losses_of(cases[0]), key=lambda event: event.time)
        several = len(names) > 1
        why = with_details(first, clock(first.time))
        yield (
            f"node{'s' * several} {node_set(names)} {'were' if several else 'was'} "
            f"lost at {why}: {len(cases)} case{'s' * (len(cases) > 1)} spoiled: "
            f"{_few([f'{title(case)} in {case.session}' for case in cases])}"
        )


def _few(texts: list[str]) -> str:
    more = len(texts) - _MOST_NAMES
    return ", ".join(texts[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
