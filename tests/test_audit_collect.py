"""Collecting the settings of nodes: through Slurm, and from a folder."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_hardware import Hca, raw_of, write_node
from fake_home import fake_program

from seatrial.audit.collect import Collected, collect, login_script, of_folder, save
from seatrial.audit.raw import Raw
from seatrial.cli import main
from seatrial.errors import SeatrialError

SINFO = """
cat "$HOME/more" 2>/dev/null
echo 'cn1|idle'; echo 'cn2|idle'; echo 'cn3|down*'; echo 'fat1|reserved'
"""
SCONTROL = """
case $3 in
  no*) exit 1;;
  *) echo "$3" | tr , '\\n';;
esac
"""
SRUN = """
echo "$*" >"$HOME/asked"
for argument; do case $argument in --nodelist=*) nodes=${argument#*=};; esac; done
case "$*" in *--account=none*) echo 'srun: error: Invalid account' >&2; exit 1;; esac
while [ "$1" != sh ]; do shift; done
for node in $(echo "$nodes" | tr , ' '); do
    [ "$node" != cn2 ] || [ ! -e "$HOME/cn2-hangs" ] || continue
    SLURMD_NODENAME=$node SLURM_JOB_ID=1 "$@"
done
"""


class Login:
    """A login node of stand-ins; all its nodes are this machine."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.prefix = folder / "prefix"
        programs = folder / "bin"
        for path in (self.home, self.prefix, programs):
            path.mkdir()
        for name, text in (("sinfo", SINFO), ("scontrol", SCONTROL), ("srun", SRUN)):
            fake_program(programs, name, text)
        self.profile = (
            f"export PATH={programs}:$PATH HOME={shlex.quote(str(self.home))}\n"
        )
        self.profile += "echo Welcome to the login node\n"

    def collected(
        self, *classes: tuple[str, str, list[str]], root: str = "/"
    ) -> Collected:
        prefix, names = str(self.prefix), "vm.overcommit_memory"
        script, token = login_script(prefix, classes, names, root)
        found = collect(["bash", "-s"], self.profile + script, token)
        assert [*self.prefix.iterdir()] == []  # nothing stays
        return found


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path)


def test_nodes_that_are_ready_are_read(login: Login) -> None:
    found = login.collected(
        ("cpu", "cn1,cn2,cn3,cn4", ["--partition=p"]), ("fat", "fat1", [])
    )
    assert found.classes == {"cpu": ["cn1", "cn2", "cn3", "cn4"], "fat": ["fat1"]}
    assert found.raw.keys() == {"cn1", "cn2", "fat1"}
    assert found.missing == {
        "cn3": "not asked, Slurm says down*",
        "cn4": "not asked, Slurm says unknown to Slurm",
    }
    assert found.errors == []
    block = Raw(found.raw["cn1"]).blocks["node_sysfs", ""]
    assert "proc/sys/vm/overcommit_memory" in block.values()
    assert Raw(found.raw["cn1"]).blocks["memlock", ""].status == 0


def test_root_of_recorded_nodes_is_read(login: Login, tmp_path: Path) -> None:
    root = write_node(tmp_path / "a node", changed={"proc/cmdline": "ro quiet\n"})
    found = login.collected(("cpu", "cn1", []), root=str(root))
    block = Raw(found.raw["cn1"]).blocks["node_sysfs", ""]
    assert block.values()["proc/cmdline"] == "ro quiet"


def test_node_without_an_answer_is_missing(login: Login) -> None:
    (login.home / "cn2-hangs").touch()
    found = login.collected(("cpu", "cn1,cn2", []))
    assert found.raw.keys() == {"cn1"}


def test_errors_name_their_class(login: Login) -> None:
    found = login.collected(("cpu", "cn1", ["--account=none"]), ("fat", "no[", []))
    assert found.raw == {}
    assert found.errors == [
        "cpu: srun: error: Invalid account",
        "fat: no host list: no[",
    ]


@pytest.mark.parametrize(("nodes", "minutes"), [(1, 3), (600, 7)])
def test_time_limit_grows_with_the_nodes(
    login: Login, nodes: int, minutes: int
) -> None:
    names = [f"n{number}" for number in range(nodes)]
    (login.home / "more").write_text("".join(f"{name}|idle\n" for name in names))
    login.collected(("cpu", ",".join(names), ["--account=none"]))
    assert f" --time={minutes} " in (login.home / "asked").read_text()


def test_folder_that_cannot_be_written_is_an_error(login: Login) -> None:
    login.prefix.rmdir()
    login.prefix.write_text("")
    script, token = login_script(str(login.prefix), [("cpu", "cn1", [])], "")
    (error,) = collect(["bash", "-s"], script, token).errors
    assert error.startswith("login: mkdir: ")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["bash", "-c", "echo 'ssh: no route' >&2; exit 255"], "ssh: no route"),
        (["bash", "-c", "exit 7"], "exit status 7"),
    ],
)
def test_login_node_that_does_not_answer(command: list[str], error: str) -> None:
    with pytest.raises(SeatrialError, match=f"does not answer: {error}"):
        collect(command, "", "token")


@pytest.mark.parametrize("data", ["!!!!", "aGVsbG8="])
def test_damaged_outputs_are_an_error(data: str) -> None:
    text = f"data\t\t\tt\n{data}\nend\tlogin\t\tt\n"
    with pytest.raises(SeatrialError, match="the login node: damaged output"):
        collect(["cat"], text, "t")


