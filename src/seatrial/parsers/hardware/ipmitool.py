"""Firmware of a BMC, as `ipmitool mc info` prints it."""

import re

from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_FIELD = re.compile(r"(\S[^:]*?)\s*: (\S.*)")


def parse_ipmitool_mc_info(text: str) -> str:
    """Return the version of the firmware, such as `7.10`; ParseError without one."""
    fields = Fields("ipmitool")
    for number, line in enumerate(whole_lines(text), start=1):
        if (match := _FIELD.fullmatch(line)) and match[1] == "Firmware Revision":
            fields.add(number, match[1], match[2])
    return fields.need("Firmware Revision", r"[0-9]{1,3}\.[0-9]{1,3}")
