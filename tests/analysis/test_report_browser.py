"""The report in a real browser: Debian's Chromium, headless, driven through chromedriver."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lcat_analysis.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="needs chromium and chromedriver: apt-get install chromium chromium-driver",
)
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1280,900",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(report_file: Path) -> str:
    return report_file.as_uri()


@pytest.fixture
def page(browser, address):
    browser.get(address)
    return browser


def first_column(page, column: int) -> list[str]:
    script = """
        const rows = [...document.querySelector("#table table").tBodies[0].rows];
        return rows.map((row) => row.cells[arguments[0]].textContent);
    """
    return page.execute_script(script, column)


def test_the_page_opens_without_an_error_or_a_request(browser, address):
    browser.get("about:blank")  # leaves the browser's own start page
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith(("data:", "chrome:"))} == {address}


def test_a_click_sorts_a_column_up_then_down_then_back(page):
    original = first_column(page, 1)
    button = page.find_element("css selector", "#table thead th:nth-child(2) button")
    heading = page.find_element("css selector", "#table thead th:nth-child(2)")
    numbers = sorted(float(text.split()[0]) for text in original)
    button.click()
    assert [float(text.split()[0]) for text in first_column(page, 1)] == numbers
    assert heading.get_attribute("aria-sort") == "ascending"
    button.click()
    assert [float(text.split()[0]) for text in first_column(page, 1)] == numbers[::-1]
    button.click()
    assert first_column(page, 1) == original


def test_names_are_sorted_as_words(page):
    page.find_element("css selector", "#table thead th:nth-child(1) button").click()
    names = first_column(page, 0)
    assert names == sorted(names, key=str.lower)


def test_the_page_fits_a_phone_without_scrolling_sideways(page):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_figures_contrast_with_the_page_in_both_schemes(page, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    background = luminance(page, "body", "background-color")
    assert (background > 0.8) == (scheme == "light")
    for selector, prop in (
        ("h1", "color"),
        (".notes", "color"),
        ("figure svg text", "fill"),
        ("td.better", "color"),
    ):
        light, dark = sorted((background, luminance(page, selector, prop)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, selector


def luminance(page, selector: str, prop: str) -> float:
    """Relative luminance (WCAG 2) of a computed colour."""
    script = "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])"
    text = page.execute_script(script, selector, prop)
    channels = [int(part) / 255 for part in text[text.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def test_without_scripts_the_page_shows_the_same_numbers(browser, address, page):
    with_scripts = first_column(page, 1)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(address)
        cells = browser.find_elements("css selector", "#table tbody tr td:nth-child(2)")
        assert [cell.text for cell in cells] == with_scripts
        assert browser.find_elements("css selector", "th button") == []
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_hostile_name_runs_nothing(browser, tmp_path):
    from fake_results import FakeSweep, write_sweep

    from lcat_analysis.load import load

    name = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    sweep = FakeSweep(models=("gat", "cat"), datasets=(name,), seeds=2, axes={}, over=(), histories=False)
    target = write_report(load(write_sweep(tmp_path, sweep)), Path(tmp_path / "r.html"))
    browser.get(target.as_uri())
    assert browser.title == "real"
    assert browser.get_log("browser") == []
