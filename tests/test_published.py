"""Published systems: held to an independent list, refused as limits."""

import re
from pathlib import Path

import pytest
from fake_home import CRITERIA
from published_rows import (
    CORRECTIONS,
    GENERAL,
    PAIRS,
    PAPERS,
    SYSTEMS,
    Row,
    corrected,
    csv_rows,
    find,
)
from reframe_runs import HOME

from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.criteria.published import load_published
from seatrial.criteria.published_numbers import PAPER_METRICS, Number
from seatrial.errors import SeatrialError
from seatrial.model.derived import factor, improvement
from seatrial.model.metrics import METRICS
from seatrial.model.units import parse_size
from seatrial.paths import criteria_file, published_dir
from seatrial.system.description import known_systems

FOLDER = published_dir(HOME)
PUBLISHED = load_published(FOLDER)
ALL = [
    *(
        number
        for system in PUBLISHED.systems.values()
        for number in system.numbers.values()
    ),
    *PUBLISHED.comparisons,
    *PUBLISHED.general,
]
ROWS = csv_rows()

UNITS = {"x": "1", "ratio": "1"}
KINDS = {"abs": "absolute"}
SECTIONS = {
    ("S0", "abstract"): "abstract",
    ("S2", "s4"): "section 4",
    ("S3", "s4A"): "section IV-A",
    ("S3", "s4B"): "section IV-B",
    ("S3", "s5B"): "section V-B",
    ("S3", "s6"): "section VI",
}
TITLES = {
    "S1": r"(introduction|PCI Express|VAPI level|MPI level)\b",
    "S4": r"(Effect of Message|Why Multiple)\b",
}
"""Of papers whose sections have no numbers; the CSV says "text" or "slides"."""


def place_pattern(row: Row) -> str:
    """Return the beginning of the place of a row's number."""
    seed, where = row["seed"], row["where"]
    if seed in TITLES:
        assert where in ("text", "slides")
        return TITLES[seed]
    place = SECTIONS.get((seed, where), where)
    return re.escape(re.sub(r"^s(?=\d)", "section ", place)) + r"(?![\d.IVX])"


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['exp']}-{row['system']}-{row['metric']}"
)
def test_row_of_the_list_is_published(row: Row) -> None:
    row = corrected(row)
    number = find(PUBLISHED, row)
    assert number.paper == PAPERS[row["seed"]]
    assert (number.experiment or "-") == row["exp"]
    assert number.value == float(row["value"])
    assert number.unit == UNITS.get(row["unit"], row["unit"])
    assert number.kind == KINDS.get(row["kind"], row["kind"])
    assert re.match(place_pattern(row), number.place)
    if row["system"] in SYSTEMS:
        assert number.systems == (SYSTEMS[row["system"]],)
    elif row["system"] in PAIRS:
        assert (number.systems, number.baselines) == PAIRS[row["system"]]
    else:
        assert row["system"] in GENERAL
    if re.fullmatch(r"\d+B", row["size_or_procs"]):
        assert number.size_bytes == parse_size(row["size_or_procs"])
    if found := re.match(r"(\d+) (?:procs|cores)", row["size_or_procs"]):
        assert number.parameters["processes"] == int(found[1])


@pytest.mark.parametrize(
    ("words", "qualifiers"),
    [
        ("up to", {"up to"}),
        ("at most", {"up to"}),
        ("over", {"more than"}),
        ("more than", {"more than"}),
        ("lower than", {"less than"}),
        ("around", {"about", "up to"}),
        ("nearly", {"almost"}),
        ("almost", {"almost", "about"}),
    ],
)
def test_notes_of_the_list_are_qualifiers(words: str, qualifiers: set[str]) -> None:
    rows = [row for row in ROWS if re.search(rf"\b{words}\b", row["note"])]
    assert rows
    for row in rows:
        assert find(PUBLISHED, corrected(row)).qualifier in qualifiers, row


def test_every_row_has_a_number_of_its_own() -> None:
    assert len(ROWS) == 133
    found = {id(find(PUBLISHED, corrected(row))) for row in ROWS}
    assert len(found) == 133


def test_what_is_not_in_the_list_quotes_its_paper() -> None:
    listed = {id(find(PUBLISHED, corrected(row))) for row in ROWS}
    for number in ALL:
        assert (number.sentence is None) == (id(number) in listed), number.name


def test_corrections_are_of_rows_that_are_there() -> None:
    for (experiment, metric, column), (wrong, right, reason) in CORRECTIONS.items():
        rows = [
            row
            for row in ROWS
            if (row["exp"], row["metric"], row[column]) == (experiment, metric, wrong)
        ]
        assert len(rows) == 1, (experiment, metric)
        assert right != wrong
        assert reason


