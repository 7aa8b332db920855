"""`seatrial fabric`: the page of the documentation, forms of output, exit statuses."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_home import write_home

from seatrial.cli import main
from seatrial.system.description import load_system

HOME = Path(__file__).parents[1]
DATA = HOME / "tests/data/fabric"
PAGE = HOME / "docs/fabric.md"
CLUSTER = ("--from", str(DATA / "cluster"))
PLAN = ("--plan", str(DATA / "cables.csv"))


def run(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(main, ["fabric", *words])
    assert done.exit_code == status, done.output
    return done.output


def test_page_shows_what_the_command_prints() -> None:
    output = run("diff", "lab", *CLUSTER, *PLAN, status=1)
    shown = "".join(f"    {line.rstrip()}\n" for line in output.splitlines())
    assert shown in PAGE.read_text()


def test_discovery_kept_in_a_file_gives_the_same_findings(tmp_path: Path) -> None:
    file = tmp_path / "new" / "fabric.json"
    said = run("discover", "lab", *CLUSTER, "--output", str(file))
    assert said == f"lab: 4 nodes, 3 switches, 9 links: {file}\n"
    kept = run("diff", "lab", "--fabric", str(file), *PLAN, status=1)
    assert kept == run("diff", "lab", *CLUSTER, *PLAN, status=1)
    both = ("--fabric", str(file), *CLUSTER)
    assert "expected one of them" in run("diff", "lab", *both, status=2)


def test_runs_keep_a_fabric_that_was_discovered_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "home")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    file = str(tmp_path / "fabric.json")
    run("discover", "lab", *CLUSTER, "--output", file, "--keep")
    (home / "etc/lab/fabric.yml").write_text("fabric_plan: cables.csv\n")
    (home / "etc/lab/fabric_plan.csv").write_text((DATA / "cables.csv").read_text())
    kept = {one.name for one in load_system(home, "lab").files}
    assert kept >= {"fabric.yml", "fabric_plan.csv", "fabric.json"}
    nodes = run("diff", "lab", "--fabric", file, status=1)
    assert "exchange the plugs" in nodes


def test_runs_keep_forwarding_tables_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "home")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    dump = (DATA / "dump_fts.txt").read_text()
    tables = tmp_path / "dump_fts.txt"
    tables.write_text(dump)
    words = ("discover", "lab", *CLUSTER, "--output", str(tmp_path / "fabric.json"))
    kept = home / "etc/lab/fabric_routes.txt"
    warning = run(*words, "--from", str(tables), "--keep")
    assert "forwarding tables: the tables lead 0 % of all paths" in warning
    assert "tables of switches that are not there: 0x" in warning
    assert kept.read_text() == dump
    found = str(home / "etc/lab/fabric.json")
    shown = run("diff", "lab", "--fabric", found, "--format", "csv")
    (line,) = [one for one in shown.splitlines() if one.startswith("odd,routes,")]
    assert "tables of this fabric" in line
    assert kept in load_system(home, "lab").files
    run(*words, "--keep")
    assert not kept.exists(), "those of an earlier discovery do not fit"
    tables.write_text(dump[:5000])
    error = run(*words, "--from", str(tables), "--keep", status=2)
    assert f"{tables}:" in error
    assert "cut off" in error
    alone = ("discover", "lab", "--from", str(tables))
    assert "no output that tells the links" in run(*alone, status=2)


def test_forms_have_all_columns() -> None:
    words = ("diff", "lab", *CLUSTER, *PLAN, "--format")
    rows = [*csv.DictReader(io.StringIO(run(*words, "csv", status=1)))]
    records = json.loads(run(*words, "json", status=1))
    assert [row["kind"] for row in rows] == [one["kind"] for one in records]
    swap = records[1]
    assert swap["cables"] == ["A-002", "A-003"]
    assert swap["lines"] == [3, 4]
    assert swap["spots"][0] == {
        "device": "cn02",
        "port": "mlx5_0:1",
        "rack": "R1",
        "rail": "rail0",
    }


def test_lldp_tells_cables_but_no_speeds(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(
        "a,a_port,b,b_port,width,speed,cable\n"
        "cn01,ens1f0np0,leaf01,swp1,,100G,e1\n"
        "cn01,ens1f1np1,leaf02,swp1,,,e2\n"
        "cn02,ens1f0np0,leaf01,swp2,,,e3\n"
    )
    words = ("diff", "lab", "--from", str(DATA / "ethernet"), "--plan", str(plan))
    assert "no source tells those of 1 links" in run(*words, status=3)
    plan.write_text(plan.read_text().replace("100G", ""))
    assert run(*words) == "0 findings\n"
    plan.write_text(plan.read_text().replace("swp2", "swp3"))
    assert "move the plug from leaf01 port swp2" in run(*words, status=1)


def test_system_without_a_plan_says_where_to_declare_it() -> None:
    output = run("diff", "lab", *CLUSTER)
    assert "lab: no plan; set fabric_plan in " in output
    assert "fabric_plan: expected the path" in run("topology", "lab", status=2)
    assert "unknown system 'nowhere'" in run("diff", "nowhere", status=2)


def test_plan_and_firmware_of_the_inventory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("reframe-checks", "reference-data", "inventories/sea"):
        (tmp_path / name).mkdir(parents=True)
    inventory = tmp_path / "inventories/sea"
    (inventory / "cables.csv").write_text((DATA / "cables.csv").read_text())
    declaration = inventory / "group_vars/all/fabric.yml"
    declaration.parent.mkdir(parents=True)
    declaration.write_text(
        "fabric_plan: cables.csv\n"
        "fabric_sm: { guid: '0xb8599f0300c20101', priority: 15 }\n"
        "fabric_firmware: { MQM8700: '27.2010.1202' }\n"
    )
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path))
    output = run("diff", "sea", *CLUSTER, "--format", "json", status=1)
    found = [(one["kind"], one["verdict"]) for one in json.loads(output)]
    assert ("manager", "drift") in found
    assert ("firmware", "drift") in found
    assert ("swapped", "drift") in found


def test_damaged_output_names_file_and_line(tmp_path: Path) -> None:
    text = (DATA / "cluster/ibnetdiscover.txt").read_text().splitlines(keepends=True)
    file = tmp_path / "ibnetdiscover.txt"
    file.write_text("".join(text[:20]))
    output = run("diff", "lab", "--from", str(file), *PLAN, status=2)
    assert f"{file}:20: cut off: line 11 leads to device 0xb8599f0300c20300" in output
    assert "missing" not in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "ring"), "expected one of fat-tree-2, fat-tree-3, dragonfly"),
        (("--kind", "torus", "--dims", "8x"), "--dims: expected numbers"),
        (("--kind", "fat-tree-2", "--width", "3x"), "--width: expected 1x to 12x"),
        (("--kind", "fat-tree-2", "--speed", "200"), "--speed: expected SDR, DDR"),
    ],
)
def test_wrong_numbers_of_a_plan(words: tuple[str, ...], message: str) -> None:
    assert message in run("plan", "--hosts", "10", *words, status=2)


def test_plan_is_written_as_csv_or_for_ibsim() -> None:
    words = ("plan", "--kind", "fat-tree-2", "--hosts", "20", "--radix", "16")
    text = run(*words)
    assert text.startswith("a,a_port,b,b_port,width,speed,cable,a_rail\ncn01,mlx5_0:1,")
    assert text.count("\n") == 1 + 20 + 3 * 8
    network = run(*words, "--format", "ibsim")
    assert 'Ca\t1 "cn01/mlx5_0"\t\t# "cn01 mlx5_0"' in network


def test_topology_is_written_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    words = ("topology", "lab", *PLAN)
    run(*words, "--output", str(file))
    assert "SwitchName=leaf01 Nodes=cn[01,03]" in file.read_text()
    assert run(*words, "--check", str(file)) == "0 findings\n"
    wrong = str(DATA / "topology.conf")
    output = run(*words, "--check", wrong, status=1)
    assert "leaf leaf02" in output
