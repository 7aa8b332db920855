"""Programs that ask the firmware of an HCA, as root.

mstflint and mstconfig read its flash, mlxfwmanager where mstflint is not installed;
mlxlink asks for the state of its link.
"""

from collections.abc import Iterator
from dataclasses import replace

from seatrial.audit.hca_readings import device_addresses, hca_readings
from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading
from seatrial.audit.tool import Tool
from seatrial.parsers.hardware.mlxfwmanager import parse_mlxfwmanager
from seatrial.parsers.hardware.mlxlink import parse_mlxlink
from seatrial.parsers.hardware.mstconfig import NvValue, parse_mstconfig_query
from seatrial.parsers.hardware.mstflint import parse_mstflint_query


def _mstflint(block: Block, raw: Raw) -> Iterator[Reading]:
    query = parse_mstflint_query(block.text)
    running = query.running_version or _running(block, raw, query.stored_version)
    yield from _board(block, query.psid, query.part_number)
    yield _firmware(block, running, query.stored_version)


def _mlxfwmanager(block: Block, raw: Raw) -> Iterator[Reading]:
    for hca in parse_mlxfwmanager(block.text):
        yield from _board(block, hca.psid, hca.part_number)
        running = _running(block, raw, hca.stored_version)
        yield _firmware(block, running, hca.stored_version)


def _board(block: Block, psid: str | None, part: str | None) -> Iterator[Reading]:
    for key, value in (("psid", psid), ("part", part)):
        if value is not None:
            yield Reading("hca", block.subject, key, value, block)


def _firmware(block: Block, running: str, stored: str) -> Reading:
    pending = None if running == stored else stored
    return Reading("hca", block.subject, "firmware", running, block, pending=pending)


def _running(block: Block, raw: Raw, stored: str) -> str:
    """Return the version of the driver: a program may tell of the flash alone.

    It is `stored` as the program writes it if only zeros differ, or without a driver.
    """
    sysfs = raw.get("rdma_sysfs")
    values = sysfs.values() if sysfs else {}
    for name, address in device_addresses(raw).items():
        running = values.get(f"sys/class/infiniband/{name}/fw_ver", "")
        if address == block.subject and _numbers(running) not in ([], _numbers(stored)):
            return running
    return stored


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]


def _mstconfig(block: Block, _raw: Raw) -> Iterator[Reading]:
    query = parse_mstconfig_query(block.text)
    if query.part is not None:
        yield Reading("hca", block.subject, "part", query.part, block)
    for name, parameter in query.parameters.items():
        current, after = _written(parameter.current), _written(parameter.next)
        pending = None if after == current else after
        key = f"nvconfig.{name}"
        yield Reading("hca", block.subject, key, current, block, pending=pending)


def _written(value: NvValue | None) -> str | None:
    """Return a value as mstconfig prints it."""
    if value is None:
        return None
    if value.number is None or value.text == str(value.number):
        return value.text
    return f"{value.text}({value.number})"


def _mlxlink(block: Block, raw: Raw) -> Iterator[Reading]:
    """Yield the error correction, and the reason beside the state of a port."""
    link = parse_mlxlink(block.text)
    reason = f"{block.tool}: {link.trouble or link.state}"
    why = reason if link.fec is None else ""
    yield Reading("hca", block.subject, "fec", link.fec, block, reason=why)
    if link.trouble is not None:
        for one in hca_readings(raw):
            if one.subject == block.subject and one.key == "state":
                yield replace(one, reason=reason)


FLASH_TOOLS = {
    "mlxfwmanager": Tool((), _mlxfwmanager),
    "mstflint": Tool(("firmware.stored",), _mstflint),
    "mstconfig": Tool(("nvconfig.all",), _mstconfig),
    "mlxlink": Tool(("fec",), _mlxlink),
}
