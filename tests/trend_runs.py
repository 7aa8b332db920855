"""Closed runs of a system night by night: it drops, fails, is upgraded."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from closed_runs import CRITERIA, close_run
from history_runs import NODES, present
from judge_samples import CASE, sample

from seatrial.model.cases import Case, CaseResult
from seatrial.model.records import Measurement

STRICTER = CRITERIA.replace("60 MB/s", "70 MB/s")
SLOW = "cn03"


def run_id(day: int, campaign: str = "nightly") -> str:
    return f"2026{1 + (day - 1) // 28:02}{1 + (day - 1) % 28:02}T000000Z-{campaign}"


def night(
    results: Path,
    day: int,
    levels: Sequence[float],
    *,
    slow: float = 1.0,
    result: CaseResult = "pass",
    kernel: str = "6.1.0-25",
    criteria: str = CRITERIA,
    system: str = "lab",
    seed: int = 1,
    **manifest: Any,
) -> Path:
    """Close a run with a job per level: bandwidth of four nodes about it, in MB/s.

    `slow` is how much of that cn03 reaches. A failed or skipped case has no number.
    """
    rng = np.random.default_rng(seed + day)
    names = NODES[:4]
    cases: list[Case] = []
    rows: list[Measurement] = []
    for repeat, level in enumerate(levels, 1):
        case = replace(
            CASE,
            session=f"pairs-{repeat}",
            repeat=repeat,
            nodes=names,
            result=result,
            phase="sanity" if result == "fail" else None,
            reason=None if result == "pass" else "no rows for 4 MiB",
        )
        cases.append(case)
        for name in names if result == "pass" else ():
            share = slow if name == SLOW else 1.0
            value = level * share * float(np.exp(0.003 * rng.standard_normal()))
            rows.append(sample(case, value, node=name))
    if not rows:
        rows = [sample(replace(CASE, case="Other", check="Other"), 1.0)]
    described = {"nodes": present(names, kernel), **manifest}
    return close_run(
        results,
        run_id(day),
        system,
        rows=rows,
        cases=cases,
        kept={"system/criteria.yaml": criteria} if criteria else None,
        **described,
    )


def nights(results: Path) -> list[Path]:
    """Close eight runs.

    The fourth fails, from the fifth there is another kernel and a stricter limit, the
    sixth is a replay, in the last two cn03 is slow, and all are in the last.
    """
    criteria = {day: CRITERIA if day < 5 else STRICTER for day in range(1, 9)}
    kernel = {day: "6.1.0-25" if day < 5 else "6.1.0-28" for day in range(1, 9)}
    replayed: dict[str, Any] = {"replay": "results/lab/old"}
    return [
        night(
            results,
            day,
            (40.0, 41.0) if day == 6 else (60.0, 62.0) if day == 8 else (80.0, 82.0),
            slow=0.8 if day >= 7 else 1.0,
            result="fail" if day == 4 else "pass",
            kernel=kernel[day],
            criteria=criteria[day],
            **(replayed if day == 6 else {}),
        )
        for day in range(1, 9)
    ]
