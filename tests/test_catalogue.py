"""The catalogue: every check has an entry, and docs/checks.md the same table."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from fake_home import SETTINGS, write, write_home
from reframe_runs import CHECKS, HOME, OURS

from seatrial.checks import catalogue as checks_catalogue
from seatrial.checks.catalogue import Entry, catalogue, format_catalogue
from seatrial.checks.experiments import EXPERIMENTS
from seatrial.checks.listing import describe_checks
from seatrial.checks.sources import variables_of
from seatrial.cli import main
from seatrial.criteria.published import load_published
from seatrial.model.metrics import split_flat_name
from seatrial.paths import SITE, published_dir

CHECK = """\
import reframe as rfm
from reframe.core.builtins import *
from seatrial.checks.base import SeatrialCheck


@rfm.simple_test
class Fake(SeatrialCheck):
    '''How fast is it, and why?

    Nobody knows.
    '''

    size = parameter([1, 2])
    program = parameter(["a", "b"])

    tool = "echo"
    experiments = ("E05", "E48")
    typical_s = 7
    executable = "echo"
    tags = {"network", "compute"}
    reference_file = "fake.yaml"
    judged = ["latency_8B", "latency_1KiB", "msg_rate_8B"]

    @run_after("init")
    def choose(self):
        self.valid_prog_environs = ["+mpi", f"+{self.program}"]

    def extract(self, text):
        return []
"""
ENTRY = {
    "check": "Fake",
    "question": "How fast is it, and why?",
    "tool": "echo",
    "metrics": [
        {"name": "latency_8B", "unit": "us", "direction": "lower"},
        {"name": "latency_1KiB", "unit": "us", "direction": "lower"},
        {"name": "msg_rate_8B", "unit": "msg/s", "direction": "higher"},
    ],
    "extent": ["one class"],
    "needs": ["slurm", "mpi", "a", "b"],
    "cases": 4,
    "typical_s": 7.0,
    "recorded": 0,
    "experiments": ["E05", "E48"],
    "tags": ["compute", "network"],
    "file": "fake/fake.py",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one check, on a machine that has no program at all."""
    home = write_home(tmp_path / "home")
    write(home / "reframe-checks" / "checks" / "fake" / "fake.py", CHECK)
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return home


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The cases of the check, which ReFrame describes in seconds."""
    folder = tmp_path_factory.mktemp("described")
    write(folder / "fake.py", CHECK)
    return describe_checks(folder, HOME)


@pytest.fixture
def described_home(
    home: Path, described: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The home with its check, which ReFrame has described already."""
    file = str(home / "reframe-checks" / "checks" / "fake" / "fake.py")
    cases = [{**case, "@file": file} for case in described]
    monkeypatch.setattr(checks_catalogue, "describe_checks", lambda *_: cases)
    return home


def checks(*options: str) -> Result:
    return CliRunner().invoke(main, ["checks", *options])


def entries(*options: str) -> list[dict[str, Any]]:
    result = checks("--format", "json", *options)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def ours() -> list[Entry]:
    entries = catalogue(CHECKS, HOME)
    return [entry for entry in entries if not entry.file.startswith(f"{SITE}/")]


def test_every_check_has_an_entry(ours: list[Entry]) -> None:
    assert sorted(entry.check for entry in ours) == sorted(OURS)


def test_each_feature_that_a_check_needs_is_a_word(ours: list[Entry]) -> None:
    (own,) = (entry for entry in ours if entry.check == "MultiPairVerbs")
    assert own.needs == ("verbs", "mp_rdma_lat", "mp_rdma_bw")
    assert all(need.isidentifier() for entry in ours for need in entry.needs)


def test_table_of_the_documentation_is_the_catalogue(ours: list[Entry]) -> None:
    """If this fails: `make format` writes the table."""
    page = (HOME / "docs" / "checks.md").read_text()
    table = format_catalogue(ours, "markdown")
    assert f"<!-- checks -->\n{table}<!-- /checks -->\n" in page


def test_each_experiment_is_compared_with_its_checks(ours: list[Entry]) -> None:
    """A row of docs/experiments.md names all checks that list the experiment."""
    page = (HOME / "docs" / "experiments.md").read_text()
    rows = dict(re.findall(r"^\| (E\d\d) \| .*? \| (.*?) \| .*? \|$", page, re.M))
    listed: dict[str, set[str]] = {}
    for entry in ours:
        for experiment in entry.experiments:
            listed.setdefault(experiment, set()).add(entry.check)
    known = {entry.check for entry in ours}
    named = {
        number: known & set(re.findall(r"`(\w+)`", here))
        for number, here in rows.items()
    }
    assert list(rows) == list(EXPERIMENTS)
    assert named == listed
    assert all(named.values())


