"""Collect cases, measurements and raw files of a finished ReFrame session."""

import gzip
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from seatrial.campaign.collected import (
    CaseTable,
    Collected,
    damage,
    measurements_of,
    read_record,
    same_columns,
)
from seatrial.campaign.node_journal import JOURNAL
from seatrial.campaign.session import Outcome
from seatrial.campaign.session_command import Session
from seatrial.checks.mpi_start import recorded
from seatrial.errors import SeatrialError
from seatrial.model.cases import (
    Case,
    CaseResult,
    ListedCase,
    NodeEvent,
)
from seatrial.model.records import OF_REFRAME
from seatrial.runs.closed_sessions import tables_of
from seatrial.runs.open_run import copy_files
from seatrial.runs.raw_output import (
    COMPRESSED,
    ERROR_FILE,
    JOB_FILE,
    OUTPUT_FILE,
    RECORD_FILE,
    SAMPLES_FILE,
    read_pack,
)
from seatrial.system import slurm
from seatrial.system.slurm_nodes import node_failures

BIG_FILE = 1 << 20
"""Size in bytes from which raw files are compressed."""

_UNCLEAN = re.compile(r"[^A-Za-z0-9._=+-]+")
_FINAL = ("pass", "fail", "skip", "xfail", "xpass")
"""ReFrame's results of a case that ended."""

_LONG_NUMBER = re.compile(r"(?<![\w.])\d+\.\d{4,}(?:e[+-]?\d+)?(?![\w.]*\w)")


def collect(session: Session, outcome: Outcome) -> Collected:
    """Read ReFrame's report and the stage folders, copy raw files, drop the stage.

    A case that was listed and does not appear in the report is a failed case, unless
    the session was cut: then it did not run. A check without cases is skipped, and
    ReFrame did not run if there is no other. Raises SeatrialError if the report is not
    readable, OSError on a full disk.
    """
    collected = Collected()
    if session.planned.cases:
        _collect_report(session, outcome, collected)
    for check, reason in session.planned.missing.items():
        nowhere = ListedCase(check, "", "")
        collected.cases.append(_case(session, nowhere, "skip", reason=reason))
    return collected


def _collect_report(session: Session, outcome: Outcome, collected: Collected) -> None:
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
            partition = f"{entry['system']}:{entry['partition']}"
            listed = ListedCase(entry["display_name"], partition, entry["environ"])
            ended = entry["result"] in _FINAL or str(entry["jobid"]) in outcome.blocked
            if ended or not outcome.cut:
                seen.add(listed)
                number = session.tries.get(str(listed), 0) + attempt
                _collect_case(session, outcome, listed, number, entry, collected)
    for listed in session.planned.cases:
        if listed not in seen and not outcome.cut:
            reason = "ReFrame ended before it ran this case"
            collected.cases.append(_case(session, listed, "fail", reason=reason))
    if session.replay is None and session.system.uses_slurm:
        for case, samples in collected.loads.slurm_samples():
            same = same_columns(case, session)
            rows = measurements_of(case, same, samples, session.metrics)
            collected.measurements += rows
    shutil.rmtree(session.work, ignore_errors=True)
    (session.raw / "latest.json").unlink(missing_ok=True)
    _compress(session.raw)


def readable(reason: str) -> str:
    """Format ReFrame's reason in one line, with at most 6 (not 17) digits a number."""
    line = " ".join(reason.split())
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.6g}", line)


def _collect_case(
    session: Session,
    outcome: Outcome,
    listed: ListedCase,
    attempt: int,
    entry: dict[str, Any],
    collected: Collected,
) -> None:
    # A case without a stage folder has no files: this one does not exist.
    stage = Path(entry.get("stagedir") or session.work / "none")
    part = f"_part{session.part}" if session.part > 1 else ""
    raw = _keep_files(stage, entry, session.raw, part)
    record, samples, problem = read_record(stage, session.metrics)
    table = stage / SAMPLES_FILE
    problem = problem or damage(table)
    if raw is not None and record:
        # Without the samples, which the table has.
        (raw / RECORD_FILE).write_text(json.dumps(record) + "\n", encoding="utf-8")
    result, phase, reason = _result(session, outcome, listed, entry, problem)
    times = read_pack(stage)
    waited = outcome.blocked.get(str(entry["jobid"])) if result == "fail" else None
    nodes, declared = record.get("nodes"), record.get("declared")
    if declared is None:
        declared = [key.rpartition(":")[2] for key in entry.get("perfvalues", {})]
    case = _case(
        session,
        listed,
        result,
        parameters=record.get("parameters", listed.parameters),
        phase=phase,
        reason=readable(reason) if reason else None,
        job_id=str(record.get("job_id") or entry["jobid"] or "") or None,
        nodes=tuple(entry["job_nodelist"] if nodes is None else nodes),
        start_time=float(times.get("begin") or entry["job_submit_time"] or 0) or None,
        elapsed_s=_elapsed(entry, times),
        payload_s=record.get("payload_s"),
        raw=None if raw is None else str(raw.relative_to(session.raw.parent.parent)),
        declared=tuple(sorted(declared)),
        replay=bool(record.get("replay")) if record else session.replay is not None,
        attempt=attempt,
        start_crashes=recorded(stage),
        whole_class=record.get("whole_class"),
        waited_for=waited.nodes if waited else (),
        draws_pairs=bool(record.get("draws_pairs")),
    )
    collected.cases.append(case)
    collected.node_failures += _node_failures(stage, entry, case)
    if result == "skip":
        return
    collected.loads.add(case, record)
    same = same_columns(case, session)
    collected.measurements += measurements_of(case, same, samples, session.metrics)
    if raw is not None and table.is_file() and not problem:
        kept = tables_of(session.work) / f"{raw.name}.parquet"
        kept.parent.mkdir(exist_ok=True)
        collected.tables.append(CaseTable(table.rename(kept), same))


