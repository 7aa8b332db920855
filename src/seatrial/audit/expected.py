"""Declared values of a class of nodes, written as sources print them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from seatrial.audit import nvconfig
from seatrial.audit.hardware_file import ALL, HardwareFile
from seatrial.audit.hardware_types import HcaSlot, NodeSettings, Roce

_PLACES = {
    "governor": "cpu",
    "boost": "cpu",
    "smt": "cpu",
    "c_states": "cpu",
    "microcode": "cpu",
    "numa_balancing": "memory",
    "thp": "memory",
    "memlock": "job",
    "irqbalance": "kernel",
    "bios": "node",
    "bmc": "node",
}
"""Kind of subject of the settings that are keys of the audit."""


@dataclass(frozen=True)
class Expected:
    """A declared value of a class; the subject of an HCA is its rail."""

    kind: str
    subject: str
    key: str
    value: str


def expected(declaration: HardwareFile, node_class: str) -> list[Expected]:
    """Return what is declared for a class; what it says itself wins over `all`."""
    found = [*_settings(declaration, node_class), *_driver(declaration, node_class)]
    found += _ipoib(declaration, node_class)
    for slot in declaration.slots(node_class):
        found += _slot(declaration, slot)
        found += _shared(declaration, node_class, slot)
    return found


def rails(declaration: HardwareFile, node_class: str) -> dict[str, str]:
    """Return the rail of each port of an HCA, by its PCI address: `BDF/PORT`."""
    slots = declaration.slots(node_class)
    return {f"{slot.bdf}/{slot.port}": slot.name for slot in slots}


def text_of(value: Any) -> str:
    """Return a value as text: true is on, 16.0 is 16, lists have spaces."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (tuple, list)):
        return " ".join(map(text_of, value)) or "none"
    return str(value)


def _merged(
    declaration: HardwareFile, variable: str, node_class: str
) -> dict[str, Any]:
    """Return the keys of a variable for a class, over those of all classes."""
    values = getattr(declaration.hardware, variable)
    merged: dict[str, Any] = {}
    for name in (ALL, node_class):
        record = values.get(name)
        if isinstance(record, msgspec.Struct):
            record = msgspec.structs.asdict(record)
        for key, value in (record or {}).items():
            if isinstance(value, dict):
                merged[key] = {**merged.get(key, {}), **value}
            elif value is not None:
                merged[key] = value
    return merged


def _settings(declaration: HardwareFile, node_class: str) -> Iterator[Expected]:
    settings = _merged(declaration, "node_settings", node_class)
    for name in msgspec.structs.fields(NodeSettings):
        kind = _PLACES.get(name.name)
        if kind and name.name in settings:
            yield Expected(kind, kind, name.name, text_of(settings[name.name]))
    if "kernel" in settings:
        yield Expected("kernel", "kernel", "release", settings["kernel"])
    for size, nodes in settings.get("huge_pages", {}).items():
        for node, number in nodes.items():
            key = f"huge_pages.{size}.{node}"
            yield Expected("memory", "memory", key, str(number))
    for name, value in settings.get("kernel_arguments", {}).items():
        words = {True: "present", False: "absent"}
        text = words[value] if isinstance(value, bool) else str(value)
        yield Expected("kernel", "kernel", f"argument.{name}", text)
    for name, value in settings.get("sysctls", {}).items():
        text = " ".join(str(int(value) if isinstance(value, bool) else value).split())
        yield Expected("kernel", "kernel", f"sysctl.{name}", text)


def sysctls(declaration: HardwareFile) -> list[str]:
    """Return the names of all declared sysctls."""
    settings = declaration.hardware.node_settings.values()
    return sorted({name for one in settings for name in one.sysctls})


def _driver(declaration: HardwareFile, node_class: str) -> Iterator[Expected]:
    driver = _merged(declaration, "hca_driver", node_class)
    for key in ("source", "version"):
        if key in driver:
            yield Expected("driver", "driver", key, driver[key])
    for module, options in driver.get("options", {}).items():
        for name, value in options.items():
            text = {True: "Y", False: "N"}[value] if isinstance(value, bool) else value
            yield Expected("driver", "driver", f"option.{module}.{name}", str(text))


def _ipoib(declaration: HardwareFile, node_class: str) -> Iterator[Expected]:
    found: dict[tuple[str, str], str] = {}
    for name in (ALL, node_class):
        for interface, one in declaration.hardware.ipoib.get(name, {}).items():
            for key, value in msgspec.structs.asdict(one).items():
                if value is not None:
                    found[interface, key] = text_of(value)
    for (interface, key), text in found.items():
        yield Expected("interface", interface, key, text)


def _slot(declaration: HardwareFile, slot: HcaSlot) -> Iterator[Expected]:
    model = declaration.hardware.hca_models[slot.psid]
    values: dict[str, Any] = {
        "psid": slot.psid,
        "part": model.part,
        "firmware": model.firmware and model.firmware.version,
        "rate": slot.rate,
        "link_layer": slot.link_layer,
        "mtu": slot.mtu,
    }
    pcie = msgspec.structs.asdict(model.pcie)
    values |= {f"pcie.{key}": value for key, value in pcie.items()}
    for key, value in values.items():
        if value is not None:
            yield Expected("hca", slot.name, key, text_of(value))
    for name, value in model.nvconfig.items():
        text = nvconfig.written(name, value, declaration.known)
        yield Expected("hca", slot.name, f"nvconfig.{name}", text)


def _shared(
    declaration: HardwareFile, node_class: str, slot: HcaSlot
) -> Iterator[Expected]:
    """Yield what is declared for all rails: interrupts, and RoCE on Ethernet."""
    settings = _merged(declaration, "node_settings", node_class)
    if "irq_affinity" in settings:
        yield Expected("hca", slot.name, "irq_affinity", settings["irq_affinity"])
    if slot.link_layer != "Ethernet":
        return
    roce = _merged(declaration, "roce", node_class)
    for field in msgspec.structs.fields(Roce):
        if field.name not in roce:
            continue
        value = roce[field.name]
        if field.name == "dscp":
            value = [f"{dscp}:{priority}" for dscp, priority in sorted(value.items())]
        key = "mtu" if field.name == "mtu" else f"roce.{field.name}"
        yield Expected("hca", slot.name, key, text_of(value))