def test_all_systems_of_the_papers_are_there() -> None:
    assert list(PUBLISHED.systems) == [
        *("clovertown-ddr", "connectx-ddr", "connectx3-qdr", "harpertown-ddr"),
        *("harpertown-qdr", "infinihost3-ddr", "memfree-infiniband", "mt23108-pcix"),
        *("mt25208-pcie", "myri-10g", "ne010e-iwarp", "nehalem-ddr", "nehalem-qdr"),
        "qlogic7300-qdr",
    ]
    assert set(PUBLISHED.papers) == set(PAPERS.values())
    for system in PUBLISHED.systems.values():
        assert system.numbers


def test_conflicts_are_marked_and_not_to_be_had() -> None:
    conflicts = {(number.paper, number.name) for number in ALL if number.conflict}
    assert conflicts == {
        ("sur2007", "lammps_16_processes"),
        ("liu2005", "bibw_2_processes_introduction"),
        ("liu2005", "mpi_bibw_2_ports_introduction"),
        ("schoenemeyer2011", "latency_256B_to_4KiB"),
        ("schoenemeyer2011", "bw_512B"),
        ("schoenemeyer2011", "bw_small"),
        ("schoenemeyer2011", "bw_medium"),
        ("schoenemeyer2011", "bw_above_16KiB"),
        ("schoenemeyer2011", "bw_saturation"),
        ("schoenemeyer2011", "msg_rate"),
        ("subramoni2009", "small_message_latency"),
        ("rashti2007", "signalling_rate"),
    }
    for number in ALL:
        if number.conflict or number.kind == "shape":
            with pytest.raises(SeatrialError):
                number.sound_value()
        else:
            assert number.sound_value() == number.value


def test_rates_with_coalescing_say_so() -> None:
    for name in ("msg_rate", "msg_rate_over_clock", "msg_rate_fastest_processor"):
        number = PUBLISHED.system("connectx3-qdr").numbers[name]
        assert number.parameters["coalescing"] == "on"


def slack(number: Number) -> float:
    """Return half the last digit that a paper prints."""
    assert number.value is not None
    digits = f"{number.value:g}".partition(".")[2]
    return float(0.5 * 10 ** -len(digits))


FOLLOWS = [number for number in ALL if number.operands]


@pytest.mark.parametrize("number", FOLLOWS, ids=lambda number: number.name)
def test_ratios_follow_from_the_numbers_of_the_paper(number: Number) -> None:
    new, old = PUBLISHED.operands(number)
    formula = {"improvement": improvement, "factor": factor}[str(number.derived)]
    found = formula(new.sound_value(), old.sound_value(), number.direction)
    vague = sum(each.qualifier is not None for each in (new, old))
    tolerance = slack(number) + 0.01 * vague * (100 if number.unit == "%" else 2)
    assert found == pytest.approx(number.sound_value(), abs=tolerance)


def test_ten_ratios_follow() -> None:
    assert len(FOLLOWS) == 10


def test_queries() -> None:
    names = {number.name for number in PUBLISHED.numbers("nehalem-qdr")}
    assert {"bw", "npb_is_c", "balance_bibw_small", "within_a_node"} <= names
    pair = PUBLISHED.compare("mt25208-pcie", "mt23108-pcix")
    assert {number.paper for number in pair} == {"liu2005"}
    assert "bcast" in {number.name for number in pair}
    assert not PUBLISHED.compare("mt23108-pcix", "mt25208-pcie")
    with pytest.raises(SeatrialError, match="no published system 'lab'; known ones: c"):
        PUBLISHED.compare("mt23108-pcix", "lab")
    with pytest.raises(AttributeError):
        pair[0].value = 1.0  # type: ignore[misc]  # what nobody may do
    with pytest.raises(TypeError):
        numbers = PUBLISHED.system("nehalem-qdr").numbers
        numbers["bw"] = pair[0]  # type: ignore[index]  # what nobody may do


def test_metrics_of_papers_are_not_ours_too() -> None:
    assert not PAPER_METRICS.keys() & METRICS.keys()


# ---- never limits


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda f: f.stem)
def test_no_file_can_be_read_as_criteria(file: Path, tmp_path: Path) -> None:
    """Even with what criteria have."""
    text = file.read_text()
    line = text.splitlines().index(next(re.finditer(r"^published: .*$", text, re.M))[0])
    expected = f"{tmp_path / file.name}:{line + 1}: published: expected one of "
    for more in ("", CRITERIA):
        (tmp_path / file.name).write_text(text + more)
        with pytest.raises(SeatrialError) as caught:
            Criteria.load(tmp_path / file.name, known=ANY)
        assert str(caught.value).startswith(expected)


def test_the_folder_has_no_criteria() -> None:
    with pytest.raises(SeatrialError, match=r"published/criteria\.yaml: not there; "):
        Criteria.load(criteria_file(HOME, "published"))


