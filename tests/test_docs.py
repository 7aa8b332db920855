"""The documentation: its commands exist and run, its links and tables are right."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

import pytest
import yaml
from click.testing import CliRunner
from shown_commands import HOME, LAB_COMMANDS, PAGES, Shown, parse, shell_lines
from shown_commands import shown_commands as all_shown

from seatrial.campaign.campaign_file import load_campaign
from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import Known
from seatrial.fabric.discover import from_files
from seatrial.fabric.records import write_fabric
from seatrial.model.metrics import Metric
from seatrial.runs.ledger import begin
from seatrial.runs.pack import unpack

SHOWN = all_shown()
DEMO = HOME / "reports" / "demo"
SUFFIX = ".seatrial.tar.xz"
RUN = "20261122T090422Z-bakeoff"
"""RUN and SYSTEM/latest in the commands: a recorded run, without its seal."""

NAMES = {
    "LATER_RUN": str(DEMO / f"bakeoff-busy-1{SUFFIX}"),
    "SYSTEM": "lab",
    "RUN": RUN,
    "NAME": "smoke",
    "FOLDER": f"results/lab/{RUN}",
    "~": "..",
}
FURTHER = {
    "import": ("--unit", "images", "--direction", "done=higher"),
    "plan": ("--campaign", "smoke"),
    "report": ("--form", "md"),
    "run": ("--campaign", "smoke", "--repeats", "1", "--checks", "PairSweep"),
    "simulate": ("--runs", "1", "--nodes", "40", "--repeats", "4"),
    "nightly": ("--runs", "1", "--nodes", "6", "--metrics", "1", "--noise", "normal"),
}
"""Options that save time or that the recorded data need; they replace the page's."""

STATUS = {"judge": {0, 1, 3}, "run": {1, 3}}
"""Exit statuses of commands with a verdict; all others end with 0."""


def words_of(shown: Shown) -> list[str]:
    """Put real names in the places of those in capitals; add options of `FURTHER`."""
    name = re.compile(rf"(?<![\w-])({'|'.join(NAMES)})(?![\w-])")
    words = [name.sub(lambda found: NAMES[found[0]], word) for word in shown.words]
    further = FURTHER.get("nightly" if "nightly" in words else words[0], ())
    for option in {*further[::2]}.intersection(words):
        at = words.index(option)
        del words[at : at + 2]
    return [*words, *further]


def runs_without_a_cluster() -> list[Shown]:
    """List commands that need no cluster; of those that run alike here, one."""
    found = {
        tuple(words_of(shown)): shown
        for shown in SHOWN
        if not shown.inline
        and shown.page != "docs/commands.md"
        and (shown.words[0] not in LAB_COMMANDS or "--replay" in shown.words)
        and "COMMAND" not in shown.words
        and not needs_fabric(shown.words)
        and not needs_protocol(shown.words)
    }
    return list(found.values())


def needs_fabric(words: tuple[str, ...]) -> bool:
    """Return True for a command that runs the tools of InfiniBand."""
    named = {"--from", "--fabric"}.intersection(words)
    # See test_fabric_locate.py and test_fabric_counters.py.
    if words[:2] in (("fabric", "locate"), ("fabric", "watch")):
        return True
    return words[:2] in (("fabric", "diff"), ("fabric", "discover")) and not named


def needs_protocol(words: tuple[str, ...]) -> bool:
    """Return True for a command on a protocol: see test_protocol.py."""
    named = [word for word in words[1:] if word.startswith("protocol")]
    return words[0] == "sign" or (words[0] != "protocol" and named != [])


