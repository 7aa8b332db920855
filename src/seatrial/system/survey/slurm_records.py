"""Nodes, partitions and reservations as `scontrol -o show` prints them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seatrial.system.slurm_nodes import lost_state

_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*)")
_FREE_TEXT = re.compile(r"\s(?:OS|Comment|AdminComment|Extra)=.*?(?=\s[A-Z]\w*=|$)")
_REASON = re.compile(r"\sReason=(.*)$")
_SIGNED = re.compile(r"\s*\[[^\[\]]*@[^\[\]]*\].*$")
"""User and time at the end of a reason, and the fields after them."""

_SOCKETS = re.compile(r"\([^()]*\)")
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")
_UNSET = ("(null)", "N/A", "None", "none")


@dataclass(frozen=True)
class SlurmNode:
    """A node: cores of all sockets, memory in MiB, and its partitions by name.

    `state` is Slurm's, such as `DOWN*+DRAIN`; `reason` is '' without one.
    """

    name: str
    state: str
    reason: str
    cores: int
    sockets: int
    memory_mib: int
    gres: str
    features: tuple[str, ...]
    partitions: tuple[str, ...]

    @property
    def loss(self) -> str:
        """Return the state in which no job can run there, such as `down`; else ''."""
        return lost_state(self.state) or ""

    @property
    def is_delivered(self) -> bool:
        """Return False for a node that Slurm only expects."""
        return "FUTURE" not in self.state


@dataclass(frozen=True)
class Partition:
    """A partition; `limit_s` is the longest job (None: no limit).

    Empty `accounts`, `qos` or `groups` permit all.
    """

    name: str
    is_up: bool
    is_default: bool
    is_hidden: bool
    root_only: bool
    limit: str
    limit_s: int | None
    accounts: tuple[str, ...]
    denied_accounts: tuple[str, ...]
    qos: tuple[str, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Reservation:
    """A reservation of `nodes`, for users and accounts."""

    name: str
    nodes: frozenset[str]
    users: tuple[str, ...]
    accounts: tuple[str, ...]
    flags: tuple[str, ...]
    start: str
    end: str


def parse_fields(line: str) -> dict[str, str]:
    """Parse a line of `scontrol -o show`; an unset field is ''."""
    line = _REASON.sub("", line)
    fields = dict(_FIELD.findall(_FREE_TEXT.sub("", line)))
    return {key: "" if text in _UNSET else text for key, text in fields.items()}


def parse_nodes(
    lines: Iterable[str], members: Mapping[str, Iterable[str]]
) -> tuple[SlurmNode, ...]:
    """Parse `scontrol -o show node`; `members` are the partitions of each node."""
    nodes = []
    for line in lines:
        fields = parse_fields(line)
        if "NodeName" not in fields:
            continue
        reason = _REASON.search(line)
        sockets = _number(fields.get("Sockets"))
        features = fields.get("AvailableFeatures") or fields.get("Features") or ""
        nodes.append(
            SlurmNode(
                name=fields["NodeName"],
                state=fields.get("State", ""),
                reason=_SIGNED.sub("", reason[1]).strip() if reason else "",
                cores=sockets * _number(fields.get("CoresPerSocket")),
                sockets=sockets,
                memory_mib=_number(fields.get("RealMemory")),
                gres=_SOCKETS.sub("", fields.get("Gres", "")),
                features=tuple(sorted(_list(features))),
                partitions=tuple(sorted(members.get(fields["NodeName"], ()))),
            )
        )
    return tuple(nodes)


def parse_partitions(
    lines: Iterable[str], visible: Iterable[str]
) -> tuple[Partition, ...]:
    """Parse `scontrol -o show partition`; those that are not `visible` are hidden."""
    shown = set(visible)
    partitions = []
    for fields in map(parse_fields, lines):
        if name := fields.get("PartitionName"):
            limit = fields.get("MaxTime", "")
            partitions.append(
                Partition(
                    name=name,
                    is_up=fields.get("State", "UP") == "UP",
                    is_default=fields.get("Default") == "YES",
                    is_hidden=fields.get("Hidden") == "YES" or name not in shown,
                    root_only=fields.get("RootOnly") == "YES",
                    limit=limit,
                    limit_s=parse_limit(limit),
                    accounts=_allowed(fields.get("AllowAccounts")),
                    denied_accounts=_allowed(fields.get("DenyAccounts")),
                    qos=_allowed(fields.get("AllowQos")),
                    groups=_allowed(fields.get("AllowGroups")),
                )
            )
    return tuple(partitions)


def parse_reservations(
    lines: Iterable[str], hosts: Mapping[str, frozenset[str]]
) -> tuple[Reservation, ...]:
    """Parse `scontrol -o show reservation`; `hosts` are nodes by host list."""
    return tuple(
        Reservation(
            name=fields["ReservationName"],
            nodes=hosts.get(fields.get("Nodes", ""), frozenset()),
            users=_list(fields.get("Users", "")),
            accounts=_list(fields.get("Accounts", "")),
            flags=_list(fields.get("Flags", "")),
            start=fields.get("StartTime", ""),
            end=fields.get("EndTime", ""),
        )
        for fields in map(parse_fields, lines)
        if "ReservationName" in fields
    )


def parse_limit(text: str) -> int | None:
    """Convert a time of Slurm, such as `1-12:00:00`, to seconds; None: no limit."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    numbers = [*map(int, match["parts"].split(":"))]
    if match["days"] is None and len(numbers) < 3:  # minutes, or minutes:seconds
        numbers = [0, *numbers]
    hours, minutes, seconds = (*numbers, 0, 0)[:3]
    return ((int(match["days"] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _allowed(text: str | None) -> tuple[str, ...]:
    return () if text in (None, "", "ALL") else _list(str(text))


def _list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