def test_the_folder_is_no_system() -> None:
    assert "published" not in known_systems(HOME)


def test_criteria_are_no_published_numbers() -> None:
    with pytest.raises(SeatrialError, match=r"lab/.*:\d+: published: expected one of "):
        load_published(HOME / "reference-data" / "lab")


# ---- files that are badly written

PAPERS_FILE = """\
published: papers
doe2001:
  authors: [J. Doe]
  title: On Links
  venue: a workshop
  year: 2001
"""
SYSTEM = """\
published: system
name: one
paper: doe2001
description: the first
setup:
  node: 2 nodes
  bus: null
  adapter: A
  firmware: null
  driver: null
  switch: null
  os: null
  mpi: M
  settings: null
numbers:
  bw:
    place: table 1
    metric: bw
    what: MPI
    size_bytes: 1048576
    value: 900
    unit: MB/s
    kind: absolute
"""
PAPER = """\
published: paper
name: doe2001
comparisons:
  gain:
    systems: [two]
    baselines: [one]
    experiment: E12
    place: section 2
    metric: bw
    what: MPI
    value: 10
    unit: "%"
    kind: ratio
    derived: improvement
    operands: [bw, bw]
    parameters: {ports: 1, mode: fast}
numbers:
  shape:
    place: section 3
    metric: latency
    what: MPI
    size: small
    kind: shape
    sentence: It grows.
"""


def write(folder: Path, **changed: str) -> None:
    texts = {
        "papers": PAPERS_FILE,
        "one": SYSTEM,
        "two": SYSTEM.replace("name: one", "name: two").replace("900", "990"),
        "doe2001": PAPER,
    }
    for name, text in {**texts, **changed}.items():
        (folder / f"{name}.yaml").write_text(text)


def test_small_folder_is_read(tmp_path: Path) -> None:
    write(tmp_path)
    published = load_published(tmp_path)
    (gain,) = published.compare("two", "one")
    assert gain.direction == "higher"
    assert [each.value for each in published.operands(gain)] == [990, 900]
    assert published.general[0].sentence == "It grows."
    assert published.system("one").setup.bus is None


