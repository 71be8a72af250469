"""The page in a browser. Needs playwright and a Chromium that is installed beside it."""

from __future__ import annotations

import json
import shutil

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
