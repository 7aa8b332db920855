"""Cases that lost nodes spoiled, and the runs that made them again.

A repeat adds allocations. Every number that came counts: only missing numbers of a
spoiled try are excused once its case was made again, and counts of what answered.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from seatrial.campaign.spoiled_cases import (
    in_lines,
    losses_of,
    spoiled_cases,
    undone_by_loss,
)
from seatrial.errors import SeatrialError
from seatrial.judge.findings import Finding
from seatrial.judge.verdicts import PASS, UNDECIDED, Ruling
from seatrial.model.cases import Case, CaseKey
from seatrial.runs.closed_run import Run
from seatrial.stability.incidents import is_failure

_ANSWERED = ("pairs_answered", "programs_passed")
"""Metrics that count how much of a node answered: its loss lowers them."""

Try = tuple[str, str, CaseKey]
"""Run, session and case."""


@dataclass(frozen=True)
class Spoiled:
    """The spoiled cases of runs that are judged together.

    `again` has the run that made a case again; `repeated` are the runs with a repeat,
    in `words`. What `permitted` nodes lack since their loss is not missing. Failed jobs
    of `phases` are events, and what they lack is not missing.
    """

    again: Mapping[Try, str] = field(default_factory=dict)
    repeated: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    permitted: frozenset[str] = frozenset()
    phases: frozenset[str] = frozenset()

    def excused(self, run: str, case: Case) -> frozenset[str]:
        """Return the nodes whose missing numbers in a try do not count, '' for all."""
        if self._is_event(run, case):
            return frozenset({""})
        lost = frozenset(event.node for event in losses_of(case))
        if lost and (run, case.session, case.key) in self.again:
            return lost | {""}
        return lost & self.permitted

    def whole(self, runs: Iterable[Run]) -> list[Run]:
        """Leave out tries that were made again, and failed jobs that are events."""
        return [
            replace(
                run,
                cases=tuple(case for case in run.cases if not self._apart(run, case)),
            )
            for run in runs
        ]

    def _apart(self, run: Run, case: Case) -> bool:
        made_again = undone_by_loss(case) and _try(run, case) in self.again
        return made_again or self._is_event(str(run.manifest["run"]), case)

    def _is_event(self, run: str, case: Case) -> bool:
        return run in self.phases and is_failure(case)

    def reopened(self, ruled: Sequence[Ruling], repeat: Run) -> list[Ruling]:
        """Reset passes to undecided for the cases that a repeat makes again.

        They were reached without the spoiled allocations. Convictions stay.
        """
        name = repeat.manifest["run"]
        keys = [key for (_, _, key), by in self.again.items() if by == name]
        again = {(key.check, key.case, key.environment) for key in keys}

        def is_again(subject: Finding) -> bool:
            return (subject.check, subject.case, subject.environment) in again

        return [
            replace(
                ruling,
                verdict=np.where(
                    ruling.verdict == PASS, UNDECIDED, ruling.verdict
                ).astype(np.int8),
            )
            if is_again(ruling.subject)
            else ruling
            for ruling in ruled
        ]

    def counted(self, rows: pl.LazyFrame, runs: Sequence[Run]) -> pl.LazyFrame:
        """Leave out what excused nodes answered in the tries that lost them."""
        for run in runs:
            name = str(run.manifest["run"])
            for case in run.cases:
                nodes = self.excused(name, case) - {""}
                if nodes:
                    rows = rows.filter(~_answers(name, case, nodes).fill_null(False))
        return rows

    def findings(self, runs: Iterable[Run]) -> Iterator[Finding]:
        """Yield a passing finding for each undone try that was made again."""
        for run in runs:
            for case in spoiled_cases(run.cases):
                repeat = self.again.get(_try(run, case))
                if repeat and undone_by_loss(case):
                    words = f"made again in run {repeat}; {case.session}: {case.reason}"
                    yield Finding.of_case(case.key).judged("pass", words, n=1)

    def left(self, runs: Iterable[Run]) -> tuple[str, ...]:
        """Describe the spoiled cases that no run made again, with the remedy."""
        lines: list[str] = []
        for run in runs:
            name, spoiled = str(run.manifest["run"]), spoiled_cases(run.cases)
            cases = [case for case in spoiled if _try(run, case) not in self.again]
            command = f"`seatrial repeat {run.manifest['system']}/{name}`"
            remedy = "" if name in self.repeated else f"; make it again: {command}"
            lines += [line + remedy for line in in_lines(cases)]
        return tuple(lines)


def spoiled_of(
    runs: Sequence[Run], permitted: frozenset[str], phases: frozenset[str]
) -> Spoiled:
    """Find the cases of runs that others among them made again.

    Raises SeatrialError if a repeat has a case that no lost node spoiled, or if two of
    them repeat one run.
    """
    by_name = {str(run.manifest["run"]): run for run in runs}
    again: dict[Try, str] = {}
    repeated: set[str] = set()
    words = []
    for name, repeat in by_name.items():
        of = str(repeat.manifest.get("repeat_of", ""))
        if of and of not in by_name:
            words.append(
                f"run {name} only repeats cases that lost nodes spoiled in run {of}: "
                "judge that one"
            )
        if of not in by_name:
            continue
        if of in repeated:
            reason = f"repeats run {of}, as another run does; expected one repeat"
            raise SeatrialError(f"{repeat.path}: {reason}")
        repeated.add(of)
        made = dict.fromkeys(_made(repeat, by_name[of]), name)
        again |= made
        words.append(
            f"run {name} made {len(made)} case{'s' * (len(made) != 1)} again that lost "
            f"nodes spoiled in run {of}"
        )
    return Spoiled(again, frozenset(repeated), tuple(words), permitted, phases)


def _made(repeat: Run, run: Run) -> Iterator[Try]:
    """Yield the spoiled cases of a run that its repeat made again."""
    spoiled = {_try(run, case) for case in spoiled_cases(run.cases)}
    for case in repeat.cases:
        of = _try(run, case)
        if of not in spoiled:
            raise SeatrialError(
                f"{repeat.path}: repeats {case.key.listed} of session {case.session}, "
                f"which no lost node spoiled in run {run.manifest['run']}; such a run "
                "is not judged with it"
            )
        if case.result != "skip" and case.nodes:
            yield of


def _try(run: Run, case: Case) -> Try:
    return str(run.manifest["run"]), case.session, case.key


def _answers(run: str, case: Case, nodes: frozenset[str]) -> pl.Expr:
    """Select the counts of answers of nodes in a try."""
    text = {name: pl.col(name).cast(pl.String) for name in ("run", "session", "node")}
    return (
        (text["run"] == run)
        & (text["session"] == case.session)
        & (pl.col("case").cast(pl.String) == case.case)
        & (pl.col("partition").cast(pl.String) == case.partition)
        & (pl.col("environment").cast(pl.String) == case.environment)
        & (pl.col("attempt").fill_null(1) == case.attempt)
        & pl.col("metric").cast(pl.String).is_in(_ANSWERED)
        & text["node"].is_in(sorted(nodes))
    )
