"""Declared values of a class of nodes, written as sources print them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from seatrial.audit import nvconfig
from seatrial.audit.hardware_file import ALL, HardwareFile
from seatrial.audit.hardware_types import HcaSlot, NodeSettings, Roce
from seatrial.audit.roce_tools import sizes
from seatrial.model.yaml_file import Place

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

_ON_OFF = ("boost", "smt", "acs")
_SWITCHES = {0: "off", 1: "on", "no": "off", "yes": "on"}


@dataclass(frozen=True)
class Expected:
    """A declared value of a class, and its line; the subject of an HCA is its rail."""

    kind: str
    subject: str
    key: str
    value: str
    line: int = 0


def expected(declaration: HardwareFile, node_class: str) -> list[Expected]:
    """Return what is declared for a class; what it says itself wins over `all`."""
    found = [*_settings(declaration, node_class), *_driver(declaration, node_class)]
    found += _ipoib(declaration, node_class)
    places = declaration.slot_places(node_class)
    for slot, place in zip(declaration.slots(node_class), places, strict=True):
        found += _slot(declaration, slot, place)
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
            if value is not None:
                merged[key] = _over(merged.get(key), value)
    return merged


def _over(below: Any, value: Any) -> Any:
    """Return a mapping over another one, key by key at all depths."""
    if not isinstance(value, dict) or not isinstance(below, dict):
        return value
    return below | {key: _over(below.get(key), part) for key, part in value.items()}


def _settings(declaration: HardwareFile, node_class: str) -> Iterator[Expected]:
    settings = _merged(declaration, "node_settings", node_class)
    for name in msgspec.structs.fields(NodeSettings):
        kind = _PLACES.get(name.name)
        if kind and name.name in settings:
            text = _setting(name.name, settings[name.name])
            line = declaration.line("node_settings", node_class, name.name)
            yield Expected(kind, kind, name.name, text, line)
    if "kernel" in settings:
        line = declaration.line("node_settings", node_class, "kernel")
        yield Expected("kernel", "kernel", "release", settings["kernel"], line)
    yield from _maps(declaration, node_class, settings)


def _maps(
    declaration: HardwareFile, node_class: str, settings: dict[str, Any]
) -> Iterator[Expected]:
    def line(*keys: str) -> int:
        return declaration.line("node_settings", node_class, *keys)

    for size, nodes in settings.get("huge_pages", {}).items():
        for node, number in nodes.items():
            key = f"huge_pages.{size}.{node}"
            at = line("huge_pages", size, node)
            yield Expected("memory", "memory", key, str(number), at)
    for name, value in settings.get("kernel_arguments", {}).items():
        words = {True: "present", False: "absent"}
        text = words[value] if isinstance(value, bool) else str(value)
        at = line("kernel_arguments", name)
        yield Expected("kernel", "kernel", f"argument.{name}", text, at)
    for name, value in settings.get("sysctls", {}).items():
        text = " ".join(str(int(value) if isinstance(value, bool) else value).split())
        at = line("sysctls", name)
        yield Expected("kernel", "kernel", f"sysctl.{name}", text, at)


def _setting(name: str, value: Any) -> str:
    """Return a setting as text: 0, 1, yes and no are words if it is a switch."""
    if name == "numa_balancing":
        return str(int(value))
    words = _SWITCHES if name in _ON_OFF else {}
    return text_of(words.get(value, value))


def sysctls(declaration: HardwareFile) -> list[str]:
    """Return the names of all declared sysctls."""
    settings = declaration.hardware.node_settings.values()
    return sorted({name for one in settings for name in one.sysctls})


def _driver(declaration: HardwareFile, node_class: str) -> Iterator[Expected]:
    driver = _merged(declaration, "hca_driver", node_class)
    for key in ("source", "version"):
        if key in driver:
            line = declaration.line("hca_driver", node_class, key)
            yield Expected("driver", "driver", key, driver[key], line)
    for module, options in driver.get("options", {}).items():
        for name, value in options.items():
            text = {True: "Y", False: "N"}[value] if isinstance(value, bool) else value
            line = declaration.line("hca_driver", node_class, "options", module, name)
            key = f"option.{module}.{name}"
            yield Expected("driver", "driver", key, str(text), line)


def _ipoib(declaration: HardwareFile, node_class: str) -> Iterator[Expected]:
    found: dict[tuple[str, str], str] = {}
    for name in (ALL, node_class):
        for interface, one in declaration.hardware.ipoib.get(name, {}).items():
            for key, value in msgspec.structs.asdict(one).items():
                if value is not None:
                    found[interface, key] = text_of(value)
    for (interface, key), text in found.items():
        line = declaration.line("ipoib", node_class, interface, key)
        yield Expected("interface", interface, key, text, line)


def _slot(declaration: HardwareFile, slot: HcaSlot, place: Place) -> Iterator[Expected]:
    model = declaration.hardware.hca_models[slot.psid]
    lines, of = declaration.yaml.lines, ("hca_models", slot.psid)
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
            text = _setting(key.removeprefix("pcie."), value)
            of_model = ("firmware", "version") if key == "firmware" else key.split(".")
            at = lines.get((*place, key)) or lines[(*of, *of_model)]
            yield Expected("hca", slot.name, key, text, at)
    for name, value in model.nvconfig.items():
        text = nvconfig.written(name, value, declaration.known)
        at = lines[(*of, "nvconfig", name)]
        yield Expected("hca", slot.name, f"nvconfig.{name}", text, at)


def _shared(
    declaration: HardwareFile, node_class: str, slot: HcaSlot
) -> Iterator[Expected]:
    """Yield what is declared for all rails: interrupts, and RoCE on Ethernet."""
    settings = _merged(declaration, "node_settings", node_class)
    if "irq_affinity" in settings:
        line = declaration.line("node_settings", node_class, "irq_affinity")
        text = settings["irq_affinity"]
        yield Expected("hca", slot.name, "irq_affinity", text, line)
    if slot.link_layer != "Ethernet":
        return
    roce = _merged(declaration, "roce", node_class)
    for field in msgspec.structs.fields(Roce):
        if field.name not in roce or (field.name == "mtu" and slot.mtu):
            continue
        value = roce[field.name]
        if field.name in ("pfc", "ecn"):
            value = sorted(set(value))
        if field.name == "buffers":
            value = sizes(value)
        line = declaration.line("roce", node_class, field.name)
        if field.name == "dscp":
            for dscp, priority in sorted(value.items()):
                text = str(priority)
                yield Expected("hca", slot.name, f"roce.dscp.{dscp}", text, line)
            continue
        key = "mtu" if field.name == "mtu" else f"roce.{field.name}"
        yield Expected("hca", slot.name, key, text_of(value), line)
