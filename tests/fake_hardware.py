"""Nodes with HCAs, as trees of sysfs and procfs: facts of real nodes, own numbers."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

SCRIPT = Path(str(files("seatrial.audit").joinpath("node.sh")))


@dataclass(frozen=True)
class Hca:
    """An HCA below a root port, or below a switch if `switch` is set.

    Widths in lanes, speeds in GT/s; `port_speed` and `port_width` are those that the
    root port can do. Without `device` the driver does not know the HCA.
    """

    address: str = "0000:41:00.0"
    device: str | None = "mlx5_0"
    psid: str = "MT_0000000222"
    firmware: str = "20.43.2566"
    vendor: str = "0x15b3"
    pci_class: str = "0x020700"
    driver: str = "mlx5_core"
    speed: str = "16.0"
    width: int = 16
    max_speed: str = "16.0"
    max_width: int = 16
    port_speed: str = "16.0"
    port_width: int = 16
    numa_node: int = 0
    ports: tuple[tuple[str, str, str], ...] = (
        ("4: ACTIVE", "InfiniBand", "200 Gb/sec (4X HDR)"),
    )
    irq_cpus: str = "0-3"
    interface: str | None = None
    switch: bool = False


PLAIN = {
    "etc/os-release": 'NAME="Rocky Linux"\nPRETTY_NAME="Rocky Linux 9.4"\n',
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz-5.14 root=/dev/sda1 ro iommu=pt nosmt\n",
    "proc/cpuinfo": 2 * "model name\t: AMD EPYC 7763\nmicrocode\t: 0xa0011d1\n",
    "proc/interrupts": "  1:  0  0  IO-APIC\nMCE:  0  0  Machine check exceptions\n",
    "proc/sys/kernel/osrelease": "5.14.0-427.el9.x86_64\n",
    "proc/sys/kernel/numa_balancing": "0\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "sys/class/dmi/id/product_name": "PowerEdge R6525\n",
    "sys/class/dmi/id/product_serial": "ABC1234\n",
    "sys/class/dmi/id/bios_version": "2.15.2\n",
    "sys/class/dmi/id/bios_date": "04/02/2024\n",
    "sys/devices/system/cpu/smt/control": "off\n",
    "sys/devices/system/cpu/cpufreq/boost": "1\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/disable": "0\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C2\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/disable": "1\n",
    "sys/devices/system/node/node0/cpulist": "0-3\n",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "64\n",
    "sys/devices/system/edac/mc/mc0/ce_count": "2\n",
    "sys/devices/system/edac/mc/mc1/ce_count": "3\n",
    "sys/devices/system/edac/mc/mc0/ue_count": "0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}
"""Files of a node without HCAs."""


def write_node(
    root: Path, *hcas: Hca, changed: Mapping[str, str | None] | None = None
) -> Path:
    """Write the tree of a node; a file that is changed to None is left out."""
    for name, text in {**PLAIN, **(changed or {})}.items():
        if text is not None:
            _write(root / name, text)
    for folder in ("sys/bus/pci/devices", "sys/class/infiniband", "sys/class/net"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number, hca in enumerate(hcas):
        _write_hca(root, hca, number)
    return root


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))


def _write_hca(root: Path, hca: Hca, number: int) -> None:
    bus = hca.address.split(":")[1]
    above = [f"0000:{number:02x}:01.1"]
    if hca.switch:
        above += [f"0000:{number:02x}:02.0", f"0000:{number:02x}:03.0"]
    folder = root / "sys/devices" / f"pci0000:{bus}" / "/".join(above)
    place = root / "sys/devices" / f"pci0000:{bus}"
    for name in above:
        place /= name
        _write_function(root, place, "0x1022", "0x060400", _Link(hca, of_port=True))
    folder = place / hca.address
    _write_function(root, folder, hca.vendor, hca.pci_class, _Link(hca, of_port=False))
    _write(folder / "subsystem_vendor", f"{hca.vendor}\n")
    _write(folder / "subsystem_device", "0x0061\n")
    _write(folder / "numa_node", f"{hca.numa_node}\n")
    (root / "sys/bus/pci/drivers" / hca.driver).mkdir(parents=True, exist_ok=True)
    _link(folder / "driver", root / "sys/bus/pci/drivers" / hca.driver)
    module = root / "sys/module" / hca.driver
    _write(module / "parameters/prof_sel", "2\n")
    if not (module / "taint").exists():
        _write(module / "taint", "\n")
    if hca.interface:
        interface = folder / "net" / hca.interface
        _write(interface / "mtu", "9000\n")
        _write(interface / "type", "1\n")
        _link(interface / "device", folder)
        _link(root / "sys/class/net" / hca.interface, interface)
    if hca.device:
        _write_device(root, folder, hca, number)


@dataclass(frozen=True)
class _Link:
    hca: Hca
    of_port: bool


def _write_function(
    root: Path, folder: Path, vendor: str, pci_class: str, link: _Link
) -> None:
    hca = link.hca
    most = (
        (hca.port_speed, hca.port_width)
        if link.of_port
        else (hca.max_speed, hca.max_width)
    )
    _write(folder / "vendor", f"{vendor}\n")
    _write(folder / "device", "0x101b\n")
    _write(folder / "class", f"{pci_class}\n")
    _write(folder / "current_link_speed", f"{hca.speed} GT/s PCIe\n")
    _write(folder / "current_link_width", f"{hca.width}\n")
    _write(folder / "max_link_speed", f"{most[0]} GT/s PCIe\n")
    _write(folder / "max_link_width", f"{most[1]}\n")
    _link(root / "sys/bus/pci/devices" / folder.name, folder)


def _write_device(root: Path, folder: Path, hca: Hca, number: int) -> None:
    assert hca.device
    device = folder / "infiniband" / hca.device
    _write(device / "fw_ver", f"{hca.firmware}\n")
    _write(device / "board_id", f"{hca.psid}\n")
    _write(device / "node_guid", f"b859:9f03:00aa:000{number}\n")
    for index, (state, layer, rate) in enumerate(hca.ports, 1):
        port = device / "ports" / str(index)
        _write(port / "state", f"{state}\n")
        _write(port / "phys_state", "5: LinkUp\n")
        _write(port / "link_layer", f"{layer}\n")
        _write(port / "rate", f"{rate}\n")
    _link(device / "device", folder)
    _link(root / "sys/class/infiniband" / hca.device, device)
    for irq in (100 + 10 * number, 101 + 10 * number):
        _write(folder / "msi_irqs" / str(irq), "msix\n")
        _write(root / f"proc/irq/{irq}/smp_affinity_list", f"{hca.irq_cpus}\n")


def raw_of(root: Path, *sysctls: str, job: bool = True) -> str:
    """Run node.sh over a tree; its programs are those of ROOT/tools."""
    variables = {"PATH": "/usr/bin:/bin", **({"SLURM_JOB_ID": "7"} if job else {})}
    done = subprocess.run(
        ["sh", SCRIPT, root, *sysctls],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout
