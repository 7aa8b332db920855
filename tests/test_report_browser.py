"""The report in a real browser: drawn, filtered, narrow, dark, and silent."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browser import chromium, console_of, resize, script, show, visible
from samples import sample_criteria, sample_run
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait
from sweep_samples import SWEEP, names, sample_sweep

from seatrial.judge.judge import Judgement, judge
from seatrial.report import write_report

pytestmark = pytest.mark.browser

HOME = Path(__file__).resolve().parents[1]
FORMS = ("html",)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Judgement]:
    """A run with a slow node, repeated, and one hostile name in it."""
    folder = tmp_path_factory.mktemp("report")
    nodes = ("cn01", "cn02", "cn03", "</script><script>alert(1)</script>")
    run = sample_run(nodes=nodes, slow="cn03", skipped=True, scatter=0.02)
    judgement = judge(run, sample_criteria())
    paths = write_report(run, judgement, folder / "out", HOME, FORMS)
    return paths["report.html"].as_uri(), judgement


@pytest.fixture
def page(browser: Chrome, report: tuple[str, Judgement]) -> Iterator[Chrome]:
    """The report at desktop width, with all charts drawn."""
    show(browser, report[0], width=1280)
    yield browser
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def rows(browser: Chrome) -> list[str]:
    """Return the verdicts of the visible rows of findings."""
    return visible(browser, "#findings tr[data-verdict]", "dataset.verdict")


def test_verdict_and_rows(page: Chrome, report: tuple[str, Judgement]) -> None:
    judgement = report[1]
    assert page.find_element(By.CSS_SELECTOR, "#verdict .word").text == "FAIL"
    assert page.find_element(By.CSS_SELECTOR, ".act strong").text == "cn03"
    skipped = sum(each.verdict == "skipped" for each in judgement.findings)
    assert len(rows(page)) == len(judgement.findings) - skipped + 1 > 30
    assert rows(page)[0] == "fail"
    assert "Functional demonstration." in page.find_element(By.TAG_NAME, "body").text


def test_replay_is_as_plain_as_the_verdict_on_screen_and_paper(
    browser: Chrome, tmp_path: Path
) -> None:
    run = sample_run(replay=True)
    judgement = judge(run, sample_criteria())
    paths = write_report(run, judgement, tmp_path, HOME, FORMS)
    show(browser, paths["report.html"].as_uri(), width=1280)
    for media in ("screen", "print"):
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
        said = browser.find_element(By.CSS_SELECTOR, ".replay strong")
        verdict = browser.find_element(By.ID, "verdict")
        assert said.text == "Replay: no measurement."
        assert said.location["y"] < verdict.location["y"]
        for style in ("font-size", "font-weight"):
            mine, its = (each.value_of_css_property(style) for each in (said, verdict))
            assert mine == its
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_filter_by_verdict_and_text(
    page: Chrome, report: tuple[str, Judgement]
) -> None:
    verdicts = [finding.verdict for finding in report[1].findings]
    choice = Select(page.find_element(By.CSS_SELECTOR, "#findings [name=verdict]"))
    status = page.find_element(By.CSS_SELECTOR, "#findings .filter .shown")
    choice.select_by_value("fail")
    assert rows(page) == ["fail"] * verdicts.count("fail")
    assert status.text == f"{verdicts.count('fail')} of {len(verdicts)} rows shown"
    page.find_element(By.CSS_SELECTOR, "#findings [name=text]").send_keys(
        "CN03 bw" + Keys.ENTER
    )
    assert rows(page) == ["fail"]  # the node, which speaks for its pairs
    page.find_element(By.CSS_SELECTOR, "[data-show=skipped]").click()
    assert rows(page) == ["skipped"]
    choice.select_by_value("")
    assert len(rows(page)) == len(verdicts)


def test_every_chart_is_drawn(page: Chrome) -> None:
    charts = page.find_elements(By.CSS_SELECTOR, "#curves .chart")
    assert len(charts) == 4
    for chart in charts:
        lines = chart.find_elements(By.CSS_SELECTOR, "svg .mark-line path")
        points = chart.find_elements(By.CSS_SELECTOR, "svg .mark-symbol path")
        assert len(lines) >= 3
        assert len(points) >= 30
        assert "limit" not in chart.text
        assert "at most" in chart.text or "at least" in chart.text
        assert chart.size["width"] > 400


def test_tables_below_charts_open_with_the_keyboard(page: Chrome) -> None:
    details = page.find_element(By.CSS_SELECTOR, "#curves figure details")
    assert not details.find_element(By.TAG_NAME, "table").is_displayed()
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert details.find_element(By.TAG_NAME, "table").is_displayed()
    assert "1 KiB" in details.text


def test_nothing_is_requested_and_nothing_is_complained_about(page: Chrome) -> None:
    assert script(page, "performance.getEntriesByType('resource').length") == 0
    assert script(page, "window.violations") == []
    assert console_of(page) == []


def test_policy_forbids_what_a_hostile_name_could_try(page: Chrome) -> None:
    script(
        page,
        """document.body.append(
            Object.assign(document.createElement("script"), {text: "window.bad = 1"}),
            Object.assign(new Image(), {src: "http://127.0.0.1:9/x.png"})) || 0""",
    )
    WebDriverWait(page, 10).until(lambda driver: len(script(driver, "violations")) == 2)
    assert script(page, "violations") == [
        "script-src-elem inline",
        "img-src http://127.0.0.1:9/x.png",
    ]
    assert script(page, "window.bad") is None


def test_phone_scrolls_tables_and_not_the_page(
    browser: Chrome, report: tuple[str, Judgement]
) -> None:
    show(browser, report[0], width=390)
    assert_verdict_is_seen(browser)
    # A part of the 390 px may be the browser's own scroll bar.
    sizes = "[innerWidth, root.clientWidth, root.scrollWidth]"
    window, inner, needed = script(
        browser, sizes.replace("root", "document.documentElement")
    )
    assert (window, needed) == (390, inner)
    wide = browser.find_element(By.CSS_SELECTOR, "#findings .scroller")
    frame = "document.querySelector('#findings .scroller')"
    assert script(browser, f"{frame}.scrollWidth > {frame}.clientWidth")
    assert wide.get_attribute("tabindex") == "0"
    for picture in browser.find_elements(By.CSS_SELECTOR, ".chart svg"):
        assert 300 < picture.size["width"] <= 390


def test_charts_follow_the_width_and_the_dark_style(page: Chrome) -> None:
    line = "getComputedStyle(document.querySelector('.mark-line path')).stroke"
    light = script(page, line)
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    dark = script(page, line)
    assert light != dark
    assert light.startswith("rgb(") and dark.startswith("rgb(")
    width = script(page, "document.querySelector('.chart svg').clientWidth")
    resize(page, 390)
    WebDriverWait(page, 10).until(
        lambda driver: (
            script(driver, "document.querySelector('.chart svg').clientWidth") < width
        )
    )


def test_page_reads_as_plain_tables_without_scripts(
    browser: Chrome, report: tuple[str, Judgement]
) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(report[0])
        assert len(rows(browser)) == len(report[1].findings)
        assert not browser.find_element(By.CSS_SELECTOR, ".filter").is_displayed()
        text = browser.find_element(By.TAG_NAME, "body").text
        assert "Charts need JavaScript" in text
    finally:
        browser.execute_cdp_cmd(
            "Emulation.setScriptExecutionDisabled", {"value": False}
        )


HOSTILE = "z</script><script>window.bad = 1</script>"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep of 16 nodes: one slow, one dead, a pair that hung, a hostile name."""
    nodes = [*names(15), HOSTILE]
    run = sample_sweep(nodes, slow=["cn3"], dead=["cn9"], hung=[("cn1", "cn2")])
    folder = tmp_path_factory.mktemp("sweep")
    return write_report(run, judge(run, SWEEP), folder, HOME, FORMS)[
        "report.html"
    ].as_uri()


