"""The cases of a session that is not closed, from ReFrame's output so far."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.campaign.session import LINE
from seatrial.model.cases import CaseResult
from seatrial.runs.raw_output import SCRIPT_FILE, read_job, read_pack
from seatrial.system import slurm

_SKIPPED = ("SKIP", "XFAIL")
_STAGE_DEPTH = 6  # SESSION/stage/SYSTEM/PARTITION/ENVIRONMENT/CASE


@dataclass
class CaseState:
    """The state of a case: `result` is that of its last try, None while it runs.

    `attempt` counts its tries; `stage` is ReFrame's folder of the last one, `nodes` are
    its nodes if it failed, `elapsed_s` its duration if its session is closed.
    """

    case: str
    result: CaseResult | None = None
    attempt: int = 0
    nodes: tuple[str, ...] = ()
    stage: Path = field(default_factory=Path)
    elapsed_s: float | None = None


@dataclass(frozen=True)
class Running:
    """A case that began and did not end. `since` is UTC seconds since the epoch.

    `nodes` are as its job or Slurm writes them; `waits` is why Slurm does not start it.
    """

    case: str
    session: str
    since: float | None
    job_id: str | None
    nodes: str
    waits: str | None


def live_cases(log: Path, work: Path) -> tuple[CaseState, ...]:
    """Read the cases in ReFrame's output so far; `work` is its prefix."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    cases: dict[str, CaseState] = {}
    for match in filter(None, map(LINE.match, text.splitlines())):
        name = f"{match['case']} {match['place']}"
        case = cases.setdefault(name, CaseState(name))
        if match["status"] == "RUN":
            case.attempt += 1
            case.result = None
            case.nodes = ()
            case.stage = _stage(work / "stage", match, case.attempt)
        elif match["status"] == "OK":
            case.result = "pass"
        elif match["status"] in _SKIPPED:
            case.result = "skip"
        else:
            case.result = "fail"
            case.nodes = tuple(read_job(case.stage).get("nodes", "").split())
    return tuple(cases.values())


def running(case: CaseState, session: str, jobs: Sequence[slurm.Job]) -> Running:
    """Return start, job and nodes of a running case, or why it waits.

    A job records its own start and nodes; Slurm knows the rest. In a job that it shares
    with other cases it waits for its turn.
    """
    job_file, shared = read_job(case.stage), read_pack(case.stage)
    below = "/".join(case.stage.parts[-_STAGE_DEPTH:])
    mine = (
        job
        for job in jobs
        if job.job_id == shared.get("job") or job.folder.endswith(f"/{below}")
    )
    job = next(mine, None)
    script = case.stage / SCRIPT_FILE
    waits = job.reason if job is not None and job.state == "PENDING" else None
    if shared and "begin" not in shared:
        waits = waits or "for its turn in a shared job"
    since = float(job_file["start"]) if "start" in job_file else None
    if since is None and script.is_file():
        since = script.stat().st_mtime
    return Running(
        case=case.case,
        session=session,
        since=since,
        job_id=None if job is None else job.job_id,
        nodes=job_file.get("nodes") or ("" if job is None else job.nodes),
        waits=waits,
    )


def _stage(stage: Path, match: re.Match[str], attempt: int) -> Path:
    """Return the stage folder of a try, as ReFrame does."""
    partition, _, environment = match["place"].removeprefix("@").partition("+")
    parent = stage.joinpath(*partition.split(":"), environment)
    check = match["case"].split(" ", 1)[0]
    retry = f"_retry{attempt - 1}" if attempt > 1 else ""
    hashed = f"{check}_{match['hash']}"
    # In a later part of a session, after a node was lost, ReFrame counts anew.
    names = (f"{hashed}{retry}", f"{check}{retry}", hashed)
    return next((parent / n for n in names if (parent / n).is_dir()), parent / names[1])
