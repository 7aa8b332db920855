"""Realised risks of demonstration tests on simulated machines: a table, JSON or CSV.

Each machine fails at moments of known truth. Its failed jobs are grouped to events as
those of a run are, and judged by the tests of a phase.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from seatrial.calibration.simulate.lives import (
    LIVES,
    Failing,
    Lives,
    with_good_share,
)
from seatrial.calibration.simulate.rates import CONFIDENCE, Rate
from seatrial.stability.demonstration import IntervalTest, MtbfTest
from seatrial.stability.events import events_of
from seatrial.stability.incidents import Incident
from seatrial.stability.phase import Demonstration
from seatrial.stability.sequential import SequentialTest

SELLER = BUYER = 0.1
ACCEPTED, REJECTED = 60.0, 12.0
"""MTBFs of the machine in hours."""

HOURS = 168.0
LENGTH = 8.0
"""Hours of an interval."""

BURST_S = 300.0


@dataclass(frozen=True)
class StabilityRow:
    """The verdicts of each test on machines of one kind.

    `fails` are those of compliant machines that fail, `passes` those of non-compliant
    ones that pass; `undecided` of both.
    """

    lives: Lives
    machines: int
    fails: dict[str, int]
    passes: dict[str, int]
    undecided: dict[str, int]

    @property
    def rates(self) -> dict[str, Rate]:
        """Return both risks of each test."""
        rates = {}
        for name in self.fails:
            rates[f"{name}, seller"] = Rate(self.fails[name], self.machines)
            rates[f"{name}, buyer"] = Rate(self.passes[name], self.machines)
        return rates


def known_tests() -> dict[str, Demonstration]:
    """Return the tests of the table.

    The shares of good intervals are those of exponential lives of the same MTBFs.
    """
    risks = {"seller": SELLER, "buyer": BUYER}
    good, bad = (float(np.exp(-LENGTH / mtbf)) for mtbf in (ACCEPTED, REJECTED))
    return {
        "mtbf": MtbfTest(ACCEPTED, REJECTED, **risks),
        "sequential": SequentialTest(ACCEPTED, REJECTED, **risks),
        "intervals": IntervalTest(good, bad, LENGTH, **risks),
    }


def stability_rows(
    machines: int, seed: int, done: Callable[[int], object] = lambda _: None
) -> Iterator[StabilityRow]:
    """Judge compliant and non-compliant machines of each kind, `machines` of each."""
    for number, lives in enumerate(LIVES):
        fails, passes, undecided = dict[str, int](), dict[str, int](), dict[str, int]()
        for name, test in known_tests().items():
            generator = np.random.default_rng([seed, number])
            good, bad = (
                _machine(lives, mtbf, share, test)
                for mtbf, share in (
                    (ACCEPTED, test.accepted),
                    (REJECTED, test.rejected),
                )
            )
            first = _verdicts(good, test, machines, generator)
            second = _verdicts(bad, test, machines, generator)
            fails[name], passes[name] = first["fail"], second["pass"]
            undecided[name] = first["undecided"] + second["undecided"]
            done(2 * machines)
        yield StabilityRow(lives, machines, fails, passes, undecided)


def _machine(lives: Lives, mtbf: float, share: float, test: Demonstration) -> Failing:
    """Return the machine of a quality: of an MTBF, or of a share of good intervals."""
    machine = Failing(lives, mtbf, HOURS)
    if isinstance(test, IntervalTest):
        return with_good_share(machine, LENGTH, share)
    return machine


def _verdicts(
    machine: Failing,
    test: Demonstration,
    machines: int,
    generator: np.random.Generator,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for _ in range(machines):
        jobs = [t for event in machine.failures(generator) for t in event]
        found = [Incident(t, "node", "cn", jobs=("job",)) for t in jobs]
        starts = (event.start for event in events_of(found, BURST_S))
        times = [start / 3600 for start in starts if start < 3600 * HOURS]
        counts[test.decide(times, HOURS).verdict] += 1
    return counts


def heading(rows: Sequence[StabilityRow]) -> str:
    """Return the first line: what was judged."""
    return (
        f"SIMULATED stability phases, no measurement: {rows[0].machines} compliant and "
        f"as many non-compliant machines a row, {HOURS:g} h; MTBF {ACCEPTED:g} h and "
        f"{REJECTED:g} h; declared risks {SELLER:g} and {BUYER:g}"
    )


def legend() -> str:
    """Describe the columns."""
    return (
        "Shares in %, in brackets the exact interval (Clopper and Pearson) of "
        f"{100 * CONFIDENCE:.0f} % confidence. Seller: compliant machines that fail; "
        "buyer: non-compliant ones that pass. Compliant by the MTBF in the long run; "
        "of intervals, by the share of good ones in the phase. Wear-out and infant "
        "mortality: 100 new nodes with Weibull lives of shape 3 and 0.5. "
        "Bursts: each failure kills 5 jobs on average, 30 s apart (long: an hour); "
        f"what lies within {BURST_S:g} s is one event."
    )


def stability_table(rows: Sequence[StabilityRow]) -> Table:
    """Format the rates of all rows."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("lives")
    for name in rows[0].rates:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.lives, *(rate.percent for rate in row.rates.values()))
    return table


def records(rows: Sequence[StabilityRow]) -> list[dict[str, Any]]:
    """Return all rates as records, shares of 1."""
    return [
        {
            "lives": row.lives,
            "risk": name,
            "count": rate.hits,
            "machines": rate.trials,
            "declared": SELLER if name.endswith("seller") else BUYER,
        }
        for row in rows
        for name, rate in row.rates.items()
    ]
