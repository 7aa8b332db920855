"""The declaration of the fabric: group_vars/all/fabric.yml of an inventory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from seatrial.fabric.plan import Plan, load_plan
from seatrial.model.yaml_file import Text, YamlFile
from seatrial.paths import FABRIC_FILE, PLAN_FILE, etc_dir
from seatrial.system.description import is_provisioned, unknown_system

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


_Interface = Annotated[
    str, Meta(pattern=r"^[\w.-]{1,15}$", description="the name of an interface")
]


_Host = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_][\w.@-]*$", description="the name of a host"),
]


class SubnetManager(Struct, frozen=True, forbid_unknown_fields=True):
    """The subnet manager that is to be the master: GUID of its port, and priority."""

    guid: _Guid | None = None
    priority: _Priority | None = None


class Counters(Struct, frozen=True, forbid_unknown_fields=True):
    """Reading of error counters in campaigns: by nodes, or by ibqueryerrors for all.

    Without `source`, nodes with HCAs are read. `interfaces` are Ethernet interfaces of
    nodes beside those of RDMA devices.
    """

    source: Literal["nodes", "fabric", "none"] | None = None
    interfaces: tuple[_Interface, ...] = ()


class Declaration(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole fabric.yml.

    `fabric_plan` is the cable plan, from the folder of the inventory; `fabric_firmware`
    has a version by PSID or model of switches. `fabric_routing`: adaptive if switches
    choose among shortest paths. `fabric_counters` says by what campaigns read error
    counters. `fabric_host` is where the tools of the fabric run over ssh, as seen from
    the login node; None: there.
    """

    fabric_plan: Text | None = None
    fabric_sm: SubnetManager | None = None
    fabric_firmware: dict[Text, _Version] = {}
    fabric_routing: Literal["adaptive"] | None = None
    fabric_counters: Counters = Counters()
    fabric_host: _Host | None = None


@dataclass(frozen=True)
class Declared:
    """The declaration of a system, its file, and the plan that it names."""

    declaration: Declaration
    file: Path
    plan_file: Path | None

    def plan(self) -> Plan | None:
        """Read the plan; None if there is none. SeatrialError as `load_plan`."""
        return None if self.plan_file is None else load_plan(self.plan_file)


def declared_for(home: Path, system: str) -> Declared:
    """Read the declaration of the inventory, or where the system is provisioned.

    Raises SeatrialError if the system is unknown, or as `load_declaration`.
    """
    inventory = home / "inventories" / system
    if not inventory.is_dir() and not is_provisioned(home, system):
        raise unknown_system(home, system)
    file = etc_dir(home, system) / FABRIC_FILE
    if file.is_file() and not (inventory / NAME).is_file():
        declaration = load_declaration(file)
        plan = file.with_name(PLAN_FILE)
        return Declared(declaration, file, plan if declaration.fabric_plan else None)
    declaration = load_declaration(inventory / NAME)
    name = declaration.fabric_plan
    return Declared(declaration, inventory / NAME, inventory / name if name else None)


def load_declaration(file: Path) -> Declaration:
    """Read the declaration; without the file, nothing is declared.

    Raises SeatrialError with file and line for a wrong value.
    """
    if not file.is_file():
        return Declaration()
    return parse_declaration(file)


def parse_declaration(file: Path, content: bytes | None = None) -> Declaration:
    """Parse the content of a declaration, by default that of the file; as above."""
    yaml = YamlFile(file, content)
    return Declaration() if yaml.data is None else yaml.convert(Declaration)
