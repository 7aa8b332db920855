"""hardware.yml: settings that would be judged wrongly, or not at all, are refused."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from mstflint_database import write_database

from seatrial.audit.expected import expected
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.rates import highest_rate
from seatrial.errors import SeatrialError
from seatrial.model.yaml_file import YamlFile

SLOT = """\
hca_models:
  MT_0000000222:
    nvconfig: {}
hca_slots:
  cpu:
    - {name: rail0, bdf: "0000:41:00.0", psid: MT_0000000222, link_layer: LAYER}
"""
ETHERNET = SLOT.replace("LAYER", "Ethernet")
INFINIBAND = SLOT.replace("LAYER", "InfiniBand")


def declared(text: str, folder: Path) -> HardwareFile:
    file = folder / "hardware.yml"
    file.write_text(text)
    return HardwareFile(file, ["cpu", "fat"], write_database(folder))


def lines(declaration: HardwareFile, name: str = "cpu") -> dict[str, tuple[str, int]]:
    return {
        f"{one.subject} {one.key}": (one.value, one.line)
        for one in expected(declaration, name)
    }


def refusal(text: str, folder: Path) -> str:
    with pytest.raises(SeatrialError) as refused:
        declared(text, folder)
    return str(refused.value).removeprefix(f"{folder}/hardware.yml:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "node_settings:\n  cpu: {kernel_arguments: {mitigations: off}}\n",
            (
                "2: node_settings.cpu.kernel_arguments.mitigations: expected true "
                "(present), false (absent) or a value, got off; write 'off' in "
                "quotes if it is the value."
            ),
        ),
        (
            "node_settings:\n  all:\n    irq_affinity: local\n",
            (
                "3: node_settings.all.irq_affinity: it is of the HCAs in hca_slots, "
                "and there is none; declare them."
            ),
        ),
        (
            INFINIBAND + "roce:\n  cpu: {trust: dscp}\n",
            (
                "8: roce.cpu: no slot has link_layer Ethernet; remove it, or correct "
                "hca_slots."
            ),
        ),
        (
            ETHERNET + "roce:\n  fat: {trust: dscp}\n",
            (
                "8: roce.fat: no slot has link_layer Ethernet; remove it, or correct "
                "hca_slots."
            ),
        ),
        (
            ETHERNET + "roce:\n  cpu: {dscp: {64: 3}}\n",
            "8: roce.cpu.dscp[64]: expected a DSCP, 0 to 63, got 64.",
        ),
        (
            ETHERNET + "roce:\n  cpu: {pfc: [8]}\n",
            "8: roce.cpu.pfc[0]: expected a priority, 0 to 7, got 8.",
        ),
        (
            "ipoib:\n  cpu:\n    ib0: {mode: datagram, mtu: 65520}\n",
            (
                "3: ipoib.cpu.ib0.mtu: expected at most 4092 in the mode datagram, got "
                "65520."
            ),
        ),
        (
            "node_settings:\n  cpu: {huge_pages: {2M: {node0: 1}}}\n",
            (
                "2: node_settings.cpu.huge_pages.2M: expected a page size, such as "
                "2048kB, got '2M'."
            ),
        ),
        (
            "node_settings:\n  cpu: {huge_pages: {2048kB: {'0': 1}}}\n",
            (
                "2: node_settings.cpu.huge_pages.2048kB.0: expected a NUMA node, such "
                "as node0, got '0'."
            ),
        ),
        (
            "node_settings:\n  cpu:\n    sysctls: {'{{ x }}': 1}\n",
            (
                "3: node_settings.cpu.sysctls.{{ x }}: templates are not read here; "
                "write the name."
            ),
        ),
        (
            INFINIBAND.replace("link_layer", "mtu: 2044, link_layer"),
            (
                "6: hca_slots.cpu[0].mtu: expected one of 256, 512, 1024, 2048, 4096, "
                "got 2044."
            ),
        ),
        (
            INFINIBAND.replace('"0000:41:00.0"', "0000:41:00.0"),
            (
                "6: hca_slots.cpu[0].bdf: expected a PCI address in quotes, such as "
                "'0000:41:00.0', got 2460.0."
            ),
        ),
    ],
)
def test_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    assert refusal(text, tmp_path) == message


@pytest.mark.parametrize(
    ("part", "rate"),
    [
        ("MCX354A-FCBT", 56),
        ("MCX4121A-ACAT", 25),
        ("MCX4131A-GCAT", 50),
        ("MCX455A-ECAT", 100),
        ("MCX653105A-ECAT", 100),
        ("MCX653105A-HDAT", 200),
        ("MCX631102AN-ADAT", 25),
        ("MCX75310AAS-HEAT", 200),
        ("MCX75310AAS-NEAT", 400),
        ("MBF2M345A-HECOT", 200),
        ("900-9D3B6-00CV-AA0", 400),
        ("MCX623106AN", 200),
        ("P45645-001", 800),
        ("", 800),
    ],
)
def test_highest_rate_of_a_part(part: str, rate: int) -> None:
    assert highest_rate(part) == rate


def test_mappings_merge_at_all_depths_and_lines_are_of_the_winner(
    tmp_path: Path,
) -> None:
    text = """\
