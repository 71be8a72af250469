"""The page in a browser. Needs playwright and a Chromium that is installed beside it."""

import json
import shutil

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
LOOKS = {
    "wide": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
}
FOCUSED = """() => {
  const at = document.activeElement, outline = getComputedStyle(at);
  const visible = outline.outlineStyle !== "none" && parseFloat(outline.outlineWidth) > 0;
  return [at.matches("SELECTOR"), visible];
}"""


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(params=sorted(LOOKS))
def page(browser, served, request):
    """The start page in one look; a line in its console or a word off the screen is an error."""
    opened = browser.new_page(**LOOKS[request.param], reduced_motion="reduce")
    said = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda asked: asked.url.startswith(served.address) or said.append(asked))
    opened.goto(served.address)
    opened.wait_for_selector("html[data-ready]")
    yield opened
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.close()
    # A refusal is a line of the console too.
    assert [text for text in said if not str(text).startswith("Failed to load resource")] == []


def take(page, selector):
    """Press Enter on an element that the Tab key reaches; its focus must be visible."""
    for _ in range(80):
        page.keyboard.press("Tab")
        reached, visible = page.evaluate(FOCUSED.replace("SELECTOR", selector))
        if reached:
            assert visible, selector
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"the Tab key does not reach {selector}")


def open_game(page):
    take(page, "#home .door[href*=play]")
    page.locator("#par", has_text="Par 6: 0 moves so far, 6 more").wait_for()


def finish_step(page):
    """Take the set that the hint of the last lesson names."""
    page.keyboard.press("h")
    page.locator("#learn-note", has_text="is best").wait_for()
    best = page.inner_text("#learn-note").partition(" is best")[0]
    page.locator("#learn-choices .choice", has_text=best).first.click()


def play_by_hints(page):
    """Take the hinted set until the game is over; return the number of moves."""
    for number in range(20):
        page.keyboard.press("h")
        page.locator("#advice", has_text="is best").wait_for()
        best = page.inner_text("#advice").partition(" is best")[0]
        page.locator("#choices .choice", has_text=best).first.click()
        page.locator(f"#history .move >> nth={number}").wait_for()
        if "over" in page.inner_text("#status"):
            return number + 1
    raise AssertionError("the game does not end")


def test_six_steps_by_keyboard_alone(page):
    take(page, "#home .door[href*=learn]")
    for number, taken in enumerate(["#step-next", None, None, "#step-next", "#step-next"]):
        page.locator("#step-title", has_text=f"{number + 1}. ").wait_for()
        if number == 3:
            page.locator("#lesson", has_text="(0, 3, 0): 0 + 3 = 3, so it").wait_for()
        take(page, taken) if taken else page.keyboard.press("1")
    # The game is the one of the steps before: {x, y} and x, after which two moves are left.
    page.locator("#lesson", has_text="In your game 2 points are left").wait_for()
    for answer in ("1 more move", "It took 3 moves, par is 6"):
        finish_step(page)
        page.locator("#lesson", has_text=answer).wait_for()
    page.keyboard.press("u")
    page.locator("#lesson", has_text="1 more move").wait_for()
    finish_step(page)
    page.locator("#lesson", has_text="The host's choices cost 1 move").wait_for()
    take(page, "#step-next")
    page.locator("#par", has_text="Par 6").wait_for()


def test_a_perfect_game_is_praised_and_a_mistake_is_counted(page):
    open_game(page)
    page.keyboard.press("1")
    page.locator("#verdict", has_text="it cost 1 move").wait_for()
    page.keyboard.press("u")
    page.locator("#undo:disabled").wait_for()
    assert play_by_hints(page) == 6
    page.locator("#verdict", has_text="Perfect game! 6 moves").wait_for()
    # The focus is where the next choice is.
    assert page.evaluate("document.activeElement.closest('#choices') !== null")


def test_moves_given_away_are_told_as_is_a_game_without_progress(page, served):
    page.goto(f"{served.address}#start=E6&seat=both&moves=012.0")
    page.locator("#verdict:not(.good)", has_text="agent's 5").wait_for()
    moves = ",".join(["02.0"] * 4)
    page.goto(f"{served.address}#start=E6&seat=host&opponent=choose_first&moves={moves}")
    page.locator("#verdict", has_text="No progress for 3 moves").wait_for()
    page.keyboard.press("1")
    page.locator("#verdict").wait_for()


def test_solved_puzzles_are_remembered(page):
    take(page, "#home .door[href*=puzzles]")
    take(page, "#puzzle-list a")
    page.locator("#play-title", has_text="Puzzle 1 of 30").wait_for()
    play_by_hints(page)
    page.locator("#choices", has_text="Next puzzle").wait_for()
    page.locator("#verdict.good").wait_for()
    page.reload()
    page.locator("header nav a", has_text="Puzzles").click()
    page.locator("#puzzle-list li >> nth=0", has_text="solved").wait_for()
    assert page.inner_text("#puzzle-count") == "1 of 30 solved."


def test_the_start_page_shows_a_move_and_leads_through_the_tree(page):
    page.locator("#one-move figure svg >> nth=1").wait_for()
    assert "The agent chooses z: x2z2 + y3z3 + z4" in page.inner_text("#one-move").replace("\n", "")
    take(page, "#home .door[href*=explore]")
    page.locator("#node-title", has_text="Chart 1 of").wait_for()
    page.locator("#invariants", has_text="Milnor number").wait_for()
    page.locator("#children .choice").first.wait_for()
    for depth in range(1, 20):
        page.keyboard.press("1")
        page.locator(f"#path a >> nth={depth}").wait_for()
        if not page.locator("#children .choice").count():
            break
    assert "resolved" in page.inner_text("#node-title")
    page.keyboard.press("u")
    page.locator("#children .choice").first.wait_for()
    with page.expect_download() as saved:
        page.click("#tree-json")
    assert json.loads(saved.value.path().read_text())["complete"]
    take(page, "#play-here")
    page.locator("#status", has_text="Choose two or more axes").wait_for()


