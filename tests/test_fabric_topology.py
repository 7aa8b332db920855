"""Slurm's topology from the fabric, and the site's own against it."""

from pathlib import Path

import pytest
import yaml
from cabled_fabric import Cabled, planned

from seatrial.errors import SeatrialError
from seatrial.fabric.findings import exit_status
from seatrial.fabric.records import End
from seatrial.fabric.topology import conf, of_fabric, of_plan, yaml_text
from seatrial.fabric.topology_check import check
from seatrial.fabric.topology_file import read_topology

CONF = """\
# Written by `seatrial fabric topology`. slurm.conf: topology/tree
SwitchName=leaf01 Nodes=cn[01-08]
SwitchName=leaf02 Nodes=cn[09-16]
SwitchName=leaf03 Nodes=cn[17-20]
# spine01 stands for spine[01-02]
SwitchName=spine01 Switches=leaf[01-03]
"""
SHOWN = """\
SwitchName=sw1 Level=0 LinkSpeed=1 Nodes=cn[01-08]
SwitchName=sw2 Level=0 LinkSpeed=1 Nodes=cn[09-16]
SwitchName=sw3 Level=0 LinkSpeed=1 Nodes=cn[17-20]
SwitchName=top Level=1 LinkSpeed=1 Nodes=cn[01-20] Switches=sw[1-3]
"""
SMALL = planned(hosts=20)
SHOWN_BY_SLURM = Path(__file__).parent / "data/fabric/slurm"
YAML = yaml_text(of_plan(SMALL))


def test_conf_of_two_levels() -> None:
    assert conf(of_plan(SMALL)) == CONF
    assert conf(of_fabric(Cabled(SMALL).fabric())) == CONF


def test_a_missing_cable_does_not_break_the_tree() -> None:
    cabled = Cabled(SMALL)
    for port in ("9", "11", "13", "15"):  # all that leaf01 has to spine01
        cabled.unplug(End("leaf01", port))
    switches = of_fabric(cabled.fabric())
    assert [one.name for one in switches] == ["leaf01", "leaf02", "leaf03", "spine02"]
    assert switches[-1].children == ("leaf01", "leaf02", "leaf03")


def test_three_levels_merge_the_spines_of_a_pod() -> None:
    plan = planned(kind="fat-tree-3", hosts=100, radix=8)
    assert "# spine01 stands for spine[01-04]" in conf(of_plan(plan))
    switches = {one.name: one for one in of_plan(plan)}
    (core,) = [one for one in switches.values() if one.name.startswith("core")]
    assert len(core.children) == 7  # pods of 16 hosts


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("dragonfly", {"radix": 7}), ("torus", {"dims": (3, 3), "radix": 20})],
)
def test_fabrics_without_levels_get_a_root(kind: str, numbers: dict[str, int]) -> None:
    switches = of_plan(planned(kind=kind, hosts=36, **numbers))
    assert switches[-1].name == "fabric"
    assert len(switches[-1].children) == len(switches) - 1


def test_yaml_is_what_slurm_reads() -> None:
    (topology,) = yaml.safe_load(yaml_text(of_plan(SMALL)))
    assert topology["cluster_default"] is True
    assert topology["tree"]["switches"] == [
        {"switch": "leaf01", "nodes": "cn[01-08]"},
        {"switch": "leaf02", "nodes": "cn[09-16]"},
        {"switch": "leaf03", "nodes": "cn[17-20]"},
        {"switch": "spine01", "children": "leaf[01-03]"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        CONF,
        SHOWN,
        CONF.replace("SwitchName", "switchname").replace(" Nodes=", " \\\n nodes="),
        YAML,
        YAML.replace("---\n", "---\n- {topology: flat, flat: true}\n"),
    ],
    ids=["conf", "shown", "keys", "yaml", "two"],
)
def test_topology_as_cabled_has_no_finding(text: str) -> None:
    assert check(read_topology(text, "t"), of_plan(SMALL)) == []


