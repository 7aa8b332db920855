"""What node.sh finds on nodes with HCAs, from trees of sysfs and procfs."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_hardware import PLAIN, Hca, raw_of, write_node

from seatrial.audit.hca_readings import cpu_set
from seatrial.audit.pcie import links_of
from seatrial.audit.raw import Raw
from seatrial.audit.readings import readings
from seatrial.errors import SeatrialError

PORT = ("4: ACTIVE", "InfiniBand", "200 Gb/sec (4X HDR)")


def values(raw: str) -> dict[tuple[str, str], str | None]:
    """Return the value of each subject and key; of several, the last."""
    return {(one.subject, one.key): one.value for one in readings(raw)}


def test_node_without_hcas(tmp_path: Path) -> None:
    found = values(raw_of(write_node(tmp_path), "net.ipv4.tcp_rmem"))
    memlock = found.pop(("job", "memlock"))
    assert memlock == "unlimited" or (memlock and memlock.isdecimal())
    assert found == {
        ("node", "vendor"): "Dell Inc.",
        ("node", "product"): "PowerEdge R6525",
        ("node", "serial"): "ABC1234",
        ("node", "bios"): "2.15.2 04/02/2024",
        ("node", "os"): "Rocky Linux 9.4",
        ("node", "bmc"): None,  # ipmitool is not there
        ("memory", "size"): None,  # nor dmidecode
        ("memory", "dimms"): None,
        ("cpu", "boost"): "on",
        ("cpu", "smt"): "off",
        ("cpu", "governor"): "performance",
        ("cpu", "c_states"): "POLL",
        ("cpu", "model"): "AMD EPYC 7763",
        ("cpu", "microcode"): "0xa0011d1",
        ("memory", "huge_pages.2048kB.node0"): "64",
        ("memory", "edac_corrected"): "5",
        ("memory", "edac_uncorrected"): "0",
        ("memory", "mce"): "0",
        ("memory", "thp"): "madvise",
        ("memory", "numa_balancing"): "0",
        ("kernel", "release"): "5.14.0-427.el9.x86_64",
        ("kernel", "command_line"): "ro iommu=pt nosmt",
        ("kernel", "argument.ro"): "present",
        ("kernel", "argument.iommu"): "pt",
        ("kernel", "argument.nosmt"): "present",
        ("kernel", "sysctl.kernel.numa_balancing"): "0",
        ("kernel", "sysctl.net.ipv4.tcp_rmem"): "4096 131072 6291456",
        ("kernel", "irqbalance"): "inactive",
    }


def test_infiniband_hca(tmp_path: Path) -> None:
    found = values(raw_of(write_node(tmp_path, Hca())))
    hca = {
        key: value for (name, key), value in found.items() if name.startswith("0000")
    }
    assert hca == {
        "psid": "MT_0000000222",
        "driver": "mlx5_core",
        "numa_node": "0",
        "pcie.speed": "16",
        "pcie.width": "16",
        "device": "mlx5_0",
        "firmware": "20.43.2566",
        "guid": "b8599f0300aa0000",
        "state": "ACTIVE",
        "physical_state": "LinkUp",
        "rate": "200",
        "link_layer": "InfiniBand",
        "irq_affinity": "local",
        "firmware.stored": None,  # without mstflint and mstconfig
        "nvconfig.all": None,
        "fec": None,  # without mstlink
        "mtu": None,  # without ibv_devinfo and lspci
        "pcie.acs": None,
        "pcie.max_payload": None,
        "pcie.max_read_request": None,
    }
    assert found["driver", "option.mlx5_core.prof_sel"] == "2"


def test_each_port_of_an_hca_is_a_subject(tmp_path: Path) -> None:
    """A ConnectX-3: one PCI function with two ports, of which one is Ethernet."""
    two = (PORT, ("1: DOWN", "Ethernet", "40 Gb/sec (4X QDR)"))
    hca = Hca(device="mlx4_0", driver="mlx4_core", firmware="2.42.5000", ports=two)
    found = values(raw_of(write_node(tmp_path, hca)))
    assert found["0000:41:00.0", "firmware"] == "2.42.5000"
    assert found["0000:41:00.0/1", "state"] == "ACTIVE"
    assert found["0000:41:00.0/2", "state"] == "DOWN"
    assert found["0000:41:00.0/2", "link_layer"] == "Ethernet"
    assert found["0000:41:00.0/2", "rate"] == "40"


def test_hca_that_the_driver_lacks(tmp_path: Path) -> None:
    found = values(raw_of(write_node(tmp_path, Hca(device=None))))
    assert found["0000:41:00.0", "device"] == "none"
    assert ("0000:41:00.0", "firmware") not in found


@pytest.mark.parametrize(
    ("vendor", "pci_class", "device", "driver"),
    [
        ("0x8086", "0x020800", "hfi1_0", "hfi1"),
        ("0x434e", "0x020800", "hfi1_0", "hfi1"),
        ("0x14e4", "0x020000", "bnxt_re0", "bnxt_en"),
        ("0x1d0f", "0x020000", "efa_0", "efa"),
    ],
)
def test_hcas_of_other_makers(
    vendor: str, pci_class: str, device: str, driver: str, tmp_path: Path
) -> None:
    hca = Hca(vendor=vendor, pci_class=pci_class, device=device, driver=driver)
    root = write_node(tmp_path, replace(hca, psid=""))
    if device == "efa_0":
        (device_file,) = root.glob("sys/devices/*/*/0000:41:00.0/device")
        device_file.write_text("0xefa2\n")
    found = values(raw_of(root))
    assert found["0000:41:00.0", "device"] == device
    assert found["0000:41:00.0", "driver"] == driver
    assert found["0000:41:00.0", "psid"] == f"{vendor[2:]}:0061"
    assert found["0000:41:00.0", "firmware"] == "20.43.2566"


def test_other_pci_devices_are_no_hcas(tmp_path: Path) -> None:
    ethernet = Hca(vendor="0x14e4", pci_class="0x020000", device=None, driver="tg3")
    function = Hca(address="0000:42:00.1", device=None)
    root = write_node(tmp_path, ethernet, function)
    (folder,) = root.glob("sys/devices/*/*/0000:42:00.1")
    (folder / "physfn").symlink_to(folder)  # of a virtual function
    assert Raw(raw_of(root)).blocks["pci", ""].text == ""


# ---- PCIe


@pytest.mark.parametrize(
    ("hca", "speed", "width"),
    [
        (Hca(), ("16", "16"), ("16", "16")),
        (Hca(width=8), ("16", "16"), ("8", "16")),
        (Hca(width=8, port_width=8), ("16", "16"), ("8", "8")),  # a slot of 8 lanes
        (Hca(width=8, max_width=8), ("16", "16"), ("8", "8")),
        (Hca(speed="8.0"), ("8", "16"), ("16", "16")),
        (Hca(speed="8.0", port_speed="8.0"), ("8", "8"), ("16", "16")),
        (Hca(speed="2.5", max_speed="Unknown"), ("2.5", None), ("16", "16")),
        (Hca(speed="Unknown"), (None, "16"), ("16", "16")),
        (Hca(width=0), ("16", "16"), (None, "16")),  # link down
    ],
)
def test_link_is_compared_with_what_both_ends_can_do(
    hca: Hca,
    speed: tuple[str | None, str | None],
    width: tuple[str | None, str | None],
    tmp_path: Path,
) -> None:
    found = {one.key: one for one in readings(raw_of(write_node(tmp_path, hca)))}
    assert (found["pcie.speed"].value, found["pcie.speed"].able) == speed
    assert (found["pcie.width"].value, found["pcie.width"].able) == width


def test_device_in_software_has_the_slot_of_its_interface(tmp_path: Path) -> None:
    """rxe0 over a card of conventional PCI, whose link only the port above tells."""
    card = Hca(
        pci_class="0x020000",
        vendor="0x1af4",
        device=None,
        interface="rail0",
        width=8,
        port_width=8,
        speed="8.0",
    )
    root = write_node(tmp_path, card)
    folder = next((root / "sys/devices").glob(f"**/{card.address}"))
    for end in ("current", "max"):
        for what in ("speed", "width"):
            (folder / f"{end}_link_{what}").unlink()
    virtio = folder / "virtio1"
    virtio.mkdir()
    (root / "sys/class/net/rail0/device").unlink()
    (root / "sys/class/net/rail0/device").symlink_to(virtio)
    assert not [subject for subject, _ in values(raw_of(root)) if "41" in subject]
    device = root / "sys/class/infiniband/rxe0"
    (device / "ports/1").mkdir(parents=True)
    (device / "ports/1/state").write_text("4: ACTIVE\n")
    (device / "parent").write_text("rail0\n")
    found = values(raw_of(root))
    keys = ("device", "pcie.speed", "pcie.width", "state")
    assert [found[card.address, key] for key in keys] == ["rxe0", "8", "8", "ACTIVE"]


def test_every_hop_above_an_hca_counts(tmp_path: Path) -> None:
    """A switch whose own link is narrow: the HCA below it is not to blame."""
    root = write_node(tmp_path, Hca(switch=True))
    (upper,) = root.glob("sys/devices/*/*/0000:00:02.0")
    (upper / "current_link_width").write_text("4\n")
    found = {one.key: one for one in readings(raw_of(root))}
    width = found["pcie.width"]
    assert (width.value, width.able) == ("4", "16")
    assert width.reason == "between 0000:00:01.1 and 0000:00:02.0"
    block = Raw(raw_of(root)).blocks["pci", ""]
    path = next(path for path in block.values() if path.endswith("41:00.0/class"))
    assert len(links_of(path.removesuffix("/class"), block.values())) == 2


# ---- Values that differ within a node


def test_cpus_that_are_not_alike(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    other = {
        f"{cpu}/cpu1/cpufreq/scaling_governor": "powersave\n",
        f"{cpu}/cpu1/cpuidle/state1/name": "C2\n",
        f"{cpu}/cpu1/cpuidle/state1/disable": "0\n",
        "proc/cpuinfo": PLAIN["proc/cpuinfo"].replace("1d1\n", "1d2\n", 1),
    }
    found = values(raw_of(write_node(tmp_path, changed=other)))
    assert found["cpu", "governor"] == "performance powersave"
    assert found["cpu", "c_states"] == "POLL C2(some)"
    assert found["cpu", "microcode"] == "0xa0011d1, 0xa0011d2"


@pytest.mark.parametrize(("cpus", "text"), [("0-3", "local"), ("0-7", "remote")])
def test_where_interrupts_are_served(cpus: str, text: str, tmp_path: Path) -> None:
    found = values(raw_of(write_node(tmp_path, Hca(irq_cpus=cpus))))
    assert found["0000:41:00.0", "irq_affinity"] == text


def test_list_of_cpus() -> None:
    assert cpu_set("0-2,8,10-11") == {0, 1, 2, 8, 10, 11}
    assert cpu_set("") == set()


def test_turbo_of_intel(tmp_path: Path) -> None:
    pstate = {"sys/devices/system/cpu/intel_pstate/no_turbo": "1\n"}
    found = values(raw_of(write_node(tmp_path, changed=pstate)))
    assert found["cpu", "boost"] == "off"


def test_irqbalance_is_found_by_its_process(tmp_path: Path) -> None:
    root = write_node(tmp_path, changed={"proc/812/comm": "irqbalance\n"})
    assert values(raw_of(root))["kernel", "irqbalance"] == "active"


def test_memlock_is_known_only_in_a_job(tmp_path: Path) -> None:
    raw = raw_of(write_node(tmp_path), job=False)
    (memlock,) = (one for one in readings(raw) if one.key == "memlock")
    assert (memlock.value, memlock.reason) == (None, "ulimit: not in a job")


# ---- Damage


def test_output_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    raw = raw_of(write_node(tmp_path, Hca()))
    for size in range(0, len(raw) - 2, 97):
        with pytest.raises(SeatrialError, match="ends early"):
            [*readings(raw[:size])]


@pytest.mark.parametrize("line", ["@", "@\tpci", "@\tpci\tsysfs\t\tzero\t"])
def test_damaged_head_of_a_block_is_an_error(line: str) -> None:
    with pytest.raises(SeatrialError, match="not a head of a block"):
        Raw(f"{line}\n@\tend\n")


def test_lost_lines_never_raise_another_error(tmp_path: Path) -> None:
    lines = raw_of(write_node(tmp_path, Hca(switch=True))).splitlines(keepends=True)
    whole = values("".join(lines))
    for index in range(len(lines) - 1):
        try:
            found = values("".join(lines[:index] + lines[index + 1 :]))
        except SeatrialError:
            continue
        ours = {place for place in found if place[0] != "mlx5_0"}  # its link is lost
        assert ours <= whole.keys()
