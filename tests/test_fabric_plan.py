"""Cable plans: what is refused with its line, and the shapes from a few numbers."""

import time
from collections import Counter, defaultdict
from typing import Any

import pytest

from seatrial.errors import SeatrialError
from seatrial.fabric.generate import KINDS, Shape, generate
from seatrial.fabric.plan import Cable, plan_csv, read_plan
from seatrial.fabric.records import End

HEADER = "a,a_port,b,b_port,width,speed,cable\n"
ROW = "cn01,1,leaf01,1,4x,HDR,c1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.csv:1: expected the columns a, a_port, b, b_port, width, speed, cable"),
        ("a;a_port;b;b_port;width;speed;cable\n", "Separate columns by commas."),
        (
            "a,a_port,b,b_port,width,speed\n",
            "got no cable. Add them to",
        ),
        (HEADER, "p.csv: no cable; expected a row for each cable"),
        (HEADER + "cn01,1,leaf01\n", "p.csv:2: expected 7 columns, got 3."),
        (
            HEADER + ",1,leaf01,1,4x,HDR,c1\n",
            "p.csv:2: a: expected a text, got",
        ),
        (
            HEADER + ROW + "cn02,1,leaf01,01,4x,HDR,c2\n",
            "p.csv:3: leaf01 port 1 has the cable of line 2 already.",
        ),
        (HEADER + "leaf01,3,leaf01,3,,,\n", "leaf01 port 3 is connected to itself."),
        (
            HEADER + "leaf01,3,leaf01,4,,,\n",
            "p.csv:2: leaf01 port 3 is connected to leaf01 port 4; expected two",
        ),
        (
            HEADER + ROW + "CN01,2,leaf01,2,,,\n",
            "p.csv:3: 'CN01' differs from 'cn01' of line 2 only in case or domain.",
        ),
        (
            HEADER + ROW + "cn01.hpc.example.org,2,leaf01,2,,,\n",
            "p.csv:3: 'cn01.hpc.example.org' differs from 'cn01' of line 2",
        ),
        (
            HEADER + "cn01.site,1,leaf01,1,,,\ncn01,2,leaf01,2,,,\n",
            "p.csv:3: 'cn01' differs from 'cn01.site' of line 2",
        ),
        (HEADER + "cn01,1,leaf01,1,3x,HDR,\n", "p.csv:2: width: expected 1x, 2x, 4x,"),
        (HEADER + "cn01,1,leaf01,1,4x,200,\n", "p.csv:2: speed: expected SDR, DDR,"),
        (
            HEADER + ROW + "cn02,1,leaf01,2,4x,HDR,c1\n",
            "p.csv:3: cable 'c1' is in line 2 already.",
        ),
        (
            HEADER.strip() + ",a_kind\ncn01,1,leaf01,1,,,,router\n",
            "p.csv:2: a_kind: expected host or switch, got 'router'.",
        ),
        (
            HEADER.strip()
            + ",a_kind\ncn01,1,leaf01,1,,,,host\ncn01,2,leaf01,2,,,,switch\n",
            "p.csv:3: a_kind: 'cn01' is a host in an earlier row.",
        ),
    ],
)
def test_plan_that_cannot_be_true(text: str, message: str) -> None:
    with pytest.raises(SeatrialError) as refused:
        read_plan(text, "p.csv")
    assert message in str(refused.value)


def test_numbers_after_a_dot_are_no_domain() -> None:
    text = (
        HEADER + "core1.1,1,leaf01,1,,,\ncore1.2,1,leaf01,2,,,\ncore1,1,leaf01,3,,,\n"
    )
    assert len(read_plan(text, "p").cables) == 3


def test_plan_keeps_racks_rails_and_kinds() -> None:
    text = (
        "cable,a,a_port,a_rack,a_rail,b,b_port,b_rack,width,speed,note\n"
        "\n"
        "c7, cn01 ,mlx5_0:1,R1,rail0,leaf01,05,R2,4X,hdr,short\n"
        "c8,leaf01,37,R2,,spine01,1,R3,,100G,\n"
        "c9,leaf01,38,R2,,spine01,2,R3,,,\n"
    )
    plan = read_plan(text, "p")
    assert plan.cables[0] == Cable(
        End("cn01", "mlx5_0:1"),
        End("leaf01", "5"),
        4,
        "HDR",
        "c7",
        "R1",
        "R2",
        "rail0",
        "",
        3,
    )
    assert plan.racks == {"cn01": "R1", "leaf01": "R2", "spine01": "R3"}
    assert plan.kinds == {"cn01": "host", "leaf01": "switch", "spine01": "switch"}
    assert read_plan(plan_csv(plan.cables), "q").racks == plan.racks


