"""The page of a comparison: what it says, hostile names, and its size."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from compare_samples import SHA, claim, comparison, numbers, ratio, side, undecided

from seatrial.compare.curves import curve_figures
from seatrial.compare.figures import MAX_CHECKS, checks_figure
from seatrial.compare.html_page import MAX_NUMBERS, MAX_UNPAIRED, compare_html
from seatrial.compare.records import Comparison, Ratio, Standing, Unpaired
from seatrial.compare.wording import compared, lead, percent
from seatrial.errors import SeatrialError

HOME = Path(__file__).resolve().parents[1]


def page(found: Comparison) -> str:
    return compare_html(found, HOME)


def said(text: str) -> str:
    """Return the text of a page, without its scripts and styles."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def specs(text: str) -> dict[str, Any]:
    found = re.findall(r'data-chart="chart-([^"]*)">(.*?)</script>', text, re.DOTALL)
    return {name: json.loads(spec) for name, spec in found}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Ratio(1.12, 1.09, 1.15), "12.0 % better than A (9.0 to 15.0 %)"),
        (
            Ratio(1.02, 0.99, 1.05),
            "2.0 % better than A (from 1.0 % worse to 5.0 % better)",
        ),
        (Ratio(0.9, 0.85, 0.95), "10.0 % worse than A (5.0 to 15.0 %)"),
        (Ratio(1.0), "0.0 % better than A"),
        (Ratio(2.5, 2.0, 3.0), "better than A by a factor of 2.500 (2.000 to 3.000)"),
        (Ratio(31.0), "better than A by a factor of 31"),
    ],
)
def test_ratio_in_words(value: Ratio, words: str) -> None:
    assert compared(value, " than A") == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (1.0, "100 %"),
        (0.9999, "over 99.9 %"),
        (0.99, "99 %"),
        (0.123, "12.3 %"),
        (0.0001, "under 0.1 %"),
        (0.0, "0 %"),
    ],
)
def test_share_in_words(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("ranking", "words"),
    [
        (
            [("B", Ratio(1.12, 1.09, 1.15), 0.99), ("A", Ratio(1.0), 0.01)],
            "B is 12.0 % better than A (9.0 to 15.0 %); first in 99 %",
        ),
        (
            [("A", Ratio(1.0), None), ("B", Ratio(0.8, 0.75, 0.85), None)],
            "A is 25.0 % better than B (17.6 to 33.3 %).",
        ),
        (
            [
                *(("C", Ratio(1.21, 1.2, 1.22), 1.0), ("B", Ratio(1.1), 0.0)),
                ("A", Ratio(1.0), 0.0),
            ],
            "C is 21.0 % better than A (20.0 to 22.0 %), and 10.0 % better than B",
        ),
    ],
)
def test_lead(ranking: list[tuple[str, Ratio, float | None]], words: str) -> None:
    names = sorted(name for name, _, _ in ranking)
    places = tuple(
        Standing(name, rank, score, score, selected)
        for rank, (name, score, selected) in enumerate(ranking, 1)
    )
    more = {
        "B is": " of 2,000 resamples.",
        "C is": ", the next; first in 100 % of 2,000 resamples.",
    }
    said = lead(replace(comparison(names), ranking=places))
    assert said == words + more.get(words[:4], "")


def test_page_one_of_a_winner() -> None:
    text = said(page(comparison()))
    assert "✓ B wins B is 12.0 % better than A (9.2 to 14.8 %); first in 99.2 %" in text
    assert f"bakeoff.yaml SHA-256 {SHA} frozen: every run recorded them" in text
    assert "Reasons for no winner" not in text
    assert "1 B 1.120 1.092 to 1.148 99.2 % 2 A baseline 1.000 0.9 %" in text


def test_page_one_without_a_winner_has_every_reason() -> None:
    found = undecided()
    text = said(page(found))
    assert "? No winner B is 2.1 % better than A (from 1.0 % worse to" in text
    for reason in found.why:
        assert reason in text
    assert "About 12 more repeats of each side would probably separate" in text
    assert "not frozen: not every run recorded them" in text


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"published": True}, "Published: A. Numbers from a paper, not from a run."),
        ({"replay": True}, "Replay: A. No measurement: Seatrial read recorded output"),
        ({"demonstration": True}, "Demonstration: A. Its numbers mean nothing"),
        ({"model": True}, "Model: A. Its numbers are made by a model of known truth."),
        ({"verdict": "fail"}, "✕ fail digest cd34cd34cd34"),
        ({"verdict": ""}, "not judged"),
        ({"signer": ""}, "no known signer"),
        ({"weights_sha256": "ff" * 32}, "ffffffffffff others"),
        ({"weights_sha256": ""}, "none"),
        ({"price": 1200000.0, "power_kw": 45.5}, "1,200,000 45.5"),
        ({"environment": "openmpi"}, "openmpi only"),
    ],
)
def test_sides_say_what_they_are(changed: dict[str, Any], words: str) -> None:
    found = comparison()
    text = said(page(replace(found, sides=(side("A", **changed), found.sides[1]))))
    assert words in text.replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_ranking_by_price_says_so_and_shows_performance() -> None:
    found = comparison(rank_by="price")
    text = said(page(found))
    assert "better per price than A" in text
    assert "Performance alone" in text
    assert "divided by the ratio of prices" in text


def test_what_only_some_sides_ran_is_listed_with_reasons() -> None:
    unpaired = tuple(
        Unpaired(f"Check{n}", "", "", "", ("", f"failed: {n}")) for n in range(600)
    )
    counts = Unpaired("Counts", "np=4", "bw_8B", "bandwidth", ("not run", ""))
    text = said(page(comparison(unpaired=(*unpaired, counts))))
    assert "601 cases or metrics are not on all sides" in text
    assert "Counts np=4, bw_8B bandwidth not run ✓ has it Check0 all of it ✓" in text
    assert f"The table has the first {MAX_UNPAIRED} of 601" in text
    assert f"Check{MAX_UNPAIRED - 2} all of it" in text
    assert f"Check{MAX_UNPAIRED - 1} all of it" not in text


