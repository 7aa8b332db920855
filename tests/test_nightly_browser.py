"""The pages of the nights in a real browser: narrow, silent, with all charts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, console_of, script, show
from nights_state import TODAY, alarm, modelled, night
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from seatrial.nightly.pages import write_pages

pytestmark = pytest.mark.browser

HOME = Path(__file__).resolve().parents[1]
HOSTILE = "</script><script>window.bad = 1</script>"
CHARTS = {"index": 0, str(night(30)): 4}


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of nights; two alarms of one of them have charts."""
    folder = tmp_path_factory.mktemp("nights")
    lab = modelled(folder / "lab")
    more = alarm("common", 30, ["cn01"], shared=HOSTILE, faults=("x" * 500,))
    lab.alarms = (*lab.alarms, more)
    write_pages(lab.state(), HOME, folder / "out", TODAY)
    return folder / "out"


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_is_drawn_and_does_not_scroll_sideways(
    browser: Chrome, pages: Path, name: str, width: int
) -> None:
    show(browser, (pages / f"{name}.html").as_uri(), width)
    charts = browser.find_elements(By.CSS_SELECTOR, "figure.drawn svg")
    assert len(charts) == CHARTS[name]
    for chart in charts:
        assert 450 < chart.size["width"] < 700  # a phone scrolls it in its frame
    root = "document.documentElement"
    assert script(browser, f"{root}.scrollWidth <= {root}.clientWidth")
    assert script(browser, "performance.getEntriesByType('resource').length") == 0
    assert script(browser, "window.violations") == []
    assert script(browser, "window.bad") is None
    assert console_of(browser) == []
