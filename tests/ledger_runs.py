"""Runs with a ledger, small: started and closed as the driver does it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from closed_runs import CRITERIA, close_run
from judge_samples import CASE, sample
from msgspec.structs import asdict

from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.judge.judge import Judgement, judge
from seatrial.model.records import Measurement
from seatrial.runs.closed_run import load_run
from seatrial.runs.ledger import begin
from seatrial.runs.ledger_beside import read_beside
from seatrial.runs.open_run import RunFolder

LIMITS = Criteria.parse(CRITERIA.encode(), Path("criteria.yaml"), known=ANY)
NAMES = tuple(f"2026010{day}T000000Z-smoke" for day in range(1, 8))


def start_run(results: Path, run: str, criteria: str = LIMITS.sha256) -> dict[str, Any]:
    """Record the start of a run; return its place for the manifest."""
    (results / "lab").mkdir(parents=True, exist_ok=True)
    campaign = run.partition("-")[2]
    place = begin(
        results / "lab", run, campaign=campaign, criteria=criteria, partial=False
    )
    return asdict(place)


def ledger_run(
    results: Path, run: str, criteria: str = LIMITS.sha256, **more: Any
) -> Path:
    """Start and close a run."""
    place = start_run(results, run, criteria)
    kept = {"system/criteria.yaml": CRITERIA}
    return close_run(results, run, kept=kept, ledger=place, **more)


def break_off(results: Path, run: str) -> None:
    """Start a run that never closes."""
    RunFolder(results, "lab", run).create(b"{}")
    start_run(results, run)


def judged_run(path: Path, *others: Path, alone: bool = False) -> Judgement:
    """Judge a run as the command does, with or without the folder around it."""
    run = load_run(path)
    beside = None if alone else read_beside(run)
    return judge(run, LIMITS, [*map(load_run, others)], beside)


def problems_of(judgement: Judgement) -> list[str]:
    """Return the reasons of the findings on the ledger."""
    return [f.reason for f in judgement.findings if f.kind == "ledger"]


def rows_at(
    seconds: float, count: int = 30, shift: float = 0.0, **more: Any
) -> list[Measurement]:
    """Build numbers of one job, all different: one for each size."""
    return [
        replace(
            sample(CASE, 80.123456 + i * 0.712345 + shift, pair="cn01 cn02", **more),
            start_time=seconds + i,
            size_bytes=4 << 20 if i == 0 else 8 + i,
        )
        for i in range(count)
    ]
