"""Files of the roles node and roce: rendered for three families, run on none."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from fake_hardware import Hca, raw_of, write_node
from firmware_nodes import PSID

from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.node_files import (
    GRUB,
    MEMLOCK,
    MODPROBE,
    SYSCTL,
    TMPFILES,
    NodeFiles,
    node_files,
)
from seatrial.audit.node_rows import settings_drift

SLOT = f"""\
hca_models: {{{PSID}: {{pcie: {{max_read_request: 4096}}}}}}
hca_slots:
  all: [{{name: rail0, bdf: "0000:41:00.0", psid: {PSID}, link_layer: Ethernet}}]
"""
NODE_SCRIPT = "usr/local/sbin/seatrial-node"
ROCE_SCRIPT = "usr/local/sbin/seatrial-roce"


def declared(folder: Path, text: str) -> HardwareFile:
    file = folder / "hardware.yml"
    file.write_text(text)
    return HardwareFile(file, ["cpu"], folder / "no database")


def files(folder: Path, text: str, role: Any = "node", of: Any = "Debian") -> NodeFiles:
    return node_files(declared(folder, text), "cpu", role, of)


@pytest.mark.parametrize(
    ("settings", "path", "line"),
    [
        ("governor: performance", TMPFILES, "/cpufreq/scaling_governor - - - - perfo"),
        ("boost: off", TMPFILES, "/sys/devices/system/cpu/cpufreq/boost - - - - 0"),
        ("boost: off", TMPFILES, "/intel_pstate/no_turbo - - - - 1"),
        ("smt: off", TMPFILES, "/smt/control - - - - off"),
        ("thp: never", TMPFILES, "/transparent_hugepage/enabled - - - - never"),
        (
            "huge_pages: {2048kB: {node1: 512}}",
            TMPFILES,
            "/node/node1/hugepages/hugepages-2048kB/nr_hugepages - - - - 512",
        ),
        ("numa_balancing: 0", SYSCTL, "kernel.numa_balancing = 0"),
        ("sysctls: {vm.swappiness: 1}", SYSCTL, "vm.swappiness = 1"),
        ("memlock: unlimited", MEMLOCK, "[Service]\nLimitMEMLOCK=infinity"),
        ("memlock: 65536", MEMLOCK, "LimitMEMLOCK=67108864"),
        (
            "kernel_arguments: {iommu: pt, nosmt: true}",
            GRUB,
            'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt nosmt"',
        ),
    ],
)
def test_settings_have_files(
    settings: str, path: str, line: str, tmp_path: Path
) -> None:
    found = files(tmp_path, f"node_settings: {{all: {{{settings}}}}}\n")
    assert [*found.files] == [path]
    head, _, rest = found.files[path].partition("\n")
    assert head.startswith("# Written by Seatrial, role node, from hardware.yml")
    assert line in rest
    assert found.by_hand == []


def test_options_of_modules(tmp_path: Path) -> None:
    found = files(
        tmp_path, "hca_driver: {all: {options: {mlx4_core: {log_num_mtt: 24}}}}\n"
    )
    assert found.files[MODPROBE].endswith("\noptions mlx4_core log_num_mtt=24\n")
    assert found.boot_keys == ["driver option.mlx4_core.log_num_mtt"]


ARGUMENTS = "node_settings: {all: {kernel_arguments: {iommu: pt, quiet: false}}}\n"


@pytest.mark.parametrize(
    ("family", "paths", "removed", "by_hand"),
    [
        ("Debian", [GRUB], [], ["kernel argument.quiet: absent"]),
        ("RedHat", [], ["quiet"], []),
        ("Suse", [], [], ["kernel argument.quiet: absent"]),
    ],
)
def test_the_command_line_follows_the_family(
    family: str,
    paths: list[str],
    removed: list[str],
    by_hand: list[str],
    tmp_path: Path,
) -> None:
    found = files(tmp_path, ARGUMENTS, of=family)
    assert [*found.files] == paths
    assert found.arguments == ["iommu=pt"]
    assert (found.removed, found.by_hand) == (removed, by_hand)
    assert ("kernel argument.quiet" in found.keys) == (family == "RedHat")


@pytest.mark.parametrize(("node", "cpus"), [("0", "0-3"), ("1", "4-7"), ("-1", "0-3")])
def test_interrupts_go_to_the_numa_node_of_the_hca(
    node: str, cpus: str, tmp_path: Path
) -> None:
    """The script itself, over a tree of sysfs and procfs."""
    nodes = "sys/devices/system/node"
    changed = {f"{nodes}/node0/cpulist": "0-3\n", f"{nodes}/node1/cpulist": "4-7\n"}
    root = write_node(tmp_path / "root", Hca(numa_node=int(node)), changed=changed)
    declared = SLOT.replace("pcie: {max_read_request: 4096}", "")  # nothing for setpci
    declared += "node_settings: {all: {irq_affinity: local}}\n"
    text = files(tmp_path, declared).files[NODE_SCRIPT]
    assert "setpci" not in text
    for folder in ("/sys/", "/proc/"):
        text = text.replace(folder, f"{root}{folder}")
    subprocess.run(["sh", "-c", text], check=True)
    for irq in (100, 101):
        file = root / f"proc/irq/{irq}/smp_affinity_list"
        assert file.read_text() == f"{cpus}\n"


def test_settings_without_a_program_are_listed(tmp_path: Path) -> None:
    text = "node_settings: {all: {bios: '2.1', kernel: '6.1', microcode: '0x1'}}\n"
    found = files(tmp_path, text + "hca_driver: {all: {source: DOCA}}\n")
    assert found.files == {}
    assert sorted(found.by_hand) == [
        "cpu microcode: 0x1",
        "driver source: DOCA",
        "kernel release: 6.1",
        "node bios: 2.1",
    ]


def test_scripts_are_valid_and_do_what_is_declared(tmp_path: Path) -> None:
    text = f"""{SLOT}
