"""Leaf switches from Slurm's topology: parsed, recorded, used by the judge."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from criteria_samples import criteria, criterion
from fake_home import fake_program, write, write_home
from fake_slurm import stand_in
from network_samples import Truth, run_of
from rich.console import Console
from sweep_samples import BW_MB_PER_S, LATENCY_US, names

from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.runner import Order, run_campaign
from seatrial.fabric.records import Fabric, write_fabric
from seatrial.judge.joint_runs import leafs_of
from seatrial.judge.judge import judge
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.recorded_system import recorded_states
from seatrial.system.description import load_system
from seatrial.system.slurm_topology import node_leafs

_SCONTROL = """
if [ "$2" = topology ]; then
  cut -c "1-${{SLURM_TOPO_LEN:-999999}}" <<'X'
{topology}
X
  echo 'slurm_load_topo error: Unable to contact slurm controller' >&2
  exit
fi
python3 - "$3" <<'X'
import re, sys
for name in re.findall(r"(?:[^,\\[]|\\[[^\\]]*\\])+", sys.argv[1]):
    prefix, _, ranges = name.rstrip("]").partition("[")
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        for number in range(int(first or 0), int(last or first or 0) + 1):
            print(prefix + (str(number).zfill(len(first)) if first else ""))
X
"""
TREE = """\
SwitchName=isw-L2-CELLG1 Level=1 LinkSpeed=1 Nodes=cn[01-05] Switches=isw1[0100,0102]
SwitchName=isw10100 Level=0 LinkSpeed=1 Nodes=cn[01-02,04]
SwitchName=isw10102 Level=0 LinkSpeed=1 Nodes=cn03,cn05"""
BLOCK = """\
BlockName=b1 BlockIndex=0 Nodes=cn[01-02] BlockSize=2
BlockName=b2 BlockIndex=1 Nodes=cn[03-04] BlockSize=2
AggregatedBlock=b[1-2] BlockIndex=2 Nodes=cn[01-04] BlockSize=4"""
FIVE = ("cn01", "cn02", "cn03", "cn04", "cn05")


def fake_topology(folder: Path, topology: str) -> None:
    fake_program(folder, "scontrol", _SCONTROL.format(topology=topology))


@pytest.mark.parametrize(
    ("topology", "nodes", "leafs"),
    [
        (TREE, FIVE, ["isw10100", "isw10100", "isw10102", "isw10100", "isw10102"]),
        (BLOCK, FIVE, ["b1", "b1", "b2", "b2", None]),
        ("", FIVE, [None] * 5),
        ("SwitchName=s0 Level=0 LinkSpeed=1", FIVE, [None] * 5),
        ("TorusName=t Dims=2x2x1 Nodes=cn[01-04]", FIVE, [None] * 5),
        (TREE + "\nSwitchName=x Level=0 LinkSpeed=1 Nodes=cn[01-03]", FIVE, None),
        (
            (
                "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=cn1.east,cn2\n"
                "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=cn1.west"
            ),
            ("cn1.east", "cn1.west", "cn1", "cn2.east"),
            ["s0", "s1", None, None],
        ),
    ],
    ids=["tree", "block", "flat", "no nodes", "torus", "two leafs", "domains"],
)
def test_leafs_of_topologies(
    topology: str,
    nodes: Sequence[str],
    leafs: list[str | None] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_topology(tmp_path, topology)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_TOPO_LEN", "40")
    found = node_leafs(nodes)
    if leafs is None:  # cn01 to cn03 are in two leafs
        assert found == {"cn04": "isw10100", "cn05": "isw10102"}
    else:
        assert [found.get(node) for node in nodes] == leafs


def test_without_slurm_there_are_no_leafs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node_leafs(FIVE) == {}
    fake_program(tmp_path, "scontrol", "echo SwitchName=s0 Level=0 Nodes=cn01; exit 1")
    assert node_leafs(FIVE) == {}


class Site:
    """A Slurm of shell scripts with nodes cn1, cn2 ..., and a home of the suite."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int
    ) -> None:
        self.folder, self.nodes = folder, names(count)
        self.home = write_home(folder / "home")
        stand_in(folder, self.home, monkeypatch)
        states = "".join(f"{node}|idle|none\n" for node in self.nodes)
        fake_program(folder / "bin", "sinfo", f"cat <<'X'\n{states}X")
        self.describe({})

    def describe(self, leafs: dict[str, str]) -> None:
        """Write the nodes of the inventory, with the leafs that it names."""
        etc = self.home / "etc" / "lab"
        system = json.loads((etc / "system.json").read_text())
        system["nodes"] = [
            {"name": node, "facts": {"leaf": leafs[node]} if node in leafs else {}}
            for node in self.nodes
        ]
        write(etc / "system.json", json.dumps(system))
        settings = json.loads((etc / "settings.yaml").read_text())
        settings["systems"][0]["partitions"][0]["extras"]["nodes"] = self.nodes
        write(etc / "settings.yaml", json.dumps(settings))

    def run(self, name: str, console: Console) -> Run:
        """Run a campaign."""
        order = Order(
            self.home,
            self.folder / "results",
            load_system(self.home, "lab"),
            load_campaign(self.home, "smoke"),
            name,
        )
        return load_run(run_campaign(order, console))


