"""Discovery over ssh: a stand-in runs what ssh would, the tools are real, on ibsim."""

import json
import os
import shutil
from pathlib import Path

import pytest
from cabled_fabric import planned
from click.testing import CliRunner
from fake_home import fake_program, write, write_home
from ibsim_fabric import ibsim

from seatrial.cli import main
from seatrial.fabric.plan import plan_csv
from seatrial.fabric.records import End, read_fabric
from seatrial.parsers.fabric.dump_fts import parse_dump_fts

PLAN = planned(hosts=24, radix=16)
NEIGHBOUR = {
    "chassis": {"leaf1": {"id": {"type": "mac", "value": "00:00:00:00:00:01"}}},
    "port": {"id": {"type": "ifname", "value": "Ethernet1"}},
}
_INVENTORY = """\
all:
  vars:
    seatrial_prefix: {prefix}
    node_classes:
      - {{name: batch, nodes: "cn[1-3]"}}
  children:
    login:
      hosts:
        head: {{ansible_host: 10.0.0.1}}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control machine; the prefix on its login node is `remote` beside it."""
    home = write_home(tmp_path / "home")
    shutil.rmtree(home / "etc")
    prefix = tmp_path / "remote"
    prefix.mkdir()
    hosts = home / "inventories" / "lab" / "hosts.yml"
    write(hosts, _INVENTORY.format(prefix=prefix))
    log = f'printf "%s\\n" "$*" >> {tmp_path / "ssh.log"}'
    last = 'for command in "$@"; do :; done'
    fake_program(tmp_path / "bin", "ssh", f'{log}\n{last}\nexec sh -c "$command"')
    own = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    write(tmp_path / "user" / ".bash_profile", f"PATH={own}\n")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", own)
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    return home


def fabric(*words: object, status: int = 0) -> str:
    done = CliRunner().invoke(main, ["fabric", *map(str, words)])
    assert done.exit_code == status, done.output
    return done.output


def provision(home: Path) -> None:
    """Write the description of the system, as provisioning does."""
    shutil.copytree(write_home(home.parent / "other") / "etc", home / "etc")


def test_the_tools_run_on_the_login_node_or_on_the_fabric_host(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = home / "inventories/lab/group_vars/all/fabric.yml"
    with ibsim(tmp_path / "net", PLAN.cables, PLAN.kinds) as running:
        running.start_manager()
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(running.folder)
        file = tmp_path / "fabric.json"
        provision(home)
        said = fabric("discover", "lab", "--ssh", "--output", file, "--keep")
        write(declared, "fabric_plan: cables.csv\nfabric_host: sm01\n")
        (home / "inventories/lab/cables.csv").write_text(plan_csv(PLAN.cables))
        compared = fabric("diff", "lab", "--ssh")
        again = tmp_path / "again"
        fabric("discover", "lab", "--ssh", "--save", again, "--output", file)
        fabric("diff", "lab", "--from", again)
        running.console('Unlink "leaf01"[10]')
        missing = fabric("diff", "lab", "--ssh", "--format", "csv", status=1)
    assert said == f"lab: 24 nodes, 5 switches, 48 links: {file}\n"
    found = read_fabric(file)
    assert {one.tool for one in found.sources} == {
        *("ibnetdiscover", "iblinkinfo", "sminfo", "saquery")
    }
    assert all(one.version and "ibnet" not in one.version for one in found.sources)
    assert found.managers is not None
    assert [(one.state, one.priority) for one in found.managers] == [("master", 14)]
    kept = read_fabric(home / "etc/lab/fabric.json")
    assert kept.routes == "", "tables of the same fabric fit"
    tables = parse_dump_fts((home / "etc/lab/fabric_routes.txt").read_text())
    assert len(tables) == 5
    assert compared == "0 findings\n"
    assert "leaf01 port 10 Down/Polling" in missing
    calls = (tmp_path / "ssh.log").read_text()
    assert "10.0.0.1 bash -l -s" in calls
    assert "10.0.0.1 ssh -T -o BatchMode=yes sm01 'bash -l -s'" in calls


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "echo Permission denied >&2; exit 255",
            "ssh: Permission denied. The tools of",
        ),
        ("echo welcome; exit 1", "ssh: exit status 1. The tools of the fabric run on"),
    ],
)
def test_a_login_that_fails_is_one_error(
    script: str, expected: str, home: Path, tmp_path: Path
) -> None:
    fake_program(tmp_path / "bin", "ssh", script)
    assert expected in fabric("discover", "lab", "--ssh", status=2)


def test_a_tool_that_fails_is_named_with_its_host(home: Path, tmp_path: Path) -> None:
    words = "ibpanic: Failed to open (mlx5_0) port 1"
    fake_program(tmp_path / "bin", "ibnetdiscover", f"echo '{words}' >&2; exit 1")
    fake_program(tmp_path / "bin", "hostname", "echo head")
    error = fabric("discover", "lab", "--ssh", status=2)
    assert f"head: ibnetdiscover: exit status 1: {words}" in error
    assert "run it as root" in error


def test_nodes_are_asked_by_lldpctl_through_slurm(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cn2 has no lldpd, cn3 is down: both are problems, and no missing cables."""
    folder = tmp_path / "bin"
    fake_program(folder, "scontrol", "printf 'cn1\\ncn2\\ncn3\\n'")
    fake_program(folder, "sinfo", "printf 'cn1|idle\\ncn2|idle\\ncn3|down\\n'")
    text = json.dumps({"lldp": {"interface": {"eth0": NEIGHBOUR}}})
    lldpctl = f"[ \"$SLURMD_NODENAME\" = cn1 ] || exit 127\ncat <<'X'\n{text}\nX"
    fake_program(folder, "lldpctl", lldpctl)
    fake_program(folder, "sudo", "echo 'sudo: a password is required' >&2; exit 1")
    steps = (
        "while case $1 in --*) true;; *) false;; esac; do shift; done\n"
        'for node in cn1 cn2; do SLURMD_NODENAME=$node "$@"; done\n'
    )
    fake_program(folder, "srun", steps)
    file = tmp_path / "fabric.json"
    said = fabric("discover", "lab", "--lldp", "--output", file, status=3)
    assert "lab: 1 node, 1 switch, 1 link:" in said
    assert "cn2: lldpctl: sudo: a password is required" in said
    assert "cn3: lldpctl: not asked, Slurm says down" in said
    (link,) = read_fabric(file).links
    assert (link.a, link.b) == (End("cn1", "eth0"), End("leaf1", "Ethernet1"))
    plan = tmp_path / "plan.csv"
    plan.write_text(
        "a,a_port,b,b_port,width,speed,cable\n"
        "cn1,eth0,leaf1,Ethernet1,,,A-1\ncn2,eth0,leaf1,Ethernet2,,,A-2\n"
    )
    options = ("--lldp", "--plan", plan, "--format", "csv")
    rows = fabric("diff", "lab", *options, status=3).splitlines()
    assert rows
    assert not [row for row in rows if row.startswith(("absent", "drift"))]
    both = fabric("diff", "lab", "--lldp", "--ssh", status=2)
    assert "expected one of them, got more" in both