hca_driver:
  all: {options: {mlx5_core: {prof_sel: 2, debug_mask: 0}}}
  cpu: {options: {mlx5_core: {debug_mask: 1}}}
node_settings:
  all: {huge_pages: {2048kB: {node0: 1, node1: 2}}, sysctls: {a.b: 1}}
  cpu: {huge_pages: {2048kB: {node1: 3}}}
ipoib:
  all: {ib0: {mode: connected, mtu: 65520}}
  cpu: {ib0: {mtu: 2044}}
"""
    assert lines(declared(text, tmp_path)) == {
        "memory huge_pages.2048kB.node0": ("1", 5),
        "memory huge_pages.2048kB.node1": ("3", 6),
        "kernel sysctl.a.b": ("1", 5),
        "driver option.mlx5_core.prof_sel": ("2", 2),
        "driver option.mlx5_core.debug_mask": ("1", 3),
        "ib0 mode": ("connected", 8),
        "ib0 mtu": ("2044", 9),
    }


def test_switches_and_order_of_priorities(tmp_path: Path) -> None:
    text = (
        ETHERNET
        + """\
roce:
  all: {pfc: [4, 3, 3], mtu: 4096}
node_settings:
  cpu: {boost: yes, smt: 0, numa_balancing: off}
"""
    )
    declaration = declared(text, tmp_path)
    assert lines(declaration) == {
        "cpu boost": ("on", 10),
        "cpu smt": ("off", 10),
        "memory numa_balancing": ("0", 10),
        "rail0 psid": ("MT_0000000222", 6),
        "rail0 link_layer": ("Ethernet", 6),
        "rail0 roce.pfc": ("3 4", 8),
        "rail0 mtu": ("4096", 8),
    }


def test_lines_of_a_slot_and_its_model(tmp_path: Path) -> None:
    text = """\
hca_models:
  MT_0000000222:
    part: MCX653105A-ECAT
    firmware:
      version: "20.43.2566"
    nvconfig:
      LINK_TYPE_P1: 1
    pcie: {acs: no}
hca_slots:
  all:
    - {name: rail0, bdf: "0000:41:00.0", psid: MT_0000000222}
  fat:
    - name: rail1
      bdf: "0000:a1:00.0"
      psid: MT_0000000222
      rate: 100
"""
    declaration = declared(text, tmp_path)
    model = {
        "part": ("MCX653105A-ECAT", 3),
        "firmware": ("20.43.2566", 5),
        "nvconfig.LINK_TYPE_P1": ("IB(1)", 7),
        "pcie.acs": ("off", 8),
    }
    assert lines(declaration, "fat") == {
        "rail0 psid": ("MT_0000000222", 11),
        "rail1 psid": ("MT_0000000222", 15),
        "rail1 rate": ("100", 16),
        **{f"rail0 {key}": value for key, value in model.items()},
        **{f"rail1 {key}": value for key, value in model.items()},
    }


def test_file_keeps_scalars_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "x.yml"
    file.write_text("a: {b: off, c: [0x10]}\n")
    assert YamlFile(file).texts == {("a", "b"): "off", ("a", "c", 0): "0x10"}


@pytest.mark.parametrize(
    ("value", "layer", "refused"),
    [
        ("IB", "Ethernet", True),
        ("2", "InfiniBand", True),
        ("ETH(2)", "Ethernet", False),
        ("VPI", "Ethernet", False),
    ],
)
def test_link_type_and_link_layer_agree(
    value: str, layer: str, refused: bool, tmp_path: Path
) -> None:
    """Without a database: that of Debian lacks VPI, the type of older cards."""
    text = SLOT.replace("LAYER", layer).replace("{}", f"{{LINK_TYPE_P1: {value}}}")
    file = tmp_path / "hardware.yml"
    file.write_text(text)
    start = f"6: hca_slots.cpu[0].link_layer: {layer} contradicts LINK_TYPE_P1"
    with (
        pytest.raises(SeatrialError, match=re.escape(start))
        if refused
        else nullcontext()
    ):
        HardwareFile(file, ["cpu"], tmp_path / "none.db")


def test_a_version_has_one_image(tmp_path: Path) -> None:
    image = f"{{version: 20.42.1000, file: a.bin, sha256: {64 * 'a'}}}"
    text = f"hca_models:\n  MT_0000000222:\n    previous: [{image}, {image}]\n"
    assert refusal(text, tmp_path).startswith(
        "3: hca_models.MT_0000000222.previous[1].version: a second image of 20.42.1000"
    )