SHAPES: dict[str, dict[str, Any]] = {
    "fat-tree-2": {"hosts": 648, "radix": 36},
    "fat-tree-3": {"hosts": 1024, "radix": 16},
    "dragonfly": {"hosts": 1056, "radix": 15},
    "dragonfly+": {"hosts": 272, "radix": 8},
    "torus": {"hosts": 240, "radix": 40, "dims": (4, 3, 2)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_shape_uses_each_port_once_and_connects_all(kind: str) -> None:
    shape = Shape(kind, **SHAPES[kind])
    plan = read_plan(plan_csv(generate(shape)), "p")
    assert Counter(plan.kinds.values())["host"] == shape.hosts
    neighbours: dict[str, set[str]] = defaultdict(set)
    for cable in plan.cables:
        for own, far in ((cable.a, cable.b), (cable.b, cable.a)):
            neighbours[own.device].add(far.device)
            if plan.kinds[own.device] == "switch":
                assert 1 <= int(own.port) <= shape.radix
    reached, waiting = set[str](), [plan.cables[0].a.device]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += neighbours[name]
    assert reached == plan.kinds.keys()


def test_two_levels_have_one_link_of_each_leaf_to_each_spine() -> None:
    cables = generate(Shape("fat-tree-2", 648, 36))
    pairs = Counter(
        (cable.a.device, cable.b.device)
        for cable in cables
        if cable.a.device.startswith("leaf")
    )
    assert len(pairs) == 36 * 18
    assert set(pairs.values()) == {1}
    few = generate(Shape("fat-tree-2", 72, 36))
    spines = Counter(one.b.device for one in few if one.b.device.startswith("spine"))
    assert spines == {"spine01": 36, "spine02": 36}


def test_full_dragonfly_has_one_link_between_groups() -> None:
    """p = 4, a = 8, h = 4: 33 groups, each with one link to each other one."""
    cables = generate(Shape("dragonfly", 1056, 15))
    groups: Counter[tuple[int, int]] = Counter()
    for cable in cables:
        if cable.a.device.startswith("router"):
            ends = [(int(end.device[6:]) - 1) // 8 for end in (cable.a, cable.b)]
            if ends[0] != ends[1]:
                groups[min(ends), max(ends)] += 1
    assert len(groups) == 33 * 32 // 2
    assert set(groups.values()) == {1}


def test_rails_are_fabrics_of_their_own() -> None:
    cables = generate(Shape("fat-tree-2", 20, 16, rails=2))
    own = [cable for cable in cables if cable.a.device == "cn05"]
    assert [str(cable.a) for cable in own] == [
        "cn05 port mlx5_0:1",
        "cn05 port mlx5_1:1",
    ]
    assert [cable.b.device for cable in own] == ["r0-leaf01", "r1-leaf01"]
    assert [cable.a_rail for cable in own] == ["rail0", "rail1"]


def test_blocking_gives_a_leaf_more_hosts_than_up_links() -> None:
    cables = generate(Shape("fat-tree-2", 100, 36, blocking=2))
    leaf = [cable for cable in cables if cable.b.device == "leaf01"]
    up = [cable for cable in cables if cable.a.device == "leaf01"]
    assert (len(leaf), len(up)) == (24, 12)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (Shape("fat-tree-2", 649, 36), "649 hosts, expected at most 648"),
        (Shape("fat-tree-3", 1025, 16), "expected at most 1024"),
        (Shape("dragonfly", 1057, 15), "expected at most 1056"),
        (Shape("dragonfly+", 273, 8), "expected at most 272"),
        (Shape("torus", 10), "such as --dims 8x8x8"),
        (Shape("torus", 200, 8, dims=(2, 2)), "expected at most 16"),
        (Shape("ring", 10), "expected one of fat-tree-2"),
    ],
)
def test_numbers_that_do_not_fit(shape: Shape, message: str) -> None:
    with pytest.raises(SeatrialError) as refused:
        generate(shape)
    assert message in str(refused.value)


def test_ten_thousand_hosts_take_seconds() -> None:
    start = time.monotonic()
    plan = read_plan(plan_csv(generate(Shape("fat-tree-3", 10_000, 40))), "p")
    assert len(plan.cables) == 30_000
    assert time.monotonic() - start < 10