def test_every_published_number_has_a_check_that_measures_it(ours: list[Entry]) -> None:
    """A number in absolute units stands beside a measured one of the same metric."""
    measured = {("E35", "run_time")}  # beside what Npb judges
    for entry in ours:
        for experiment in entry.experiments:
            names = {split_flat_name(flat)[0].name for flat in entry.metrics}
            measured |= {(experiment, name) for name in names}
    published = load_published(published_dir(HOME))
    alone = {
        (number.experiment, number.metric)
        for system in published.systems
        for number in published.numbers(system)
        if number.experiment and number.kind == "absolute"
    } - measured
    assert alone == set()


def test_experiments_are_those_of_the_papers() -> None:
    file = HOME / "reference-data" / "published" / "papers.yaml"
    papers = set(yaml.safe_load(file.read_text())) - {"published"}
    assert {paper for paper, _ in EXPERIMENTS.values()} == papers
    assert list(EXPERIMENTS) == [f"E{number:02}" for number in range(1, 49)]


@pytest.mark.parametrize(
    ("number", "paper", "title"),
    [
        ("E05", "sur2007", "halo"),
        ("E22", "liu2005", "NPB IS and FT"),
        ("E27", "schoenemeyer2011", "MPI library"),
        ("E34", "subramoni2009", "HPCC"),
        ("E45", "rashti2007", "re-use"),
    ],
)
def test_experiment_has_its_number(number: str, paper: str, title: str) -> None:
    assert EXPERIMENTS[number][0] == paper
    assert title in EXPERIMENTS[number][1]


def test_entry_is_what_the_check_states(home: Path) -> None:
    assert entries() == [ENTRY]


def test_table_says_the_same_shortly(described_home: Path) -> None:
    text = " ".join(checks().stdout.split())
    for said in (
        "latency (us, lower)",
        "msg_rate (msg/s,",
        "one class, slurm, mpi, a, b",
        "4 7 s E05, E48",
    ):
        assert said in text