def each(place: WebElement, selector: str, value: str) -> list[Any]:
    """Return a value of the elements within another, all at once."""
    found = f"[...arguments[0].querySelectorAll({selector!r})]"
    return list(
        place.parent.execute_script(f"return {found}.map(e => e.{value})", place)
    )


def test_matrix_has_squares_crosses_and_rings(browser: Chrome, sweep: str) -> None:
    show(browser, sweep, width=1280)
    latency, bw = browser.find_elements(By.CSS_SELECTOR, "#pairs .matrix")
    for matrix in (latency, bw):
        fills = each(matrix, ".layer_0_marks path", "getAttribute('fill')")
        assert len(fills) == 15 * 14 - 2
        assert "var(--heat-0)" in fills and len({*fills}) > 1
        symbols = matrix.find_elements(By.CSS_SELECTOR, ".mark-symbol.role-mark path")
        assert len(symbols) == 2 * 15 + 2 + 2 * 14
        labels = each(matrix, ".role-axis-label text", "textContent")
        fills = each(matrix, ".role-axis-label text", "getAttribute('fill')")
        marked = {
            label
            for label, fill in zip(labels, fills, strict=True)
            if "fail" in (fill or "")
        }
        assert marked == {"✕ cn3", "✕ cn9"}
        assert HOSTILE[:10] in matrix.text
    assert script(browser, "window.bad") is None
    assert script(browser, "window.violations") == []
    assert console_of(browser) == []


