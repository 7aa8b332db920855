"""Programs that read the flash of an HCA, as root: mstflint and mstconfig."""

from collections.abc import Iterator

from seatrial.audit.hca_readings import device_addresses
from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading
from seatrial.audit.tool import Tool
from seatrial.parsers.hardware.mstconfig import NvValue, parse_mstconfig_query
from seatrial.parsers.hardware.mstflint import parse_mstflint_query


def _mstflint(block: Block, raw: Raw) -> Iterator[Reading]:
    query = parse_mstflint_query(block.text)
    running = query.running_version or _running(block, raw, query.stored_version)
    pending = None if running == query.stored_version else query.stored_version
    values = {"psid": query.psid, "part": query.part_number}
    for key, value in values.items():
        if value is not None:
            yield Reading("hca", block.subject, key, value, block)
    yield Reading("hca", block.subject, "firmware", running, block, pending=pending)


def _running(block: Block, raw: Raw, stored: str) -> str:
    """Return the version of the driver: mstflint may tell of the flash alone.

    It is `stored` as mstflint writes it if only zeros differ, or without a driver.
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


FLASH_TOOLS = {
    "mstflint": Tool(("firmware.stored",), _mstflint),
    "mstconfig": Tool(("nvconfig.all",), _mstconfig),
}
