"""`seatrial new system`: its files load, and leave nothing out."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from site_transcripts import HOME, SITES, stand_in

from seatrial.calibration.detection_limits import prospects
from seatrial.campaign.campaign_file import load_campaign
from seatrial.checks import catalogue as checks_catalogue
from seatrial.checks import listing, typical
from seatrial.checks.catalogue import catalogue
from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.criterion import matches
from seatrial.criteria.reframe_references import render_reference_files
from seatrial.criteria.skeleton import metrics_of, skeleton
from seatrial.model.manifest import read_manifest
from seatrial.runs.pack import unpack
from seatrial.system.doctor.probe import SETTINGS
from seatrial.system.login_node import load_remote, login_variables

New = Callable[..., Result]


@pytest.fixture(scope="module")
def described() -> list[dict[str, Any]]:
    """All checks, which ReFrame describes in seconds."""
    return listing.describe_checks(HOME / "reframe-checks/checks", HOME)


@pytest.fixture(scope="module", autouse=True)
def describe_once(described: list[dict[str, Any]]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (listing, typical, checks_catalogue):
            patch.setattr(module, "describe_checks", lambda *_: described)
        yield


def enter_home(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Enter a home of the suite with the real checks, without systems."""
    home = folder / "home"
    (home / "reference-data").mkdir(parents=True)
    (home / "reframe-checks").symlink_to(HOME / "reframe-checks")
    patch.setenv("SEATRIAL_HOME", str(home))
    patch.setenv("SEATRIAL_RESULTS", str(home / "results"))
    return home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_home(tmp_path, monkeypatch)


def new_system(
    site: str, folder: Path, patch: pytest.MonkeyPatch, *options: str, name: str
) -> Result:
    """Write the files of a site, whose login node is below the folder."""
    stand_in(site, folder / "site", patch)
    words = ["new", "system", name, "--login", "login1.example.org"]
    return CliRunner().invoke(main, [*words, *options])


@pytest.fixture
def new(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> New:
    def run(site: str, *options: str, name: str = "hulk") -> Result:
        return new_system(site, tmp_path, monkeypatch, *options, name=name)

    return run


@dataclass(frozen=True)
class Made:
    """The system hulk: what was said when its files were written, and its settings."""

    stdout: str
    home: Path
    settings: dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Made]:
    """A system by each site."""
    systems = {}
    for site in ("lab-like", "rhel8", "big", "slurm25"):
        folder = tmp_path_factory.mktemp(site)
        user = ("--user", "bench") if site == "big" else ()
        options = ("--prefix", "/work/suite", "--campaign", "acceptance", *user)
        with pytest.MonkeyPatch.context() as patch:
            home = enter_home(folder, patch)
            result = new_system(site, folder, patch, *options, name="hulk")
            assert result.exit_code == 0, result.output
            systems[site] = Made(result.stdout, home, settings_of(home))
    return systems


def settings_of(home: Path) -> dict[str, Any]:
    return login_variables(home / "inventories" / "hulk", home, SETTINGS)


def role_keys(role: str, variable: str) -> set[str]:
    """Return the keys that a role takes in a list of its variables."""
    file = HOME / "playbooks/roles" / role / "meta/argument_specs.yml"
    options = yaml.safe_load(file.read_text())["argument_specs"]["main"]["options"]
    return set(options[variable]["options"])


CAMPAIGN = load_campaign(HOME, "acceptance")
FURTHER = ("mem_latency", "fixed_work", "throttle_events", "quota_stops")
"""Metrics that NodeSweep judges where a node offers them."""