def test_the_link_is_the_game(page):
    open_game(page)
    page.keyboard.press("/")
    page.select_option("#seat", "agent")
    page.select_option("#opponent", "zeillinger")
    page.keyboard.press("Escape")
    page.fill("#start", "x^13+x^6*y^4+y^9")
    page.keyboard.press("Enter")
    page.locator("#status", has_text="The host chose {x, y}").wait_for()
    page.click("#choices .choice >> nth=1")
    page.locator("#history .badge").wait_for()
    shown = page.inner_text("#history")
    other = page.context.browser.new_page()
    other.goto(page.url)
    other.locator("#history .badge").wait_for()
    assert other.inner_text("#history") == shown
    other.close()
    page.go_back()
    page.wait_for_url(lambda url: "moves" not in url)


def test_a_refusal_is_shown(page):
    open_game(page)
    page.keyboard.press("/")
    page.fill("#start", "x^2+")
    page.keyboard.press("Enter")
    page.locator("#problem", has_text="ends too early").wait_for()
    # The text is still there to be mended.
    assert page.input_value("#start") == "x^2+"


def test_after_a_lost_connection_the_same_set_can_be_chosen_again(page):
    open_game(page)
    page.route("**/api/game?*", lambda route: route.abort())
    page.keyboard.press("4")
    page.locator("#problem", has_text="the server does not answer").wait_for()
    page.unroute("**/api/game?*")
    page.keyboard.press("4")
    page.locator("#history .move").wait_for()
    assert page.locator("#problem").is_hidden()
    # The same for links.
    page.click("header nav a[href*=explore]")
    page.locator("#children .choice").first.wait_for()
    page.route("**/api/game?*", lambda route: route.abort())
    page.keyboard.press("2")
    page.locator("#problem", has_text="the server does not answer").wait_for()
    page.unroute("**/api/game?*")
    page.click("#path a >> nth=1")
    page.locator("#problem").wait_for(state="hidden")


def test_waiting_shows_after_a_while_and_takes_no_second_choice(page):
    open_game(page)
    held = []
    page.route("**/api/game?*", lambda route: held.append(route))
    page.keyboard.press("4")
    page.locator("#play[aria-busy=true]").wait_for()
    assert page.locator("#busy").is_visible()
    page.keyboard.press("1")
    held[0].continue_()
    page.locator("#history .move").wait_for()
    assert len(held) == 1
    assert page.locator("#busy").is_hidden()
    assert "{x, y, z}" in page.inner_text("#history .move")


@pytest.mark.parametrize("key", ["1", "Enter"])
def test_a_key_that_is_held_is_one_move(page, key):
    open_game(page)
    page.focus("#choices .choice")
    for _ in range(4):
        page.keyboard.down(key)  # all but the first are repeats
        page.wait_for_timeout(300)
    page.keyboard.up(key)
    page.locator("#par", has_text="1 move so far").wait_for()
    assert page.locator("#history .move").count() == 1


def test_keys_in_a_field_are_text(page):
    open_game(page)
    page.keyboard.press("/")
    page.keyboard.type("1uht?/")
    assert page.input_value("#start") == "1uht?/"
    page.focus("#seed")
    page.keyboard.type("3")
    page.focus("#seat")
    page.keyboard.press("1")
    assert page.locator("#history .move").count() == 0
    assert page.locator("#keys").is_hidden()


def test_the_focus_is_never_lost(page):
    def kept(selector):
        page.wait_for_function("s => document.activeElement.matches(s)", arg=selector)

    open_game(page)
    page.keyboard.press("4")
    page.locator("#par", has_text="1 move so far").wait_for()
    take(page, "#undo")  # is disabled at the start
    kept("#choices .choice")
    page.keyboard.press("4")
    page.locator("#par", has_text="1 move so far").wait_for()
    take(page, "#history .plain")  # the list is made anew, twice
    page.locator("#par", has_text="0 moves so far").wait_for()
    kept("#history .plain")
    page.click("header nav a[href*=explore]")
    page.locator("#children .choice").first.wait_for()
    page.keyboard.press("3")
    page.locator("#parent:enabled").wait_for()
    take(page, "#parent")  # is disabled at the root
    kept("#children .choice")
    page.click("header nav a[href*=learn]")
    page.locator("#step-title", has_text="1.").wait_for()
    take(page, "#step-next")  # is hidden in the second step
    kept("#learn-choices .choice")


def test_an_axis_has_the_same_number_everywhere(page, served):
    page.goto(f"{served.address}#start=E6&seat=both&named=12")
    page.locator("#status", has_text="The host chose {y, z}").wait_for()
    numbers = page.locator("#choices .choice").all_inner_texts()
    assert [text.split() for text in numbers] == [["2", "y"], ["3", "z"]]
    page.keyboard.press("1")
    page.keyboard.press("3")
    page.locator("#history .move", has_text="agent z").wait_for()
    page.goto(f"{served.address}#page=explore&start=E6&moves=12.2")
    page.locator("#tree-totals", has_text="After {y, z} → z: ").wait_for()
    for choice in page.locator("#children .choice").all_inner_texts():
        number, name, *_ = choice.replace(":", " ").split()
        assert "xyz".index(name) + 1 == int(number)