def test_nodes_on_another_leaf_missing_and_unknown() -> None:
    text = SHOWN.replace("cn[01-08]", "cn[01-07,17]").replace("cn[17-20]", "cn[18-21]")
    findings = check(read_topology(text, "t"), of_plan(SMALL))
    leafs = [
        (one.verdict, str(one.spots[0]), one.declared, one.actual) for one in findings
    ]
    assert leafs == [
        ("absent", "cn08", "not listed", "leaf leaf01"),
        ("drift", "cn17", "leaf sw1", "leaf leaf03"),
        ("odd", "cn21", "leaf sw3", "not in the fabric"),
    ]
    assert findings[1].lines == (1,)
    assert exit_status(findings) == 1


@pytest.mark.parametrize("file", sorted(SHOWN_BY_SLURM.iterdir()), ids=lambda f: f.name)
def test_what_slurm_shows_of_files_that_were_written(file: Path) -> None:
    """Real output of slurmctld 22.05 (topology.conf) and 26.05 (topology.yaml)."""
    plan = of_plan(planned(hosts=64, radix=36))
    switches = read_topology(file.read_text(), str(file))
    assert check(switches, plan) == []
    assert [one.name for one in switches] == [one.name for one in plan]


def test_node_on_two_leafs_and_a_leaf_that_is_two_switches() -> None:
    text = SHOWN.replace("Nodes=cn[09-16]", "Nodes=cn[08-16]")
    text = text.replace("Nodes=cn[17-20]", "Nodes=cn[17-19]")
    text += "SwitchName=sw4 Level=0 LinkSpeed=1 Nodes=cn20\n"
    findings = check(read_topology(text, "t"), of_plan(SMALL))
    assert [(one.verdict, one.declared, one.actual) for one in findings[:2]] == [
        ("drift", "leaf sw1 and leaf sw2", "leaf leaf01"),
        ("drift", "leaf sw4", "leaf leaf03"),
    ]
    assert findings[0].lines == (1, 2)


def test_upper_switch_that_joins_other_leafs() -> None:
    plan = planned(kind="fat-tree-3", hosts=64, radix=8)
    text = conf(of_plan(plan))
    assert check(read_topology(text, "t"), of_plan(plan)) == []
    wrong = text.replace("Switches=leaf[01-04]", "Switches=leaf[01-03,05]")
    wrong = wrong.replace("Switches=leaf[05-08]", "Switches=leaf[04,06-08]")
    findings = check(read_topology(wrong, "t"), of_plan(plan))
    assert [one.verdict for one in findings] == ["drift", "drift"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t: no switch"),
        ("SwitchName=a Nodes=cn[1-\n", "t:1: Nodes: "),
        (
            "SwitchName=a Nodes=cn1\nSwitchName=a Nodes=cn2\n",
            "t:2: switch 'a' of line 1",
        ),
        ("SwitchName=a Switches=b\n", "t:1: a: unknown switch 'b'. Add it."),
        ("Switchname a\n", "t:1: expected SwitchName="),
        (
            "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
            "t:1: switch 'a' is above itself. Expected a tree.",
        ),
        (
            "- topology: a\n  tree: {switches: [{switch: s, nodes: 'n[1-'}]}\n",
            "t:2: nodes: ",
        ),
        (
            "- topology: a\n  tree:\n    switches:\n    - nodes: n1\n",
            "t:4: [0].tree.switches[0].switch: expected the name of the switch",
        ),
        ("- topology: a\n  flat: true\n", "t:1: [0]: expected a tree or blocks"),
        ("---\n[]\n", "t:2: expected a list of topologies, got []."),
    ],
)
def test_damaged_topology(text: str, message: str) -> None:
    with pytest.raises(SeatrialError) as refused:
        check(read_topology(text, "t"), of_plan(SMALL))
    assert message in str(refused.value)