def test_value_of_a_pair_is_seen_on_hover_and_with_the_keyboard(
    browser: Chrome, sweep: str
) -> None:
    show(browser, sweep, width=1280)
    (matrix, _) = browser.find_elements(By.CSS_SELECTOR, "#pairs .matrix")
    said = browser.find_element(By.CSS_SELECTOR, "#pairs .at")
    matrix.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert said.text == "cn1 - cn2: not measured"
    matrix.send_keys(Keys.ARROW_RIGHT)
    assert said.text.startswith("cn1 - cn3: 7.")
    assert " us, up to 5 times the median; 11." in said.text
    WebDriverWait(browser, 10).until(
        lambda driver: driver.find_elements(By.CSS_SELECTOR, ".layer_2_marks path")
    )
    ring = matrix.find_elements(By.CSS_SELECTOR, ".mark-symbol.role-mark path")[-1]
    ActionChains(browser).move_to_element(ring).perform()
    tooltip = WebDriverWait(browser, 10).until(
        lambda driver: driver.find_element(
            By.CSS_SELECTOR, "#vg-tooltip-element.visible"
        )
    )
    assert "times the median" in tooltip.text
    assert "while others measured" in tooltip.text


def test_phone_scrolls_a_wide_matrix_and_not_the_page(
    browser: Chrome, sweep: str
) -> None:
    show(browser, sweep, width=390)
    root = "document.documentElement"
    assert script(browser, f"{root}.scrollWidth <= {root}.clientWidth")
    pairs = browser.find_element(By.ID, "pairs")
    widths = "getBoundingClientRect().width"
    assert min(each(pairs, ".matrix .layer_0_marks path", widths)) >= 8
    details = browser.find_elements(By.CSS_SELECTOR, "#pairs details")
    details[1].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert "not measured" in details[1].text
    assert len(details[1].find_elements(By.CSS_SELECTOR, "tbody tr")) == 16


def test_matrix_keeps_its_tables_without_scripts(browser: Chrome, sweep: str) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(sweep)
        pairs = browser.find_element(By.ID, "pairs")
        assert "Charts need JavaScript" in pairs.text
        assert "among them every pair of cn9" in pairs.text
    finally:
        browser.execute_cdp_cmd(
            "Emulation.setScriptExecutionDisabled", {"value": False}
        )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Judgement]:
    """A thousand nodes, nothing decided, and each finding with a reason of its own."""
    run = sample_run(nodes=[f"n{number:04}" for number in range(1000)], repeats=1)
    judgement = judge(run, sample_criteria())
    findings = [
        replace(each, reason=f"{each.reason} [{number}]")
        for number, each in enumerate(judgement.findings)
    ]
    judgement = replace(judgement, findings=tuple(findings))
    folder = tmp_path_factory.mktemp("large")
    return write_report(run, judgement, folder, HOME, FORMS)[
        "report.html"
    ].as_uri(), judgement


