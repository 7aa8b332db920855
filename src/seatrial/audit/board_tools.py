"""Programs that tell about the node's board, as root: dmidecode and ipmitool."""

from collections import Counter
from collections.abc import Iterator

from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading
from seatrial.audit.tool import Tool
from seatrial.parsers.hardware.dmidecode import parse_dmidecode_memory
from seatrial.parsers.hardware.ipmitool import parse_ipmitool_mc_info


def _memory(_block: Block, _raw: Raw) -> list[tuple[str, str]]:
    return [("memory", "memory")]


def _node(_block: Block, _raw: Raw) -> list[tuple[str, str]]:
    return [("node", "node")]


def _dmidecode(block: Block, _raw: Raw) -> Iterator[Reading]:
    dimms = parse_dmidecode_memory(block.text)
    size = f"{sum(dimm.gib for dimm in dimms):g}"
    yield Reading("memory", "memory", "size", size, block)
    kinds = Counter(f"{d.gib:g} GiB {d.kind} {d.speed or ''}".strip() for d in dimms)
    texts = [f"{count} x {kind}" for kind, count in sorted(kinds.items())]
    yield Reading("memory", "memory", "dimms", ", ".join(texts) or "none", block)


def _ipmitool(block: Block, _raw: Raw) -> Iterator[Reading]:
    yield Reading("node", "node", "bmc", parse_ipmitool_mc_info(block.text), block)


BOARD_TOOLS = {
    "dmidecode": Tool(("size", "dimms"), _dmidecode, _memory),
    "ipmitool": Tool(("bmc",), _ipmitool, _node),
}
