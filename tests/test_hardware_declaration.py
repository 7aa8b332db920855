"""hardware.yml: what is declared for a class, and what is refused."""

import textwrap
from pathlib import Path

import pytest
import yaml
from mstflint_database import write_database

from seatrial.audit import nvconfig
from seatrial.audit.expected import expected, rails
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.hardware_types import (
    Hardware,
    HcaDriver,
    HcaModel,
    HcaSlot,
    NodeSettings,
    Pcie,
    Roce,
)
from seatrial.errors import SeatrialError

SAMPLE = Path(__file__).parents[1] / "inventories/sample/group_vars/all/hardware.yml"
PAGE = Path(__file__).parents[1] / "docs/hardware.md"
REFUSED = Path(__file__).parent / "data/hardware/refused.yml"
WHOLE = """\
hca_models:
  MT_0000000222:
    part: MCX653105A-ECAT
    firmware: {version: "20.43.2566", file: fw.bin, sha256: SUM}
    previous:
      - {version: "20.42.1000", file: old.bin, sha256: SUM}
    nvconfig: {LINK_TYPE_P1: IB, SRIOV_EN: false, NUM_OF_VFS: 0}
    pcie: {max_read_request: 4096, speed: 16.0}
hca_slots:
  cpu:
    - {name: rail0, bdf: "0000:41:00.0", psid: MT_0000000222, rate: 100}
""".replace("SUM", "ab" * 32)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write_database(tmp_path)


def declared(text: str, folder: Path, database: Path | None = None) -> HardwareFile:
    file = folder / "hardware.yml"
    file.write_text(text)
    return HardwareFile(file, ["cpu", "fat"], database or folder / "none.db")


def values(declaration: HardwareFile, name: str = "cpu") -> dict[str, str]:
    return {
        f"{one.subject} {one.key}": one.value for one in expected(declaration, name)
    }


def test_nothing_is_declared_without_a_file(tmp_path: Path) -> None:
    assert values(HardwareFile(tmp_path / "none.yml", ["cpu"])) == {}
    assert values(declared("---\n# nothing\n", tmp_path)) == {}


def test_values_of_a_rail_are_those_of_its_model(
    tmp_path: Path, database: Path
) -> None:
    declaration = declared(WHOLE, tmp_path, database)
    assert values(declaration) == {
        "rail0 psid": "MT_0000000222",
        "rail0 part": "MCX653105A-ECAT",
        "rail0 firmware": "20.43.2566",
        "rail0 rate": "100",
        "rail0 pcie.max_read_request": "4096",
        "rail0 pcie.speed": "16",
        "rail0 nvconfig.LINK_TYPE_P1": "IB(1)",
        "rail0 nvconfig.SRIOV_EN": "False(0)",
        "rail0 nvconfig.NUM_OF_VFS": "0",
    }
    assert rails(declaration, "cpu") == {"0000:41:00.0/1": "rail0"}
    assert declaration.unchecked == []
    assert values(declaration, "fat") == {}


def test_class_wins_over_all_key_by_key(tmp_path: Path) -> None:
    text = """\
node_settings:
  all: {governor: performance, smt: off, sysctls: {vm.swappiness: 1, vm.x: 2}}
  fat: {smt: on, numa_balancing: 0, sysctls: {vm.swappiness: 10}}
hca_driver:
  all: {source: inbox, options: {mlx5_core: {prof_sel: 2}}}
ipoib:
  all: {ib0: {mode: datagram, mtu: 2044}}
  fat: {ib0: {mtu: 4092}}
"""
    declaration = declared(text, tmp_path)
    assert values(declaration) == {
        "cpu governor": "performance",
        "cpu smt": "off",
        "kernel sysctl.vm.swappiness": "1",
        "kernel sysctl.vm.x": "2",
        "driver source": "inbox",
        "driver option.mlx5_core.prof_sel": "2",
        "ib0 mode": "datagram",
        "ib0 mtu": "2044",
    }
    fat = values(declaration, "fat")
    assert (fat["cpu smt"], fat["memory numa_balancing"]) == ("on", "0")
    assert (fat["ib0 mode"], fat["ib0 mtu"]) == ("datagram", "4092")
    assert fat["kernel sysctl.vm.swappiness"] == "10"


def test_settings_of_nodes(tmp_path: Path) -> None:
    text = """\
node_settings:
  cpu:
    boost: on
    c_states: [POLL, C1]
    thp: never
    huge_pages: {2048kB: {node0: 1024}}
    memlock: unlimited
    kernel_arguments: {iommu: pt, nosmt: true, quiet: false}
    sysctls: {net.ipv4.tcp_rmem: "4096  131072 6291456"}
"""
    assert values(declared(text, tmp_path)) == {
        "cpu boost": "on",
        "cpu c_states": "POLL C1",
        "memory thp": "never",
        "memory huge_pages.2048kB.node0": "1024",
        "job memlock": "unlimited",
        "kernel argument.iommu": "pt",
        "kernel argument.nosmt": "present",
        "kernel argument.quiet": "absent",
        "kernel sysctl.net.ipv4.tcp_rmem": "4096 131072 6291456",
    }


