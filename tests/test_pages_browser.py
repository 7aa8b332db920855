"""The pages of a comparison and of a trend in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, console_of, script, show, visible
from compare_samples import comparison
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from trend_runs import STRICTER, nights

from seatrial.compare.html_page import compare_html
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.report.trend.page import trend_html
from seatrial.report.trend.series import Choice
from seatrial.report.trend.trend import trend

pytestmark = pytest.mark.browser

HOME = Path(__file__).resolve().parents[1]
HOSTILE = "</script><script>window.bad = 1</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write a comparison of three sides with a hostile name, and a trend."""
    folder = tmp_path_factory.mktemp("pages")
    runs = [run for run in nights(folder / "results") if "06T" not in run.name]
    file = folder / "criteria.yaml"
    file.write_text(STRICTER.replace("70 MB/s", "75 MB/s"))
    found = trend("lab", runs, Criteria.load(file, known=ANY), Choice())
    compared = comparison(("A", f"B{HOSTILE}", "C"), 120)
    texts = {
        "compare": compare_html(compared, HOME),
        "trend": trend_html(found, HOME),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


def shown(browser: Chrome) -> int:
    return len(visible(browser, "#paired tbody tr", "rowIndex"))


@pytest.mark.parametrize("name", ["compare", "trend"])
@pytest.mark.parametrize("width", [1280, 390])
def test_charts_are_drawn_and_the_page_does_not_scroll_sideways(
    browser: Chrome, pages: dict[str, str], name: str, width: int
) -> None:
    show(browser, pages[name], width)
    charts = script(
        browser,
        "[...document.querySelectorAll('.chart')].map(chart => ["
        "chart.querySelector('svg').getBoundingClientRect().width,"
        "chart.querySelectorAll('svg :is(.mark-symbol, .mark-rect) path').length])",
    )
    assert len(charts) == {"compare": 4 + 24, "trend": 1}[name]
    for wide, marks in charts:
        assert 300 < wide <= width
        assert marks >= 2
    root = "document.documentElement"
    assert script(browser, f"{root}.scrollWidth <= {root}.clientWidth")
    assert script(browser, "performance.getEntriesByType('resource').length") == 0
    assert script(browser, "window.violations") == []
    assert script(browser, "window.bad") is None
    assert console_of(browser) == []


def test_names_are_text_in_charts_and_tables(
    browser: Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["compare"], 1280)
    for place in ("#chart-scores", "#chart-groups", ".ranking", ".sides", "#paired"):
        assert "</script><script" in browser.find_element(By.CSS_SELECTOR, place).text


def test_numbers_are_filtered_with_the_keyboard(
    browser: Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["compare"], 1280)
    form = browser.find_element(By.CSS_SELECTOR, "form[data-table=paired]")
    mark, check, metric = (
        Select(form.find_element(By.NAME, name))
        for name in ("verdict", "check", "metric")
    )
    words = form.find_element(By.NAME, "text")
    assert shown(browser) == 120
    metric.select_by_value("bw")
    assert shown(browser) == 60
    check.select_by_value("Check3")
    assert shown(browser) == 5
    words.send_keys("4mib" + Keys.ENTER)
    assert form.find_element(By.CLASS_NAME, "shown").text == "1 of 120 rows shown"
    words.send_keys(Keys.BACKSPACE * 4)
    metric.select_by_value("")
    check.select_by_value("")
    counts = []
    for value in ("better", "worse", "both", "alike"):
        mark.select_by_value(value)
        counts.append(shown(browser))
    assert sum(counts) == 120
    assert min(counts) > 0


@pytest.mark.parametrize("name", ["compare", "trend"])
def test_tables_open_with_the_keyboard(
    browser: Chrome, pages: dict[str, str], name: str
) -> None:
    show(browser, pages[name], 1280)
    details = browser.find_element(By.CSS_SELECTOR, "figure details")
    table = details.find_element(By.TAG_NAME, "table")
    assert not table.is_displayed()
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert table.is_displayed()


def test_trend_has_steps_gaps_changes_and_marks(
    browser: Chrome, pages: dict[str, str]
) -> None:
    show(browser, pages["trend"], 1280)
    chart = browser.find_element(By.CSS_SELECTOR, ".chart")
    for words in (
        *("promised, at least 60 MB/s", "promised, at least 70 MB/s"),
        *("today: promised, at least 75 MB/s", "no number"),
        *("median beyond a limit", "worst place beyond a limit"),
    ):
        assert words in chart.text
    lines = chart.find_elements(By.CSS_SELECTOR, "svg .mark-line path")
    assert len(lines) == 3  # the limit, and medians before and after the gap
    fills = [
        mark.get_attribute("fill")
        for mark in chart.find_elements(By.CSS_SELECTOR, "svg .mark-symbol path")
    ]
    # In the legend one each; two runs beyond at the worst place, one at the median.
    assert fills.count("var(--fail)") == 2 + 3


@pytest.mark.parametrize(
    ("name", "said"),
    [("compare", "C wins"), ("trend", "kernel was 6.1.0-25, is 6.1.0-28")],
)
def test_pages_read_without_scripts(
    browser: Chrome, pages: dict[str, str], name: str, said: str
) -> None:
    off = "Emulation.setScriptExecutionDisabled"
    browser.execute_cdp_cmd(off, {"value": True})
    try:
        browser.get(pages[name])
        text = browser.find_element(By.TAG_NAME, "body").text
        assert said in text
        assert "Charts need JavaScript" in text
    finally:
        browser.execute_cdp_cmd(off, {"value": False})