@pytest.mark.parametrize("shown", SHOWN, ids=str)
def test_command_and_its_options_exist(shown: Shown) -> None:
    parse(shown)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of the suite with two recorded runs, in git, as the system lab."""
    site = tmp_path_factory.mktemp("site")
    home = site / "home"
    for name in ("reference-data", "reports", "reframe-checks"):
        shutil.copytree(HOME / name, home / name, ignore=lambda *_: {"out"})
    criteria = home / "reference-data" / "lab" / "criteria.yaml"
    text = criteria.read_text()
    assert "cap: 20" in text
    criteria.write_text(text.replace("cap: 20", "cap: 24"))
    (site / "recorded" / "lab").mkdir(parents=True)
    for name in ("night-1", "bakeoff-delivered"):
        run = unpack(DEMO / f"{name}{SUFFIX}", tmp_path_factory.mktemp("run"))
        run.rename(site / "recorded" / "lab" / run.name)
    run = site / "recorded" / "lab" / RUN
    (run / "manifest.json.sig").unlink()
    shutil.copytree(run / "system", home / "etc" / "lab")
    for command in (
        ("init", "--quiet"),
        ("add", "reference-data"),
        *[("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")],
    ):
        subprocess.run(["git", *command], cwd=home, check=True)
    (site / ".ssh").mkdir()
    key = site / ".ssh" / "id_ed25519"
    keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(keygen, check=True)
    recorded = site / ".reframe" / "reports"
    recorded.mkdir(parents=True)
    shutil.copy(HOME / "tests/data/reframe/4.10.4.db", recorded / "results.db")
    return site


@pytest.fixture
def folder(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the files that commands name; its runs are as new."""
    folder = site / "work"
    folder.mkdir()
    home = site / "home"
    if not (home / "results").exists():
        shutil.copytree(site / "recorded", home / "results")
    unchanged = times(home / "results")
    for name, target in {
        "reports": home / "reports",
        "results": home / "results",
        "allowed_signers": DEMO / "allowed_signers",
        "bakeoff.yaml": home / "reference-data" / "weights" / "bakeoff.yaml",
        "criteria.yaml": home / "reference-data" / "lab" / "criteria.yaml",
        "docs": HOME / "docs",
        f"acme{SUFFIX}": DEMO / f"bakeoff-delivered{SUFFIX}",
        f"zenith{SUFFIX}": DEMO / f"bakeoff-slow-links{SUFFIX}",
        f"offer{SUFFIX}": DEMO / f"bakeoff-delivered{SUFFIX}",
        "fabric-files": HOME / "tests/data/fabric/cluster",
        "cables.csv": HOME / "tests/data/fabric/cables.csv",
        "topology.conf": HOME / "tests/data/fabric/topology.conf",
    }.items():
        (folder / name).symlink_to(target)
    cabled = from_files([folder / "fabric-files"])
    write_fabric(folder / "fabric.json", cabled)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(site))
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(home / "results"))
    yield folder
    shutil.rmtree(folder)
    if times(home / "results") != unchanged:
        shutil.rmtree(home / "results")


