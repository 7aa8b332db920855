"""Readings of a node's CPUs, memory, kernel and drivers, from sysfs and procfs."""

import re
from collections import defaultdict
from collections.abc import Iterator

from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading

_NOT_COMPARED = ("BOOT_IMAGE", "initrd", "root", "resume", "rd.luks.uuid")
_CHOSEN = re.compile(r"\[(\S+)\]")
_HUGE = re.compile(r"node/(node\d+)/hugepages/hugepages-(\w+)/nr_hugepages$")
_EDAC = {"ce_count": "edac_corrected", "ue_count": "edac_uncorrected"}
_DMI = {
    "vendor": ("sys_vendor",),
    "product": ("product_name",),
    "serial": ("product_serial",),
    "bios": ("bios_version", "bios_date"),
}


def node_readings(raw: Raw) -> Iterator[Reading]:
    """Yield the readings of the node itself and of its kernel modules."""
    if block := raw.get("node_sysfs"):
        values = block.values()
        yield from _node(block, values, raw.get("serial"))
        yield from _switches(block, values)
        yield from _memory(block, values)
        yield from _kernel(block, values)
    if block := raw.get("cpus"):
        yield from _cpus(block)
    if block := raw.get("cpuinfo"):
        yield from _cpuinfo(block)
    if block := raw.get("memlock"):
        value = block.text.strip() if block.status == 0 else None
        yield Reading("job", "job", "memlock", value, block, reason=block.trouble)
    if block := raw.get("modules"):
        yield from _modules(block)


def _node(
    block: Block, values: dict[str, str], denied: Block | None
) -> Iterator[Reading]:
    for key, names in _DMI.items():
        parts = [values.get(f"sys/class/dmi/id/{name}", "") for name in names]
        if text := " ".join(filter(None, parts)):
            yield Reading("node", "node", key, text, block)
    if denied is not None:
        reason = denied.trouble
        yield Reading("node", "node", "serial", None, denied, reason=reason)
    for path, *line in block.fields():
        if path == "etc/os-release" and line[0].startswith("PRETTY_NAME="):
            yield Reading("node", "node", "os", line[0].split("=")[1].strip('"'), block)


def _switches(block: Block, values: dict[str, str]) -> Iterator[Reading]:
    """Yield what is on or off for all CPUs."""
    cpu = "sys/devices/system/cpu"
    boost = {"0": "off", "1": "on"}.get(values.get(f"{cpu}/cpufreq/boost", ""))
    turbo = {"0": "on", "1": "off"}.get(
        values.get(f"{cpu}/intel_pstate/no_turbo", ""), boost
    )
    if turbo:
        yield Reading("cpu", "cpu", "boost", turbo, block)
    if smt := values.get(f"{cpu}/smt/control"):
        yield Reading("cpu", "cpu", "smt", smt, block)


def _memory(block: Block, values: dict[str, str]) -> Iterator[Reading]:
    counts: dict[str, int] = defaultdict(int)
    for path, text in values.items():
        if match := _HUGE.search(path):
            key = f"huge_pages.{match[2]}.{match[1]}"
            yield Reading("memory", "memory", key, text, block)
        name = path.rsplit("/", 1)[-1]
        if "/edac/" in path and name in _EDAC and text.isdecimal():
            counts[_EDAC[name]] += int(text)
        if path.startswith("interrupts/MCE"):
            counts["mce"] += sum(map(int, re.findall(r"\d+", text)))
    for key, count in counts.items():
        yield Reading("memory", "memory", key, str(count), block)
    chosen = _CHOSEN.search(
        values.get("sys/kernel/mm/transparent_hugepage/enabled", "")
    )
    if chosen:
        yield Reading("memory", "memory", "thp", chosen[1], block)
    if text := values.get("proc/sys/kernel/numa_balancing", ""):
        yield Reading("memory", "memory", "numa_balancing", text, block)


def _kernel(block: Block, values: dict[str, str]) -> Iterator[Reading]:
    release = values.get("proc/sys/kernel/osrelease")
    if release:
        yield Reading("kernel", "kernel", "release", release, block)
    if line := values.get("proc/cmdline"):
        words = [w for w in line.split() if w.partition("=")[0] not in _NOT_COMPARED]
        yield Reading("kernel", "kernel", "command_line", " ".join(words), block)
        given: dict[str, list[str]] = defaultdict(list)
        for word in words:
            name, equals, text = word.partition("=")
            given[name].append(text if equals else "present")
        for name, texts in given.items():
            key = f"argument.{name}"
            yield Reading("kernel", "kernel", key, " ".join(texts), block)
    for path, text in values.items():
        if path.startswith("proc/sys/") and not path.endswith("/osrelease"):
            name = path.removeprefix("proc/sys/").replace("/", ".")
            text = " ".join(text.split())
            yield Reading("kernel", "kernel", f"sysctl.{name}", text, block)
    if release:
        active = any(path.endswith("/comm") for path in values)
        text = "active" if active else "inactive"
        yield Reading("kernel", "kernel", "irqbalance", text, block)


def _cpus(block: Block) -> Iterator[Reading]:
    """Yield governors and idle states; a state that only some CPUs use is marked."""
    governors: list[str] = []
    names: dict[int, str] = {}
    enabled: dict[int, list[str]] = defaultdict(list)
    for path, value, _ in (fields for fields in block.fields() if len(fields) == 3):
        state = re.search(r"/cpuidle/state(\d+)/(name|disable)$", path)
        if path.endswith("/scaling_governor"):
            governors.append(value)
        elif state and state[2] == "name":
            names.setdefault(int(state[1]), value.replace(" ", "_"))
        elif state:
            enabled[int(state[1])].append(value)
    if governors:
        text = " ".join(sorted(governors))
        yield Reading("cpu", "cpu", "governor", text, block)
    if names:
        texts = [
            name if enabled[index] == ["0"] else f"{name}(some)"
            for index, name in sorted(names.items())
            if "0" in enabled[index]
        ]
        yield Reading("cpu", "cpu", "c_states", " ".join(texts) or "none", block)


def _cpuinfo(block: Block) -> Iterator[Reading]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in block.text.splitlines():
        name, colon, text = line.partition(":")
        if colon and text.strip():
            found[name.strip(" \t0123456789")].append(" ".join(text.split()))
    for key, name in (("model", "model name"), ("microcode", "microcode")):
        if found[name]:
            text = ", ".join(sorted(found[name]))
            yield Reading("cpu", "cpu", key, text, block)


def _modules(block: Block) -> Iterator[Reading]:
    """Yield the parameters of the HCAs' kernel modules."""
    for path, text in block.values().items():
        _, _, module, *rest = path.split("/")
        if rest[:1] == ["parameters"]:
            key = f"option.{module}.{rest[1]}"
            yield Reading("driver", "driver", key, text, block)