@pytest.mark.parametrize("site", ["lab-like", "rhel8", "big", "slurm25"])
def test_inventory_and_criteria_of_a_site_load(
    site: str, made: Mapping[str, Made]
) -> None:
    home, settings = made[site].home, made[site].settings
    remote = load_remote(home, "hulk")
    assert (remote.host, remote.prefix) == ("login1.example.org", "/work/suite")
    assert settings["classes"]
    for described in settings["classes"]:
        assert set(described) <= role_keys("nodes", "node_classes")
    for stack in settings["stacks"]:
        assert set(stack) <= role_keys("mpi", "mpi_stacks")
        assert stack["srun_mpi"] in ("pmi2", "pmix")
    criteria = Criteria.load(home / "reference-data/hulk/criteria.yaml")
    files = render_reference_files(home, criteria, "hulk")
    assert len(files) > 10
    planned = prospects(criteria, CAMPAIGN.checks, [], {}, CAMPAIGN.repeats)
    assert {prospect.check for prospect in planned} == set(CAMPAIGN.checks)


def test_criteria_name_every_metric_for_each_class_and_stack(
    made: Mapping[str, Made],
) -> None:
    home, settings = made["big"].home, made["big"].settings
    criteria = Criteria.load(home / "reference-data/hulk/criteria.yaml").criteria
    pairs = [
        (f"hulk:{described['name']}", stack["name"])
        for described in settings["classes"]
        for stack in settings["stacks"]
    ]
    assert len(pairs) == 8
    entries = {e.check: e for e in catalogue(HOME / "reframe-checks/checks", home)}
    for check in CAMPAIGN.checks:
        further = FURTHER if check == "NodeSweep" else ()
        for metric in (*entries[check].metrics, *further):
            own = [c for c in criteria if (c.check, c.metric) == (check, metric)]
            for partition, stack in pairs:
                fitting = [
                    criterion
                    for criterion in own
                    if matches(criterion.where.get("$partition", ".*"), partition)
                    and matches(criterion.where.get("$environ", ".*"), stack)
                ]
                assert len(fitting) == 1, (check, metric, partition, stack)


def test_open_limits_decide_nothing(
    described: list[dict[str, Any]], tmp_path: Path
) -> None:
    run = unpack(HOME / "reports/demo/bakeoff-delivered.seatrial.tar.xz", tmp_path)
    checks = read_manifest(run)["checks"]
    stacks = ("openmpi", "mpich", "intelmpi")
    text = skeleton("lab", "x", metrics_of(described, checks), ["batch"], stacks)
    (tmp_path / "criteria.yaml").write_text(text)
    options = ("--criteria", str(tmp_path / "criteria.yaml"), "--format", "json")
    result = CliRunner().invoke(main, ["judge", str(run), *options])
    assert result.exit_code == 3, result.output
    findings = json.loads(result.stdout)["findings"]
    reasons = {finding["reason"] for finding in findings}
    assert not [reason for reason in reasons if "no criterion" in reason]
    numbers = [finding for finding in findings if finding["value"] is not None]
    certain = {"pairs_answered", "programs_passed", "quota_stops"}
    decided = {f["metric"] for f in numbers if f["verdict"] != "undecided"}
    assert decided
    assert decided <= certain