def _result(
    session: Session,
    outcome: Outcome,
    listed: ListedCase,
    entry: dict[str, Any],
    problem: str | None,
) -> tuple[CaseResult, str | None, str | None]:
    """Return the result of a case, the phase that failed, and the reason.

    A `problem` of its files fails a case that passed.
    """
    result = OF_REFRAME.get(entry["result"], "fail")
    phase, reason = entry["fail_phase"], entry["fail_reason"]
    if problem and result == "pass":
        result, phase, reason = "fail", "sanity", problem
    if result == "skip":
        reason = outcome.skipped.get(str(listed), "no reason given")
    if entry["result"] == "xpass":
        reason = "expected to fail, and passed: the known defect is gone"
    if result == "fail" and entry["jobid"] and session.system.uses_slurm:
        phase, reason = blame_slurm(phase, reason, entry, outcome)
    return result, phase, reason


def _elapsed(
    entry: dict[str, Any], shared: Mapping[str, str] = MappingProxyType({})
) -> float | None:
    """Return the seconds of a case, without its wait for earlier cases.

    `shared` is what a job that it shares with other cases wrote about it.
    """
    if "end" in shared:
        return float(shared["end"]) - float(shared["begin"])
    stages = ("setup", "compile", "run", "sanity", "performance")
    times = [entry.get(f"time_{stage}") for stage in stages]
    total: float | None = entry["time_total"]
    return total if total is None else min(total, sum(filter(None, times)) or total)


def _node_failures(stage: Path, entry: dict[str, Any], case: Case) -> list[NodeEvent]:
    """Read the failed nodes from the standard error of a failed case."""
    file = stage / (entry["job_stderr"] or ERROR_FILE)
    if case.result != "fail" or not file.is_file():
        return []
    ended = (case.start_time or 0.0) + (case.elapsed_s or 0.0)
    names = node_failures(file.read_text(errors="replace"))
    return [NodeEvent(name, "down", "", "", ended) for name in names]


def blame_slurm(
    phase: str | None, reason: str | None, entry: dict[str, Any], outcome: Outcome
) -> tuple[str | None, str | None]:
    """Return phase and reason of a failure, those of the job first.

    For ReFrame a cancelled job, or one out of time, only has incomplete output.
    """
    blocked = outcome.blocked.get(str(entry["jobid"]))
    if outcome.cut and blocked:
        return "run", f"the job never started: {blocked.words}"
    end = slurm.job_end(str(entry["jobid"]))
    if end is None or end.state in ("COMPLETED", "FAILED"):
        return phase, reason
    if not end.started:
        limit = entry.get("max_pending_time")
        waited = f" within its pending limit of {limit:g} s" if limit else ""
        pending = outcome.pending.get(str(entry["jobid"]))
        cause = blocked.words if blocked else pending
        why = f"; Slurm's reason: {cause}" if cause else ""
        return "run", f"the job never started{waited}: {end.state}{why}"
    limit = entry.get("time_limit")
    if end.state == "TIMEOUT" and limit:
        return "run", f"the job exceeded its time limit of {limit:g} s; {reason}"
    return "run", f"the job ended as {end.state}; {reason}"


def _case(
    session: Session, listed: ListedCase, result: CaseResult, **more: Any
) -> Case:
    fields: dict[str, Any] = {"parameters": {}, "replay": session.replay is not None}
    fields |= {"session": session.name, "repeat": session.planned.repeat}
    fields |= {"check": listed.check, "result": result}
    return Case(**fields | vars(listed) | more)


def _keep_files(
    stage: Path, entry: dict[str, Any], raw: Path, part: str
) -> Path | None:
    """Copy the files to keep of a stage folder; return the copy's folder, if any.

    `entry` is that of ReFrame's report.
    """
    output = entry["job_stdout"] or OUTPUT_FILE
    names = [f"{Path(output).stem}.sh", output, entry["job_stderr"] or ERROR_FILE]
    names += [RECORD_FILE, *entry.get("keep_files", [])]
    paths = [path for name in names for path in sorted(stage.glob(name))]
    files = [
        file
        for path in paths
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file() and file.name != SAMPLES_FILE
    ]
    if not files:
        return None
    kept = raw / f"{_UNCLEAN.sub('_', '-'.join(stage.parts[-3:]))}{part}"
    copy_files(list(dict.fromkeys(files)), stage, kept)
    return kept


def _compress(folder: Path) -> None:
    """Replace every big file below a folder by a compressed one."""
    for file in sorted(folder.rglob("*")):
        if file.name in (RECORD_FILE, JOB_FILE, JOURNAL) or not file.is_file():
            continue
        if file.suffix == COMPRESSED:
            continue
        if file.stat().st_size >= BIG_FILE:
            packed = file.with_name(file.name + COMPRESSED)
            # Without time and name: the same content has the same bytes.
            with (
                file.open("rb") as plain,
                packed.open("wb") as target,
                gzip.GzipFile("", "wb", fileobj=target, mtime=0) as stream,
            ):
                shutil.copyfileobj(plain, stream, 1 << 20)
            file.unlink()
