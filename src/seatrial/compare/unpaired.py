"""Numbers and cases that some sides lack, and why."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from seatrial.compare.allocations import case_words
from seatrial.compare.pairing import Paired
from seatrial.compare.published_sides import NOT_IN_PAPER
from seatrial.compare.records import Key, Unpaired
from seatrial.compare.sides import Entrant
from seatrial.compare.weight_shares import Grouping
from seatrial.model.cases import Case, parameters_text

Worded = tuple[str, str, Case]
"""The words of a case, the environment it ran in, and itself."""

_MOST = 200
"""Letters of a reason that a failed case gives."""


class Unmatched:
    """Finds every number and case that some sides lack."""

    def __init__(
        self, entrants: Sequence[Entrant], numbers: Paired, grouping: Grouping
    ) -> None:
        self.entrants, self.numbers, self.grouping = entrants, numbers, grouping
        self.sides = range(len(entrants))
        self.cases = [self._own_cases(entrant) for entrant in entrants]
        self.same = [_by_words(case) for case in self.cases]
        self.of_case: dict[tuple[int, str, str, str, str], list[Case]] = {}
        rows, columns = (index.tolist() for index in np.nonzero(numbers.there))
        present = [
            (side, numbers.keys[row]) for row, side in zip(rows, columns, strict=True)
        ]
        self.checks = {(side, key.check) for side, key in present}
        self.measured = {(side, key.case_key) for side, key in present}
        self.node_counts: dict[tuple[int, Key], list[int]] = defaultdict(list)
        for side, key in present:
            if key.num_nodes is not None:
                whole = replace(key, num_nodes=None)
                self.node_counts[side, whole].append(key.num_nodes)

    def found(self) -> list[Unpaired]:
        """Return whole checks and cases as one entry, else metric by metric."""
        there = self.numbers.there
        rows = np.flatnonzero(~there.all(axis=1)).tolist()
        entries = [self._of_number(row, there[row].tolist()) for row in rows]
        return list(dict.fromkeys([*entries, *self._without_numbers()]))

    def sparse(self) -> list[dict[int, str]]:
        """Return the numbers of each side that lack repeats, and how many they have.

        A case may be in fewer repeats than others: one that controls a campaign is in
        more of them than its blocks.
        """
        texts: list[dict[int, str]] = []
        for side, repeats in enumerate(self.numbers.repeats):
            counts = (~np.isnan(repeats)).sum(axis=1)
            few = {}
            for row in np.flatnonzero(counts).tolist():
                fitting = self._fitting(side, self.numbers.keys[row])
                ran = len({case.repeat for case in fitting})
                if counts[row] < ran:
                    few[row] = f"in {counts[row]} of {ran} repeats"
            texts.append(few)
        return texts

    def _of_number(self, row: int, there: Sequence[bool]) -> Unpaired:
        key = self.numbers.keys[row]
        lacking = [side for side in self.sides if not there[side]]
        group = self.grouping.of_number[row]
        name = self.grouping.groups[group].name if group >= 0 else ""
        bad = [(row, side) in self.numbers.bad for side in lacking]
        case, flat = key.where, key.flat
        if key.check and not any(bad):
            if all((side, key.check) not in self.checks for side in lacking):
                case = flat = ""
            elif all((side, key.case_key) not in self.measured for side in lacking):
                flat = ""
        reasons = tuple(
            ""
            if there[side]
            else self.numbers.bad.get((row, side)) or self._why(side, key, case, flat)
            for side in self.sides
        )
        return Unpaired(key.check, case, flat, name, reasons)

    def _why(self, side: int, key: Key, case: str, flat: str) -> str:
        """Return why a side has no number of a check, of a case, or of a metric."""
        if self.entrants[side].system is not None:
            return NOT_IN_PAPER
        if not key.check:
            return "no check measures just this"
        own = self.cases[side].get(key.check, [])
        if not case:
            return self._outcome(side, [its_case for _, _, its_case in own])
        fitting = self._fitting(side, key)
        if not fitting:
            stacks = {stack for _, stack, _ in own}
            elsewhere = key.environment and key.environment not in stacks
            return f"not run with {key.environment}" if elsewhere else "not run"
        others = self.node_counts.get((side, replace(key, num_nodes=None)), [])
        if others and key.num_nodes is not None:
            counts = " and ".join(map(str, others))
            return f"run on {counts} nodes, not on {key.num_nodes}"
        result = self._outcome(side, fitting)
        return result if not flat or "passed" not in result else "it was not reported"

    def _fitting(self, side: int, key: Key) -> list[Case]:
        """Return the cases of a side that could give a number."""
        of = (side, key.check, key.case, key.environment, key.partition)
        if of not in self.of_case:
            same = self.same[side].get((key.check, key.case))
            self.of_case[of] = [
                case
                for text, stack, case in same or self.cases[side].get(key.check, [])
                if key.environment in ("", stack)
                and key.partition in ("", case.partition.rpartition(":")[2])
                and _within(text, key.case)
            ]
        return self.of_case[of]

    def _without_numbers(self) -> list[Unpaired]:
        """Return failed and skipped cases without a number on any side."""
        known: dict[tuple[str, str, str], dict[int, list[Case]]] = defaultdict(dict)
        for side in self.sides:
            for check, cases in self.cases[side].items():
                for text, stack, case in cases:
                    known[check, text, stack].setdefault(side, []).append(case)
        with_numbers: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for row, key in enumerate(self.numbers.keys):
            for stack in self.numbers.values[row].get("$environ", ()):
                with_numbers[key.check].add((key.case, stack))
        notes = []
        for (check, text, stack), by_side in known.items():
            if any(
                stack == its and _within(text, case)
                for case, its in with_numbers[check]
            ):
                continue
            tried = list(chain.from_iterable(by_side.values()))
            if all(case.result == "pass" for case in tried):
                continue  # a check without numbers of its own
            reasons = tuple(
                self._outcome(side, by_side.get(side, [])) for side in self.sides
            )
            parameters = tried[0].parameters.items()
            values: dict[str, Any] = {
                **{name: (value,) for name, value in parameters},
                "$environ": (stack,),
                "$partition": tuple({case.partition for case in tried}),
                "num_nodes": tuple({len(case.nodes) for case in tried}),
            }
            failed = any(case.result == "fail" for case in tried)
            group = self.grouping.of_case(check, values) if failed else ""
            words = ", ".join(filter(None, [text, stack]))
            notes.append(Unpaired(check, words, "", group, reasons))
        return notes

    def _outcome(self, side: int, cases: Sequence[Case]) -> str:
        """Return the outcome of cases, in the words of the first that failed."""
        if self.entrants[side].system is not None:
            return NOT_IN_PAPER
        for result, word in (("fail", "failed"), ("skip", "skipped")):
            own = [case for case in cases if case.result == result]
            if own:
                phase = own[0].phase if result == "fail" else None
                many = f" ({len(own)} of {len(cases)})" if len(cases) > 1 else ""
                reason = " ".join((own[0].reason or "no reason given").split())
                where = f" in {phase}" if phase else ""
                return f"{word}{where}{many}: {reason[:_MOST]}"
        return "passed without this number" if cases else "not run"

    @staticmethod
    def _own_cases(entrant: Entrant) -> dict[str, list[Worded]]:
        """Return the last tries of a side's cases with their words, by check."""
        cases: dict[str, list[Worded]] = defaultdict(list)
        words: dict[tuple[str, str], str] = {}
        for case in _last_tries(entrant):
            name = (case.check, case.case)
            if name not in words:
                words[name] = case_words(parameters_text(case.parameters))
            cases[case.check].append((words[name], case.environment, case))
        return cases