def test_filter_finds_places_of_a_folded_row(browser: Chrome, tmp_path: Path) -> None:
    run = sample_run(nodes=[f"n{number:03}" for number in range(30)], repeats=1)
    paths = write_report(run, judge(run, sample_criteria()), tmp_path, HOME, FORMS)
    show(browser, paths["report.html"].as_uri(), 1280)
    assert "30 findings" in browser.find_element(By.ID, "findings").text
    browser.find_element(By.CSS_SELECTOR, "#findings [name=text]").send_keys("n029")
    assert rows(browser) == ["undecided"] * 4


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_filters_find_every_finding_of_a_thousand_nodes(
    browser: Chrome, large: tuple[str, Judgement], width: int
) -> None:
    show(browser, large[0], width)
    root = "document.documentElement"
    assert script(browser, f"{root}.scrollWidth <= {root}.clientWidth")
    total = len(large[1].findings)
    assert total > 2000
    status = browser.find_element(By.CSS_SELECTOR, "#findings .shown")
    assert status.text == f"500 of {total} rows shown"
    text = browser.find_element(By.CSS_SELECTOR, "#findings [name=text]")
    for node in ("n0003", "n0517", "n0998"):
        mine = [f for f in large[1].findings if node in f.place + f.reason]
        text.clear()
        text.send_keys(node)
        seen = visible(browser, "#findings-table tbody tr", "innerText")
        assert len(seen) == len(mine) > 2
        assert all(node in row for row in seen)
    check = Select(browser.find_element(By.CSS_SELECTOR, "#findings [name=check]"))
    text.clear()
    check.select_by_value("ImbRing")
    assert " rows found, the first " in status.text
    check.select_by_value("LammpsRhodo")
    assert rows(browser) == ["undecided"]


