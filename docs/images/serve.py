"""Draws docs/images/serve.gif, a game on the page of `resgym serve`.

    resgym serve &
    python docs/images/serve.py http://127.0.0.1:8000/ docs/images/serve.gif

Needs playwright, a Chromium and Pillow.
"""

from __future__ import annotations

import io
import shutil
import sys

from PIL import Image
from playwright.sync_api import Page, sync_playwright

SIZE = {"width": 1040, "height": 740}
SCALE, COLOURS = 0.75, 80
FRAME, LAST = 1_600, 5_000
"""Milliseconds of a frame, and of the last one."""


def frame(page: Page) -> Image.Image:
    """What the page shows, once the solver has judged the last move."""
    page.locator("#par", has_text="Par").wait_for()
    shown = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return shown.resize([int(side * SCALE) for side in shown.size], Image.Resampling.LANCZOS)


def main(address: str, target: str) -> None:
    """Play E6 by the hints of a served page, and write the frames as a GIF."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{address}#start=E6&seat=host&opponent=optimal")
        page.wait_for_selector("html[data-ready]")
        page.locator("#new-game").evaluate("box => (box.style.display = 'none')")
        frames = [frame(page)]
        while "over" not in page.inner_text("#status"):
            page.keyboard.press("h")
            page.locator("#advice", has_text="is best").wait_for()
            best = page.inner_text("#advice").partition(" is best")[0]
            moves = page.locator("#history .move").count()
            page.locator("#choices .choice", has_text=best).first.click()
            page.locator(f"#history .move >> nth={moves}").wait_for()
            frames.append(frame(page))
        browser.close()
    # One palette for all frames, so that no colour flickers.
    width, height = frames[0].size
    together = Image.new("RGB", (width, height * len(frames)))
    for number, each in enumerate(frames):
        together.paste(each, (0, height * number))
    palette = together.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    frames = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames]
    times = [FRAME] * (len(frames) - 1) + [LAST]
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=times, loop=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
