"""The declaration of the fabric: group_vars/all/fabric.yml of an inventory."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from seatrial.fabric.plan import Plan, load_plan
from seatrial.model.yaml_file import Text, YamlFile

NAME = "group_vars/all/fabric.yml"
"""Of a folder of inventories: Ansible reads it, too."""

_Guid = Annotated[
    str,
    Meta(
        pattern=r"^0x[0-9a-f]{16}$",
        description="a GUID in quotes, 0x and 16 hexadecimal digits",
    ),
]
_Priority = Annotated[int, Meta(ge=0, le=15, description="a priority, 0 to 15")]
_Version = Annotated[
    str,
    Meta(pattern=r"^\d+(\.\d+)+$", description="a version in quotes"),
]


class SubnetManager(Struct, frozen=True, forbid_unknown_fields=True):
    """The subnet manager that is to be the master: GUID of its port, and priority."""

    guid: _Guid | None = None
    priority: _Priority | None = None


class Declaration(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole fabric.yml.

    `fabric_plan` is the cable plan, from the folder of the inventory; `fabric_firmware`
    has a version by PSID or model of switches.
    """

    fabric_plan: Text | None = None
    fabric_sm: SubnetManager | None = None
    fabric_firmware: dict[Text, _Version] = {}


def load_declaration(inventory: Path) -> Declaration:
    """Read the declaration; without the file, nothing is declared.

    Raises SeatrialError with file and line for a wrong value.
    """
    file = inventory / NAME
    if not file.is_file():
        return Declaration()
    yaml = YamlFile(file)
    return Declaration() if yaml.data is None else yaml.convert(Declaration)


def declared_plan(inventory: Path, declaration: Declaration) -> Plan | None:
    """Read the declared plan; None if there is none. SeatrialError as `load_plan`."""
    if declaration.fabric_plan is None:
        return None
    return load_plan(inventory / declaration.fabric_plan)
