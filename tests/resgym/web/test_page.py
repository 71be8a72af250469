"""The page in a browser. Needs playwright and a Chromium that is installed beside it."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
SIZES = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(params=sorted(SIZES))
def page(browser, served, request):
    """A page of one size; whatever it writes to the console is an error."""
    opened = browser.new_page(viewport=SIZES[request.param], reduced_motion="reduce")
    said = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(f"{served.address}#start=E8&seat=host&opponent=greedy_points")
    opened.wait_for_selector("html[data-ready]")
    yield opened
    opened.close()
    # A refusal is a line of the console too.
    assert [text for text in said if not text.startswith("Failed to load resource")] == []


def test_a_game_by_keys(page):
    page.keyboard.press("4")
    page.locator("#history .move").wait_for()
    assert "host {x, y, z}" in page.inner_text("#history .move")
    assert "moves=012." in page.url
    page.keyboard.press("h")
    page.locator("#advice", has_text="is best").wait_for()
    page.keyboard.press("u")
    page.locator("#undo:disabled").wait_for()
    page.go_back()
    page.locator("#history .move").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_link_is_the_game(page, served):
    page.select_option("#seat", "agent")
    page.select_option("#opponent", "zeillinger")
    page.fill("#start", "x^13+x^6*y^4+y^9")
    page.click("#setup button.primary")
    page.locator("#status", has_text="The host named {x, y}").wait_for()
    page.click("#choices .choice >> nth=1")
    page.locator("#history .move").wait_for()
    shown = page.inner_text("#history")
    other = page.context.browser.new_page()
    other.goto(page.url)
    other.locator("#history .move").wait_for()
    assert other.inner_text("#history") == shown
    other.close()


def test_what_is_wrong_is_told_and_the_game_stays(page):
    page.fill("#start", "x^2+<b>")
    page.keyboard.press("Enter")
    page.locator("#problem").wait_for()
    assert "<b>" in page.inner_text("#problem")
    assert "x²" in page.inner_text("#history")
    page.goto(page.url.split("#")[0] + "#start=" + "x" * 100_000)
    page.locator("#problem", has_text="at most 8000 characters").wait_for()


def test_the_tree_unfolds_and_leads_to_a_chart(page):
    page.keyboard.press("t")
    page.locator("#tree details[open]").first.wait_for()
    page.locator("#tree .leaf").first.click()
    assert "Chart" in page.inner_text("#tree-chart")
    with page.expect_download() as saved:
        page.click("#tree-json")
    assert json.loads(saved.value.path().read_text())["complete"]
    page.click("#tree-chart button")
    page.locator("#status", has_text="the game is over").wait_for()


def test_the_picture_turns_and_is_saved(page):
    before = page.inner_html("#figure svg")
    page.focus("#figure svg")
    page.keyboard.press("ArrowLeft")
    assert page.inner_html("#figure svg") != before
    with page.expect_download() as saved:
        page.click("#save-picture")
    assert ET.fromstring(saved.value.path().read_text(encoding="utf-8")).tag.endswith("svg")
    with page.expect_download() as saved:
        page.click("#save-game")
    assert json.loads(saved.value.path().read_text())["start"] == "E8"


def test_more_axes_are_marked(page):
    page.fill("#start", "x_1^2+x_2^3+x_3^4+x_4^5+x_5^6")
    page.keyboard.press("Enter")
    page.locator("#name").wait_for()
    page.locator("#figure").click()
    for key in "135":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.locator("#history .move", has_text="host {x₁, x₃, x₅}").wait_for()