def _by_words(
    cases: Mapping[str, Sequence[Worded]],
) -> dict[tuple[str, str], list[Worded]]:
    """Sort the cases of each check by their words."""
    by_words: dict[tuple[str, str], list[Worded]] = defaultdict(list)
    for check, own in cases.items():
        for worded in own:
            by_words[check, worded[0]].append(worded)
    return by_words


def _last_tries(entrant: Entrant) -> list[Case]:
    """Return the last try of each case of a side."""
    if entrant.run is None:
        return []
    last = {
        (case.session, case.key): case
        for case in entrant.run.cases
        if entrant.side.environment in ("", case.environment)
    }
    return list(last.values())


def faults(entrant: Entrant) -> str:
    """Describe missing parts and failed cases of a run; '' if there are none."""
    cases = _last_tries(entrant)
    counts = Counter(case.result for case in cases)
    notes = []
    if entrant.run is not None and entrant.run.manifest.get("partial"):
        notes.append("a part of the campaign only")
    if counts["fail"] + counts["skip"]:
        notes.append(
            f"of {len(cases)} cases {counts['fail']} failed, {counts['skip']} were "
            "skipped"
        )
    return f"{entrant.side.name}: {'; '.join(notes)}" if notes else ""


def _within(text: str, longer: str) -> bool:
    """Return True if a number is of a case; it may have further parameters."""
    return text == longer or {*filter(None, text.split(", "))} <= {*longer.split(", ")}