# ---- A folder


def test_folder_gives_what_was_saved(tmp_path: Path) -> None:
    collected = Collected({"cpu": ["cn1", "cn2"]}, {"cn1": "raw\n", "other": "x"})
    collected.missing = {"cn2": "down"}
    collected.errors = ["cpu: error"]
    save(tmp_path, collected)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "classes.json",
        "cn1.txt",
    ]
    assert vars(of_folder(tmp_path)) == {**vars(collected), "raw": {"cn1": "raw\n"}}
    (tmp_path / "cn1.txt").unlink()
    assert of_folder(tmp_path).missing == {"cn1": "no file cn1.txt", "cn2": "down"}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"classes": {"cpu": ["../x"]}}'])
def test_folder_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "classes.json").write_text(text)
    with pytest.raises(SeatrialError):
        of_folder(tmp_path)


# ---- The command


LSPCI = ("max_read_request", "max_payload", "acs")
WITHOUT = "is not installed" if os.getuid() == 0 else "needs root"
DECLARED = """\
hca_models: {MT_0000000222: {firmware: {version: "20.43.2566"}}}
hca_slots:
  cpu: [{name: rail0, bdf: "0000:41:00.0", psid: MT_0000000222, rate: 200}]
node_settings: {all: {governor: performance}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A home with the system `sea`, and a folder of three nodes in `raw`."""
    hardware = tmp_path / "home/inventories/sea/group_vars/all/hardware.yml"
    hardware.parent.mkdir(parents=True)
    hardware.write_text(DECLARED)
    for folder in ("reframe-checks", "reference-data"):
        (tmp_path / "home" / folder).mkdir()
    names = ["cn1", "cn2", "cn3"]
    nodes = {name: raw_of(write_node(tmp_path / name, Hca())) for name in names}
    save(tmp_path / "raw", Collected({"cpu": names}, nodes))
    return tmp_path


def audit(site: Path, *options: str) -> Any:
    runner = CliRunner(env={"SEATRIAL_HOME": str(site / "home"), "COLUMNS": "150"})
    return runner.invoke(main, ["audit", "sea", "--raw", str(site / "raw"), *options])


def test_nodes_as_declared(site: Path) -> None:
    done = audit(site)
    assert (done.exit_code, done.stderr) == (0, "")
    last = done.stdout.splitlines()[-1]
    assert last.startswith("3 nodes: 0 absent, 0 drift, 0 pending, ")
    assert ", 0 odd" in last
    assert f"nvconfig.all (mstconfig: {WITHOUT})" in done.stdout
    assert "rail0" not in done.stdout  # all of it is as declared, or not declared
    rows = json.loads(audit(site, "--all", "--format", "json").stdout)
    assert {(r["key"], r["declared"]) for r in rows if r["declared"]} == {
        ("governor", "performance"),
        ("firmware", "20.43.2566"),
        ("psid", "MT_0000000222"),
        ("rate", "200"),
        ("pcie.speed", "16"),
        ("pcie.width", "16"),
    }
    assert all(row["sha256"] for row in rows)
    unknown = {(r["key"], r["reason"]) for r in rows if r["verdict"] == "unknown"}
    assert unknown == {
        ("firmware.stored", f"mstflint: {WITHOUT}"),
        ("nvconfig.all", f"mstconfig: {WITHOUT}"),
        ("bmc", f"ipmitool: {WITHOUT}"),
        ("dimms", f"dmidecode: {WITHOUT}"),
        ("size", f"dmidecode: {WITHOUT}"),
        ("mtu", "ibv_devinfo: is not installed"),
        ("fec", f"mstlink: {WITHOUT}"),
        *((f"pcie.{key}", "lspci: is not installed") for key in LSPCI),
    }


def test_deviations_come_first_and_share_a_line(site: Path) -> None:
    old = Hca(firmware="20.42.1000", width=8)
    for name in ("cn2", "cn3"):
        raw = raw_of(write_node(site / f"new-{name}", old))
        (site / "raw" / f"{name}.txt").write_text(raw)
    done = audit(site)
    assert done.exit_code == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1][:5] == ["drift", "cn[2-3]", "rail0", "firmware", "20.43.2566"]
    assert lines[2][:6] == ["drift", "cn[2-3]", "rail0", "pcie.width", "16", "8"]
    assert done.stdout.splitlines()[-1].startswith("3 nodes: 0 absent, 4 drift")
    csv = audit(site, "--format", "csv").stdout.splitlines()
    assert sum(",drift," in line for line in csv) == 4
    assert any("2 x 20.42.1000, 1 x 20.43.2566" in line for line in csv)


def test_declared_value_that_nobody_can_tell_is_undecided(site: Path) -> None:
    hardware = site / "home/inventories/sea/group_vars/all/hardware.yml"
    hardware.write_text(DECLARED.replace("governor: performance", "bmc: '7'"))
    done = audit(site)
    assert done.exit_code == 3
    assert f"ipmitool: {WITHOUT}" in " ".join(done.stdout.split())


def test_bad_declaration_ends_before_anything_is_read(site: Path) -> None:
    hardware = site / "home/inventories/sea/group_vars/all/hardware.yml"
    hardware.write_text(DECLARED.replace("rate: 200", "rate: 210"))
    done = audit(site)
    assert done.exit_code == 2
    assert f"{hardware}:3: hca_slots.cpu[0].rate: expected a rate" in done.stderr