BROKEN = [
    (
        "one",
        "published: system",
        "published: systems",
        1,
        "published: expected one of papers, system, paper, got 'systems'.",
    ),
    (
        "one",
        "published: system\n",
        "",
        1,
        "published: expected one of papers, system, paper, got nothing.",
    ),
    ("one", "system\n", "system\nx: [\n", 4, "not valid YAML: expected"),
    ("one", "name: one", "name: two", 2, "name: expected 'one', got 'two'."),
    (
        "one",
        "paper: doe2001",
        "paper: doe",
        3,
        "paper: expected one of the papers doe2001, got 'doe'. Did you mean 'doe2001'",
    ),
    ("one", "paper: doe2001", "paper: [1]", 3, "paper: expected a text, got [1]."),
    (
        "one",
        "description: the first\n",
        "",
        1,
        "description: expected a text, got nothing.",
    ),
    ("one", "  mpi: M\n", "", 5, "setup.mpi: expected a text or null, got nothing."),
    ("one", "mpi: M", "mpi: 4", 13, "setup.mpi: expected a text or null, got 4."),
    (
        "one",
        "mpi: M",
        "mp: M",
        13,
        "setup.mp: expected one of the keys node, bus, adapter, firmware, driver, swi",
    ),
    (
        "one",
        "    place: table 1\n",
        "",
        16,
        "numbers.bw.place: expected a text, got nothing.",
    ),
    ("one", "  bw:\n", "  7:\n", 16, "numbers[7]: expected a text, got 7."),
    (
        "one",
        "metric: bw",
        "metric: bandwidth",
        18,
        "numbers.bw.metric: expected one of the metrics latency, bw, bibw, msg_rate, ",
    ),
    (
        "one",
        "metric: bw",
        "metric: [bw]",
        18,
        "numbers.bw.metric: expected a text, got ['bw'].",
    ),
    (
        "one",
        "value: 900",
        "value: -1",
        21,
        "numbers.bw.value: expected a number above 0, got -1.",
    ),
    (
        "one",
        "value: 900",
        "value: .nan",
        21,
        "numbers.bw.value: expected a number below 2^64, got .nan.",
    ),
    (
        "one",
        "value: 900",
        "value: true",
        21,
        "numbers.bw.value: expected a number above 0, got True.",
    ),
    (
        "one",
        "value: 900",
        "value: 9e2",
        21,
        "numbers.bw.value: expected a number above 0, got '9e2'.",
    ),
    (
        "one",
        "    value: 900\n",
        "",
        16,
        "numbers.bw.value: expected a value of kind absolute, got nothing.",
    ),
    (
        "one",
        "unit: MB/s",
        "unit: GB/s",
        22,
        "numbers.bw.unit: expected 'MB/s', got 'GB/s'.",
    ),
    (
        "one",
        "    unit: MB/s\n",
        "",
        16,
        "numbers.bw.unit: expected 'MB/s', got nothing.",
    ),
    (
        "one",
        "kind: absolute",
        "kind: limit",
        23,
        "numbers.bw.kind: expected one of absolute, ratio, bound, shape, model, got '",
    ),
    (
        "one",
        "kind: absolute",
        "kind: ratio",
        22,
        "numbers.bw.unit: expected '1' or '%', got 'MB/s'.",
    ),
    (
        "one",
        "1048576",
        "1.0",
        20,
        "numbers.bw.size_bytes: expected a whole number >= 1, got 1.0.",
    ),
    ("one", "1048576", "1048576\n    size: large", 16, "size and size_bytes; expected"),
    (
        "one",
        "kind: a",
        "systems: [two]\n    kind: a",
        23,
        "numbers.bw.systems: expected one of the keys place, metric, what, kind, expe",
    ),
    (
        "one",
        "kind: a",
        "limit: 5\n    kind: a",
        23,
        "numbers.bw.limit: expected one of the keys place, metric, what, kind, experi",
    ),
    (
        "one",
        "kind: a",
        "qualifier: ~\n    kind: a",
        23,
        "numbers.bw.qualifier: expected one of about, almost, up to, more than, less ",
    ),
    (
        "doe2001",
        "name: doe2001",
        "name: doe",
        2,
        "name: expected 'doe2001', got 'doe'.",
    ),
    (
        "doe2001",
        "[two]",
        "[three]",
        4,
        "comparisons.gain: expected one of the systems one, two, got 'three'.",
    ),
    ("doe2001", "[two]", "[one]", 4, "gain: a system is its own baseline"),
    (
        "doe2001",
        "[two]",
        "[]",
        5,
        "comparisons.gain.systems: expected a list of texts, got [].",
    ),
    (
        "doe2001",
        "    baselines: [one]\n",
        "",
        4,
        "comparisons.gain.baselines: expected a list of texts, got nothing.",
    ),
    ("doe2001", "[bw, bw]", "[bw, rate]", 4, "operand 'rate' is no number of one"),
    (
        "doe2001",
        "[bw, bw]",
        "[bw]",
        15,
        "comparisons.gain.operands: expected two, of systems, and derived with their ",
    ),
    (
        "doe2001",
        "    derived: improvement\n",
        "",
        14,
        "comparisons.gain.operands: expected two, of systems, and derived with their ",
    ),
    (
        "doe2001",
        ": improvement",
        ": better",
        14,
        "comparisons.gain.derived: expected one of the formulas improvement, factor, ",
    ),
    (
        "doe2001",
        "E12",
        "12",
        7,
        "comparisons.gain.experiment: expected one such as E01 or E08-11, got 12.",
    ),
    (
        "doe2001",
        "ports: 1",
        "ports: 1.5",
        16,
        "comparisons.gain.parameters.ports: expected a text or a whole number >= 1, g",
    ),
    (
        "doe2001",
        "    sentence: It grows.\n",
        "",
        18,
        "numbers.shape.sentence: expected the paper's sentence, got nothing.",
    ),
    ("doe2001", "kind: shape", "value: 3\n    kind: shape", 18, "a shape with a value"),
    (
        "one",
        "numbers:\n",
        "numbers:\n  bw: {}\n",
        17,
        "numbers.bw: key of line 16 again. Remove one.",
    ),
    (
        "papers",
        "year: 2001",
        "year: soon",
        6,
        "doe2001.year: expected a whole number >= 1, got 'soon'.",
    ),
    (
        "papers",
        "  venue: a workshop\n",
        "",
        2,
        "doe2001.venue: expected a text, got nothing.",
    ),
    (
        "papers",
        "[J. Doe]",
        "J. Doe",
        3,
        "doe2001.authors: expected a list of texts, got 'J. Doe'.",
    ),
    (
        "papers",
        "doe2001",
        "roe1999",
        3,
        "paper: expected one of the papers roe1999, got 'doe2001'.",
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "line", "reason"), BROKEN)
def test_broken_file_names_line_and_reason(
    tmp_path: Path, name: str, old: str, new: str, line: int, reason: str
) -> None:
    write(tmp_path)
    file = tmp_path / f"{name}.yaml"
    assert old in file.read_text()
    write(tmp_path, **{name: file.read_text().replace(old, new, 1)})
    with pytest.raises(SeatrialError) as caught:
        load_published(tmp_path)
    assert f":{line}: " in str(caught.value), caught.value
    assert reason in str(caught.value), caught.value
