"""Closed runs of nights of a modelled machine, as the driver would have closed them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from closed_runs import CRITERIA as LIMIT
from closed_runs import close_run
from judge_samples import CASE, sample

from seatrial.runs.ledger import begin

METRICS = {"bw_4MiB": ("bw", 4 << 20, 100.0), "latency_8B": ("latency", 8, 2.0)}
CRITERIA = f"""{LIMIT}
  - check: ImbRing
    model: lognormal
    kind: sameness
    tolerance: 0.2
    metrics: [bw_4MiB, latency_8B]
"""


@dataclass
class Machine:
    """A machine of one class; `slow` are losses (shares) of nodes.

    `firmware` is what its nodes report, by node, '' for all others.
    """

    nodes: Sequence[str]
    scatter: float = 0.02
    seed: int = 1
    slow: dict[str, float] = field(default_factory=dict)
    firmware: dict[str, str] = field(default_factory=lambda: {"": "20.39"})
    whole: float = 0.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        size = (len(self.nodes), len(METRICS))
        levels = 0.01 * self.random.standard_normal(size)
        self.levels = dict(zip(self.nodes, levels, strict=True))

    def measured(self, node: str) -> dict[str, float]:
        """Draw the numbers of a node in one allocation."""
        loss = np.log1p(-self.slow.get(node, 0.0)) + np.log1p(-self.whole)
        noise = self.scatter * self.random.standard_normal(len(METRICS))
        logs = self.levels[node] + noise + loss
        signs = {"bw_4MiB": 1, "latency_8B": -1}
        return {
            name: float(level * np.exp(signs[name] * log))
            for (name, (_, _, level)), log in zip(METRICS.items(), logs, strict=True)
        }

    def facts(self, node: str) -> dict[str, Any]:
        """Return the facts of a node, for a manifest."""
        firmware = self.firmware.get(node, self.firmware[""])
        hca = {"name": "mlx5_0", "firmware": firmware, "board": "b", "driver": "mlx5"}
        return {"kernel": "6.1.0", "hcas": [hca]}


def close_night(
    results: Path,
    machine: Machine,
    nodes: Sequence[str],
    moment: datetime,
    system: str = "lab",
    *,
    repeats: int = 3,
    failed: Mapping[str, str] | None = None,
    criteria: str = CRITERIA,
) -> Path:
    """Measure nodes at a local time; close the run, with its entries in the ledger.

    `failed` has the reason of a case that failed, by its session.
    """
    started = moment.astimezone(UTC)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-nightly"
    case = replace(CASE, nodes=tuple(nodes), declared=tuple(METRICS))
    tries = [
        replace(case, session=f"nodes-{repeat}", repeat=repeat)
        for repeat in range(1, repeats + 1)
    ]
    for index, one in enumerate(tries):
        if one.session in (failed or {}):
            reason = (failed or {})[one.session]
            tries[index] = replace(one, result="fail", phase="run", reason=reason)
    rows = [
        sample(one, value, metric=METRICS[name][0], size=METRICS[name][1], node=node)
        for one in tries
        if one.result == "pass"
        for node in nodes
        for name, value in machine.measured(node).items()
    ]
    folder = results / system
    place = begin(folder, run_id, campaign="nightly", criteria="", partial=False)
    return close_run(
        results,
        run_id,
        system,
        rows=rows,
        cases=tries,
        kept={"system/criteria.yaml": criteria},
        campaign="nightly",
        started=started.isoformat(),
        ended=(started + timedelta(minutes=20)).isoformat(),
        nodes=[
            {
                "name": node,
                "facts": machine.facts(node),
                "state": "present",
                "reason": "",
            }
            for node in nodes
        ],
        ledger={"entry": place.entry, "number": place.number, "head": place.head},
    )
