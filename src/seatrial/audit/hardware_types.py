"""Keys of hardware.yml, the declaration of HCAs and node settings, with their types."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from seatrial.model.yaml_file import Count, Text

_Version = Annotated[
    str,
    Meta(
        pattern=r"^\d+(\.\d+)+$",
        description="a version in quotes, such as '20.43.2566'",
    ),
]
_Sha256 = Annotated[
    str,
    Meta(pattern=r"^[0-9a-f]{64}$", description="64 hexadecimal digits of sha256sum"),
]
_Psid = Annotated[
    str,
    Meta(
        pattern=r"^[A-Z]{2,3}_?[0-9A-Z]{10,13}$",
        description="a PSID, such as MT_0000000222",
    ),
]
_Bdf = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$",
        description="a PCI address in quotes, such as '0000:41:00.0'",
    ),
]
_Amount = Annotated[int, Meta(ge=0, description="a whole number >= 0")]
_PageSize = Annotated[
    str, Meta(pattern=r"^[1-9]\d*kB$", description="a page size, such as 2048kB")
]
_NumaNode = Annotated[
    str, Meta(pattern=r"^node\d+$", description="a NUMA node, such as node0")
]
_Dscp = Annotated[int, Meta(ge=0, le=63, description="a DSCP, 0 to 63")]
_Priority = Annotated[int, Meta(ge=0, le=7, description="a priority, 0 to 7")]
_Priorities = Annotated[
    tuple[_Priority, ...],
    Meta(description="a list of priorities, such as [3]"),
]
_ReadRequest = Literal[128, 256, 512, 1024, 2048, 4096]
_Mtu = Annotated[int, Meta(ge=256, le=65520, description="an MTU in bytes")]
_PortMtu = Literal[256, 512, 1024, 2048, 4096]
_Speed = Annotated[float, Meta(ge=2.5, le=64, description="2.5, 5, 8, 16, 32 or 64")]
_Value = str | bool | int
_OnOff = Literal["on", "off", "yes", "no", 0, 1] | bool
LinkLayer = Literal["InfiniBand", "Ethernet"]


class Firmware(Struct, frozen=True, forbid_unknown_fields=True):
    """A version; `file` is its image on the control machine."""

    version: _Version
    file: Text | None = None
    sha256: _Sha256 | None = None


class Pcie(Struct, frozen=True, forbid_unknown_fields=True):
    """PCIe settings of an HCA, in bytes and lanes; `speed` in GT/s."""

    max_read_request: _ReadRequest | None = None
    max_payload: _ReadRequest | None = None
    width: Literal[1, 2, 4, 8, 16] | None = None
    speed: _Speed | None = None
    acs: _OnOff | None = None


class HcaModel(Struct, frozen=True, forbid_unknown_fields=True):
    """HCAs with one PSID; `previous` are images for the way back."""

    firmware: Firmware | None = None
    part: Text | None = None
    previous: tuple[Firmware, ...] = ()
    nvconfig: dict[Text, _Value] = {}
    pcie: Pcie = Pcie()


class HcaSlot(Struct, frozen=True, forbid_unknown_fields=True):
    """A rail of a class: a port of the HCA at a PCI address; rate in Gbit/s."""

    name: Text
    bdf: _Bdf
    psid: _Psid
    port: Count = 1
    rate: Count | None = None
    link_layer: LinkLayer | None = None
    mtu: _PortMtu | None = None


class HcaDriver(Struct, frozen=True, forbid_unknown_fields=True):
    """The driver: of the kernel (inbox), or a stack of its own; options by module."""

    source: Literal["inbox", "DOCA", "OFED"] | None = None
    version: Text | None = None
    options: dict[Text, dict[Text, _Value]] = {}


class NodeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a node; `memlock` as a job sees it, in KiB."""

    governor: Text | None = None
    boost: _OnOff | None = None
    c_states: tuple[Text, ...] | None = None
    smt: Literal["on", "off", "yes", "no", "notsupported", 0, 1] | bool | None = None
    numa_balancing: Literal[0, 1, 2] | bool | None = None
    thp: Literal["always", "madvise", "never"] | None = None
    huge_pages: dict[_PageSize, dict[_NumaNode, _Amount]] = {}
    memlock: Literal["unlimited"] | Count | None = None
    irq_affinity: Literal["local", "remote"] | None = None
    irqbalance: Literal["active", "inactive"] | None = None
    kernel: Text | None = None
    kernel_arguments: dict[Text, _Value] = {}
    sysctls: dict[Text, _Value] = {}
    bios: Text | None = None
    bmc: Text | None = None
    microcode: Text | None = None


class Ipoib(Struct, frozen=True, forbid_unknown_fields=True):
    """An interface of IP over InfiniBand; MTU in bytes."""

    mode: Literal["datagram", "connected"] | None = None
    mtu: _Mtu | None = None


class Roce(Struct, frozen=True, forbid_unknown_fields=True):
    """RoCE of Ethernet rails; `dscp` maps a DSCP to a priority, buffers in bytes."""

    trust: Literal["pcp", "dscp"] | None = None
    pfc: _Priorities | None = None
    ecn: _Priorities | None = None
    dscp: dict[_Dscp, _Priority] | None = None
    buffers: tuple[_Amount, ...] | None = None
    mtu: _PortMtu | None = None
    tos: Annotated[int, Meta(ge=0, le=255, description="0 to 255")] | None = None


class Hardware(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole hardware.yml. But for models, keys are classes of nodes, or all."""

    hca_models: dict[_Psid, HcaModel] = {}
    hca_slots: dict[Text, tuple[HcaSlot, ...]] = {}
    hca_driver: dict[Text, HcaDriver] = {}
    node_settings: dict[Text, NodeSettings] = {}
    ipoib: dict[Text, dict[Text, Ipoib]] = {}
    roce: dict[Text, Roce] = {}
