"""A headless Chromium for tests of pages, and what they ask of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.support.ui import WebDriverWait

_CHROMIUM = Path("/usr/bin/chromium")
_DRIVER = Path("/usr/bin/chromedriver")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
    (event) => violations.push(event.violatedDirective + " " + event.blockedURI));
"""


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Start a browser that remembers what its policy forbade."""
    for program in (_CHROMIUM, _DRIVER):
        if not program.exists():
            pytest.fail(
                f"{program} is missing; the browser tests need Debian's chromium and "
                "chromium-driver, which `make deps-test` installs"
            )
    options = ChromeOptions()
    options.binary_location = str(_CHROMIUM)
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(str(_DRIVER)))
    try:
        watch = {"source": _WATCH}
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", watch)
        yield driver
    finally:
        driver.quit()


def console_of(browser: Chrome) -> list[Any]:
    """Return what was said on the console since the last call."""
    # Selenium has no types there.
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]


def resize(browser: Chrome, width: int) -> None:
    """Set the width of the window: desktop or phone."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def show(browser: Chrome, address: str, width: int) -> None:
    """Open a page and wait until all its charts are drawn."""
    resize(browser, width)
    console_of(browser)  # what was said before is not of this page
    browser.get(address)
    WebDriverWait(browser, 60, poll_frequency=0.1).until(
        lambda driver: script(driver, "document.documentElement.dataset.charts")
    )


def script(browser: Chrome, expression: str) -> Any:
    """Return the value of an expression on the page."""
    return browser.execute_script(f"return {expression}")


def visible(browser: Chrome, selector: str, value: str) -> list[str]:
    """Return a value of the visible elements: Selenium would ask for each by itself."""
    found = f"[...document.querySelectorAll({selector!r})]"
    return list(
        script(browser, f"{found}.filter(e => e.checkVisibility()).map(e => e.{value})")
    )
