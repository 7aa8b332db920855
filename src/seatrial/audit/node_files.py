"""Files that bring a node to the declaration, and keep it there after a reboot.

They follow from what the audit expects (`expected.py`), so that what is set is what is
read. Each file is Seatrial's as a whole.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from seatrial.audit.expected import Expected, expected
from seatrial.audit.hardware_file import HardwareFile

Family = Literal["Debian", "RedHat", "Suse"]
"""Ansible's names of families of distributions."""

SYSCTL = "etc/sysctl.d/90-seatrial.conf"
TMPFILES = "etc/tmpfiles.d/90-seatrial.conf"
MODPROBE = "etc/modprobe.d/seatrial.conf"
MEMLOCK = "etc/systemd/system/slurmd.service.d/seatrial.conf"
GRUB = "etc/default/grub.d/90-seatrial.cfg"
_SCRIPT = "usr/local/sbin/seatrial-{role}"
_UNIT = "etc/systemd/system/seatrial-{role}.service"

_HEAD = (
    "# Written by Seatrial, role {role}, from hardware.yml: changes here are lost.\n"
)
_CPU = "/sys/devices/system/cpu"
_SWITCH = {"on": "1", "off": "0"}
_ROCE = "roce."


@dataclass
class NodeFiles:
    """Files by path below the root, and what is done beside them.

    `arguments` of the kernel are added, `removed` ones taken away. `services` have
    active or inactive. `by_hand` is declared, but no program here sets it. `keys` are
    those that a second audit must find as declared: `SUBJECT KEY`.
    """

    files: dict[str, str] = field(default_factory=dict)
    executable: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    services: dict[str, str] = field(default_factory=dict)
    by_hand: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    boot_keys: list[str] = field(default_factory=list)


def node_files(
    declaration: HardwareFile,
    node_class: str,
    role: Literal["node", "roce"],
    family: Family,
) -> NodeFiles:
    """Return what a role writes for a class of nodes."""
    build = _Build(declaration, node_class, role)
    for one in expected(declaration, node_class):
        of_roce = one.key.startswith(_ROCE)
        mine = one.kind != "hca" or one.key in ("irq_affinity", "pcie.max_read_request")
        if of_roce if role == "roce" else mine:
            build.add(one)
    return build.done(family)


class _Build:
    def __init__(self, declaration: HardwareFile, node_class: str, role: str) -> None:
        self.role, self.result = role, NodeFiles()
        self.addresses = {s.name: s.bdf for s in declaration.slots(node_class)}
        self.ports = {s.name: s.port for s in declaration.slots(node_class)}
        self.lines: dict[str, list[str]] = defaultdict(list)
        self.script: list[str] = []

    def add(self, one: Expected) -> None:
        """Add one declared value to the files, or to what is done by hand."""
        name = one.key.split(".")[0]
        handler = {
            "hca": self._hca,
            "interface": self._interface,
            "driver": self._driver,
            "kernel": self._kernel,
        }.get(one.kind, self._plain)
        known = handler(one, name)
        text = f"{one.subject} {one.key}"
        if not known:
            self.result.by_hand.append(f"{text}: {one.value}")
        elif one.kind != "job":  # only a job sees it
            self.result.keys.append(text)
            if name in ("argument", "option"):
                self.result.boot_keys.append(text)

    def _plain(self, one: Expected, name: str) -> bool:
        """Add a setting of CPU, memory or jobs; False if no program sets it."""
        value = one.value
        if name == "numa_balancing":
            self.lines[SYSCTL].append(f"kernel.numa_balancing = {value}")
        elif name == "governor":
            self._write(f"{_CPU}/cpu*/cpufreq/scaling_governor", value)
        elif name == "boost":
            self._write(f"{_CPU}/cpufreq/boost", _SWITCH[value])
            other = {"on": "0", "off": "1"}[value]
            self._write(f"{_CPU}/intel_pstate/no_turbo", other)
        elif name == "smt" and value in _SWITCH:
            self._write(f"{_CPU}/smt/control", value)
        elif name == "thp":
            self._write("/sys/kernel/mm/transparent_hugepage/enabled", value)
        elif name == "huge_pages":
            _, size, node = one.key.split(".")
            folder = f"/sys/devices/system/node/{node}/hugepages/hugepages-{size}"
            self._write(f"{folder}/nr_hugepages", value)
        elif name == "memlock":
            limit = value if value == "unlimited" else str(int(value) * 1024)
            limit = limit.replace("unlimited", "infinity")
            self.lines[MEMLOCK] += ["[Service]", f"LimitMEMLOCK={limit}"]
        elif name == "c_states":
            self.script += _c_states(value)
        else:
            return False
        return True

    def _kernel(self, one: Expected, name: str) -> bool:
        rest = one.key.partition(".")[2]
        if name == "sysctl":
            self.lines[SYSCTL].append(f"{rest} = {one.value}")
        elif name == "argument" and one.value == "absent":
            self.result.removed.append(rest)
        elif name == "argument":
            text = rest if one.value == "present" else f"{rest}={one.value}"
            self.result.arguments.append(text)
        elif name == "irqbalance":
            self.result.services["irqbalance"] = one.value
        else:
            return False
        return True

    def _driver(self, one: Expected, name: str) -> bool:
        if name != "option":
            return False
        _, module, option = one.key.split(".", 2)
        self.lines[MODPROBE].append(f"options {module} {option}={one.value}")
        return True

    def _interface(self, one: Expected, name: str) -> bool:
        device = one.subject
        if name == "mode":
            self.script.append(f"echo {one.value} >/sys/class/net/{device}/mode")
        elif name == "mtu":
            self.script.append(f"ip link set dev {device} mtu {one.value}")
        return name in ("mode", "mtu")

    def _hca(self, one: Expected, name: str) -> bool:
        bdf = self.addresses[one.subject]
        if name == "irq_affinity":
            if one.value == "local":
                self.script += _local_irqs(bdf)
            return one.value == "local"
        if name == "pcie":
            # Bits 12 to 14 of the device control register: 128 B, 256 B ... 4 KiB.
            code = int(one.value).bit_length() - 8
            self.script.append(f"setpci -s {bdf} CAP_EXP+08.w={code:x}000:7000")
            return True
        lines = _roce(one.key.removeprefix(_ROCE), one.value, self.ports[one.subject])
        if lines:
            self.script += [f"for net in /sys/bus/pci/devices/{bdf}/net/*; do"]
            self.script += ["    net=${net##*/}", *(f"    {x}" for x in lines), "done"]
        return bool(lines)

    def _write(self, path: str, value: str) -> None:
        """Add a line of tmpfiles.d: written at boot, if the file is there."""
        self.lines[TMPFILES].append(f"w {path} - - - - {value}")

    def done(self, family: Family) -> NodeFiles:
        """Return the files; those of the kernel's command line follow the family."""
        result = self.result
        if result.arguments and family == "Debian":
            added = " ".join(result.arguments)
            line = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {added}"'
            self.lines[GRUB].append(line)
        if family != "RedHat":  # grubby takes arguments away; elsewhere they are text
            for name in result.removed:
                result.keys.remove(f"kernel argument.{name}")
                result.boot_keys.remove(f"kernel argument.{name}")
                result.by_hand.append(f"kernel argument.{name}: absent")
            result.removed = []
        head = _HEAD.format(role=self.role)
        for path, lines in self.lines.items():
            result.files[path] = head + "".join(f"{line}\n" for line in lines)
        if self.script:
            script, unit = (t.format(role=self.role) for t in (_SCRIPT, _UNIT))
            commands = "\n".join(self.script)
            result.files[script] = f"#!/bin/sh\n{head}set -u\n{commands}\n"
            result.files[unit] = head + _unit(self.role, script)
            result.executable.append(script)
        return result


