"""The judge holds few copies of the numbers of many pairs."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from criteria_samples import RISKS, criterion

from seatrial.judge.findings import Finding
from seatrial.judge.place_groups import groups_of
from seatrial.judge.sampling import Sampled, sampled
from seatrial.judge.screening import tried
from seatrial.judge.verdicts import FAIL, Ruling, rulings
from seatrial.model.cases import CaseKey

NODES, REPEATS = 400, 4
SLOW = "cn0007"
MOST_COPIES = 9
"""Peak of memory of a trial as copies of its values, which are counted, too."""


def numbers(nodes: int) -> list[pl.DataFrame]:
    """Return a block for each repeat of a sweep of both directions; a node is slow."""
    names = np.array([f"cn{number:04}" for number in range(nodes)])
    first, second = np.nonzero(~np.eye(nodes, dtype=bool))
    ends = {"source": names[first], "destination": names[second]}
    slow = np.where((ends["source"] == SLOW) | (ends["destination"] == SLOW), 3, 1)
    dice = np.random.default_rng(1)
    nothing = dict.fromkeys(("node", "hca"), pl.lit(None, pl.Categorical))
    return [
        pl.DataFrame(ends)
        .cast(pl.Categorical)
        .with_columns(
            **nothing,
            socket=pl.lit(None, pl.Int64),
            run=pl.lit("r", pl.Categorical),
            session=pl.lit(f"pairs-{repeat}", pl.Categorical),
            attempt=pl.lit(1),
            job_id=pl.lit(str(repeat), pl.Categorical),
            time=pl.lit(3600.0 * repeat),
            repeat=pl.lit(repeat),
            value=pl.Series(12000 / slow * np.exp(dice.normal(0, 0.02, slow.size))),
            direction=pl.lit("higher", pl.Categorical),
            statistic=pl.lit("mean", pl.Categorical),
        )
        for repeat in range(1, REPEATS + 1)
    ]


def subject() -> Finding:
    key = CaseKey("PairSweep", "PairSweep", "lab:batch", "openmpi")
    return Finding.of_case(key, "limit")


def peak(function: Callable[[], Any]) -> tuple[int, Any]:
    """Return the growth of arrays at their peak in a function, and its result."""
    tracemalloc.start()
    try:
        result = function()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_the_trial_of_pairs_holds_few_copies_of_their_numbers() -> None:
    own = criterion("bw_1MiB", 9000.0, check="PairSweep")

    def trial(nodes: int) -> tuple[Sampled, list[Ruling]]:
        data = sampled(numbers(nodes), None)
        groups = list(groups_of(subject().held_to(own), own, data))
        return data, list(rulings(tried(groups, RISKS)))

    trial(8)  # imports, and tables of distributions
    spent, (data, (nodes, pairs)) = peak(lambda: trial(NODES))
    assert spent <= MOST_COPIES * data.values.nbytes
    assert {*nodes.names["node"].filter(pl.Series(nodes.verdict == FAIL))} == {SLOW}
    assert pairs.names.height == NODES * (NODES - 1)