def times(folder: Path) -> dict[Path, int]:
    """Return the time of the last change of every file and folder below, in ns."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("shown", runs_without_a_cluster(), ids=str)
def test_command_runs_on_recorded_runs(shown: Shown, folder: Path) -> None:
    words = words_of(shown)
    if words[0] == "pack":  # writes the file of a vendor
        (folder / f"acme{SUFFIX}").unlink()
    if words[0] == "ledger":  # lists runs that were started here
        runs = (folder / "results" / "lab").resolve()
        begin(runs, RUN, campaign="bakeoff", criteria="", partial=False)
        if words[1] == "removed":
            shutil.rmtree(runs / RUN)
    done = CliRunner().invoke(main, words)
    expected = STATUS.get(words[0], {0})
    if stated := re.search(r"exit status (\d)", shown.comment):
        expected = {int(stated[1])}
    assert done.exit_code in expected, done.output


def examples(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the indented blocks of a page with their first lines."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"(?:^    .*\n|(?<=\n)\n(?=    ))+", text, re.MULTILINE):
        yield text.count("\n", 0, found.start()) + 1, dedent(found[0]).strip()


CRITERIA = [
    pytest.param(text, id=f"{page.name}:{line}")
    for page in sorted((HOME / "docs").glob("*.md"))
    for line, text in examples(page)
    if re.match(r"schema: 1\nrisks|(defaults|criteria):|- (check|kind):", text)
]


@pytest.mark.parametrize("text", CRITERIA)
def test_criteria_of_the_pages_are_complete(text: str, tmp_path: Path) -> None:
    """They stand alone, beside the risks that `seatrial new system` writes."""
    if text.startswith("- "):
        text = f"criteria:\n{indent(text, '  ')}"
    if not text.startswith("schema"):
        text = f"schema: 1\nrisks: {{seller: 0.05, buyer: 0.05}}\n{text}"
    known = Known.beside(HOME / "reference-data" / "lab" / "criteria.yaml")
    rate = Metric("oceanmodel_rate", "steps/s", "higher", "", area="programs")
    known = Known(
        {*known.checks, "OceanModel"},
        {**known.metrics, rate.name: rate},
        {*known.campaigns, "oceanmodel"},
    )
    Criteria.parse(text.encode(), tmp_path / "criteria.yaml", known)


CAMPAIGNS = [
    pytest.param(text, id=f"{page.name}:{line}")
    for page in sorted((HOME / "docs").glob("*.md"))
    for line, text in examples(page)
    if "\nblocks:" in text
]


@pytest.mark.parametrize("text", CAMPAIGNS)
def test_campaigns_of_the_pages_are_valid(text: str, tmp_path: Path) -> None:
    weights = tmp_path / "reference-data" / "weights"
    shutil.copytree(HOME / "reference-data" / "weights", weights)
    folder = tmp_path / "reframe-checks" / "campaigns"
    folder.mkdir(parents=True)
    yaml_lines = text.partition("\n\nseatrial ")[0]
    (folder / "own.yaml").write_text(yaml_lines)
    assert load_campaign(tmp_path, "own").checks


def test_files_that_the_shell_lines_name_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (HOME / "Makefile").read_text(), re.MULTILINE)
    for page in PAGES:
        for number, line in shell_lines(page):
            where = f"{page.name}:{number}: {line}"
            for playbook in re.findall(r"playbooks/\w+\.yml", line):
                assert (HOME / playbook).is_file(), where
            if made := re.match(r"(?:LAB_NODES=8 )?make ([a-z -]+)", line):
                assert set(made[1].split()) <= set(targets), where


def test_links_of_pages_outside_the_site_lead_somewhere() -> None:
    for page in (HOME / "README.md", HOME / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_site_has_no_broken_links_and_loads_nothing(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("properdocs")
    done = subprocess.run(
        [program, "build", "--strict", "--site-dir", tmp_path],
        cwd=HOME,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    navigation = yaml.safe_load((HOME / "properdocs.yml").read_text())["nav"]
    pages = set(re.findall(r"[\w-]+\.md", str(navigation)))
    assert pages == {page.name for page in (HOME / "docs").glob("*.md")}
    for page in tmp_path.glob("*.html"):
        assert not re.search(
            r"<(script|link|img)[^>]*(src|href)=.http", page.read_text()
        )


def test_architecture_lists_the_packages_in_their_order() -> None:
    settings = tomllib.loads((HOME / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = [layer.split(" : ") for layer in reversed(contract["layers"])]
    page = (HOME / "docs" / "architecture.md").read_text()
    table = page.partition("## Packages")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == layers


def test_architecture_names_files_that_exist() -> None:
    page = (HOME / "docs" / "architecture.md").read_text()
    for name in re.findall(r"`([a-z_/-]+\.(?:py|md|yaml|toml))`", page):
        places = (HOME / name, HOME / "src" / "seatrial" / name)
        if "/" in name and "NAME" not in name:
            assert any(place.is_file() for place in places), name


def test_readme_and_overview_list_the_same_tasks() -> None:
    readme, overview = (
        re.findall(r"^\| (.*?) \| \[.*?\]\((?:docs/)?([\w-]+\.md)\) \|", page, re.M)
        for page in (
            (HOME / "README.md").read_text(),
            (HOME / "docs" / "index.md").read_text(),
        )
    )
    apart = ("hardware.md", "architecture.md")
    assert readme
    assert readme == [row for row in overview if row[1] not in apart]


def test_readme_is_short() -> None:
    assert len((HOME / "README.md").read_text().splitlines()) <= 200
