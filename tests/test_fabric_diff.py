"""The discovered fabric against its plan: each mistake of cabling is one finding."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cabled_fabric import MASTER, Cabled, planned

from seatrial.errors import Exit, SeatrialError
from seatrial.fabric.compare import compare
from seatrial.fabric.declaration import Declaration, SubnetManager, load_declaration
from seatrial.fabric.findings import Finding, exit_status
from seatrial.fabric.plan import Plan, plan_csv, read_plan
from seatrial.fabric.records import (
    Device,
    Duplicate,
    End,
    Fabric,
    Link,
    Manager,
    read_fabric,
    write_fabric,
)

PLAN = planned()
NOTHING = Declaration()
NODES = {name for name, kind in PLAN.kinds.items() if kind == "host"}


def found(
    cabled: Cabled, plan: Plan | None = PLAN, declaration: Declaration = NOTHING
) -> list[Finding]:
    """Return the findings, without those on up-links that follow from a cable."""
    findings = compare(cabled.fabric(), plan, declaration)
    return [one for one in findings if one.kind != "uplinks"]


def renamed(name: str, other: str) -> Plan:
    """Return the plan with another name of a host."""
    text = plan_csv(PLAN.cables)
    assert text.count(f"{name},mlx5_0:1") == 1
    return read_plan(text.replace(f"{name},mlx5_0:1", f"{other},mlx5_0:1"), "plan.csv")


def brief(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(one.verdict, one.kind) for one in findings]


def test_fabric_as_planned_has_no_finding() -> None:
    for kind in ("fat-tree-2", "dragonfly", "dragonfly+"):
        plan = planned(kind=kind, hosts=40)
        assert compare(Cabled(plan).fabric(), plan, NOTHING) == []
    assert exit_status([]) == Exit.PASS


def test_swap_of_two_nodes_is_one_finding_with_both_ends() -> None:
    cabled = Cabled(PLAN)
    one, other = cabled.cable("cn03"), cabled.cable("cn20")
    cabled.rotate(one.b, other.b)
    (finding,) = found(cabled)
    assert (finding.verdict, finding.kind) == ("drift", "swapped")
    assert finding.cables == (one.cable, other.cable)
    assert finding.declared == (
        "cn03 port mlx5_0:1 - leaf01 port 3; cn20 port mlx5_0:1 - leaf03 port 4"
    )
    assert finding.reason == (
        "exchange the plugs at leaf01 port 3 and leaf03 port 4; "
        "cn03 is on leaf03, not leaf01; cn20 is on leaf01, not leaf03"
    )
    assert {str(spot) for spot in finding.spots} == {
        "cn03 port mlx5_0:1 (rail0)",
        "leaf01 port 3",
        "cn20 port mlx5_0:1 (rail0)",
        "leaf03 port 4",
    }
    assert finding.lines == (one.line, other.line)
    assert exit_status([finding]) == Exit.FAILED


def test_swap_on_one_leaf_says_which_plugs() -> None:
    cabled = Cabled(PLAN)
    cabled.rotate(End("leaf02", "1"), End("leaf02", "2"))
    (finding,) = found(cabled)
    assert finding.reason == "exchange the plugs at leaf02, ports 1 and 2"


def test_swap_of_opposite_ends_says_which_plugs() -> None:
    cabled = Cabled(PLAN)
    up = next(one for one in PLAN.cables if one.a == End("leaf01", "9"))
    other = next(one for one in PLAN.cables if one.a == End("leaf05", "12"))
    cabled.connect(up.a, other.a)
    cabled.connect(up.b, other.b)
    (finding,) = found(cabled)
    assert finding.kind == "swapped"
    # The cable at leaf01 port 9 goes to leaf05 port 12; it should go to the spine.
    assert finding.reason == f"exchange the plugs at {up.b} and leaf05 port 12"


def test_swap_into_a_free_port_is_no_exchange() -> None:
    cabled = Cabled(PLAN)
    one, other = cabled.cable("cn03"), cabled.cable("cn20")
    cabled.unplug(one.a)
    cabled.unplug(other.a)
    cabled.connect(one.a, other.b)
    cabled.connect(other.a, End("leaf08", "30"))
    (finding,) = found(cabled)
    assert (finding.kind, len(finding.cables)) == ("swapped", 2)
    assert finding.reason.startswith("put the plugs back as planned")


@pytest.mark.parametrize("count", [3, 4, 7])
def test_rotation_is_one_finding(count: int) -> None:
    cabled = Cabled(PLAN)
    ends = [End(f"leaf{index % 8 + 1:02}", "10") for index in range(count)]
    cabled.rotate(*ends)
    (finding,) = found(cabled)
    assert (finding.kind, len(finding.cables)) == ("swapped", count)


def test_swapped_cable_that_is_also_unplugged_stays_one_finding() -> None:
    cabled = Cabled(PLAN)
    one, other = cabled.cable("cn03"), cabled.cable("cn20")
    cabled.rotate(one.b, other.b)
    cabled.unplug(one.b)
    (finding,) = found(cabled)
    assert finding.kind == "swapped"
    assert "1 of them has no link" in finding.reason


def test_moved_plug() -> None:
    cabled = Cabled(PLAN)
    cabled.unplug(End("cn64", "mlx5_0:1"))
    cabled.connect(End("cn64", "mlx5_0:1"), End("leaf01", "17"))
    (finding,) = found(cabled)
    assert finding.kind == "moved"
    assert finding.reason == (
        "move the plug from leaf01 port 17 to leaf08 port 8; "
        "cn64 is on leaf01, not leaf08"
    )


def test_missing_and_additional_cables() -> None:
    cabled = Cabled(PLAN)
    cabled.unplug(End("leaf01", "9"))
    cabled.connect(End("leaf05", "20"), End("leaf06", "20"))
    first, second = found(cabled)
    assert brief([first, second]) == [("absent", "missing"), ("drift", "additional")]
    assert first.actual == "leaf01 port 9 Down/Polling, spine01 port 1 Down/Polling"
    assert second.actual == "leaf05 port 20 - leaf06 port 20"


def test_up_links_of_a_leaf_are_counted_against_the_plan() -> None:
    cabled = Cabled(PLAN)
    cabled.unplug(End("leaf01", "9"))
    findings = compare(cabled.fabric(), PLAN, NOTHING)
    (uplinks,) = [one for one in findings if one.kind == "uplinks"]
    assert uplinks.verdict == "odd"
    assert uplinks.declared == "8 up-links"
    assert uplinks.actual == "7 up-links: 1 of 2 to spine01"


def test_up_links_without_a_plan_are_compared_among_leafs() -> None:
    cabled = Cabled(PLAN)
    cabled.unplug(End("leaf01", "9"))
    (finding,) = compare(cabled.fabric(), None, NOTHING)
    assert (finding.verdict, str(finding.spots[0])) == ("odd", "leaf01")
    assert exit_status([finding]) == Exit.PASS


@pytest.mark.parametrize(
    ("rate", "text"), [((1, "HDR"), "1x HDR"), ((4, "EDR"), "4x EDR")]
)
def test_wrong_width_or_speed(rate: tuple[int, str], text: str) -> None:
    cabled = Cabled(PLAN)
    cabled.rates[End("leaf02", "9")] = rate
    (finding,) = found(cabled)
    assert (finding.verdict, finding.kind) == ("drift", "rate")
    assert (finding.declared, finding.actual) == ("4x HDR", text)


def test_link_that_is_not_active() -> None:
    cabled = Cabled(PLAN)
    cabled.states[End("leaf02", "9")] = "Initialize"
    (finding,) = found(cabled)
    assert (finding.kind, finding.actual) == ("state", "Initialize/LinkUp")


def test_dead_node_is_one_finding_and_so_is_a_dead_switch() -> None:
    cabled = Cabled(PLAN)
    behind = {f"cn{number}" for number in range(57, 65)}
    cabled.gone = {"cn07", "leaf08", "spine02", *behind}
    findings = found(cabled)
    dead = {one.spots[0].device for one in findings}
    assert dead == {"cn07", "leaf08", "spine02"}
    assert {one.verdict for one in findings} == {"absent"}
    (leaf,) = [one for one in findings if one.spots[0].device == "leaf08"]
    assert leaf.reason.endswith("behind it: cn[57-64]")
    (node,) = [one for one in findings if one.spots[0].device == "cn07"]
    assert node.kind == "device"
    assert node.reason == "leaf01 port 7 Down/Polling"


def test_what_does_not_answer_is_unknown_and_never_missing() -> None:
    cabled = Cabled(PLAN)
    cabled.silent = {End("leaf01", "7"), End("cn07", "mlx5_0:1")}
    cabled.gone = {"cn07"}
    findings = found(cabled)
    assert brief(findings) == [("unknown", "device")]
    assert exit_status(findings) == Exit.UNDECIDED


def test_switch_in_the_place_of_another() -> None:
    cabled = Cabled(PLAN)
    cabled.names["leaf03"] = "spare1"
    cabled.rotate(End("leaf03", "1"), End("leaf03", "2"))
    first, second = found(cabled)
    assert (first.kind, first.declared, first.actual) == ("switch", "leaf03", "spare1")
    assert second.kind == "swapped"
    assert second.reason == "exchange the plugs at spare1, ports 1 and 2"


def test_other_node_in_the_place_of_one() -> None:
    cabled = Cabled(PLAN)
    cabled.names["cn05"] = "cn99"
    (finding,) = found(cabled)
    assert (finding.verdict, finding.kind) == ("absent", "device")
    assert finding.actual == "cn99 in its place"


def test_device_that_is_not_in_the_plan() -> None:
    fabric = Cabled(PLAN).fabric()
    link = Link(End("leaf01", "30"), End("login1", "mlx5_0:1"), 4, "HDR", "Active")
    login = Device("login1", "host", "0x00000000000000ff", "mlx5_0")
    more = Fabric(
        (*fabric.devices, login), (*fabric.links, link), managers=fabric.managers
    )
    (finding,) = compare(more, PLAN, NOTHING)
    assert (finding.verdict, finding.kind) == ("drift", "device")
    assert str(finding.spots[0]) == "login1"


def test_aggregation_node_of_a_switch_is_no_finding() -> None:
    fabric = Cabled(PLAN).fabric()
    link = Link(End("leaf01", "41"), End("0xab", "1"), 4, "HDR", "Active")
    sharp = Device("0xab", "aggregation", "0x00000000000000ab")
    more = Fabric(
        (*fabric.devices, sharp), (*fabric.links, link), managers=fabric.managers
    )
    assert compare(more, PLAN, NOTHING) == []


def test_guid_that_exists_twice_hides_its_cables() -> None:
    cabled = Cabled(PLAN)
    cabled.gone = {"cn02"}
    fabric = cabled.fabric()
    guid = next(one.guid for one in fabric.devices if one.name == "cn01")
    ends = (End("leaf01", "1"), End("leaf01", "2"))
    twice = Fabric(
        fabric.devices,
        fabric.links,
        fabric.open_ports,
        (Duplicate(guid, ends),),
        fabric.managers,
    )
    (finding,) = compare(twice, PLAN, NOTHING)
    assert (finding.verdict, finding.kind) == ("drift", "guid")
    assert guid in finding.actual


def test_firmware_of_switches_of_a_type() -> None:
    cabled = Cabled(PLAN)
    cabled.firmware["leaf02"] = "27.2008.2500"
    (finding,) = found(cabled)
    assert (finding.verdict, finding.actual) == ("odd", "27.2008.2500")
    assert [str(spot) for spot in finding.spots] == ["leaf02"]
    declared = Declaration(fabric_firmware={"MQM8700": "27.2010.1000"})
    (finding,) = found(cabled, PLAN, declared)
    assert (finding.verdict, finding.declared) == ("drift", "27.2010.1000")


@pytest.mark.parametrize(
    ("managers", "declared", "expected"),
    [
        ((), None, [("absent", "no subnet manager answers")]),
        (
            (MASTER, Manager("0x0000000000000002", 14, "master")),
            None,
            [("drift", f"2 masters: {MASTER.guid}, 0x0000000000000002")],
        ),
        ((MASTER, Manager("0x0000000000000002", 1, "standby")), None, []),
        (None, None, []),
        (None, SubnetManager(None, 14), [("unknown", "no source tells it")]),
        ((MASTER,), SubnetManager(MASTER.guid, 14), []),
        ((MASTER,), SubnetManager(None, 15), [("drift", "priority 14")]),
        (
            (MASTER,),
            SubnetManager("0x0000000000000009", None),
            [("drift", f"master {MASTER.guid}")],
        ),
    ],
)
def test_subnet_managers(
    managers: tuple[Manager, ...] | None,
    declared: SubnetManager | None,
    expected: list[tuple[str, str]],
) -> None:
    cabled = Cabled(PLAN, managers=managers)
    findings = found(cabled, PLAN, Declaration(fabric_sm=declared))
    assert [(one.verdict, one.actual) for one in findings] == expected


def test_rates_that_no_source_tells_are_one_finding() -> None:
    fabric = Cabled(PLAN).fabric()
    bare = tuple(Link(link.a, link.b) for link in fabric.links)
    (finding,) = compare(
        Fabric(fabric.devices, bare, managers=fabric.managers), PLAN, NOTHING
    )
    assert (finding.verdict, finding.kind) == ("unknown", "rate")
    assert exit_status([finding]) == Exit.UNDECIDED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text.replace("cn05,", "CN05,"),
            "plan.csv:6: a: 'CN05' is 'cn05'",
        ),
        (
            lambda text: text.replace("cn05,", "cn05.example.org,"),
            "plan.csv:6: a: 'cn05.example.org' is 'cn05' in the fabric; they differ",
        ),
        (
            lambda text: text.replace("cn05,", "cm05,"),
            "plan.csv:6: a: unknown device 'cm05', neither a node of the system nor in",
        ),
    ],
)
def test_names_of_the_plan_that_the_fabric_does_not_have(
    change: Callable[[str], str], message: str
) -> None:
    plan = read_plan(change(plan_csv(PLAN.cables)), "plan.csv")
    with pytest.raises(SeatrialError) as refused:
        compare(Cabled(PLAN).fabric(), plan, NOTHING, lambda: NODES)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("off", [False, True], ids=["on", "off"])
@pytest.mark.parametrize("name", ["cm05", "cnO5", "cn005", "c05", "ccn05", "cn-05"])
def test_misspelt_name_is_an_error_with_the_right_one(name: str, off: bool) -> None:
    cabled = Cabled(PLAN, gone={"cn05"} if off else set())
    with pytest.raises(SeatrialError) as refused:
        compare(cabled.fabric(), renamed("cn05", name), NOTHING, lambda: NODES)
    assert str(refused.value) == (
        f"plan.csv:6: a: unknown device {name!r}, neither a node of the system nor in "
        "the fabric. Did you mean 'cn05'?"
    )


@pytest.mark.parametrize("name", ["CN05", "cn05.example.org"])
def test_name_of_a_node_that_is_off_in_other_case_is_an_error(name: str) -> None:
    fabric = Cabled(PLAN, gone={"cn05"}).fabric()
    with pytest.raises(SeatrialError, match=r"csv:6: a: .* Did you mean 'cn05'\?"):
        compare(fabric, renamed("cn05", name), NOTHING, lambda: NODES)


def test_digit_that_is_a_letter_is_an_error_if_the_device_is_in_its_place() -> None:
    plan = renamed("cn10", "cn1O")
    with pytest.raises(SeatrialError, match=r"csv:11: a: .* Did you mean 'cn10'\?"):
        compare(Cabled(PLAN).fabric(), plan, NOTHING, lambda: NODES)


@pytest.mark.parametrize("name", ["login2", "io-64", "storage01.example.org"])
def test_device_that_is_off_and_no_node_is_absent(name: str) -> None:
    plan = renamed("cn64", name)
    cabled = Cabled(plan, gone={name})
    (finding,) = compare(cabled.fabric(), plan, NOTHING, lambda: NODES - {"cn64"})
    cable = cabled.cable(name)
    assert (finding.verdict, finding.kind) == ("absent", "device")
    assert finding.lines == (cable.line,) == (65,)
    assert finding.where == f"cable c00064: {name} - leaf08 port 8"
    assert finding.reason == "leaf08 port 8 Down/Polling"


def test_devices_with_other_numbers_are_other_devices() -> None:
    plan = renamed("cn64", "login2")
    cabled = Cabled(plan, names={"cn63": "login1"}, gone={"login2"})
    nodes = NODES - {"cn64"}
    first, second = compare(cabled.fabric(), plan, NOTHING, lambda: nodes)
    assert (first.actual, first.lines) == ("login1 in its place", (64,))
    assert (second.actual, second.lines) == ("no answer", (65,))
    plan = renamed("cn05", "cn99")
    (finding,) = compare(Cabled(PLAN).fabric(), plan, NOTHING, lambda: NODES)
    assert (finding.declared, finding.actual) == ("cn99", "cn05 in its place")


def test_names_of_another_kind_are_absent_devices() -> None:
    plan = planned(hosts=648, radix=36)
    names = {name: f"node-{name[2:]}" for name in plan.kinds if name.startswith("cn")}
    fabric = Cabled(plan, names=names).fabric()
    nodes = frozenset(names.values())
    findings = compare(fabric, plan, NOTHING, lambda: nodes)
    assert brief(findings) == [("absent", "device")] * 648


@pytest.mark.parametrize("label", ["1", "mlx5_0", "HCA-1:1", "mlx5_0:1"])
def test_ports_of_hosts_may_have_other_labels(label: str) -> None:
    text = plan_csv(PLAN.cables).replace(",mlx5_0:1,", f",{label},")
    assert compare(Cabled(PLAN).fabric(), read_plan(text, "p"), NOTHING) == []


def test_random_mistakes_are_each_found_once() -> None:
    """Plant mistakes that share no port in random fabrics; count the findings."""
    for seed in range(40):
        chance = random.Random(seed)
        plan = planned(hosts=chance.randint(30, 100), radix=chance.choice((16, 20)))
        cabled = Cabled(plan)
        cables = list(plan.cables)
        chance.shuffle(cables)
        expected = []
        for _ in range(chance.randint(1, 6)):
            kind = chance.choice(("missing", "swapped", "rate", "state", "moved"))
            size = chance.randint(2, 4) if kind == "swapped" else 1
            own = [cables.pop() for _ in range(size)]
            if kind == "missing":
                cabled.unplug(own[0].a)
            elif kind == "swapped":
                cabled.rotate(*(one.b for one in own))
            elif kind == "rate":
                cabled.rates[own[0].a] = (2, "HDR")
            elif kind == "state":
                cabled.states[own[0].a] = "Armed"
            else:
                cabled.unplug(own[0].a)
                cabled.connect(own[0].a, End(own[0].b.device, f"{90 + len(cables)}"))
            expected.append((kind, sorted(one.cable for one in own)))
        actual = [(one.kind, sorted(one.cables)) for one in found(cabled, plan)]
        assert sorted(actual) == sorted(expected), seed


def exchange(cabled: Cabled, reason: str) -> None:
    """Do what a finding says."""
    at = r"(\S+) port (\S+)"
    text = reason.partition(";")[0]
    if same := re.fullmatch(
        r"exchange the plugs at (\S+), ports (\S+) and (\S+)", text
    ):
        ends = [End(same[1], same[2]), End(same[1], same[3])]
    elif two := re.fullmatch(rf"exchange the plugs at {at} and {at}", text):
        ends = [End(two[1], two[2]), End(two[3], two[4])]
    else:
        move = re.fullmatch(rf"move the plug from {at} to {at}", text)
        assert move is not None, reason
        start, end = End(move[1], move[2]), End(move[3], move[4])
        far = cabled.links[start]
        cabled.unplug(start)
        cabled.connect(far, end)
        return
    cabled.rotate(*ends)


@pytest.mark.parametrize("seed", range(30))
def test_plan_is_met_after_what_the_findings_say(seed: int) -> None:
    chance = random.Random(seed)
    cabled = Cabled(PLAN)
    cables = chance.sample(PLAN.cables, 6)
    for one, other in (cables[:2], cables[2:4]):
        a, b = chance.choice(((one.b, other.b), (one.a, other.a), (one.a, other.b)))
        cabled.rotate(a, b)
    moved = cables[4]
    stays, free = chance.choice(((moved.a, moved.b), (moved.b, moved.a)))
    cabled.unplug(stays)
    cabled.connect(stays, End(free.device, "99"))
    findings = found(cabled)
    assert sorted(one.kind for one in findings) == ["moved", "swapped", "swapped"]
    for finding in findings:
        exchange(cabled, finding.reason)
    assert found(cabled) == []


def test_records_survive_their_file(tmp_path: Path) -> None:
    fabric = Cabled(PLAN).fabric()
    file = tmp_path / "fabric.json"
    write_fabric(file, fabric)
    assert read_fabric(file) == fabric
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(SeatrialError, match="schema 2, expected at most 1"):
        read_fabric(file)
    file.write_text(file.read_text()[:-100])
    with pytest.raises(SeatrialError, match="expected a file of `seatrial fabric"):
        read_fabric(file)


def test_declaration_names_file_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "group_vars/all/fabric.yml"
    file.parent.mkdir(parents=True)
    assert load_declaration(file) == NOTHING
    file.write_text("fabric_plan: cables.csv\nfabric_sm: { priority: 16 }\n")
    with pytest.raises(SeatrialError) as refused:
        load_declaration(file)
    assert str(refused.value) == (
        f"{file}:2: fabric_sm.priority: expected a priority, 0 to 15, got 16."
    )
