"""Names that the nights need in Slurm, checked before anything is installed."""

import os
import pwd
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.nightly.settings import Settings
from seatrial.system.slurm import host_names, printed
from seatrial.system.survey.slurm_records import (
    Partition,
    parse_fields,
    parse_partitions,
    parse_reservations,
)


@dataclass(frozen=True)
class Findings:
    """Reasons against an installation, and notes; a sentence each."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def require_own(folder: Path) -> None:
    """Raise SeatrialError if a folder belongs to another user: both would run nights.

    A folder that is not there yet may be made.
    """
    if not folder.exists():
        return
    owner, user = folder.stat().st_uid, os.geteuid()
    if owner != user:
        raise SeatrialError(
            f"{folder}: belongs to {_name(owner)}; expected a folder of {_name(user)}; "
            f"run this as {_name(owner)}, or set SEATRIAL_RESULTS to a folder of yours"
        )


def check_slurm(
    settings: Settings, limit: timedelta, nodes: Collection[str]
) -> Findings:
    """Check partition, account, QOS and reservation of the nights.

    `limit` is the time limit of the driver's job, `nodes` are those of the system. What
    Slurm cannot be asked is noted.
    """
    found = Findings()
    options = _values((*settings.driver, *settings.jobs))
    lines = printed("scontrol", "-a", "-o", "show", "partition")
    if lines is None:
        found.problems.append(
            "Slurm does not answer: `scontrol show partition` failed; expected the "
            "partitions; run this on the login node, and check `scontrol ping`"
        )
        return found
    partition = _partition(settings, options.get("partition", ""), lines, found)
    if partition is not None:
        _check_limit(settings, partition, limit, found)
        fields = map(parse_fields, lines)
        own = {one.get("PartitionName"): one for one in fields}[partition.name]
        _check_allowed(settings, own, options, found)
        measured = set(nodes).intersection(host_names(own.get("Nodes", "")))
        if measured:
            found.notes.append(
                f"partition {partition.name} has nodes of the system: the one on which "
                "the driver works is not idle, and not measured in that night; choose "
                "a partition for it without them"
            )
        mode = own.get("PreemptMode")
        if mode and mode != "OFF":
            found.notes.append(
                f"partition {partition.name} has PreemptMode={mode}: a driver that is "
                "preempted by CANCEL ends all nights; choose a partition for it that "
                "cannot be preempted"
            )
    if settings.reservation:
        _check_reservation(settings, found)
    _check_accounting(settings, options, found)
    return found


def _partition(
    settings: Settings, name: str, lines: Iterable[str], found: Findings
) -> Partition | None:
    """Return the partition of the driver; None, with a problem, if there is none."""
    partitions = parse_partitions(lines, ())
    for partition in partitions:
        if partition.name == name or (not name and partition.is_default):
            return partition
    known = ", ".join(partition.name for partition in partitions) or "none"
    if name:
        _unknown(settings, "partition", name, known, found)
    else:
        found.problems.append(
            f"{settings.file}: partition: expected the partition of the driver: Slurm "
            f"has no default; known partitions: {known}"
        )
    return None


def _check_limit(
    settings: Settings, partition: Partition, limit: timedelta, found: Findings
) -> None:
    if partition.limit_s is not None and partition.limit_s < limit.total_seconds():
        found.problems.append(
            f"{settings.file}: window: its driver works for up to {_minutes(limit)} "
            f"minutes, partition {partition.name} allows {partition.limit_s // 60}; "
            "expected a shorter window, or another partition"
        )


def _check_allowed(
    settings: Settings,
    partition: Mapping[str, str],
    options: Mapping[str, str],
    found: Findings,
) -> None:
    """Check that the partition takes the account: else the driver waits for ever."""
    allowed = partition.get("AllowAccounts", "ALL")
    account, whose = options.get("account", ""), "declared here"
    if not account:
        account, whose = _default_account(), "the default of this user"
    if allowed != "ALL" and account and account not in allowed.split(","):
        found.problems.append(
            f"{settings.file}: account: partition {partition['PartitionName']} takes "
            f"jobs of {allowed}; got {account}, {whose}; expected one of them"
        )


def _default_account() -> str:
    """Return the account of jobs that name none; '' if it is not known."""
    user = _name(os.geteuid())
    lines = printed("sacctmgr", "-nP", "show", "user", user, "format=DefaultAccount")
    return lines[0].strip() if lines else ""


def _minutes(time: timedelta) -> int:
    return int(time.total_seconds() // 60)


def _check_reservation(settings: Settings, found: Findings) -> None:
    lines = printed("scontrol", "-o", "show", "reservation")
    if lines is None:
        found.notes.append("Slurm does not list its reservations: not checked")
        return
    fields = [line for line in lines if line.startswith("ReservationName=")]
    known = [one.name for one in parse_reservations(fields, {})]
    if settings.reservation not in known:
        names = ", ".join(known) or "none"
        _unknown(settings, "reservation", settings.reservation, names, found)


def _check_accounting(
    settings: Settings, options: dict[str, str], found: Findings
) -> None:
    """Check account and QOS by Slurm's accounting, if it answers."""
    user = _name(os.geteuid())
    questions = {
        "qos": ("qos", "format=Name"),
        "account": ("assoc", f"user={user}", "format=Account"),
    }
    for key, question in questions.items():
        name = options.get(key)
        if not name:
            continue
        lines = printed("sacctmgr", "-nP", "show", *question)
        if lines is None:
            found.notes.append(
                f"{key} {name}: not checked: sacctmgr does not answer here"
            )
            continue
        known = sorted(set(filter(None, lines)))
        if not known:
            found.notes.append(f"{key} {name}: not checked: Slurm lists none of {user}")
        elif name not in known:
            _unknown(settings, key, name, ", ".join(known), found)


def _unknown(
    settings: Settings, key: str, name: str, known: str, found: Findings
) -> None:
    found.problems.append(
        f"{settings.file}: {key}: Slurm knows no {key} {name!r}; expected one of: "
        f"{known}"
    )


def _values(options: Iterable[str]) -> dict[str, str]:
    """Return the values of options: --qos=night -> qos: night."""
    pairs = (option.removeprefix("--").partition("=") for option in options)
    return {name: value for name, _, value in pairs}


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
