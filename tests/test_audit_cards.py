"""Cards of all makers: every source names the board and its firmware alike.

PSIDs, versions and parts are those of real cards, as public reports show them.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from fake_hardware import PLAIN, Hca, raw_of, write_node
from fake_home import fake_program

from seatrial.audit.hardware_types import Hardware
from seatrial.audit.reading import Reading
from seatrial.audit.readings import readings

HARDWARE = Path(__file__).parent / "data" / "hardware"
HCA, PORT = "0000:41:00.0", "0000:00:01.1"


@dataclass(frozen=True)
class Card:
    """A card of NVIDIA; `rate` as sysfs prints it. ConnectX-3 has images of FS2."""

    psid: str
    firmware: str
    part: str
    rate: str
    layer: str = "InfiniBand"
    fs2: bool = False


CARDS = (
    Card("MT_1090120019", "2.42.5000", "MCX354A-FCBT", "56 Gb/sec (4X FDR)", fs2=True),
    Card("DEL1100001019", "2.42.5000", "079DJ3", "40 Gb/sec (4X QDR)", fs2=True),
    Card("HP_1370110017", "2.42.5044", "764284-B21", "56 Gb/sec (4X FDR)", fs2=True),
    Card("MT_2180110032", "12.28.2040", "MCX455A-ECAT", "100 Gb/sec (4X EDR)"),
    Card("DEL2420110034", "14.32.2004", "020NJD", "25 Gb/sec (1X EDR)", "Ethernet"),
    Card("IBM0000000034", "14.20.1010", "01FT741", "10 Gb/sec (1X QDR)", "Ethernet"),
    Card("MT_0000000009", "16.35.4030", "MCX556A-EDAT", "100 Gb/sec (4X EDR)"),
    Card("HPE0000000009", "16.31.1200", "872726-B21", "100 Gb/sec (4X EDR)"),
    Card("LNV0000000033", "16.27.6008", "01PE661", "25 Gb/sec (1X EDR)", "Ethernet"),
    Card("MT_0000000222", "20.43.2566", "MCX653105A-ECAT", "100 Gb/sec (2X HDR)"),
    Card("MT_0000000223", "20.43.2566", "MCX653105A-HDAT", "200 Gb/sec (4X HDR)"),
    Card("MT_0000000359", "22.36.1010", "MCX623106AN-CDAT", "100 Gb/sec", "Ethernet"),
    Card("IBM0000000037", "22.46.1006", "01LL584", "100 Gb/sec (4X EDR)", "Ethernet"),
    Card("MT_0000000838", "28.43.1014", "MCX75310AAS-NEAT", "400 Gb/sec (4X NDR)"),
    Card("MT_0000000767", "24.41.1000", "MBF2H536C-CESOT", "100 Gb/sec", "Ethernet"),
    Card("DEL0000000033", "24.36.7506", "0JNDCM", "25 Gb/sec (1X EDR)", "Ethernet"),
    Card("MT_0000000884", "32.43.1014", "900-9D3B6-00CV-AA0", "400 Gb/sec (4X NDR)"),
)


def sample(name: str, **values: str) -> str:
    """Return a sample with other values."""
    text = (HARDWARE / name).read_text()
    for old, new in values.items():
        assert old in text
        text = text.replace(old, new)
    return text


def programs_of(card: Card) -> dict[str, str]:
    """Return what each program prints of a card."""
    image = "connectx3" if card.fs2 else "connectx6"
    versions = {"FW Version(Running):   20.42.1000\n": "", "20.43.2566": card.firmware}
    of_fs2 = {"2.42.5000": card.firmware, "DEL1100001019": card.psid}
    of_fs4 = versions | {"MT_0000000222": card.psid}
    flint = sample(f"mstflint/{image}.txt", **(of_fs2 if card.fs2 else of_fs4))
    known = {"20.43.2566": card.firmware, "MT_0000000222": card.psid}
    verbs = sample("ibv_devinfo/connectx.txt", **known)
    pci = sample(
        "lspci/connectx6.txt", **{"MCX653105A-ECAT": card.part, "0000:40:01.1": PORT}
    )
    return {
        "mstflint": f"cat <<'END'\n{flint}END",
        "mstconfig": f"cat <<'END'\n{sample('mstconfig/connectx6.txt')}END",
        "ibv_devinfo": f"cat <<'END'\n{verbs}END",
        "lspci": f"[ \"$5\" != {HCA} ] || cat <<'END'\n{pci}END",
        "ethtool": "cat <<'END'\n"
        + sample("ethtool_driver/connectx6.txt", **known)
        # A new line ends the text.
        + "END",
    }


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.psid)
def test_all_sources_name_a_card_alike(card: Card, tmp_path: Path) -> None:
    hca = Hca(
        psid=card.psid,
        firmware=card.firmware,
        driver="mlx4_core" if card.fs2 else "mlx5_core",
        pci_class="0x020700" if card.layer == "InfiniBand" else "0x020000",
        ports=(("4: ACTIVE", card.layer, card.rate),),
        interface="eth2" if card.layer == "Ethernet" else None,
    )
    root = write_node(tmp_path, hca)
    (root / "tools").mkdir()
    for name, script in programs_of(card).items():
        fake_program(root / "tools", name, script)
    found: dict[str, set[str]] = {}
    for one in readings(raw_of(root)):
        if one.subject == HCA and one.value is not None:
            found.setdefault(one.key, set()).add(one.value)
    assert found["firmware"] == {card.firmware}
    assert found["psid"] == {card.psid, "15b3:0061"}  # sysfs of PCI, before the others
    assert found["rate"] == {card.rate.split()[0]}
    assert found["link_layer"] == {card.layer}
    assert found["mtu"] == {"4096"}
    values = by_key(root)
    assert (values["part"].value, values["psid"].value) == (card.part, card.psid)
    assert ("nvconfig.SRIOV_EN" in found) == (os.getuid() == 0)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.psid)
def test_a_card_can_be_declared(card: Card) -> None:
    model = {"firmware": {"version": card.firmware}, "part": card.part}
    msgspec.convert({"hca_models": {card.psid: model}}, Hardware)


# ---- Other makers


def by_key(root: Path, subject: str = HCA) -> dict[str, Reading]:
    return {one.key: one for one in readings(raw_of(root)) if one.subject == subject}


def test_omni_path(tmp_path: Path) -> None:
    board = "Cornelis Omni-Path Host Fabric Interface Adapter 100 Series"
    hca = Hca(
        device="hfi1_0",
        psid=board,
        firmware="1.27.0",
        vendor="0x8086",
        pci_class="0x020800",
        driver="hfi1",
        ports=(("4: ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)"),),
    )
    root = write_node(tmp_path, hca)
    (root / "sys/class/infiniband/hfi1_0/serial").write_text("0x01670fb0\n")
    (root / "tools").mkdir()
    verbs = HARDWARE / "ibv_devinfo/omni-path.txt"
    fake_program(root / "tools", "ibv_devinfo", f"cat {verbs}")
    values = {key: one.value for key, one in by_key(root).items()}
    expected = {
        "psid": board,
        "serial": "0x01670fb0",
        "firmware": "1.27.0",
        "driver": "hfi1",
        "rate": "100",
        "mtu": "4096",
    }
    assert expected.items() <= values.items()
    assert values.keys().isdisjoint({"firmware.stored", "nvconfig.all"})


@pytest.mark.parametrize(
    ("of_sysfs", "expected"),
    [("230.0.157.0", "230.0.157.0"), ("1.71", "230.0.162.0")],
)
def test_broadcom(of_sysfs: str, expected: str, tmp_path: Path) -> None:
    """Of several versions, devlink's one that sysfs shows; else that of the card."""
    hca = Hca(
        address="0000:81:00.0",
        device="bnxt_re0",
        psid="",
        firmware=of_sysfs,
        vendor="0x14e4",
        pci_class="0x020000",
        driver="bnxt_en",
        ports=(("4: ACTIVE", "Ethernet", "100 Gb/sec (4X EDR)"),),
    )
    root = write_node(tmp_path, hca)
    (root / "tools").mkdir()
    info = HARDWARE / "devlink/two-makers.txt"
    fake_program(root / "tools", "devlink", f"cat {info}")
    found = by_key(root, "0000:81:00.0")
    assert (found["firmware"].value, found["firmware"].pending) == (expected, None)
    assert found["part"].value == "BCM957508-P2100G"
    assert found["serial"].value == "B0-26-28-FF-FE-00-00-10"
    assert found["psid"].value == "14e4:0061"


