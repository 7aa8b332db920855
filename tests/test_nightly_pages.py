"""Pages of the nights: what they state, their links, and their size."""

import re
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from html_page import Page
from nights_state import (
    ACKNOWLEDGED,
    ALARMS,
    CLOSED,
    NIGHTS,
    OPEN,
    TODAY,
    Modelled,
    alarm,
    modelled,
    night,
)

from seatrial.history.records import Decision, Learning, Note
from seatrial.history.rules import Rules
from seatrial.nightly.charts import chart
from seatrial.nightly.pages import INDEX, write_pages

HOME = Path(__file__).resolve().parents[1]
HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J"
RATE = "2.5 a year"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all pages of the modelled nights."""
    folder = tmp_path_factory.mktemp("pages")
    draw(modelled(folder / "lab"), folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def drawn(written: Path) -> dict[str, Page]:
    """All pages of the modelled nights, by name."""
    return {file.name: Page(file.read_text()) for file in written.glob("*.html")}


@pytest.fixture
def lab(written: Path, tmp_path: Path) -> Modelled:
    """The same nights, with a copy of their ledger, which has times."""
    return Modelled(shutil.copytree(written.parent / "lab", tmp_path / "lab"))


@pytest.fixture
def out(written: Path, tmp_path: Path) -> Path:
    """A folder of its own that has all pages already."""
    return shutil.copytree(written, tmp_path / "out")


def draw(lab: Modelled, out: Path, days: int = 0) -> set[str]:
    """Write the pages; return the names of those that are new."""
    written = write_pages(lab.state(), HOME, out, TODAY + timedelta(days=days))
    return {file.name for file in written}


def page_of(number: int) -> str:
    return f"{night(number)}.html"


def test_each_night_has_a_page_beside_the_index(drawn: dict[str, Page]) -> None:
    assert drawn.keys() == {INDEX, *map(page_of, range(NIGHTS))}


def test_every_page_states_the_declared_rate(drawn: dict[str, Page]) -> None:
    for name, page in drawn.items():
        assert f"Expected false alarms {RATE}" in page.text, name


def test_pages_of_a_model_machine_say_so(
    lab: Modelled, drawn: dict[str, Page], tmp_path: Path
) -> None:
    lab.alarms = ALARMS[:1]
    state = replace(lab.state(), model=True)
    written = write_pages(state, HOME, tmp_path / "out", TODAY)
    assert len(written) == NIGHTS + 1
    for file in written:
        assert "Model machine." in Page(file.read_text()).text, file.name
        assert "Model machine." not in drawn[file.name].text, file.name


def test_every_page_forbids_all_but_its_own_script(drawn: dict[str, Page]) -> None:
    for name, page in drawn.items():
        (policy,) = (
            str(attributes["content"])
            for tag, attributes in page.elements
            if tag == "meta" and "http-equiv" in attributes
        )
        assert policy.startswith("default-src 'none'; script-src 'sha256-"), name
        assert "form-action 'none'" in policy
        for tag, attributes in page.elements:
            assert tag not in ("iframe", "object", "embed", "img", "base"), name
            for key in ("src", "srcset", "xlink:href"):
                assert key not in attributes, name
            assert not any(key.startswith("on") for key in attributes), name


def test_all_links_lead_somewhere(drawn: dict[str, Page]) -> None:
    ids = {
        name: {attributes.get("id") for _, attributes in page.elements}
        for name, page in drawn.items()
    }
    links = 0
    for name, page in drawn.items():
        for tag, attributes in page.elements:
            target = attributes.get("href") or ""
            if tag == "a":
                file, _, part = target.partition("#")
                assert (file or name) in drawn, target
                assert not part or unquote(part) in ids[file or name], target
                links += 1
    assert links > 2 * NIGHTS


def test_ids_are_unique(drawn: dict[str, Page]) -> None:
    for name, page in drawn.items():
        ids = [
            attributes["id"] for _, attributes in page.elements if "id" in attributes
        ]
        assert len({*ids}) == len(ids), name


def test_the_index_has_what_matters(drawn: dict[str, Page]) -> None:
    text = drawn[INDEX].text
    for words in (
        "3 open alarms.",
        "2 of 12 nodes are still learnt",
        "Onset 2026-03-17 to 2026-03-19",
        "54,321 to 1",
        "ring bw_4MiB (mpi): 100 MB/s before, 90 MB/s after: 10.0 % worse",
        "ring bw_4MiB: slow",
        "leaf l3",
        f"seatrial nightly ack lab {OPEN.name} --until DATE --reason TEXT",
        "scontrol create reservation ReservationName=seatrial-cn03",
        "Acknowledged alarms",
        "83 % of the nodes",
        f"quarantined, {ACKNOWLEDGED.name}: reservation now",
        "baseline 9 of 14 visits: cn09",
        "baseline 12 of 14 visits: fat1",
        "never: fat2",
        "28 nights: cn10",
        f"{TODAY}: batch: ring bw_4MiB: 5.0 % better",
        "0 of 12 nodes are idle",
    ):
        assert words in text, words
    assert "TOKEN" not in text
    assert f"ack lab {ACKNOWLEDGED.name}" not in text


def test_a_page_of_a_night_has_its_alarms_and_improvements(
    drawn: dict[str, Page],
) -> None:
    tags = {
        number: [tag for tag, _ in drawn[page_of(number)].elements].count("figure")
        for number in (11, 12, 30, 39)
    }
    assert tags == {11: 0, 12: 2, 30: 2, 39: 0}
    assert "None." in drawn[page_of(11)].text
    assert "Ended 2026-03-21" in drawn[page_of(12)].text
    report = drawn[page_of(15)].text
    assert "Report:" in report
    assert "hca firmware was 20.39, is 20.41 on cn[01-10]" in report
    assert "Ended" not in report
    last = drawn[page_of(39)].text
    assert "Improvements batch: ring bw_4MiB: 5.0 % better" in last
    assert "Class batch" in last


def test_before_the_first_night_the_index_says_so(tmp_path: Path) -> None:
    lab = Modelled(tmp_path / "lab", alarms=(), nights=0)
    lab.decision = Decision((), (), (), ())
    assert draw(lab, tmp_path / "out") == {INDEX}
    page = Page((tmp_path / "out" / INDEX).read_text())
    assert "No night yet." in page.text
    assert RATE in page.text


def test_hostile_names_are_text(lab: Modelled, tmp_path: Path) -> None:
    lab.system = HOSTILE
    lab.classes = {HOSTILE: (HOSTILE, "cn02"), "fat": ("fat1", "fat2")}
    place = replace(alarm("common", 30, [HOSTILE]), name=f"{night(30)}-{HOSTILE}")
    lab.alarms = (
        alarm("node", 20, [HOSTILE]),
        replace(place, shared=HOSTILE, faults=(HOSTILE,)),
        replace(CLOSED, name=f"{night(12)}-{HOSTILE}", nodes=(HOSTILE,)),
    )
    lab.decision = replace(
        lab.decision,
        learning=(Learning(HOSTILE, 1, 14),),
        notes=(Note(night(NIGHTS - 1), HOSTILE, HOSTILE),),
    )
    lab.note("quarantined", node=HOSTILE, alarm=HOSTILE, reason=HOSTILE, token="1")
    lab.note("skipped", reason=HOSTILE)
    out = tmp_path / "out"
    draw(lab, out)
    for file in out.glob("*.html"):
        html = file.read_text()
        page = Page(html)
        assert len(page.scripts) == 1, file
        assert "\x1b" not in html
        assert "alert(1)" in page.text
    index = Page((out / INDEX).read_text())
    (link,) = (
        unquote(str(attributes["href"])).partition("#")[2]
        for tag, attributes in index.elements
        if tag == "a" and "#" in str(attributes["href"])
    )
    assert link.startswith(f"alarm-{night(12)}-<script>")


# What is written when


def test_pages_that_stay_are_not_written_again(lab: Modelled, out: Path) -> None:
    assert draw(lab, out) == set()
    lab.note("skipped", reason="the controller was down")
    assert draw(lab, out) == {INDEX}


def test_an_acknowledged_alarm_changes_its_pages(lab: Modelled, out: Path) -> None:
    until = str(TODAY + timedelta(days=3))
    lab.note("acknowledged", alarm=ALARMS[3].name, until=until, reason="known")
    assert draw(lab, out) == {INDEX, page_of(25)}


def test_a_new_night_adds_its_page(lab: Modelled, out: Path) -> None:
    lab.nights += 1
    # Nights after an alarm belong to its chart.
    within = {page_of(12), page_of(15), page_of(22), page_of(25), page_of(30)}
    new = draw(lab, out, days=1)
    assert {INDEX, page_of(NIGHTS)} <= new
    assert new <= {INDEX, page_of(NIGHTS - 1), page_of(NIGHTS), *within}


def test_another_declared_rate_changes_all_pages(lab: Modelled, tmp_path: Path) -> None:
    out = tmp_path / "out"
    lab.alarms = ALARMS[:1]
    draw(lab, out)
    lab.rules = replace(lab.rules, alarms_a_year=4.0)
    assert len(draw(lab, out)) == NIGHTS + 1
    for file in out.glob("*.html"):
        assert "4 a year" in Page(file.read_text()).text
    assert draw(lab, out) == set()


def test_a_page_cut_off_is_written_again(lab: Modelled, out: Path) -> None:
    (out / page_of(3)).unlink()
    assert draw(lab, out) == {page_of(3)}


# Charts


def nights_in(svg: str) -> list[str]:
    return re.findall(r">(\d{4}-\d\d-\d\d)<", svg)


def test_a_chart_shows_the_nights_around_its_alarm(tmp_path: Path) -> None:
    lab = Modelled(tmp_path / "lab", nights=300)
    late = alarm("node", 150, ["cn02"])
    svg = chart(lab.state().visits, late, late.losses[0])
    labels = nights_in(svg)
    assert str(night(60)) <= labels[0] < labels[-1] <= str(night(180))


def test_a_chart_names_the_lines_that_it_has(lab: Modelled) -> None:
    visits = lab.state().visits
    one, whole = (chart(visits, it, it.losses[0]) for it in (ALARMS[4], ALARMS[1]))
    assert (">the node<" in one, ">other nodes<" in one) == (True, True)
    assert (">the nodes<" in whole, ">other nodes<" in whole) == (True, False)


def test_a_metric_without_numbers_has_no_chart(lab: Modelled) -> None:
    gone = alarm("node", 30, ["fat2"])
    state = lab.state()
    state.visits.values[:] = float("nan")
    assert chart(state.visits, gone, gone.losses[0]) == ""


# Size


@pytest.mark.slow
def test_a_year_of_a_thousand_nodes(tmp_path: Path) -> None:
    nodes = tuple(f"cn{number:04}" for number in range(1000))
    learning = tuple(Learning(node, 3, 14) for node in nodes)
    lab = Modelled(
        tmp_path / "lab",
        classes={"batch": nodes},
        rules=Rules(every=5),
        nights=365,
        alarms=tuple(alarm("node", 30 * at + 8, [nodes[at]]) for at in range(12)),
        decision=Decision((), (), learning, ()),
    )
    out = tmp_path / "out"
    assert len(draw(lab, out, days=365 - NIGHTS)) == 366
    assert (out / INDEX).stat().st_size <= 5_000_000
    assert sum(file.stat().st_size for file in out.iterdir()) <= 50_000_000
