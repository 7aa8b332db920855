"""Parse `sminfo`, and the records of all subnet managers of `saquery SMIR`."""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.seen import guid_of

_SMINFO = re.compile(
    r"sminfo: sm lid (\d+) sm guid (0x[0-9a-f]+), activity count \d+ "
    r"priority (\d+) state \d+ SMINFO_(\w+)"
)
_FIELD = re.compile(r"\s*(GUID|LID|Priority|SMState)\.+(\S+)")
_STATES = ("NOTACT", "DISCOVER", "STANDBY", "MASTER")
_NAMES = dict(enumerate(("not active", "discovering", "standby", "master")))


@dataclass(frozen=True, slots=True)
class SeenManager:
    """A subnet manager: GUID of its port, LID, priority 0 to 15, and state.

    The state is master, standby, discovering or not active.
    """

    guid: str
    lid: int
    priority: int
    state: str


def parse_sminfo(text: str) -> list[SeenManager]:
    """Return the subnet managers of one or several outputs of sminfo.

    Raises ParseError if there is none: without a subnet manager, sminfo prints an
    error only.
    """
    managers = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _SMINFO.fullmatch(line.rstrip())
        if match is None:
            if line.startswith("sminfo: sm "):
                raise ParseError(
                    number, f"cut off or damaged: {line!r}. Run sminfo again."
                )
            continue
        if match[4] not in _STATES:
            raise ParseError(number, f"unknown state SMINFO_{match[4]}")
        state = _NAMES[_STATES.index(match[4])]
        managers.append(
            SeenManager(guid_of(match[2]), int(match[1]), int(match[3]), state)
        )
    if not managers:
        raise ParseError(0, "no subnet manager; expected a line of sminfo")
    return managers


def parse_smir(text: str) -> list[SeenManager]:
    """Return the subnet managers of `saquery SMIR`; ParseError if it is cut off."""
    lines = text.split("\n")
    records: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("SMInfoRecord dump"):
            records.append((number, {}))
        elif records and (match := _FIELD.fullmatch(line)):
            records[-1][1][match[1]] = match[2]
    managers = []
    for number, fields in records:
        if fields.keys() != {"GUID", "LID", "Priority", "SMState"}:
            raise ParseError(
                number, "cut off: an SMInfoRecord without SMState. Run saquery again."
            )
        state = int(fields["SMState"].split()[0])
        if state not in _NAMES:
            raise ParseError(number, f"unknown SMState {state}")
        managers.append(
            SeenManager(
                guid_of(fields["GUID"]),
                int(fields["LID"]),
                int(fields["Priority"]),
                _NAMES[state],
            )
        )
    return managers