def test_efa_has_no_firmware_version(tmp_path: Path) -> None:
    hca = Hca(
        device="efa_0",
        psid="",
        firmware="",
        vendor="0x1d0f",
        pci_class="0x020000",
        driver="efa",
        ports=(("4: ACTIVE", "Unspecified", "100 Gb/sec (4X EDR)"),),
    )
    root = write_node(tmp_path, hca)
    (file,) = root.glob("sys/devices/*/*/0000:41:00.0/device")
    file.write_text("0xefa1\n")
    (root / "tools").mkdir()
    verbs = sample("ibv_devinfo/omni-path.txt", **{"hfi1_0": "efa_0", "1.27": "0.0"})
    fake_program(root / "tools", "ibv_devinfo", f"cat <<'END'\n{verbs}END")
    found = by_key(root)
    assert (found["device"].value, found["driver"].value) == ("efa_0", "efa")
    assert (found["rate"].value, found["mtu"].value) == ("100", "4096")
    assert "firmware" not in found


# ---- Source of the driver

NO_OFED = None
OFED, DOCA = "MLNX_OFED_LINUX-23.10-1.1.9.0:", "OFED-internal-24.10-1.1.4.0.200:"
RELEASE = PLAIN["proc/sys/kernel/osrelease"].strip()


@pytest.mark.parametrize(
    ("driver", "taint", "ofed", "source", "version"),
    [
        ("mlx5_core", "", NO_OFED, "inbox", RELEASE),
        ("mlx5_core", "OE", f"echo {OFED}", "OFED", "23.10-1.1.9.0"),
        ("mlx5_core", "OE", f"echo {DOCA}", "DOCA", "24.10-1.1.4.0.200"),
        ("mlx5_core", "", f"echo {OFED}", "inbox", RELEASE),  # installed, not loaded
        ("mlx5_core", "OE", NO_OFED, "other", "mlx5_core 2.1"),
        ("efa", "OE", f"echo {OFED}", "other", "efa 2.1"),
        ("hfi1", "E", NO_OFED, "inbox", RELEASE),
        ("mlx5_core", "OE", "echo no rpm; exit 1", None, "ofed_info: no rpm"),
        ("mlx5_core", "OE", "echo no rpm", None, "ofed_info: line 1: 'no rpm'"),
        ("mlx5_core", None, NO_OFED, None, "sysfs: no taint of mlx5_core"),
    ],
)
def test_source_of_the_driver(
    driver: str,
    taint: str | None,
    ofed: str | None,
    source: str | None,
    version: str,
    tmp_path: Path,
) -> None:
    root = write_node(tmp_path, Hca(driver=driver))
    module = root / "sys/module" / driver
    (module / "taint").write_text(f"{taint}\n")
    (module / "version").write_text("2.1\n")
    if taint is None:
        (module / "taint").unlink()
    (root / "tools").mkdir()
    if ofed:
        fake_program(root / "tools", "ofed_info", ofed)
    found = by_key(root, "driver")
    assert found["source"].value == source
    if source:
        assert found["version"].value == version
    else:
        assert found["source"].reason.startswith(version)
        assert found["version"].value is None
