"""Findings on the ports of the fabric: counts, rates, and bounds of error rates.

A rate is that of a Poisson process over all sessions of a port. It fails if the limit
makes a count of this size or larger unlikely: at most the seller's risk, which all
ports share (Bonferroni). It passes if the exact upper bound (Garwood) at the buyer's
risk is not above the limit. Otherwise more data must pass.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from seatrial.criteria.criterion import matches
from seatrial.criteria.port_limits import PortLimit
from seatrial.fabric.counters import rate_below
from seatrial.judge.findings import NOT_MEASURED, Finding, first_of
from seatrial.judge.verdicts import VERDICTS
from seatrial.model.units import rounded
from seatrial.runs.closed_run import Run
from seatrial.runs.counters_table import CHECK
from seatrial.runs.port_totals import PortTotal, port_totals

_COLUMNS = {"class": "node_class"}


def selected_rows(table: pl.DataFrame, where: Mapping[str, str]) -> pl.DataFrame:
    """Return the rows of a criterion; patterns are Python's, as in other criteria."""
    for key, wanted in where.items():
        column = _COLUMNS.get(key, key)
        fitting = [v for v in table[column].unique() if matches(wanted, v)]
        table = table.filter(pl.col(column).is_in(fitting))
    return table


def port_findings(runs: Sequence[Run], criterion: PortLimit) -> list[Finding]:
    """Hold the ports of all runs to a limit.

    Each port that fails has a finding; those that are undecided for one reason share
    one, and so do all others that pass.
    """
    subject = Finding("declared", CHECK, metric=criterion.quantity).held_to_declaration(
        criterion
    )
    subject = replace(
        subject, unit=criterion.unit, limit=criterion.limit, direction="lower"
    )
    tables = [run.counters for run in runs if run.counters is not None]
    selected = [selected_rows(table, criterion.where) for table in tables]
    ports = port_totals(selected, [criterion.quantity])
    if len(tables) < len(runs) or not ports:
        why = "no port of it was read" if tables else "the run has no counters"
        return [
            subject.judged(
                "skipped" if criterion.optional else "undecided",
                f"{NOT_MEASURED}: {why}",
            )
        ]
    return _grouped([_judged(subject, criterion, one, len(ports)) for one in ports])


def _judged(
    subject: Finding, criterion: PortLimit, port: PortTotal, ports: int
) -> Finding:
    """Return the finding on one port."""
    place = replace(subject, place=port.place)
    if criterion.quantity not in port.counts:
        why = port.missing[0] if port.missing else "its driver does not count it"
        return place.judged("undecided", f"{NOT_MEASURED}: {why}")
    if criterion.unit == "count":
        return _counted(place, criterion, port)
    return _rated(place, criterion, port, ports)


def _counted(place: Finding, criterion: PortLimit, port: PortTotal) -> Finding:
    """Hold the count of each session to the limit."""
    counts = port.counts[criterion.quantity]
    session, worst = max(counts.items(), key=lambda item: item[1])
    above = [name for name, count in counts.items() if count > criterion.limit]
    place = replace(place, value=float(worst), n=len(counts))
    allowed = f"allowed {rounded(criterion.limit)}"
    if above:
        more = f", and more in {len(above) - 1} other sessions" if above[1:] else ""
        reason = f"{worst} in session {session}, {allowed}{more}"
        return place.judged("fail", reason)
    if doubt := port.doubt(criterion.quantity):
        return place.judged("undecided", doubt)
    return place.judged("pass", f"at most {worst} in a session, {allowed}")


def _rated(
    place: Finding, criterion: PortLimit, port: PortTotal, ports: int
) -> Finding:
    """Hold the rate over all sessions to the limit, by exact bounds."""
    from scipy.stats import poisson

    of_bits, limit = criterion.unit == "1/bit", criterion.limit
    counts, exposure = port.exposed(criterion.quantity, of_bits=of_bits)
    if not exposure:
        return place.judged("undecided", "it received nothing")
    count, unit = sum(counts.values()), "bits" if of_bits else "h"
    below = rate_below(count, exposure, 1 - criterion.buyer)
    place = replace(place, value=count / exposure, upper=below, n=len(counts))
    words, allowed = f"{count} in {exposure:.2g} {unit}", f"allowed {limit:.2g}"
    doubt = port.doubt(criterion.quantity)
    # More bits than the least would make the rate smaller, more events larger.
    proven = not (of_bits and (doubt or port.wrapped))
    chance = float(poisson.sf(count - 1, limit * exposure)) if count else 1.0
    if proven and chance <= criterion.seller / ports:
        named = first_of([f"{name} {n}" for name, n in counts.items() if n])
        rate = f"{count / exposure:.2g} {criterion.unit}"
        return place.judged("fail", f"{words}: {rate}, {allowed} ({named})")
    if doubt:
        return place.judged("undecided", doubt)
    sure = f"at {100 * (1 - criterion.buyer):g} %"
    bound = f"{words}: below {below:.2g} {criterion.unit} {sure}"
    if below <= limit:
        return place.judged("pass", f"{bound}, {allowed}")
    if port.wrapped and of_bits:
        return place.judged("undecided", f"{bound}; {port.wrapped}: more passed")
    least = rate_below(count, limit, 1 - criterion.buyer)
    need = f"it takes {least:.2g} {unit} to show {limit:.2g}"
    return place.judged("undecided", f"{bound}; {need}")


def _grouped(findings: Sequence[Finding]) -> list[Finding]:
    """Return each port that fails; those undecided for one reason share a finding."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for one in findings:
        reason = one.reason if one.verdict == "undecided" and one.upper is None else ""
        groups[one.verdict, one.place if one.verdict == "fail" else reason].append(one)
    return [
        group[0] if verdict == "fail" else _shared(group)
        for (verdict, _), group in sorted(groups.items(), key=_urgency)
    ]


def _urgency(group: tuple[tuple[str, str], list[Finding]]) -> int:
    return VERDICTS.index(group[0][0])


def _shared(findings: Sequence[Finding]) -> Finding:
    """Return one finding for several ports, with the numbers of the worst."""
    worst = max(findings, key=lambda one: (one.upper or 0.0, one.value or 0.0))
    same = len({one.reason for one in findings}) == 1
    of = "each" if same and findings[1:] else worst.place
    ports = f"{len(findings)} port{'s' * (len(findings) > 1)}"
    if worst.verdict == "undecided" and findings[1:]:
        ports += f" ({first_of([one.place for one in findings])})"
    return replace(worst, place="", reason=f"{ports}; {of}: {worst.reason}")