def test_csv_has_a_row_for_each(described_home: Path) -> None:
    (row,) = csv.DictReader(io.StringIO(checks("--format", "csv").stdout))
    assert row == {
        **{key: str(value) for key, value in ENTRY.items()},
        "typical_s": "7",
        "metrics": "latency_8B us lower; latency_1KiB us lower; "
        "msg_rate_8B msg/s higher",
        "extent": "one class",
        "needs": "slurm mpi a b",
        "experiments": "E05 E48",
        "tags": "compute network",
    }


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The catalogue of a check for each way to leave something out, FakeA to FakeK."""
    home = write_home(tmp_path_factory.mktemp("refused"))
    for name, (found, replaced, _) in LEFT_OUT.items():
        assert CHECK.count(found) == 1
        source = CHECK.replace(found, replaced).replace("class Fake(", f"class {name}(")
        write(home / "reframe-checks" / "checks" / "fake" / f"{name}.py", source)
    runner = CliRunner(env={"SEATRIAL_HOME": str(home)})
    return runner.invoke(main, ["checks"])


LEFT_OUT = {
    "FakeA": ('tool = "echo"', "", "tool is missing"),
    "FakeB": ('tool = "echo"', 'tool = ""', "tool is missing"),
    "FakeC": ('experiments = ("E05", "E48")', "", "experiments is missing"),
    "FakeD": ("typical_s = 7", "", "typical_s is missing"),
    "FakeE": ("    '''How fast", "    say = '''How fast", "question is missing"),
    "FakeF": (
        *("and why?", "and why."),
        "its docstring opens with 'How fast is it, and why.': ask",
    ),
    "FakeG": ("judged = [", "other = [", "judged is missing"),
    "FakeH": ('tags = {"network", "compute"}', "", "tags is missing"),
    "FakeI": ("E48", "E49", "experiments: E49: expected E01 to E48"),
    "FakeJ": ("latency_8B", "speed_8B", "judged: unknown metric 'speed_8B'"),
    "FakeK": ("latency_8B", "latency_8X", "judged: not a message size: '8X'"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_check_that_leaves_something_out_is_refused(refused: Result, name: str) -> None:
    assert refused.exit_code == 2
    assert "Traceback" not in refused.output
    (line,) = (row for row in refused.stderr.splitlines() if f": {name}: " in row)
    *_, expected = LEFT_OUT[name]
    assert f"fake/{name}.py: {name}: {expected}" in line


def test_check_that_cannot_be_loaded_is_refused(home: Path) -> None:
    source = CHECK.replace("import reframe", "import nothing, reframe")
    write(home / "reframe-checks" / "checks" / "fake" / "fake.py", source)
    result = checks()
    assert result.exit_code == 2
    assert "cannot load every check" in result.stderr
    assert "Traceback" not in result.output


def case(**values: Any) -> dict[str, Any]:
    names = ("session", "case", "partition", "environment")
    plain: dict[str, Any] = dict.fromkeys(names, "x")
    plain |= {"repeat": 1, "check": "Fake", "parameters": {}, "result": "pass"}
    return plain | values


def test_time_is_the_median_of_what_was_measured(
    described_home: Path, tmp_path: Path
) -> None:
    run = tmp_path / "results" / "lab" / "r1"
    write(run / "manifest.json", "{}")
    cases = [
        *(case(elapsed_s=seconds) for seconds in (2.0, 3.0, 10.0)),
        case(elapsed_s=100.0, result="fail"),
        case(elapsed_s=0.1, replay=True),
        case(result="skip"),
        case(elapsed_s=50.0, check="Other"),
    ]
    write(run / "cases.json", json.dumps(cases))
    (entry,) = entries("--system", "lab")
    assert (entry["typical_s"], entry["recorded"]) == (3.0, 3)
    assert "0 3 s E05" in " ".join(checks("--system", "lab").stdout.split())
    write(tmp_path / "results" / "other" / "r1" / "manifest.json", "{}")
    write(tmp_path / "results" / "other" / "r1" / "cases.json", json.dumps(cases))
    assert entries("--system", "other") == [{**entry, "cases": 4}]


def test_cases_are_those_of_the_system(described_home: Path) -> None:
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    settings["systems"][0]["partitions"][0]["features"] = ["slurm"]
    settings["environments"][0]["features"] = ["mpi", "a"]
    settings["environments"][1]["features"] = ["b"]
    write(described_home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    (entry,) = entries("--system", "lab")
    assert entry == {**ENTRY, "cases": 2 * 2 + 2}
    text = " ".join(checks("--system", "lab").stdout.split())
    assert re.search(r"6 7 s stated E05", text)


def test_unknown_system_is_refused(described_home: Path) -> None:
    result = checks("--system", "lba")
    assert result.exit_code == 2
    assert "unknown system 'lba'; known systems: lab" in result.stderr


@pytest.mark.parametrize(
    ("name", "variable", "default", "meaning"),
    [
        ("Npb", "problem_class", "'C'", "Size of the problem, from S"),
        ("NodeSweep", "quiet", "5", "Seconds of readings before the load."),
        ("PairSweep", "seed", "1", ""),
        ("Hpl", "n", "1000", "Order of the matrix"),
        ("HplRacks", "memory_fraction", "0.0", "Share of the nodes' memory"),
        ("Hpl", "ppn", "0", "Ranks per node"),
    ],
)
def test_variables_of_a_check(
    name: str, variable: str, default: str, meaning: str
) -> None:
    """The listing shows each variable of a check and its default."""
    runner = CliRunner(env={"SEATRIAL_HOME": str(HOME)})
    result = runner.invoke(main, ["checks", name, "--format", "json"])
    (row,) = (row for row in json.loads(result.stdout) if row["variable"] == variable)
    assert (row["check"], row["default"]) == (name, default)
    assert row["meaning"].startswith(meaning)
    table = runner.invoke(main, ["checks", name]).stdout
    assert f"{name}.{variable}" in table


def test_variables_of_an_unknown_check() -> None:
    runner = CliRunner(env={"SEATRIAL_HOME": str(HOME)})
    result = runner.invoke(main, ["checks", "Nbp"])
    assert result.exit_code == 2
    assert "unknown check 'Nbp'; known checks: " in result.stderr


def test_only_variables_that_a_campaign_sets_are_listed() -> None:
    listed = {row.variable for row in variables_of(CHECKS, "Hpl")}
    assert listed == {
        *("n", "block", "longest_s", "memory_fraction", "load_sensors"),
        *("tuning", "placement", "num_nodes", "ppn"),
    }


def test_the_nearest_base_that_sets_a_variable_counts(tmp_path: Path) -> None:
    """As in Python, where a base is shared by two others."""
    text = """
class Base:
    steps = variable(int, value=1)

class Left(Base):
    pass

class Right(Base):
    steps = 2

@rfm.simple_test
class Ocean(Left, Right):
    pass
"""
    write(tmp_path / "ocean.py", text)
    (row,) = variables_of(tmp_path, "Ocean")
    assert row.default == "2"
