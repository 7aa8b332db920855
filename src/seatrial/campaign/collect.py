"""From a finished ReFrame session to cases, measurements and raw files."""

import gzip
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.campaign.session import Outcome, Session
from seatrial.checks.mpi_start import recorded
from seatrial.errors import SeatrialError
from seatrial.model.cases import (
    Case,
    CaseResult,
    ListedCase,
    NodeEvent,
    parameters_text,
)
from seatrial.model.records import OF_REFRAME, Measurement, Sample, metric_of
from seatrial.runs.open_run import copy_files
from seatrial.runs.raw_output import COMPRESSED, JOB_FILE, RECORD_FILE
from seatrial.system import slurm
from seatrial.system.description import System
from seatrial.system.slurm_nodes import node_failures

BIG_FILE = 1 << 20
"""Raw files of that many bytes are compressed."""

_FINAL = ("pass", "fail", "skip", "xfail", "xpass")
"""ReFrame's results of a case that came to its end."""

_UNCLEAN = re.compile(r"[^A-Za-z0-9._=+-]+")
_LONG_NUMBER = re.compile(r"(?<![\w.])\d+\.\d{4,}(?:e[+-]?\d+)?(?![\w.]*\w)")


@dataclass
class Collected:
    """Everything that a session left behind.

    `node_failures` are those on which srun reports in the output of its jobs.
    """

    cases: list[Case] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    node_failures: list[NodeEvent] = field(default_factory=list)


def collect(session: Session, outcome: Outcome, system: System) -> Collected:
    """Read ReFrame's report and the stage folders, copy raw files, drop the stage.

    A case that was listed and does not appear in the report is a failed case, unless
    the session was cut: then it did not run. A check without cases is skipped, and
    ReFrame did not run if there is no other. Raises SeatrialError if the report is not
    readable, OSError on a full disk.
    """
    collected = Collected()
    if session.planned.cases:
        _collect_report(session, outcome, system, collected)
    for check, reason in session.planned.missing.items():
        nowhere = ListedCase(check, "", "")
        collected.cases.append(_case(session, nowhere, "skip", reason=reason))
    return collected


def _collect_report(
    session: Session, outcome: Outcome, system: System, collected: Collected
) -> None:
    try:
        report = json.loads(session.report.read_text(encoding="utf-8"))
        tries = [run["testcases"] for run in report["runs"]]
    except (ValueError, KeyError, TypeError) as error:
        raise SeatrialError(
            f"{session.report}: not a report of ReFrame: {error!r}"
        ) from error
    seen = set()
    for attempt, entries in enumerate(tries, 1):
        for entry in entries:
            listed = ListedCase(
                entry["display_name"],
                f"{entry['system']}:{entry['partition']}",
                entry["environ"],
            )
            if outcome.cut and not _ended(entry, outcome):
                continue
            seen.add(listed)
            number = session.tries.get(str(listed), 0) + attempt
            _collect_case(session, outcome, system, listed, number, entry, collected)
    for listed in session.planned.cases:
        if listed not in seen and not outcome.cut:
            reason = "ReFrame ended before it ran this case"
            collected.cases.append(_case(session, listed, "fail", reason=reason))
    shutil.rmtree(session.work, ignore_errors=True)
    (session.raw / "latest.json").unlink(missing_ok=True)
    compress(session.raw)


def _ended(entry: dict[str, Any], outcome: Outcome) -> bool:
    """Return True if a case of a cut session ended or waited for lost nodes."""
    return entry["result"] in _FINAL or str(entry["jobid"]) in outcome.blocked


def compress(folder: Path) -> None:
    """Replace every big file below a folder by a compressed one."""
    for file in sorted(folder.rglob("*")):
        if file.name in (RECORD_FILE, JOB_FILE) or not file.is_file():
            continue
        if file.stat().st_size >= BIG_FILE:
            with (
                file.open("rb") as plain,
                file.with_name(file.name + COMPRESSED).open("wb") as target,
                # A file of the same content is to have the same bytes.
                gzip.GzipFile(
                    fileobj=target, mode="wb", mtime=0, filename=""
                ) as packed,
            ):
                shutil.copyfileobj(plain, packed, 1 << 20)
            file.unlink()


def readable(reason: str) -> str:
    """Write ReFrame's reason on one line, its numbers with at most 6 digits.

    ReFrame writes a number that misses its reference with up to 17.
    """
    line = " ".join(reason.split())
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.6g}", line)


def _collect_case(
    session: Session,
    outcome: Outcome,
    system: System,
    listed: ListedCase,
    attempt: int,
    entry: dict[str, Any],
    collected: Collected,
) -> None:
    stage = Path(entry["stagedir"]) if entry.get("stagedir") else None
    raw = None
    kept = _kept(stage, entry) if stage is not None and stage.is_dir() else []
    if stage is not None and kept:
        name = _UNCLEAN.sub("_", "-".join(stage.parts[-3:]))
        part = f"_part{session.part}" if session.part > 1 else ""
        raw = session.raw / f"{name}{part}"
        copy_files(kept, stage, raw)
    result = OF_REFRAME.get(entry["result"], "fail")
    phase, reason = entry["fail_phase"], entry["fail_reason"]
    told, problem = _told(stage)
    samples = told.pop("samples", [])
    if raw is not None and told:
        # The samples go into a table; here they would be there a second time.
        (raw / RECORD_FILE).write_text(json.dumps(told) + "\n", encoding="utf-8")
    if problem and result == "pass":
        result, phase, reason = "fail", "sanity", problem
    if result == "skip":
        reason = outcome.skipped.get(str(listed), "no reason given")
    if entry["result"] == "xpass":
        reason = "expected to fail, and passed: the known defect is gone"
    if result == "fail" and entry["jobid"] and system.uses_slurm:
        phase, reason = blame_slurm(phase, reason, entry, outcome)
    told_nodes = told.get("nodes")
    case = _case(
        session,
        listed,
        result,
        parameters=told.get("parameters", listed.parameters),
        phase=phase,
        reason=readable(reason) if reason else None,
        job_id=str(told.get("job_id") or entry["jobid"] or "") or None,
        nodes=tuple(entry["job_nodelist"] if told_nodes is None else told_nodes),
        start_time=entry["job_submit_time"],
        elapsed_s=entry["time_total"],
        payload_s=told.get("payload_s"),
        raw=None if raw is None else str(raw.relative_to(session.raw.parent.parent)),
        declared=_declared(told, entry),
        replay=bool(told.get("replay")) if told else session.replay is not None,
        attempt=attempt,
        start_crashes=recorded(stage) if stage is not None else (),
    )
    collected.cases.append(case)
    collected.node_failures += _node_failures(stage, entry, case)
    if result != "skip":
        collected.measurements += _measurements(case, session, system, samples)


