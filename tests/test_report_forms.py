"""The report as PDF and CSV: what they say, and that names stay text."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typst
import vl_convert
from report_samples import (
    HOSTILE,
    sample_content,
    sample_figure,
    sample_finding,
    sample_front,
    sample_row,
    spoiled,
)
from samples import sample_criteria, sample_run

from seatrial.errors import SeatrialError
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.summary import format_findings
from seatrial.report import FORMS, pdf, write_report
from seatrial.report.chapters import contents
from seatrial.report.content import ActOn, Chapter, Content
from seatrial.report.criteria_rows import criteria_csv
from seatrial.report.render.figure import Table
from seatrial.report.render.paper import template
from seatrial.report.render.svg import colours, svg
from seatrial.report.wording import MODEL_NOTICE
from seatrial.runs.closed_run import Run

HOME = Path(__file__).resolve().parents[1]
TEMPLATE = template(HOME, "report.typ")


@pytest.fixture(scope="module")
def judged() -> tuple[Run, Judgement]:
    run = sample_run(slow="cn03")
    return run, judge(run, sample_criteria())


def printed(judged: tuple[Run, Judgement], content: Content) -> dict[str, Any]:
    return pdf.document(judged[1], content, colours(HOME))


def asked(data: dict[str, Any], expression: str) -> Any:
    """Ask the set document."""
    inputs = {"data": json.dumps(data)}
    return json.loads(
        typst.eval(TEMPLATE, expression, sys_inputs=inputs, ignore_system_fonts=True)
    )


# CSV


def test_findings_as_csv_hold_no_formula(judged: tuple[Run, Judgement]) -> None:
    finding = sample_finding(flags=("=a", "b"))
    finding = replace(finding, place="=HYPERLINK(1)", value=-2.5)
    judgement = replace(judged[1], findings=(finding,))
    (row,) = csv.DictReader(io.StringIO(format_findings(judgement, "csv")))
    assert row["place"] == "'=HYPERLINK(1)"
    assert row["flags"] == "'=a; b"
    assert row["value"] == "-2.5"


def test_criteria_as_csv() -> None:
    nothing = replace(sample_finding(), value=None, lower=None, upper=None, limit=None)
    rows = (
        sample_row(name="-PairSweep bw_4MiB"),
        sample_row("undecided", worst=nothing, reason="a, b"),
    )
    assert criteria_csv(sample_content(criteria=rows)) == (
        "name,verdict,check,metric,where,kind,clause,allocations,places,reason,"
        "scatter,place,direction,limit,value,lower,upper,unit,more\n"
        "'-PairSweep bw_4MiB,fail,PairSweep,bw_4MiB,openmpi,promised,"
        '"offer, 3.2",4,6,4 of 4 values miss the limit,,cn03 - cn04,higher,60,23.5,'
        "23.4,23.6,MB/s,\n"
        "PairSweep bw_4MiB,undecided,PairSweep,bw_4MiB,openmpi,promised,"
        '"offer, 3.2",4,6,"a, b",,cn03 - cn04,higher,,,,,MB/s,\n'
    )


# PDF


def test_pdf_is_the_same_from_the_same_run(judged: tuple[Run, Judgement]) -> None:
    made = pdf.pdf_bytes(*judged, sample_content(), HOME)
    assert made.startswith(b"%PDF-")
    assert made == pdf.pdf_bytes(*judged, sample_content(), HOME)
    assert b"D:20261121063452" in made  # the run's end
    assert b"/Lang(en)" in made and b"/Outlines" in made


def test_pdf_is_accessible(judged: tuple[Run, Judgement]) -> None:
    """Typst refuses what PDF/UA-1 forbids: a picture without words, no title."""
    data = printed(judged, sample_content())
    made, warnings = typst.compile_with_warnings(
        TEMPLATE,
        format="pdf",
        sys_inputs={"data": json.dumps(data)},
        ignore_system_fonts=True,
        pdf_standards=["ua-1"],
    )
    assert made
    assert warnings == []
    alt = asked(data, "query(image).map(it => it.alt)")
    assert alt == ["4 nodes: 2 pass, 1 fail, 1 absent", *["Two lines."] * 3]


def crowded() -> Content:
    """Return a page one with more entries than a page holds."""
    words = ("a reason that is long, " * 40,) * 30
    places = tuple(ActOn(f"node {n} " * 30, words) for n in range(40))
    front = sample_front(
        meaning="what it means " * 100,
        notices=words,
        needs=words,
        act_on=places,
        absent=places,
        in_common=words,
        worth_a_look=words,
        facts=(("a fact " * 30, "its value " * 60),) * 40,
        signer="somebody " * 200,
    )
    return sample_content(front=front)


@pytest.mark.parametrize(
    "content",
    [
        sample_content(),
        crowded(),
        *(spoiled(sample_content(), name) for name in HOSTILE),
        spoiled(crowded(), HOSTILE[-1]),
    ],
    ids=lambda content: content.front.signer[:40],
)
def test_page_one_is_one_page_and_names_are_text(
    judged: tuple[Run, Judgement], content: Content
) -> None:
    data = printed(judged, content)
    pages, markup = asked(
        data,
        "(query(heading.where(level: 1)).map(it => it.location().page()), "
        "(link, raw, strong, emph, math.equation).map(it => query(it).len()))",
    )
    assert pages[:2] == [1, 2]
    assert len(pages) == 1 + 2 + 3  # the verdict, criteria and findings, three chapters
    assert markup == [0] * 5


def test_every_page_names_a_model_machine(judged: tuple[Run, Judgement]) -> None:
    content = sample_content()
    assert not printed(judged, content)["is_model"]
    front = replace(content.front, notices=(MODEL_NOTICE,))
    data = printed(judged, replace(content, front=front))
    assert data["is_model"]
    asked(data, "()")  # it is set


def test_page_one_has_numbers_and_names_of_a_typical_run_in_full(
    judged: tuple[Run, Judgement],
) -> None:
    content = contents(*judged, HOME)
    data = printed(judged, content)
    (one,) = asked(data, "query(<page-one>).map(it => it.value)")
    assert one == data["fronts"][0]  # the fullest level of detail
    (links,) = [each for each in one["areas"] if each["area"] == "Links"]
    assert links["counts"] == {"fail": 1, "pass": 1}
    assert links["headlines"][0]["value"] == "23.50 MB/s"
    assert links["headlines"][0]["limit"] == "at least 60 MB/s"
    (act_on, *_) = one["lists"]
    assert (act_on["title"], act_on["items"][0]["place"]) == ("Act on", "cn03")
    assert data["map"]["groups"] == [{"state": "Fail", "names": "cn03"}]


def test_colours_of_a_chart_are_those_of_the_page() -> None:
    palette = colours(HOME)
    drawn = svg(sample_figure("one"), palette)
    assert "var(" not in drawn
    for name in ("--line-1", "--fail", "--muted"):
        assert f'="{palette[name]}"' in drawn
    assert palette["--paper"] == "#fff"  # the light one
    assert set(re.findall('font-family="([^"]+)"', drawn)) == {"Libertinus Serif"}


def test_pdf_draws_the_specification_of_the_page(
    judged: tuple[Run, Judgement], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[dict[str, Any]] = []

    def draw(spec: dict[str, Any], **options: Any) -> str:
        drawn.append(spec)
        assert options == {"allowed_base_urls": []}
        return "<svg><g class='role-mark'/></svg>"

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", draw)
    content = sample_content()
    printed(judged, content)
    figures = content.chapters[0].figures
    assert [spec["width"] for spec in drawn] == [400, 400, 820]
    for spec, figure in zip(drawn, figures, strict=True):
        of_place = {"width", "config"}
        assert {**spec, **dict.fromkeys(of_place)} == {
            **figure.spec,
            **dict.fromkeys(of_place),
        }
        assert spec["config"]["axis"] == figure.spec["config"]["axis"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"config": {"axis": {"labelColor": "var(--no-colour)"}}}, "--no-colour"),
        ({"mark": "no-mark"}, "conversion failed"),
        ({"transform": [{"filter": "datum..x"}]}, "conversion failed"),
        (
            {"transform": [{"aggregate": [{"op": "values", "field": "", "as": "a"}]}]},
            "empty picture; see the message of Vega",
        ),
    ],
)
def test_figure_that_cannot_be_drawn_is_named(
    changed: dict[str, Any], said: str
) -> None:
    figure = sample_figure("bad-one")
    figure = replace(figure, spec={**figure.spec, **changed})
    with pytest.raises(SeatrialError, match="figure bad-one: it cannot be drawn") as e:
        svg(figure, colours(HOME))
    assert said in str(e.value)


def test_what_the_pdf_leaves_out_is_counted(
    judged: tuple[Run, Judgement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "MOST_CHARTS", 2)
    monkeypatch.setattr(pdf, "MOST_CRITERIA", 2)
    monkeypatch.setattr(pdf, "MOST_FINDINGS", 1)
    wide = Table(tuple("abcdefghijkl"), (("1",) * 12,) * 3)
    more = Chapter("more", "More", "", (sample_figure("last"),), (("", wide),))
    data = printed(judged, sample_content(chapters=(*sample_content().chapters, more)))
    chapters = data["chapters"]
    assert [chapter["left_out"] for chapter in chapters] == [1, 0, 0, 1]
    assert data["criteria"]["more"] == 1
    telling = sum(f.verdict in ("fail", "undecided") for f in judged[1].findings)
    assert data["findings"]["more"] == telling - 1
    (nodes,), (table,) = chapters[1]["tables"], chapters[3]["tables"]
    assert (len(nodes["rows"]), nodes["more_rows"]) == (40, 10)
    assert (len(table["rows"][0]), table["more_columns"]) == (9, 3)
    assert nodes["numbers"] == [False, False]
    assert table["numbers"] == [True] * 9


# All forms

FILES = {
    "html": ["report.html"],
    "pdf": ["report.pdf"],
    "md": ["summary.md"],
    "csv": ["criteria.csv", "findings.csv"],
    "junit": ["junit.xml"],
}


@pytest.mark.parametrize("forms", [FORMS, ("md",), ("csv", "junit")])
def test_report_has_the_forms_asked_for(
    judged: tuple[Run, Judgement], tmp_path: Path, forms: tuple[str, ...]
) -> None:
    paths = write_report(*judged, tmp_path / "out", HOME, forms)
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == sorted(name for form in forms for name in FILES[form])
    assert sorted(paths) == written
    if "csv" in forms:
        assert paths["findings.csv"].read_text() == format_findings(judged[1], "csv")


def test_no_file_is_replaced_unless_all_are(
    judged: tuple[Run, Judgement], tmp_path: Path
) -> None:
    (tmp_path / "summary.md").write_text("before")
    (tmp_path / "junit.xml").mkdir()  # in the way
    with pytest.raises(SeatrialError, match=r"junit\.xml: the report cannot be writ"):
        write_report(*judged, tmp_path, HOME, ("md", "csv", "junit"))
    assert (tmp_path / "summary.md").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("junit.xml", "summary.md")
    ]


def test_report_follows_no_link_of_another_user(
    judged: tuple[Run, Judgement], tmp_path: Path
) -> None:
    """The attack: names that the report is known to write, as links to our files."""
    out, target = tmp_path / "out", tmp_path / "private"
    out.mkdir()
    target.write_text("precious")
    for name in ("summary.md", "summary.md.part", ".summary.md.new"):
        (out / name).symlink_to(target)
    write_report(*judged, out, HOME, ("md",))
    assert target.read_text() == "precious"
    assert not (out / "summary.md").is_symlink()


class _KilledError(BaseException):
    """Stands for SIGKILL."""


@pytest.mark.parametrize("step", range(7))
def test_killed_report_leaves_no_mixture(
    judged: tuple[Run, Judgement],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
) -> None:
    forms = ("md", "csv", "junit")
    names = [name for form in forms for name in FILES[form]]
    for name in names:
        (tmp_path / name).write_text("before")
    steps = iter(range(100))

    def killed(original: Callable[..., object]) -> Callable[..., object]:
        def call(path: Path, *arguments: object, **more: object) -> object:
            if path.name in names and next(steps) == step:
                raise _KilledError
            return original(path, *arguments, **more)

        return call

    for method in ("rename", "replace", "unlink"):
        monkeypatch.setattr(Path, method, killed(getattr(Path, method)))
    with pytest.raises(_KilledError):
        write_report(*judged, tmp_path, HOME, forms)
    left = [tmp_path / name for name in names if (tmp_path / name).exists()]
    assert len({path.read_text() == "before" for path in left}) <= 1


@pytest.mark.parametrize("missing", ["paper.typ", "report.typ", "report.css"])
def test_missing_template_is_a_clear_error(
    judged: tuple[Run, Judgement], tmp_path: Path, missing: str
) -> None:
    (tmp_path / "reports").mkdir()
    for name in {"paper.typ", "report.typ", "report.css"} - {missing}:
        (tmp_path / "reports" / name).write_bytes(
            (HOME / "reports" / name).read_bytes()
        )
    with pytest.raises(SeatrialError, match=f"{missing}: cannot be read: No such file"):
        pdf.pdf_bytes(*judged, sample_content(), tmp_path)
