"""Looks at growing data: a decision that was reached at an earlier look is kept.

Each look may spend a part of the risks, and the parts of all looks sum to at most the
whole (`multiple_testing.share_of_look`). So a decision holds once it is reached, and
more data neither undo a pass nor a conviction.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from seatrial.judge.verdicts import FAIL, PASS, Ruling
from seatrial.runs.closed_run import Run
from seatrial.runs.ledger_view import LedgerView


class Look(NamedTuple):
    """Runs that are judged at one look; `earlier` looks came before the first of them.

    `rows` are those of these runs. `repaired` has when nodes were repaired, UTC
    seconds.
    """

    runs: Sequence[Run]
    rows: pl.LazyFrame
    earlier: int
    repaired: Mapping[str, float]

    @property
    def number(self) -> int:
        """The number of the look, from 1."""
        return self.earlier + len(self.runs)


def looks_of(
    runs: Sequence[Run], table: pl.LazyFrame, ledger: LedgerView | None
) -> list[Look]:
    """Return a look at each run with those before it; earlier runs were looks, too."""
    earlier = ledger.number - 1 if ledger else 0
    repairs = ledger.repairs if ledger else ()
    repaired = {repair.node: repair.time for repair in repairs}
    names = [str(run.manifest["run"]) for run in runs]
    run = pl.col("run").cast(pl.String)
    looks = []
    for seen in range(1, len(runs) + 1):
        rows = table.filter(run.is_in(names[:seen])) if seen < len(runs) else table
        looks.append(Look(runs[:seen], rows, earlier, repaired))
    return looks


def kept(earlier: Sequence[Ruling], later: Sequence[Ruling]) -> list[Ruling]:
    """Return the later rulings, with the passes and convictions of the earlier ones."""
    before = {_key(ruling): ruling for ruling in earlier}
    return [
        _kept(before[key], ruling) if (key := _key(ruling)) in before else ruling
        for ruling in later
    ]


def _key(ruling: Ruling) -> tuple[object, ...]:
    subject = ruling.subject
    case = (subject.kind, subject.check, subject.case, subject.environment)
    columns = tuple(ruling.names.columns)
    pairs = ruling.names["source"].null_count() < ruling.names.height
    return (*case, subject.metric, subject.criterion, columns, pairs)


def _kept(earlier: Ruling, later: Ruling) -> Ruling:
    names = [pl.col(name).cast(pl.String) for name in later.names.columns]
    before = earlier.names.select(names).with_row_index("at")
    at = later.names.select(names).join(
        before,
        on=later.names.columns,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["at"]
    known = at.is_not_null().to_numpy()
    index = at.fill_null(0).to_numpy().astype(np.int64)
    verdict = earlier.verdict[index]
    decided = known & ((verdict == PASS) | (verdict == FAIL))
    decided &= verdict != later.verdict
    return replace(
        later,
        verdict=np.where(decided, verdict, later.verdict).astype(np.int8),
        more=np.where(decided, 0, later.more),
        reason=_reason(decided, index, earlier.reason, later.reason),
    )


def _reason(
    decided: np.ndarray,
    index: np.ndarray,
    earlier: Callable[[int], str],
    later: Callable[[int], str],
) -> Callable[[int], str]:
    def reason(place: int) -> str:
        if decided[place]:
            return f"decided at an earlier look: {earlier(int(index[place]))}"
        return later(place)

    return reason