def _node_failures(
    stage: Path | None, entry: dict[str, Any], case: Case
) -> list[NodeEvent]:
    """Read in the standard error of a failed case which nodes failed."""
    file = None if stage is None else stage / (entry["job_stderr"] or "rfm_job.err")
    if file is None or case.result != "fail" or not file.is_file():
        return []
    ended = (case.start_time or 0.0) + (case.elapsed_s or 0.0)
    names = node_failures(file.read_text(errors="replace"))
    return [NodeEvent(name, "down", "", "", ended) for name in names]


def _told(stage: Path | None) -> tuple[dict[str, Any], str | None]:
    """Read what the check wrote about itself; give what is wrong with it, if so."""
    file = stage / RECORD_FILE if stage is not None else None
    if file is None or not file.is_file():
        return {}, None
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        for sample in told.get("samples", []):
            metric_of(Sample(**sample))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        return {}, f"{RECORD_FILE} of the check is damaged: {error!r}"
    return told, None


def _measurements(
    case: Case, session: Session, system: System, samples: Iterable[dict[str, Any]]
) -> list[Measurement]:
    rows = []
    nodes, parameters = " ".join(case.nodes), parameters_text(case.parameters)
    for sample in (Sample(**data) for data in samples):
        unit, direction = metric_of(sample)
        rows.append(
            Measurement(
                run=session.run_id,
                session=case.session,
                block=session.planned.block,
                repeat=case.repeat,
                system=system.name,
                partition=case.partition,
                environment=case.environment,
                check=case.check,
                case=case.case,
                parameters=parameters_text({**case.parameters, **sample.parameters})
                if sample.parameters
                else parameters,
                job_id=case.job_id,
                nodes=nodes,
                node=sample.node,
                socket=sample.socket,
                source=sample.source,
                destination=sample.destination,
                hca=sample.hca,
                round=sample.round,
                metric=sample.metric,
                size_bytes=sample.size_bytes,
                statistic=sample.statistic,
                n=sample.n,
                value=float(sample.value),
                unit=unit,
                direction=direction,
                start_time=sample.start_time or case.start_time,
                replay=case.replay,
                attempt=case.attempt,
            )
        )
    return rows


def _declared(told: dict[str, Any], entry: dict[str, Any]) -> tuple[str, ...]:
    names = told.get("declared")
    if names is None:
        names = [key.rpartition(":")[2] for key in entry.get("perfvalues", {})]
    return tuple(sorted(names))


def _kept(stage: Path, entry: dict[str, Any]) -> list[Path]:
    """Choose the files that are worth keeping of a stage folder."""
    names = [
        f"{Path(entry['job_stdout'] or 'rfm_job.out').stem}.sh",
        entry["job_stdout"] or "rfm_job.out",
        entry["job_stderr"] or "rfm_job.err",
        RECORD_FILE,
        *entry.get("keep_files", []),
    ]
    found = [path for name in names for path in sorted(stage.glob(name))]
    files = [
        file
        for path in found
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file()
    ]
    return list(dict.fromkeys(files))


def blame_slurm(
    phase: str | None, reason: str | None, entry: dict[str, Any], outcome: Outcome
) -> tuple[str | None, str | None]:
    """Say it first if the job, not the check, is why a case failed.

    Gives phase and reason of the failure. To ReFrame a job that was cancelled, or
    ran out of time, is one whose output is incomplete.
    """
    blocked = outcome.blocked.get(str(entry["jobid"]))
    if outcome.cut and blocked:
        return "run", f"the job never started: {blocked}"
    end = slurm.job_end(str(entry["jobid"]))
    if end is None or end.state in ("COMPLETED", "FAILED"):
        return phase, reason
    if not end.started:
        limit = entry.get("max_pending_time")
        waited = f" within its pending limit of {limit:g} s" if limit else ""
        told = blocked or outcome.pending.get(str(entry["jobid"]))
        why = f"; Slurm's reason: {told}" if told else ""
        return "run", f"the job never started{waited}: {end.state}{why}"
    limit = entry.get("time_limit")
    if end.state == "TIMEOUT" and limit:
        return "run", f"the job exceeded its time limit of {limit:g} s; {reason}"
    return "run", f"the job ended as {end.state}; {reason}"


def _case(
    session: Session, listed: ListedCase, result: CaseResult, **more: Any
) -> Case:
    return Case(
        session=session.name,
        repeat=session.planned.repeat,
        check=listed.check,
        case=listed.case,
        partition=listed.partition,
        environment=listed.environment,
        parameters=more.pop("parameters", {}),
        result=result,
        replay=more.pop("replay", session.replay is not None),
        **more,
    )
