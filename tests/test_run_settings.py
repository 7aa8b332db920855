"""Settings in a run: read at its start and end, kept, reported."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_hardware import Hca, write_node
from fake_home import fake_program, write_home
from fake_slurm import stand_in
from rich.console import Console
from settings_runs import DECLARED, alike, settings_run
from test_judge_settings import ALL, OLD, judged

from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.runner import Order, run_campaign
from seatrial.cli import main
from seatrial.judge.judge import Judgement
from seatrial.report.common_facts import common_facts, node_facts
from seatrial.report.content import Chapter
from seatrial.report.settings_chapter import settings_chapter
from seatrial.runs.closed_run import Run, load_run
from seatrial.system.description import load_system

# ---- The whole way: driver, ReFrame and stand-ins for Slurm.

SRUN = """
for argument; do case $argument in --nodelist=*) nodes=${{argument#*=}};; esac; done
while [ "$1" != sh ]; do shift; done
for node in $(echo "$nodes" | tr , ' '); do
  SLURMD_NODENAME=$node SLURM_JOB_ID=1 sh -c "$3" node "$5" "$6" "$7/$node"
done
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return home_in(tmp_path, monkeypatch)


def home_in(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Write a home whose two nodes are trees; cn02 has older firmware."""
    home = write_home(folder / "home")
    stand_in(folder, home, patch)
    programs, trees = folder / "bin", folder / "trees"
    sinfo = (programs / "sinfo").read_text().split("\n", 1)[1]
    states = "case \"$*\" in *'%N|%T') echo 'cn01|idle'; echo 'cn02|idle'; exit;; esac"
    fake_program(programs, "sinfo", f"{states}\n{sinfo}")
    fake_program(programs, "scontrol", "echo cn01; echo cn02")
    fake_program(programs, "srun", SRUN.format())
    for name, hca in (("cn01", Hca()), ("cn02", OLD)):
        write_node(trees / name, hca)
    etc = home / "etc" / "lab"
    system = json.loads((etc / "system.json").read_text())
    (etc / "system.json").write_text(json.dumps({**system, "audit_root": str(trees)}))
    (etc / "hardware.yml").write_text(DECLARED)
    return home


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A home, a run of it, and what the run printed."""
    console = Console(record=True, force_terminal=False, width=200)
    with pytest.MonkeyPatch.context() as patch:
        home = home_in(tmp_path_factory.mktemp("settings"), patch)
        path = run_once(home, console)
    return home, path, console.export_text()


def run_once(home: Path, console: Console) -> Path:
    system, campaign = load_system(home, "lab"), load_campaign(home, "smoke")
    order = Order(home, home.parent / "results", system, campaign, "r1")
    return run_campaign(order, console)


def test_a_run_keeps_the_settings_of_its_nodes(kept: tuple[Path, Path, str]) -> None:
    _, path, said = kept
    run = load_run(path)
    assert "settings" not in said, "nothing to warn of"
    assert run.settings is not None
    rows = run.settings.filter(key="firmware").sort("moment", "node")
    assert rows["moment"].to_list() == ["end", "end", "start", "start"]
    assert rows["verdict"].to_list() == ["ok", "drift", "ok", "drift"]
    firmware = run.manifest["settings"]["rail0"]["firmware"]
    assert firmware == "20.42.1000 (cn02); 20.43.2566 (cn01)"
    assert "serial" not in run.manifest["settings"]["node"], "each node has its own"
    assert "settings/start.tar.gz" in run.manifest["checksums"]
    assert (path / "system/hardware.yml").read_text() == DECLARED
    finding = next(f for f in judged(run, ALL).findings if f.kind == "declared")
    assert (finding.place, finding.verdict) == ("cn02", "fail")


def test_raw_outputs_of_a_run_can_be_audited_again(
    kept: tuple[Path, Path, str], tmp_path: Path
) -> None:
    home, path, _ = kept
    folder = tmp_path / "raw"
    folder.mkdir()
    archive = path / "settings/end.tar.gz"
    subprocess.run(["tar", "-C", folder, "-xzf", archive], check=True)
    hardware = home / "inventories/lab/group_vars/all/hardware.yml"
    hardware.parent.mkdir(parents=True)
    hardware.write_text(DECLARED)
    runner = CliRunner(env={"SEATRIAL_HOME": str(home), "COLUMNS": "150"})
    audit = runner.invoke(main, ["audit", "lab", "--raw", str(folder)])
    assert audit.exit_code == 1, audit.output
    assert "20.42.1000" in audit.output


def test_nodes_that_cannot_be_read_do_not_end_a_run(home: Path, tmp_path: Path) -> None:
    fake_program(tmp_path / "bin", "srun", "echo 'srun: error: no way' >&2; exit 1")
    console = Console(record=True, force_terminal=False, width=200)
    run = load_run(run_once(home, console))
    said = console.export_text()
    expected = "settings at the start of the run: not known of cn[01-02]: batch: srun: "
    assert f"{expected}error: no way" in said, said
    assert run.settings is not None
    assert set(run.settings["verdict"]) == {"unknown"}
    assert run.manifest["settings"] == {}


def test_a_bad_declaration_ends_a_run_before_its_first_job(home: Path) -> None:
    (home / "etc/lab/hardware.yml").write_text(DECLARED.replace("200", "210"))
    runner = CliRunner(env={"SEATRIAL_HOME": str(home)})
    done = runner.invoke(main, ["run", "lab", "--campaign", "smoke", "--no-judge"])
    assert done.exit_code == 2
    assert "hardware.yml:3: " in done.output
    assert not [*(home.parent / "slurm").glob("[0-9]*")], "no job was submitted"


# ---- The chapter, and the facts that outliers share


def chapter(run: Run) -> tuple[Chapter, Judgement]:
    judgement = judged(run, ALL)
    return settings_chapter(run, judgement), judgement


def test_deviations_come_first_in_the_chapter(tmp_path: Path) -> None:
    run = settings_run(tmp_path, alike(cn02=OLD, cn03=OLD))
    found, _ = chapter(run)
    (title, wrong), (name, settings) = found.tables
    assert (title, name) == ("Deviations", "Class cpu")
    assert wrong.rows[0][:6] == (
        *("drift", "cn[02-03]", "rail0", "firmware"),
        *("20.43.2566", "20.42.1000"),
    )
    assert wrong.rows[0][7] == "2 x 20.42.1000, 2 x 20.43.2566"
    assert "22 of 24 declared settings of 4 nodes are as declared." in found.intro
    values = {row[:2]: row[2:] for row in settings.rows}
    assert values["cpu", "governor"] == ("performance", "performance", "sysfs")
    assert values["rail0", "firmware"][0] == "20.42.1000 on 2, 20.43.2566 on 2"


def test_changes_have_a_table(tmp_path: Path) -> None:
    found, _ = chapter(settings_run(tmp_path, alike(), alike(cn04=OLD)))
    tables = dict(found.tables)
    ((node, setting, change),) = tables["Changed during the run"].rows
    assert (node, setting) == ("cn04", "rail0 firmware")
    expected = "changed during the run, from 20.43.2566 to 20.42.1000: its numbers are"
    assert change == f"{expected} of two configurations"


def test_without_settings_the_chapter_says_so(tmp_path: Path) -> None:
    run = settings_run(tmp_path, alike())
    empty = settings_chapter(
        Run(*(run.path, run.manifest, run.cases, run.measurements)), judged(run)
    )
    assert (empty.tables, empty.empty[:10]) == ((), "This run h")


def test_slow_nodes_with_the_same_setting_are_named(tmp_path: Path) -> None:
    """Of twelve nodes three are slow: those with a narrower link."""
    names = [f"cn{number:02}" for number in range(1, 13)]
    narrow = Hca(width=8)
    nodes = {name: narrow if name in names[:3] else Hca() for name in names}
    run = settings_run(tmp_path, nodes)
    judgement = judged(run)
    assert node_facts(run)["cn01"]["rail0.pcie.width"] == "8"
    slow = type(judgement)(
        **{**vars(judgement), "convicted": tuple(names[:3]), "findings": ()}
    )
    (fact,) = common_facts(run, slow)
    assert fact.words.startswith(
        "all 3 failing nodes have width (rail0.pcie) 8; of the 9 others none does"
    )