def test_a_run_keeps_the_leafs_of_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(record=True, force_terminal=False, width=200)
    site = Site(tmp_path, monkeypatch, count=4)
    line = "SwitchName=s{0} Level=0 LinkSpeed=1 Nodes={1}"
    fake_topology(tmp_path / "bin", line.format(0, "cn[1-2]"))
    run = site.run("r1", console)
    assert leafs_of(run.manifest["nodes"]) == {"cn1": "leaf s0", "cn2": "leaf s0"}
    assert "no leaf is known of cn[3-4]: Slurm's topology has" in console.export_text()
    system = load_system(site.home, "lab")
    replayed = recorded_states(system, run.path / "raw")
    leafs = [state.node.facts.get("leaf") for state in replayed]
    assert leafs == ["s0", "s0", None, None]

    fabric = Fabric((), (), leafs={"cn1": ("f1",), "cn2": ("f1", "f2")})
    write_fabric(site.home / "etc/lab/fabric.json", fabric)
    run = site.run("fabric", console)
    known = leafs_of(run.manifest["nodes"])
    assert known == {"cn1": "leaf f1", "cn2": "leaf f1+f2"}, "before Slurm"
    assert "no leaf is known of cn[3-4]: the fabric has" in console.export_text()

    site.describe({"cn4": "l9"})
    run = site.run("r2", console)
    assert leafs_of(run.manifest["nodes"]) == {"cn4": "leaf l9"}, "the inventory wins"
    assert "leafs" not in run.manifest["starts"][0]
    assert "no leaf is known" not in console.export_text()


def test_slow_leaf_that_only_slurm_knows_is_one_finding_a_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, monkeypatch, count=64)
    topology = (
        "SwitchName=l1 Level=0 LinkSpeed=1 Nodes=cn[1-24]\n"
        "SwitchName=l2 Level=0 LinkSpeed=1 Nodes=cn[25-44]\n"
        "SwitchName=l3 Level=0 LinkSpeed=1 Nodes=cn[45-64]\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=cn[1-64] Switches=l[1-3]"
    )
    fake_topology(tmp_path / "bin", topology)
    recorded = site.run("r1", Console(quiet=True))
    truth = Truth(64, (24, 20, 20), uplinks={"l1": 0.7}, repeats=5)
    measured = run_of(truth)
    nodes = recorded.manifest["nodes"]
    run = replace(measured, manifest={**measured.manifest, "nodes": nodes})
    rules = criteria(
        criterion("bw_1MiB", 0.9 * BW_MB_PER_S, check="PairSweep"),
        criterion("latency_8B", LATENCY_US / 0.9, check="PairSweep"),
    )
    judgement = judge(run, rules)
    failed = [f for f in judgement.findings if f.verdict == "fail"]
    assert sorted((f.place, f.metric) for f in failed) == [
        ("leaf l1", "bw_1MiB"),
        ("leaf l1", "latency_8B"),
    ]
    assert judgement.convicted == ()