def _unit(role: str, script: str) -> str:
    return f"""\
[Unit]
Description=Settings of Seatrial's role {role}
After=network-online.target openibd.service irqbalance.service
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/{script}

[Install]
WantedBy=multi-user.target
"""


def _c_states(names: str) -> list[str]:
    """Return a loop that enables the idle states of these names, and no others."""
    return [
        f"for state in {_CPU}/cpu[0-9]*/cpuidle/state*; do",
        '    case " ' + names + ' " in',
        '    *" $(tr " " _ <"$state/name") "*) echo 0 ;;',
        "    *) echo 1 ;;",
        '    esac >"$state/disable"',
        "done",
    ]


def _local_irqs(bdf: str) -> list[str]:
    """Return a loop that lets the CPUs of the HCA's NUMA node serve its interrupts."""
    return [
        f"numa=$(cat /sys/bus/pci/devices/{bdf}/numa_node)",
        '[ "$numa" -ge 0 ] || numa=0  # -1: the machine has one node',
        "cpus=$(cat /sys/devices/system/node/node$numa/cpulist)",
        f"for irq in /sys/bus/pci/devices/{bdf}/msi_irqs/*; do",
        '    echo "$cpus" >"/proc/irq/${irq##*/}/smp_affinity_list"',
        "done",
    ]


def _roce(key: str, value: str, port: int) -> list[str]:
    """Return commands for the interface $net: of OFED's mlnx_qos, else of dcb."""
    priorities = [] if value == "none" else value.split()
    if key == "trust":
        return _either([f'--trust "{value}"'], [])
    if key == "pfc":
        bits = ",".join("1" if str(n) in priorities else "0" for n in range(8))
        pairs = " ".join(f"{n}:on" for n in priorities)
        return _either(
            [f"--pfc {bits}"], [f"pfc set dev $net prio-pfc all:off {pairs}"]
        )
    if key.startswith("dscp."):
        dscp = key.removeprefix("dscp.")
        ours = [f"--dscp2prio set,{dscp},{value}"]
        return _either(ours, [f"app replace dev $net dscp-prio {dscp}:{value}"])
    if key == "buffers":
        pairs = " ".join(f"{n}:{size}" for n, size in enumerate(priorities))
        comma = ",".join(priorities)
        return _either(
            [f"--buffer_size {comma}"], [f"buffer set dev $net buffer-size {pairs}"]
        )
    if key == "ecn":
        return [
            "for way in np rp; do for n in 0 1 2 3 4 5 6 7; do",
            f'    case " {" ".join(priorities)} " in *" $n "*) on=1 ;; *) on=0 ;; esac',
            "    echo $on >/sys/class/net/$net/ecn/roce_$way/enable/$n",
            "done; done",
        ]
    if key == "tos":
        folder = "/sys/kernel/config/rdma_cm/$device"
        return [
            "for device in /sys/class/net/$net/device/infiniband/*; do",
            "    device=${device##*/}",
            f"    mkdir -p {folder}",
            f"    echo {value} >{folder}/ports/{port}/default_roce_tos",
            "done",
        ]
    return []


def _either(ofed: Iterable[str], dcb: Iterable[str]) -> list[str]:
    return [
        "if command -v mlnx_qos >/dev/null; then",
        *(f"    mlnx_qos -i $net {arguments}" for arguments in ofed),
        *(["else", *(f"    dcb {arguments}" for arguments in dcb)] if dcb else []),
        "fi",
    ]
