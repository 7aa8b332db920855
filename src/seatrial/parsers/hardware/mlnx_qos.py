"""Quality of service of an Ethernet port, as `mlnx_qos -i INTERFACE` prints it.

Source of the format: Mellanox/mlnx-tools, mlnx_qos.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_MAP = re.compile(r"\s+prio:([0-7]) dscp:((?:[0-9]{2},)*)")
_PFC = re.compile(r"\s+enabled\s+([01](?:\s+[01]){7})\s*")
_FIELD = re.compile(r"(Priority trust state|Receive buffer size \(bytes\)): (\S.*)")
_ALL = 64


@dataclass(frozen=True)
class MlnxQos:
    """Trust (pcp or dscp), priorities with PFC, priority by DSCP, buffers in bytes.

    `dscp` is empty and `trust` None if the driver does not tell; `buffers` likewise.
    """

    trust: str | None
    pfc: tuple[int, ...]
    dscp: dict[int, int]
    buffers: tuple[int, ...]


def parse_mlnx_qos(text: str) -> MlnxQos:
    """Parse the output; ParseError if it is not whole."""
    fields = Fields("mlnx_qos")
    dscp: dict[int, int] = {}
    pfc: tuple[int, ...] | None = None
    is_map = False
    for number, line in enumerate(whole_lines(text), start=1):
        if match := _FIELD.fullmatch(line):
            fields.add(number, match[1], match[2])
        elif line == "dscp2prio mapping:":
            is_map = True
        elif match := _MAP.fullmatch(line):
            for name in match[2].split(",")[:-1]:
                if int(name) in dscp:
                    raise ParseError(number, f"mlnx_qos: a second DSCP {name}")
                dscp[int(name)] = int(match[1])
        elif match := _PFC.fullmatch(line):
            if pfc is not None:
                raise ParseError(number, "mlnx_qos: a second row of PFC")
            pfc = tuple(n for n, bit in enumerate(match[1].split()) if bit == "1")
    if pfc is None:
        raise ParseError(0, "mlnx_qos: no row of PFC")
    if is_map and {*dscp} != {*range(_ALL)}:
        raise ParseError(0, f"mlnx_qos: {len(dscp)} of {_ALL} DSCPs have a priority")
    sizes = fields.get(
        "Receive buffer size (bytes)",
        r"[0-9]{1,12}(,[0-9]{1,12})*,(max_buffer_size=\d+)?",
    )
    buffers = [part for part in (sizes or "").split(",") if part.isdecimal()]
    trust = fields.get("Priority trust state", "pcp|dscp|both|none|port")
    return MlnxQos(trust, pfc, dscp, tuple(map(int, buffers)))