def test_claims_stand_beside_what_is_computed() -> None:
    claims = (
        claim(),
        claim(stated=1.4, agrees=False),
        claim(stated=None, agrees=None, conflict="table 2 says 1.1"),
    )
    text = said(page(comparison(claims=claims)))
    assert "about 1.250 1.243 ✓ yes improves the latency by about 25 %" in text
    assert "about 1.400 1.243 ✕ no" in text
    assert "\N{EN DASH} 1.243 ✕ contradicted table 2 says 1.1" in text
    assert "Claims of papers" not in said(page(comparison()))


def test_rows_have_what_the_filter_needs_and_marks_in_words() -> None:
    text = page(comparison(("A", "B", "C"), 120))
    rows = re.findall(
        r'<tr data-verdict="(\w+)" data-check="(\w+)" data-metric="(\w+)"', text
    )
    assert len(rows) == 120
    assert {mark for mark, _, _ in rows} == {"better", "worse", "both", "alike"}
    assert {metric for _, _, metric in rows} == {"bw", "latency"}
    assert "▲</span>better" in text and "▼</span>worse" in text


def test_big_comparison_is_cut_and_says_so() -> None:
    found = comparison(count=2000)
    text = page(found)
    assert text.count("<tr data-verdict") == MAX_NUMBERS
    assert f"The table has the first {MAX_NUMBERS} of 2000" in said(text)
    assert "compare.csv" in text
    assert len(text) < 3_000_000
    # Those that count are all there.
    assert len(re.findall(r">2 %<", text)) >= 50


def test_curves_take_three_sizes_and_at_most_24() -> None:
    found = comparison(count=2000)
    figures, left = curve_figures(found)
    assert (len(figures), len(figures) + left) == (24, 400)
    two = tuple(each for each in found.numbers if each.size_bytes in (8, 1024))
    assert curve_figures(replace(found, numbers=two)) == ([], 0)
    points = figures[0].spec["datasets"]["points"]
    assert {point["side"] for point in points} == {"A", "B"}
    assert len(points) == 2 * 5


def test_checks_from_worst_to_best() -> None:
    found = comparison(count=40)
    gains = (1.3, 0.9, 1.1)
    rows = tuple(
        replace(each, ratios=(None, ratio(gain)))
        for each, gain in zip(numbers(2, 3), gains, strict=True)
    )
    figure = checks_figure(replace(found, numbers=rows))
    assert figure is not None
    (row,) = figure.spec["datasets"]["ratios"]
    assert (row["low"], row["ratio"], row["high"]) == (0.9, 1.1, 1.3)
    assert figure.table.rows[0][:4] == ("Check0", "B", "3", "0.900")
    assert checks_figure(replace(found, numbers=())) is None


def test_many_checks_are_all_in_the_table() -> None:
    rows = tuple(
        replace(each, check=f"Check{number}")
        for number, each in enumerate(numbers(2, MAX_CHECKS + 10))
    )
    figure = checks_figure(comparison(numbers=rows))
    assert figure is not None
    assert len(figure.spec["datasets"]["ratios"]) == MAX_CHECKS
    assert len(figure.table.rows) == MAX_CHECKS + 10
    assert figure.note == "10 more checks, of less weight, are in the table."


@pytest.mark.parametrize(
    "sides",
    [
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
        8,
    ],
)
def test_charts_meet_the_schema(sides: int) -> None:
    names = [f"side {number}" for number in range(sides)]
    found = specs(page(comparison(names, 30)))
    assert {"scores", "selection", "groups", "checks", "curve-1"} <= found.keys()
    for spec in found.values():
        alt.Chart.from_dict(spec)  # raises where the schema of Vega-Lite is not met
    ratios = found["groups"]["datasets"]["ratios"]
    assert len(ratios) == 3 * (sides - 1)


def test_long_names_that_look_the_same_stay_apart() -> None:
    names = ("A", "x" * 5000 + "1" + "x" * 5000, "x" * 5000 + "2" + "x" * 5000)
    found = specs(page(comparison(names, 10)))
    sides = {row["side"] for row in found["scores"]["datasets"]["ratios"]}
    assert len(sides) == 3
    assert max(map(len, sides)) < 60


HOSTILE = "</script><script>alert(1)</script>\"' } + alert(2)"


def test_hostile_names_are_text_everywhere() -> None:
    found = comparison(("A", HOSTILE), 10)
    rows = tuple(
        replace(each, check=HOSTILE, case=HOSTILE, metric=HOSTILE, note=HOSTILE)
        for each in found.numbers
    )
    groups = tuple(replace(each, name=HOSTILE) for each in found.groups)
    text = page(
        replace(
            found,
            numbers=rows,
            groups=groups,
            unpaired=(Unpaired(HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE, "")),),
            claims=(claim(what=HOSTILE, words=HOSTILE, conflict=HOSTILE),),
            why=(HOSTILE,),
            weights=HOSTILE,
            notes=(HOSTILE,),
        )
    )
    assert "<script>alert" not in text
    for spec in specs(text).values():
        bare = {key: value for key, value in spec.items() if key != "datasets"}
        expressions = re.findall(
            r'"(?:labelExpr|filter|expr)": "([^"]*)"', json.dumps(bare)
        )
        assert not [each for each in expressions if "alert" in each]


def test_missing_template_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    with pytest.raises(SeatrialError, match="a template of the report is missing"):
        compare_html(comparison(), tmp_path)
