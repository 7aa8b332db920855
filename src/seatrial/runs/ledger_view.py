"""The ledger as a verdict shows it: the number of a run, the others, what is wrong."""

from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "not closed", "removed", "gone"]


@dataclass(frozen=True)
class ListedRun:
    """A run of the campaign in the ledger: `number` counts from the frozen criteria.

    `state`: closed; broken off or still going on; removed with a `reason`, or gone
    without one.
    """

    run: str
    number: int
    started: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Repair:
    """A repair of a node: its numbers from before `time` (UTC seconds) do not count."""

    node: str
    time: float
    reason: str


@dataclass(frozen=True)
class LedgerView:
    """The place of a judged run among all runs of its campaign.

    `number` counts the runs from the first with the same criteria, broken-off and
    removed ones too; 1 if unknown. `count` is their number until now, 0 if unknown;
    `before` counts those under other criteria. `repairs` are known from the run itself.
    A verdict with a problem fails; `notes` say what cannot be shown.
    """

    number: int = 1
    count: int = 0
    before: int = 0
    runs: tuple[ListedRun, ...] = ()
    repairs: tuple[Repair, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The number in words; '' if unknown."""
        if not self.count:
            return ""
        text = f"run {self.number} of {self.count} since the criteria were frozen"
        other = f"{self.before} earlier run{'s' * (self.before > 1)} of this campaign"
        return text + (f"; {other} had other criteria" if self.before else "")

    @property
    def earlier(self) -> tuple[str, ...]:
        """The earlier runs since the criteria were frozen, each with its state."""
        names = {"not closed": "broken off or not finished", "gone": "folder gone"}
        return tuple(
            f"{listed.run} ({names.get(listed.state, listed.state)}"
            f"{': ' * bool(listed.reason)}{listed.reason})"
            for listed in self.runs
            if listed.number < self.number
        )
