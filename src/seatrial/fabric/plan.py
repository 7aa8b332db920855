"""The cable plan of a fabric: a CSV file, one row for each cable."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn

from seatrial.errors import SeatrialError
from seatrial.fabric.records import End
from seatrial.fabric.similar import Names
from seatrial.limits import CASES_SIZE
from seatrial.model.csv_text import csv_text
from seatrial.parsers.fabric.seen import SPEEDS, WIDTHS

COLUMNS = ("a", "a_port", "b", "b_port", "width", "speed", "cable")
"""Columns that a plan must have."""

FURTHER = ("a_rack", "b_rack", "a_rail", "b_rail", "a_kind", "b_kind")
"""Columns that a plan may have and that are used; all others are ignored."""

PlannedKind = Literal["host", "switch"]

_HCA_PORT = re.compile(r"[A-Za-z][\w.-]*:\d+")
_INTERFACE = re.compile(r"(eth|en|ib|bond|net|p\d)\w*")
_ETHERNET_SPEED = re.compile(r"\d+G")


@dataclass(frozen=True, slots=True)
class Cable:
    """A planned cable; `width` and `speed` as in a `Link`, None and '' if not stated.

    `cable` is its number on the label; `line` is that of the plan.
    """

    a: End
    b: End
    width: int | None = None
    speed: str = ""
    cable: str = ""
    a_rack: str = ""
    b_rack: str = ""
    a_rail: str = ""
    b_rail: str = ""
    line: int = 0


@dataclass(frozen=True)
class Plan:
    """All planned cables, and the kind of each device."""

    file: str
    cables: tuple[Cable, ...]
    kinds: Mapping[str, PlannedKind]
    racks: Mapping[str, str] = field(default_factory=dict)

    def refuse(self, line: int, reason: str) -> NoReturn:
        """Raise SeatrialError with file and line."""
        raise SeatrialError(f"{self.file}:{line}: {reason}")


def load_plan(file: Path) -> Plan:
    """Read a plan; SeatrialError with file and line if it cannot be true.

    The kind of a device comes from the columns `a_kind` and `b_kind`. Without them a
    device is a host if it has one cable, or ports such as mlx5_0:1 or eth0; else it is
    a switch.
    """
    try:
        CASES_SIZE.check(file.stat().st_size, file)
        text = file.read_text("utf-8-sig")
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SeatrialError(f"{file}: no UTF-8; save the plan as CSV UTF-8") from error
    return read_plan(text, str(file))


def read_plan(text: str, file: str) -> Plan:
    """Read the text of a plan; SeatrialError as `load_plan`."""
    reader = csv.reader(text.splitlines())
    header = [name.strip() for name in next(reader, [])]
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        remedy = "Add them to the first line."
        if ";" in "".join(header):
            remedy = "Separate columns by commas."
        raise SeatrialError(
            f"{file}:1: expected the columns {', '.join(COLUMNS)}, got no "
            f"{', '.join(missing)}. {remedy}"
        )
    cables, kinds = [], dict[str, PlannedKind]()
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        where = f"{file}:{reader.line_num}: "
        if len(cells) < len(header):
            raise SeatrialError(
                f"{where}expected {len(header)} columns, got {len(cells)}. "
                "Complete the row."
            )
        row = dict(zip(header, map(str.strip, cells), strict=False))
        cables.append(_cable(row, reader.line_num, where))
        _note_kinds(row, kinds, where)
    if not cables:
        raise SeatrialError(f"{file}: no cable; expected a row for each cable")
    plan = Plan(file, tuple(cables), kinds, _racks(cables))
    _check(plan)
    return Plan(file, plan.cables, _kinds(plan.cables, kinds), plan.racks)


def _cable(row: Mapping[str, str], line: int, where: str) -> Cable:
    for name in ("a", "a_port", "b", "b_port"):
        if not row[name]:
            raise SeatrialError(f"{where}{name}: expected a text, got nothing.")
    width = row["width"].lower().removesuffix("x")
    if width and (not width.isdecimal() or int(width) not in WIDTHS):
        allowed = ", ".join(f"{lanes}x" for lanes in WIDTHS)
        raise SeatrialError(
            f"{where}width: expected {allowed} or nothing, got {row['width']!r}."
        )
    speed = row["speed"].upper()
    if speed and speed not in SPEEDS and not _ETHERNET_SPEED.fullmatch(speed):
        raise SeatrialError(
            f"{where}speed: expected {', '.join(SPEEDS)}, on Ethernet Gbit/s such as "
            f"100G, or nothing, got {row['speed']!r}."
        )
    further = {name: row.get(name, "") for name in FURTHER[:4]}
    return Cable(
        End(row["a"], _port(row["a_port"])),
        End(row["b"], _port(row["b_port"])),
        int(width) if width else None,
        speed,
        row["cable"],
        line=line,
        **further,
    )


def _port(text: str) -> str:
    """Return the label of a port; numbers without leading zeros."""
    return str(int(text)) if text.isdecimal() else text


def _note_kinds(
    row: Mapping[str, str], kinds: dict[str, PlannedKind], where: str
) -> None:
    for side in ("a", "b"):
        text = row.get(f"{side}_kind", "")
        if not text:
            continue
        if text != "host" and text != "switch":
            raise SeatrialError(
                f"{where}{side}_kind: expected host or switch, got {text!r}."
            )
        kind: PlannedKind = "host" if text == "host" else "switch"
        if kinds.setdefault(row[side], kind) != kind:
            raise SeatrialError(
                f"{where}{side}_kind: {row[side]!r} is a {kinds[row[side]]} in an "
                "earlier row. Correct one of them."
            )


def _racks(cables: Iterable[Cable]) -> dict[str, str]:
    racks: dict[str, str] = {}
    for cable in cables:
        for end, rack in ((cable.a, cable.a_rack), (cable.b, cable.b_rack)):
            if rack:
                racks.setdefault(end.device, rack)
    return racks


def _check(plan: Plan) -> None:
    """Refuse ports with two cables, cables to themselves, and similar names."""
    lines: dict[End, int] = {}
    labels: dict[str, int] = {}
    names = Names()
    for cable in plan.cables:
        if cable.a == cable.b:
            plan.refuse(cable.line, f"{cable.a} is connected to itself.")
        if cable.a.device == cable.b.device:
            plan.refuse(
                cable.line,
                f"{cable.a} is connected to {cable.b}; expected two devices.",
            )
        for end in (cable.a, cable.b):
            if end in lines:
                plan.refuse(
                    cable.line,
                    f"{end} has the cable of line {lines[end]} already. Correct one "
                    "of them.",
                )
            lines[end] = cable.line
            like = names.add(end.device, cable.line)
            if like is not None:
                plan.refuse(
                    cable.line,
                    f"{end.device!r} differs from {like[0]!r} of line {like[1]} only "
                    "in case or domain. Write one name for one device.",
                )
        if cable.cable and cable.cable in labels:
            plan.refuse(
                cable.line,
                f"cable {cable.cable!r} is in line {labels[cable.cable]} already. "
                "Correct one of them.",
            )
        labels[cable.cable] = cable.line


def _kinds(
    cables: Sequence[Cable], stated: Mapping[str, PlannedKind]
) -> dict[str, PlannedKind]:
    """Return the kind of each device."""
    ends = [end for cable in cables for end in (cable.a, cable.b)]
    counts = Counter(end.device for end in ends)
    kinds: dict[str, PlannedKind] = {}
    for end in ends:
        host = counts[end.device] == 1 or _is_host_port(end.port)
        kinds[end.device] = stated.get(end.device) or ("host" if host else "switch")
    return kinds


def _is_host_port(port: str) -> bool:
    return bool(_HCA_PORT.fullmatch(port) or _INTERFACE.fullmatch(port))


def plan_csv(cables: Iterable[Cable]) -> str:
    """Write a plan as CSV; columns of racks and rails only if one has a value."""
    cables = [*cables]
    used = [name for name in FURTHER[:4] if any(getattr(one, name) for one in cables)]
    rows = [
        {
            "a": one.a.device,
            "a_port": one.a.port,
            "b": one.b.device,
            "b_port": one.b.port,
            "width": f"{one.width}x" if one.width else "",
            "speed": one.speed,
            "cable": one.cable,
            **{name: getattr(one, name) for name in used},
        }
        for one in cables
    ]
    return csv_text((*COLUMNS, *used), rows)
