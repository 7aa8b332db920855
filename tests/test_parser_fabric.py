"""Outputs of fabric tools: the same fabric from each, and never from a part of one."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.errors import SeatrialError
from seatrial.fabric.compare import compare
from seatrial.fabric.declaration import Declaration
from seatrial.fabric.discover import from_files
from seatrial.fabric.records import Device, End, Fabric, Link
from seatrial.fabric.tools import active_ports
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.db_csv import parse_db_csv
from seatrial.parsers.fabric.iblinkinfo import parse_iblinkinfo
from seatrial.parsers.fabric.ibnetdiscover import parse_ibnetdiscover
from seatrial.parsers.fabric.lldpctl import Neighbour, parse_lldpctl
from seatrial.parsers.fabric.seen import Seen, speed_of
from seatrial.parsers.fabric.sminfo import SeenManager, parse_sminfo, parse_smir

CLUSTER = Path(__file__).parent / "data/fabric/cluster"
ETHERNET = Path(__file__).parent / "data/fabric/ethernet"
PARSERS: dict[str, Callable[[str], Seen]] = {
    "ibnetdiscover.txt": parse_ibnetdiscover,
    "iblinkinfo.txt": parse_iblinkinfo,
    "ibdiagnet2.db_csv": parse_db_csv,
}
LINKS = {
    "cn01 port mlx5_0:1 - leaf01 port 1 4x HDR",
    "cn02 port mlx5_0:1 - leaf01 port 2 4x HDR",
    "cn03 port mlx5_0:1 - leaf02 port 1 4x HDR",
    "cn04 port mlx5_0:1 - leaf02 port 2 2x HDR",
    "leaf01 port 21 - spine01 port 1 4x HDR",
    "leaf01 port 22 - spine01 port 2 4x HDR",
    "leaf02 port 21 - spine01 port 3 4x HDR",
    "leaf02 port 22 - spine01 port 4 4x HDR",
}


def text_of(name: str) -> str:
    return (CLUSTER / name).read_text()


def links_of(fabric: Fabric) -> set[str]:
    """Return the links as text, without that of the HCA inside the spine."""
    return {
        f"{link.a} - {link.b} {link.width}x {link.speed}"
        for link in fabric.links
        if not link.a.device.startswith("0x")
    }


@pytest.mark.parametrize("name", PARSERS)
def test_each_tool_shows_the_same_fabric(name: str) -> None:
    fabric = from_files([CLUSTER / name])
    assert links_of(fabric) == LINKS
    assert fabric.leafs == {
        "cn01": ("leaf01",),
        "cn02": ("leaf01",),
        "cn03": ("leaf02",),
        "cn04": ("leaf02",),
    }
    assert fabric.managers is None
    kinds = sorted(device.kind for device in fabric.devices)
    assert kinds == ["aggregation", *["host"] * 4, *["switch"] * 3]


def test_all_tools_together_tell_states_cables_and_firmware() -> None:
    fabric = from_files([CLUSTER])
    assert links_of(fabric) == LINKS
    leaf = next(one for one in fabric.devices if one.name == "leaf02")
    assert leaf == Device(
        "leaf02",
        "switch",
        "0x506b4b0300a10200",
        "",
        "MF0;leaf02:MQM8700/U1",
        "MQM8700",
        "MT_0000000063",
        "27.2010.1202",
        3,
        40,
    )
    link = next(one for one in fabric.links if one.b == End("spine01", "3"))
    assert (link.state, link.physical, link.part) == (
        "Active",
        "LinkUp",
        "MCP1650-H002E26",
    )
    assert fabric.problems == ()
    assert fabric.managers is not None
    assert [(one.guid, one.state) for one in fabric.managers] == [
        ("0xb8599f0300c20101", "master")
    ]
    assert [source.tool for source in fabric.sources] == [
        "ibdiagnet2",
        "iblinkinfo",
        "ibnetdiscover",
        "saquery",
        "sminfo",
    ]
    assert all(len(source.sha256) == 64 for source in fabric.sources)
    down = next(one for one in fabric.open_ports if one.end == End("leaf01", "3"))
    assert (down.state, down.physical, down.silent) == ("Down", "Polling", False)


@pytest.mark.parametrize("name", PARSERS)
def test_cut_off_output_is_refused_or_the_same(name: str) -> None:
    """Cut at every line and in some; only what lacks no link may be accepted."""
    text = text_of(name)
    whole = PARSERS[name](text)
    places = [index + 1 for index, char in enumerate(text) if char == "\n"]
    for place in [*places, *range(0, len(text), 37)]:
        try:
            part = PARSERS[name](text[:place])
        except ParseError as error:
            assert error.line <= text.count("\n") + 1
        else:
            assert part.links == whole.links, place
            assert part.devices.keys() == whole.devices.keys(), place


@pytest.mark.parametrize("name", PARSERS)
def test_a_line_that_is_lost_in_the_middle_is_no_missing_cable(name: str) -> None:
    lines = text_of(name).split("\n")
    whole = PARSERS[name](text_of(name))
    for index in range(len(lines) - 1):
        rest = "\n".join([*lines[:index], *lines[index + 1 :]])
        if name == "ibdiagnet2.db_csv" and whole.links and "LINKS" not in rest:
            continue
        try:
            part = PARSERS[name](rest)
        except ParseError:
            continue
        lost = lines[index]
        is_link_row = name == "ibdiagnet2.db_csv" and lost.count(",") == 3
        assert part.links == whole.links or is_link_row, lost


def test_error_names_file_line_and_remedy(tmp_path: Path) -> None:
    text = text_of("ibnetdiscover.txt")
    file = tmp_path / "ibnetdiscover.txt"
    file.write_text(text[: text.index("vendid", len(text) // 2)])
    with pytest.raises(SeatrialError) as refused:
        from_files([file])
    assert str(refused.value).startswith(f"{file}:")
    assert "the output ends without it. Run ibnetdiscover again." in str(refused.value)


def test_ports_form_of_ibnetdiscover_is_refused() -> None:
    line = (
        "CA   134  1 0x7cfe9003003b4bde 4x EDR - SW  1719 10 0x7cfe9003009ce5b0 ( 'a' )"
    )
    with pytest.raises(ParseError, match="run it without -p"):
        parse_ibnetdiscover(f"{line}\n")


def test_two_cables_to_one_port_are_a_guid_that_exists_twice() -> None:
    text = text_of("ibnetdiscover.txt")
    text = text.replace('[2]\t"H-b8599f0300c20200"', '[2]\t"H-b8599f0300c20100"')
    start = text.index("vendid", text.index("# Topology"))
    blocks = [
        one for one in text[start:].split("\n\n") if "0xb8599f0300c202" not in one
    ]
    (conflict,) = parse_ibnetdiscover(text[:start] + "\n\n".join(blocks)).conflicts
    assert conflict.guid == "0xb8599f0300c20100"
    assert {port for _, port in conflict.ends} == {"1", "2"}


def test_silent_port_is_told_from_a_free_one() -> None:
    text = text_of("iblinkinfo.txt")
    lines = text.split("\n")
    index = next(at for at, line in enumerate(lines) if '"cn02 mlx5_0" (' in line)
    before = lines[index].partition("==>")[0]
    lines[index] = f'{before}==>      "Port not available"'
    start = lines.index("CA: cn02 mlx5_0:")
    seen = parse_iblinkinfo("\n".join(lines[:start] + lines[start + 2 :]))
    assert seen.ports["0x506b4b0300a10100", "2"].silent
    assert not seen.ports["0x506b4b0300a10100", "3"].silent


def test_nodes_with_one_name_are_named_by_their_guids(tmp_path: Path) -> None:
    text = text_of("ibnetdiscover.txt").replace("cn02 mlx5_0", "cn01 mlx5_0")
    (tmp_path / "ibnetdiscover.txt").write_text(text)
    fabric = from_files([tmp_path])
    assert fabric.leafs["0xb8599f0300c20100"] == ("leaf01",)
    (finding,) = [
        one for one in compare(fabric, None, Declaration()) if one.kind == "device"
    ]
    assert finding.actual == (
        "2 devices call themselves cn01 mlx5_0: 0xb8599f0300c20100, 0xb8599f0300c20200"
    )


def test_device_that_only_one_tool_reached_is_not_absent(tmp_path: Path) -> None:
    text = text_of("ibnetdiscover.txt")
    start = text.index("vendid", text.index("# Topology"))
    blocks = text[start:].split("\n\n")
    blocks = [block for block in blocks if "=0xb8599f0300c20200" not in block]
    lines = (text[:start] + "\n\n".join(blocks)).split("\n")
    rest = [line for line in lines if "c20200" not in line]
    (tmp_path / "ibnetdiscover.txt").write_text("\n".join(rest))
    fabric = from_files([tmp_path / "ibnetdiscover.txt", CLUSTER / "iblinkinfo.txt"])
    port = next(one for one in fabric.open_ports if one.end == End("leaf01", "2"))
    assert (port.state, port.silent) == ("Active", True)
    assert fabric.problems == (
        "only iblinkinfo shows cn02 mlx5_0 (0xb8599f0300c20201)",
    )


def test_port_that_did_not_answer_has_no_rate_and_no_state() -> None:
    text = text_of("ibnetdiscover.txt")
    old = 'lid 8 lmc 0 "MF0;leaf02:MQM8700/U1" lid 3 2xHDR'
    assert old in text
    seen = parse_ibnetdiscover(text.replace(old, old.replace("2xHDR", "?????")))
    assert seen.ports["0xb8599f0300c20400", "1"].width is None
    assert seen.links == parse_ibnetdiscover(text).links
    line = (
        '0x0000000000000001 "leaf01" 5 1[  ] ==(undefined (0)     Extended speed '
        'NoChange/NoChange)==>             [  ] "" ( )\n'
    )
    port = parse_iblinkinfo(line).ports["0x0000000000000001", "1"]
    assert (port.state, port.width, port.silent) == ("", None, True)


def test_lids_that_are_not_unique_name_no_port(tmp_path: Path) -> None:
    """Without a subnet manager, all LIDs are 0."""
    text = re.sub(r"( +)\d+( +\d+\[)", r"\g<1>0\2", text_of("iblinkinfo.txt"))
    file = tmp_path / "iblinkinfo.txt"
    file.write_text(text)
    with pytest.raises(SeatrialError, match="several devices have this LID"):
        from_files([file])
    fabric = from_files([CLUSTER / "ibnetdiscover.txt", file])
    assert links_of(fabric) == LINKS
    assert fabric.problems == ()


def test_messages_of_a_tool_in_its_output_are_problems(tmp_path: Path) -> None:
    file = tmp_path / "ibnetdiscover.txt"
    message = "src/query_smp.c:186; umad (DR path slid 0) bad status 110; timed out"
    file.write_text(f"{text_of('ibnetdiscover.txt')}{message}\n")
    assert from_files([file]).problems == (f"ibnetdiscover: {message}",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("END_PORTS\n", "", "START_PORTS of line "),
        ("START_LINKS", "START_LINES", "END_LINKS without its start"),
        (",2,1,1,0x506b4b0300a10300", ",9,1,1,0x506b4b0300a10300", "NodeType is 9"),
        ("NodeGuid1,PortNum1", "Guid1,PortNum1", "NodeGuid1 is missing"),
    ],
)
def test_damaged_db_csv(old: str, new: str, message: str) -> None:
    text = text_of("ibdiagnet2.db_csv")
    assert old in text
    with pytest.raises(ParseError) as refused:
        parse_db_csv(text.replace(old, new))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("gbit_s", "name"),
    [
        (2.5, "SDR"),
        (10, "QDR"),
        (14.0625, "FDR"),
        (25.78, "EDR"),
        (26, "EDR"),
        (53.125, "HDR"),
        (106.25, "NDR"),
        (400, ""),
    ],
)
def test_names_of_speeds(gbit_s: float, name: str) -> None:
    assert speed_of(gbit_s) == name


def test_subnet_managers() -> None:
    (manager,) = parse_sminfo(text_of("sminfo.txt"))
    assert manager == SeenManager("0xb8599f0300c20101", 1, 14, "master")
    assert parse_smir(text_of("saquery.txt")) == [manager]
    with pytest.raises(ParseError, match="no subnet manager"):
        parse_sminfo("sminfo: iberror: failed: query\n")
    with pytest.raises(ParseError, match="cut off"):
        parse_sminfo(text_of("sminfo.txt")[:60])
    with pytest.raises(ParseError, match="line 1: cut off"):
        parse_smir(text_of("saquery.txt")[:120])


def test_lldp_of_one_and_of_several_interfaces() -> None:
    several = (ETHERNET / "lldp/cn01.json").read_text()
    assert parse_lldpctl(several) == [
        Neighbour("ens1f0np0", "leaf01", "b8:59:9f:00:a1:01", "swp1"),
        Neighbour("ens1f1np1", "leaf02", "b8:59:9f:00:a1:02", "swp1"),
    ]
    one = (ETHERNET / "lldp/cn02.json").read_text()
    assert parse_lldpctl(one) == [
        Neighbour("ens1f0np0", "leaf01", "b8:59:9f:00:a1:01", "swp2")
    ]
    for text in (several[:300], "[]", '{"a": 1}'):
        with pytest.raises(ParseError):
            parse_lldpctl(text)


def test_fabric_of_lldp() -> None:
    fabric = from_files([ETHERNET])
    assert fabric.leafs == {"cn01": ("leaf01", "leaf02"), "cn02": ("leaf01",)}
    assert Link(End("cn02", "ens1f0np0"), End("leaf01", "swp2")) in fabric.links
    assert fabric.problems == ()


def test_rails_in_subnets_of_their_own_are_one_fabric(tmp_path: Path) -> None:
    second = tmp_path / "rail1"
    second.mkdir()
    for name in ("ibnetdiscover.txt", "iblinkinfo.txt", "sminfo.txt"):
        text = text_of(name).replace("506b4b0300a", "506b4b0300b")
        text = text.replace("b8599f0300c", "b8599f0300d").replace("mlx5_0", "mlx5_1")
        for switch in ("leaf", "spine"):
            text = text.replace(f";{switch}", f";r1-{switch}")
        (second / name).write_text(text)
    fabric = from_files([CLUSTER, second])
    assert len(links_of(fabric)) == 2 * len(LINKS)
    assert fabric.leafs["cn01"] == ("leaf01", "r1-leaf01")
    assert fabric.subnets == (str(CLUSTER), str(second))
    assert [
        one for one in compare(fabric, None, Declaration()) if one.kind == "manager"
    ] == []
    (second / "sminfo.txt").write_text("")
    fabric = from_files([CLUSTER, second])
    (finding,) = [
        one for one in compare(fabric, None, Declaration()) if one.kind == "manager"
    ]
    assert finding.actual == f"no subnet manager answers in {second}"
    shutil.copytree(CLUSTER, tmp_path / "again")
    same = from_files([CLUSTER, tmp_path / "again"])
    assert (links_of(same), same.subnets) == (LINKS, (str(CLUSTER),))
    file = CLUSTER / "iblinkinfo.txt"
    with pytest.raises(SeatrialError, match="a second output of iblinkinfo"):
        from_files([file, file])


def test_active_ports_of_this_machine(tmp_path: Path) -> None:
    for hca, layer, state in (
        ("mlx5_0", "InfiniBand", "4: ACTIVE"),
        ("mlx5_1", "InfiniBand", "1: DOWN"),
        ("mlx5_2", "Ethernet", "4: ACTIVE"),
        ("mlx5_3", "InfiniBand", "4: ACTIVE"),
    ):
        port = tmp_path / hca / "ports/1"
        port.mkdir(parents=True)
        (port / "link_layer").write_text(f"{layer}\n")
        (port / "state").write_text(f"{state}\n")
    assert active_ports(tmp_path) == [("mlx5_0", "1"), ("mlx5_3", "1")]
    assert active_ports(tmp_path / "none") == [("", "")]


def test_unknown_files_and_mixed_fabrics_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "links.txt"
    file.write_text("")
    with pytest.raises(SeatrialError, match="unknown file; expected one of"):
        from_files([file])
    with pytest.raises(SeatrialError, match="no output that tells the links"):
        from_files([tmp_path])
    with pytest.raises(SeatrialError, match="expected one fabric"):
        from_files([ETHERNET, CLUSTER])
