"""Plan changes of the HCAs of a node, and check each step of them.

The input is raw output of `node.sh`, as root: before, after the burn, and after the
reboot. The roles `hca` and `maintenance` carry the plan out.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from seatrial.audit import nvconfig
from seatrial.audit.expected import rails
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.hardware_types import HcaModel
from seatrial.audit.images import image_path
from seatrial.audit.node_rows import node_rows
from seatrial.audit.rows import Row

PARTS = ("firmware", "nvconfig")
_SAME = ("psid", "guid", "pcie.width", "pcie.speed", "device")
"""Keys of an HCA that a new firmware must leave as they are."""

_UP = {"state": "ACTIVE", "physical_state": "LinkUp"}
_NUMBER = re.compile(r".*\((\d+)\)")

_Rows = dict[str, Row]


@dataclass
class HcaPlan:
    """Changes of one HCA.

    `image` is the path on the control machine, '' if nothing is burned; `back` that of
    the image for the way back. `settings` are assignments for `mstconfig set`.
    """

    address: str
    rails: list[str]
    psid: str
    stored: str
    wanted: str = ""
    image: str = ""
    back: str = ""
    settings: list[str] = field(default_factory=list)


@dataclass
class Plan:
    """Changes of a node, or the reasons why it is `refused`."""

    hcas: list[HcaPlan] = field(default_factory=list)
    reboot: bool = False
    refused: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Permissions:
    """Permissions of the user; `downgrade`: versions that may replace newer ones."""

    downgrade: Collection[str] = ()
    no_way_back: bool = False
    parts: Collection[str] = PARTS


def plan(
    text: str, declaration: HardwareFile, node_class: str, allowed: Permissions
) -> Plan:
    """Compare a node with the declaration.

    Raises SeatrialError if the raw output is not complete.
    """
    found = Plan()
    for address, names, rows in _hcas(text, declaration, node_class):
        slot = next(s for s in declaration.slots(node_class) if s.bdf == address)
        model = declaration.hardware.hca_models[slot.psid]
        one = HcaPlan(address, names, slot.psid, _after(rows, "firmware"))
        reason = _not_this_card(rows, slot.psid)
        if reason:
            found.refused.append(f"{address} ({', '.join(names)}): {reason}")
            continue
        if "firmware" in allowed.parts:
            reason = _plan_firmware(found, one, rows, model, declaration, allowed)
        if "nvconfig" in allowed.parts and not reason:
            reason = _plan_settings(found, one, rows, model)
        if reason:
            found.refused.append(f"{address} ({', '.join(names)}): {reason}")
        elif one.image or one.settings:
            found.hcas.append(one)
    found.reboot = found.reboot or bool(found.hcas)
    return found


def _hcas(
    text: str, declaration: HardwareFile, node_class: str
) -> Iterator[tuple[str, list[str], _Rows]]:
    """Yield each declared HCA: its address, its rails, and the rows of its first."""
    names = rails(declaration, node_class)
    by_subject: dict[str, _Rows] = {}
    for row in node_rows(text, declaration, node_class):
        by_subject.setdefault(row.subject, {})[row.key] = row
    of_address: dict[str, list[str]] = {}
    for place, name in names.items():
        of_address.setdefault(place.split("/")[0], []).append(name)
    for address, listed in of_address.items():
        yield address, listed, by_subject.get(listed[0], {})


def _after(rows: _Rows, key: str) -> str:
    """Return the value that the next boot has; '' if unknown."""
    row = rows.get(key)
    return (row.pending or row.actual or "") if row else ""


def _not_this_card(rows: _Rows, psid: str) -> str:
    """Return why an HCA must not be changed; '' if it is the declared card."""
    if "address" not in rows and "device" not in rows and _after(rows, "psid") == "":
        return "no HCA at its address"
    if _after(rows, "psid") != psid:
        return f"its PSID is {_after(rows, 'psid') or 'unknown'}, declared is {psid}"
    return _flash_unread(rows)


def _flash_unread(rows: _Rows) -> str:
    stored = rows.get("firmware.stored")
    if stored is not None and stored.actual is None:
        return f"its flash cannot be read: {stored.reason}"
    return ""


def _plan_firmware(
    found: Plan,
    one: HcaPlan,
    rows: _Rows,
    model: HcaModel,
    declaration: HardwareFile,
    allowed: Permissions,
) -> str:
    """Add the burn that an HCA needs; return why it is refused, '' if it is not."""
    if model.firmware is None:
        return ""
    wanted, stored = model.firmware.version, one.stored
    one.wanted = wanted
    if stored == wanted:
        if rows["firmware"].actual != wanted:
            found.reboot = True
            found.changes.append(f"{one.address} firmware {stored} is stored: reboot")
        return ""
    if model.firmware.file is None:
        return f"firmware {wanted} is declared without a file"
    if _number(wanted) < _number(stored) and wanted not in allowed.downgrade:
        return (
            f"{wanted} is older than {stored}, which it has; go back by "
            f'-e \'{{"hca_allow_downgrade": ["{wanted}"]}}\''
        )
    back = [image for image in model.previous if image.version == stored]
    if not back and not allowed.no_way_back:
        return (
            f"no image of {stored}, which it has, in previous of {one.psid}: without "
            "it there is no way back; -e hca_no_way_back=true goes without"
        )
    one.back = str(image_path(declaration, back[0])) if back else ""
    one.image = str(image_path(declaration, model.firmware))
    found.changes.append(f"{one.address} firmware {stored} -> {wanted}: burn, reboot")
    return ""


def _plan_settings(found: Plan, one: HcaPlan, rows: _Rows, model: HcaModel) -> str:
    """Add the settings that an HCA needs; return why not, '' if nothing is wrong."""
    for name in model.nvconfig:
        row = rows[f"nvconfig.{name}"]
        if row.actual is None:
            return f"{name} cannot be read: {row.reason}"
        if row.verdict == "ok":
            continue
        declared = row.declared or ""
        if row.pending is not None and nvconfig.same(row.pending, declared):
            found.reboot = True
            found.changes.append(f"{one.address} {name} {row.pending} waits: reboot")
            continue
        match = _NUMBER.fullmatch(declared)
        one.settings.append(f"{name}={match[1] if match else declared}")
        now = row.pending or row.actual
        found.changes.append(f"{one.address} {name} {now} -> {row.declared}: reboot")
    return ""


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def stored(
    text: str, declaration: HardwareFile, node_class: str, done: Plan
) -> list[str]:
    """Return what of a plan is not in the flash; empty if all of it is."""
    faults = []
    hcas = {one.address: one for one in done.hcas}
    for address, _, rows in _hcas(text, declaration, node_class):
        one = hcas.get(address)
        if one is None:
            continue
        reason = _not_this_card(rows, one.psid)
        if reason:
            faults.append(f"{address}: {reason}")
            continue
        if one.image and _after(rows, "firmware") != one.wanted:
            has = _after(rows, "firmware")
            faults.append(f"{address}: {one.wanted} was burned, but {has} is stored")
        for setting in one.settings:
            name = setting.partition("=")[0]
            row = rows[f"nvconfig.{name}"]
            if not nvconfig.same(_after(rows, row.key), row.declared or ""):
                has = _after(rows, f"nvconfig.{name}") or "unknown"
                faults.append(f"{address}: {setting} was set, but {name} is {has}")
    return faults


def verified(
    before: str,
    after: str,
    declaration: HardwareFile,
    node_class: str,
    parts: Collection[str] = PARTS,
) -> list[str]:
    """Return what is wrong after the reboot; empty if the node may go on.

    Declared firmware and nvconfig run, if they are among `parts`; the flash can be
    read; identity, GUID and PCIe are as before; the ports are up.
    """
    old = {one[0]: one[2] for one in _hcas(before, declaration, node_class)}
    faults = []
    for address, _, rows in _hcas(after, declaration, node_class):
        if rows.get("device") is None or rows["device"].actual in (None, "none"):
            faults.append(f"{address}: PCI or the driver lost the HCA")
            continue
        for key in _SAME:
            was, now = _actual(old.get(address, {}), key), _actual(rows, key)
            if was != now:
                faults.append(f"{address}: {key} was {was}, is {now}")
        faults += _not_declared(address, rows, parts)
        if reason := _flash_unread(rows):
            faults.append(f"{address}: {reason}")
    return [*faults, *_down(after, declaration, node_class)]


def _actual(rows: Mapping[str, Row], key: str) -> str | None:
    row = rows.get(key)
    return row.actual if row else None


def _not_declared(address: str, rows: _Rows, parts: Collection[str]) -> Iterator[str]:
    for key, row in rows.items():
        ours = key == "psid" or key.split(".")[0] in parts
        if ours and row.declared is not None and row.verdict != "ok":
            has = row.actual or f"unknown ({row.reason})"
            later = f", after the next boot {row.pending}" if row.pending else ""
            yield f"{address}: {key} is {has}{later}, declared {row.declared}"


def _down(text: str, declaration: HardwareFile, node_class: str) -> Iterator[str]:
    """Yield the declared ports that are not up."""
    names = rails(declaration, node_class)
    for row in node_rows(text, declaration, node_class):
        wanted = _UP.get(row.key)
        if row.subject in names.values() and wanted and row.actual != wanted:
            yield f"{row.subject}: {row.key} is {row.actual}"