def test_not_shown_has_a_symbol_a_colour_and_a_filter_of_its_own(
    browser: Chrome, tmp_path: Path
) -> None:
    """Also in rows that are no HTML at first."""
    run = sample_run()
    judgement = judge(run, sample_criteria())
    found = next(f for f in judgement.findings if f.metric == "latency_8B")
    many = [
        replace(
            found, place=f"n{n:03}", verdict="not shown", bears="buyer", reason=f"{n}"
        )
        for n in range(600)
    ]
    judgement = replace(judgement, verdict="not shown", findings=(*many, found))
    paths = write_report(run, judgement, tmp_path, HOME, FORMS)
    show(browser, paths["report.html"].as_uri(), 1280)
    verdict = browser.find_element(By.ID, "verdict")
    assert verdict.text == "! NOT SHOWN"
    browser.find_element(By.CSS_SELECTOR, "[data-show='not shown']").click()
    status = browser.find_element(By.CSS_SELECTOR, "#findings .filter .shown")
    assert status.text == "600 of 601 rows shown"
    browser.find_element(By.CSS_SELECTOR, "#findings [name=text]").send_keys("n599")
    assert rows(browser) == ["not shown"]
    row = "#findings-table tr[data-verdict]:not([hidden])"
    (badge,) = browser.find_elements(By.CSS_SELECTOR, f"{row} .badge")
    assert badge.text == "!not shown"
    colours = {"light": "rgba(106, 58, 168, 1)", "dark": "rgba(200, 168, 247, 1)"}
    for mode, colour in colours.items():
        media = {"features": [{"name": "prefers-color-scheme", "value": mode}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for element in (verdict, badge):
            assert element.value_of_css_property("color") == colour, mode
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_table_of_nodes_is_filtered(
    browser: Chrome, large: tuple[str, Judgement]
) -> None:
    show(browser, large[0], 1280)
    details = browser.find_element(By.CSS_SELECTOR, "#nodes details.long")
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    node = details.find_element(By.CSS_SELECTOR, "tbody tr:nth-child(40) th").text
    details.find_element(By.NAME, "text").send_keys(node)
    listed = "#nodes details.long tbody tr"
    assert [text.split()[0] for text in visible(browser, listed, "innerText")] == [node]
    Select(details.find_element(By.NAME, "verdict")).select_by_value("pass")
    assert not visible(browser, listed, "innerText")


@pytest.mark.parametrize("width", [1280, 800])
def test_no_cell_is_cut_off_at_the_right_edge(
    browser: Chrome, report: tuple[str, Judgement], width: int
) -> None:
    show(browser, report[0], width)
    for table in ("#criteria", "#findings", ".overview"):
        scroller = f"document.querySelector('{table} .scroller')"
        fits = f"{scroller}.scrollWidth <= {scroller}.clientWidth"
        assert script(browser, fits), table
        beyond = script(
            browser,
            f"[...{scroller}.querySelectorAll('td, th')].filter(cell => "
            f"cell.scrollWidth > cell.clientWidth + 1 || "
            f"cell.getBoundingClientRect().right > {width})"
            f".map(cell => cell.textContent)",
        )
        assert beyond == [], table


def assert_verdict_is_seen(browser: Chrome) -> None:
    """Require that the verdict is on the screen without scrolling."""
    for place in ("#verdict", ".meaning", ".counts"):
        found = f"document.querySelector('{place}').getBoundingClientRect()"
        assert 0 < script(browser, f"{found}.bottom") <= script(browser, "innerHeight")


def test_page_one_fits_on_one_screen(page: Chrome) -> None:
    assert_verdict_is_seen(page)
    seal = "document.querySelector('header .seal').getBoundingClientRect()"
    assert script(page, f"{seal}.bottom") <= script(page, "innerHeight")
    text = page.find_element(By.TAG_NAME, "header").text
    for words in ("bw_4MiB", "at least 60 MB/s", "\N{MINUS SIGN}", "Not tested:"):
        assert words in text
    names = page.find_element(By.CSS_SELECTOR, ".small-map svg").text
    assert "cn01" in names and "cn03" in names


def test_page_one_is_one_sheet_of_paper(
    browser: Chrome, report: tuple[str, Judgement]
) -> None:
    """A4 and Letter with margins of 14 mm are at least 688 px wide and 950 px high."""
    show(browser, report[0], width=688)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert script(browser, "document.querySelector('header').offsetHeight") <= 950
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_charts_and_tables_are_reached_with_the_keyboard(page: Chrome) -> None:
    for chart in page.find_elements(By.CSS_SELECTOR, ".chart"):
        assert chart.get_attribute("tabindex") == "0"
        assert chart.get_attribute("aria-label")
        script(page, f"document.getElementById('{chart.get_attribute('id')}').focus()")
        assert page.switch_to.active_element == chart
        figure = chart.find_element(By.XPATH, "ancestor::figure")
        table = figure.find_element(By.CSS_SELECTOR, "details table")
        figure.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        assert table.is_displayed()


def test_page_stays_usable_with_hostile_names(browser: Chrome, tmp_path: Path) -> None:
    long = "h" * 2_000
    alert = "<script>alert(1)</script>"
    system = f'{alert} "x"{long}'
    run = sample_run(nodes=("cn01", alert, long), slow=long, system=system)
    run.manifest["campaign"] = f"{alert} 'y' &amp; {long}"
    unit = "MB\"/s'<b>"
    measurements = run.measurements.with_columns(unit=pl.lit(unit))
    run = replace(run, path=tmp_path / "run", measurements=measurements)
    judgement = judge(run, sample_criteria())
    paths = write_report(run, judgement, tmp_path, HOME, FORMS)
    root = "document.documentElement"
    for width in (1280, 390):
        show(browser, paths["report.html"].as_uri(), width)
        assert script(browser, f"{root}.scrollWidth <= {root}.clientWidth")
        assert script(browser, "document.querySelector('header').offsetHeight") < 5000
        assert browser.find_element(By.TAG_NAME, "h1").text.startswith(alert)
        whole = browser.find_element(By.CSS_SELECTOR, "h1 [title]")
        assert whole.get_attribute("title") == system
        assert unit in browser.find_element(By.ID, "criteria").text
        assert script(browser, "window.violations") == []