def test_roce_is_of_ethernet_rails(tmp_path: Path) -> None:
    text = """\
hca_models: {MT_0000000223: {part: MCX755106AS-HEAT}}
hca_slots:
  cpu:
    - {name: eth, bdf: "0000:41:00.0", psid: MT_0000000223, link_layer: Ethernet}
    - {name: ib, bdf: "0000:41:00.0", psid: MT_0000000223, port: 2}
roce: {all: {trust: dscp, pfc: [3], ecn: [], dscp: {26: 3}, mtu: 4096, tos: 106}}
node_settings: {all: {irq_affinity: local}}
"""
    declaration = declared(text, tmp_path)
    found = values(declaration)
    assert found["eth roce.trust"] == "dscp"
    assert (found["eth roce.pfc"], found["eth roce.ecn"]) == ("3", "none")
    assert (found["eth roce.dscp.26"], found["eth mtu"]) == ("3", "4096")
    assert [name for name in found if name.startswith("ib ")] == [
        "ib psid",
        "ib part",
        "ib irq_affinity",
    ]
    assert [*rails(declaration, "cpu")] == ["0000:41:00.0/1", "0000:41:00.0/2"]


@pytest.mark.parametrize(
    "case", yaml.safe_load(REFUSED.read_text()), ids=lambda case: case["new"]
)
def test_bad_declaration_is_one_sentence(
    case: dict[str, str], tmp_path: Path, database: Path
) -> None:
    assert case["old"] in WHOLE
    with pytest.raises(SeatrialError) as refused:
        declared(WHOLE.replace(case["old"], case["new"], 1), tmp_path, database)
    said = str(refused.value).removeprefix(f"{tmp_path}/hardware.yml:")
    assert said.startswith(case["message"])


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        ('{name: rail0, bdf: "0000:a1:00.0"', "name: a second slot 'rail0'."),
        (
            '{name: rail1, bdf: "0000:41:00.0"',
            "bdf: a second slot at 0000:41:00.0, port 1.",
        ),
    ],
)
def test_two_slots_at_one_place(slot: str, message: str, tmp_path: Path) -> None:
    second = f"    - {slot}, psid: MT_0000000222}}\n"
    with pytest.raises(SeatrialError) as refused:
        declared(WHOLE + second, tmp_path)
    assert str(refused.value).endswith(f"hardware.yml:12: hca_slots.cpu[1].{message}")


def test_parameters_are_not_checked_without_mstflint(tmp_path: Path) -> None:
    declaration = declared(WHOLE.replace("LINK_TYPE_P1", "NO_SUCH"), tmp_path)
    assert declaration.unchecked == ["NO_SUCH", "SRIOV_EN", "NUM_OF_VFS"]
    assert values(declaration)["rail0 nvconfig.NO_SUCH"] == "IB"
    assert values(declaration)["rail0 nvconfig.SRIOV_EN"] == "False(0)"


@pytest.mark.parametrize("value", ["IB", "ib", 1, "IB(1)"])
def test_value_of_a_parameter_is_written_as_mstconfig_does(
    value: str | int, database: Path
) -> None:
    known = nvconfig.parameters(database)
    assert nvconfig.written("LINK_TYPE_P2", value, known) == "IB(1)"


def test_database_of_mstflint() -> None:
    known = nvconfig.parameters()
    if known is None:
        pytest.skip("mstflint is not installed: its database is not read")
    assert len(known) > 300
    assert nvconfig.written("LINK_TYPE_P1", 2, known) == "ETH(2)"


def test_page_has_a_valid_example_and_every_key(tmp_path: Path) -> None:
    page = PAGE.read_text()
    example = page.split("### Example\n")[1].split("\nEvery node")[0]
    found = values(declared(textwrap.dedent(example), tmp_path))
    assert found["rail0 rate"] == "100"
    assert found["kernel argument.quiet"] == "absent"
    kinds = (Hardware, HcaModel, HcaSlot, HcaDriver, NodeSettings, Roce, Pcie)
    names = {name for kind in kinds for name in kind.__struct_fields__}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_sample_is_valid() -> None:
    names = yaml.safe_load((SAMPLE.parent / "main.yml").read_text())["node_classes"]
    declaration = HardwareFile(SAMPLE, [one["name"] for one in names])
    assert {one.kind for one in expected(declaration, "cpu")} >= {"hca", "cpu"}