def test_commands_take_the_new_system(
    made: Mapping[str, Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made["rhel8"].home
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(home / "results"))
    for words in (
        ("plan", "hulk", "--campaign", "smoke"),
        ("checks", "--system", "hulk"),
        ("references", "generate", "hulk"),
        ("references", "generate", "hulk", "--check"),
    ):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, (words, result.output)
    reference = yaml.safe_load(
        (home / "reference-data/hulk/pairsweep.yaml").read_text()
    )["PairSweep"]
    leaf = reference["hulk:compute"]["openmpi"]
    assert leaf["bw_1MiB"] == [1e-9, 0, None, "MB/s"]
    assert leaf["pairs_answered"] == [100, 0, None, "%"]


def test_summary_has_decisions_and_next_commands(made: Mapping[str, Made]) -> None:
    lines = made["rhel8"].stdout.splitlines()
    assert lines[0] == (
        "hulk: Slurm 20.11.8, 4 nodes (1 lost) in 1 class, 2 MPI stacks"
    )
    assert "  compute: node[9-12], partition compute" in lines
    decisions = [line for line in lines if "To decide:" in line]
    account = "account: # To decide: physics or chemistry; without it, Slurm takes"
    assert any(account in line for line in decisions)
    assert any("suite_python: /usr/bin/python3.11" in line for line in decisions)
    main_file = made["rhel8"].home / "inventories/hulk/group_vars/all/main.yml"
    for line in decisions:
        file, number, text = line.split(":", 2)
        if file == "main.yml":
            written = main_file.read_text().splitlines()[int(number) - 1]
            assert text.strip() in written
    assert lines[lines.index("next:") + 1] == "  seatrial doctor hulk"
    assert lines[-1] == "  seatrial report hulk/latest"


def test_values_of_a_big_site(made: Mapping[str, Made]) -> None:
    home, settings = made["big"].home, made["big"].settings
    classes = {each["name"]: each for each in settings["classes"]}
    assert classes["gpu"] == {
        **{"name": "gpu", "nodes": "gpu[01-04]", "partition": "gpu"},
        **{"account": "accept", "qos": "gpu", "mem": "0"},
    }
    assert classes["secret"]["partition"] == "secret"
    stacks = {each["name"]: each for each in settings["stacks"]}
    assert stacks["openmpi"]["modules"] == ["gcc/13.2.0", "openmpi/4.1.6"]
    assert stacks["openmpi"]["srun_mpi"] == "pmix"
    text = (home / "inventories/hulk/group_vars/all/main.yml").read_text()
    assert "ansible_user: bench # --user" in text
    assert "    # qos: # To decide: high or normal\n" in text
    assert "    # gres: gpu:a100:4 # where jobs must request it\n" in text
    assert "-l bench" in (home.parent / "site/ssh.log").read_text()


def test_reservation_and_lost_nodes(made: Mapping[str, Made]) -> None:
    home, settings = made["slurm25"].home, made["slurm25"].settings
    (only,) = settings["classes"]
    assert (only["reservation"], only["nodes"]) == ("accept", "nid[000001-000008]")
    text = (home / "inventories/hulk/group_vars/all/main.yml").read_text()
    assert "  # lost: nid000003 (down: Not responding)\n" in text
    assert "reservation repair (MAINT,IGNORE_JOBS,SPEC_NODES) has 2 of these" in text


@pytest.mark.parametrize(
    "path", ["inventories/hulk", "reference-data/hulk/criteria.yaml"]
)
def test_nothing_is_overwritten(path: str, new: New, home: Path) -> None:
    (home / path).mkdir(parents=True)
    result = new("big")
    assert result.exit_code == 2
    problem = f"{home / path}: exists, and nothing is overwritten; choose another NAME"
    assert problem in result.stderr
    assert not (home.parent / "site/ssh.log").exists()
    assert not [*home.glob("inventories/*/hosts.yml")]


@pytest.mark.parametrize(
    ("options", "name", "problem"),
    [
        ((), "../x", "NAME: '../x' is no name of a system; expected letters"),
        (("--login", "-oProxyCommand=x"), "hulk", "--login: '-oProxyCommand=x' is no"),
        (("--login", "me@login1"), "hulk", "'me@login1' is no host; expected a name"),
        (("--prefix", "work"), "hulk", "--prefix: expected a full path, got 'work'"),
        (("--campaign", "smokey"), "hulk", "unknown campaign 'smokey'; known campaig"),
    ],
)
def test_wrong_usage_is_refused_before_ssh(
    options: tuple[str, ...], name: str, problem: str, new: New, home: Path
) -> None:
    result = new("lab-like", *options, name=name)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert not (home.parent / "site/ssh.log").exists()
    assert not (home / "inventories").exists()


def test_names_from_the_site_are_no_templates(new: New, home: Path) -> None:
    text = (SITES / "rhel8.txt").read_text()
    site = home.parent / "evil"
    site.with_suffix(".txt").write_text(
        text.replace("compute", "{{lookup('pipe','id')}}")
    )
    result = new(str(site))
    assert result.exit_code == 2
    assert "expected a name, got a template of Ansible" in result.stderr
    assert not (home / "inventories").exists()