ipoib: {{all: {{ib0: {{mode: datagram, mtu: 2044}}}}}}
node_settings:
  all: {{irq_affinity: local, c_states: [POLL, C1], irqbalance: inactive}}
roce:
  all:
    {{trust: dscp, pfc: [3], ecn: [3], dscp: {{26: 3}}, tos: 106, buffers: [100, 200]}}
"""
    node, roce = files(tmp_path, text), files(tmp_path, text, "roce")
    assert node.services == {"irqbalance": "inactive"}
    script = node.files[NODE_SCRIPT]
    assert "setpci -s 0000:41:00.0 CAP_EXP+08.w=5000:7000" in script
    assert "echo datagram >/sys/class/net/ib0/mode" in script
    assert "ip link set dev ib0 mtu 2044" in script
    assert "/msi_irqs/*; do" in script
    lines = [line.strip() for line in roce.files[ROCE_SCRIPT].splitlines()]
    for line in (
        'mlnx_qos -i $net --trust "dscp"',
        "mlnx_qos -i $net --pfc 0,0,0,1,0,0,0,0",
        "dcb pfc set dev $net prio-pfc all:off 3:on",
        "mlnx_qos -i $net --dscp2prio set,26,3",
        "dcb app replace dev $net dscp-prio 26:3",
        "mlnx_qos -i $net --buffer_size 100,200",
        "dcb buffer set dev $net buffer-size 0:100 1:200",
        "echo 106 >/sys/kernel/config/rdma_cm/$device/ports/1/default_roce_tos",
    ):
        assert line in lines, line
    for found, path in ((node, NODE_SCRIPT), (roce, ROCE_SCRIPT)):
        assert found.executable == [path]
        done = subprocess.run(
            ["sh", "-n"], input=found.files[path], text=True, check=False
        )
        assert done.returncode == 0
        unit = found.files[
            path.replace("usr/local/sbin", "etc/systemd/system") + ".service"
        ]
        assert f"ExecStart=/{path}\n" in unit


@pytest.mark.parametrize(("size", "code"), [(128, 0), (512, 2), (4096, 5)])
def test_sizes_of_read_requests(size: int, code: int, tmp_path: Path) -> None:
    found = files(tmp_path, SLOT.replace("4096", str(size)))
    assert f"CAP_EXP+08.w={code}000:7000" in found.files[NODE_SCRIPT]


def test_idle_states_are_switched_by_name(tmp_path: Path) -> None:
    """The script runs over a tree: its paths lose their first slash."""
    states = tmp_path / "tree/sys/devices/system/cpu/cpu0/cpuidle"
    for number, (name, value) in enumerate(
        [("POLL", "1"), ("C1 ACPI", "1"), ("C6", "0")]
    ):
        (states / f"state{number}").mkdir(parents=True)
        (states / f"state{number}/name").write_text(f"{name}\n")
        (states / f"state{number}/disable").write_text(f"{value}\n")
    found = files(tmp_path, "node_settings: {all: {c_states: [POLL, C1_ACPI]}}\n")
    script = found.files[NODE_SCRIPT].replace("/sys/", "sys/")
    subprocess.run(["sh", "-c", script], cwd=tmp_path / "tree", check=True)
    values = [file.read_text().strip() for file in sorted(states.glob("*/disable"))]
    assert values == ["0", "0", "1"]


def test_drift_is_what_the_audit_says(tmp_path: Path) -> None:
    text = (
        "node_settings: {all: {governor: powersave, smt: off, thp: never, bios: x}}\n"
    )
    declaration = declared(tmp_path, text)
    keys = node_files(declaration, "cpu", "node", "Debian").keys
    raw = raw_of(write_node(tmp_path / "node", Hca()))
    assert settings_drift(raw, declaration, "cpu", keys) == [
        "cpu governor: performance -> powersave",
        "memory thp: madvise -> never",
    ]


def test_nothing_declared_is_nothing_written(tmp_path: Path) -> None:
    assert files(tmp_path, "") == NodeFiles()
    assert files(tmp_path, SLOT, "roce") == NodeFiles()
