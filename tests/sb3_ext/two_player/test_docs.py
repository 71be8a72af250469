"""The page shows every key, with its description in the code, and its commands exist."""

import re
import runpy
from pathlib import Path

from sb3_ext.runs.driver import parser_of
from sb3_ext.two_player.job import TwoPlayer

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_shows_every_key_and_commands_that_exist():
    text = (DOCS / "two_player.md").read_text()
    keys = dict(runpy.run_path(str(DOCS / "keys.py"))["key_rows"](TwoPlayer.Config))
    assert len(keys) > 10
    assert [key for key, meaning in keys.items() if not meaning] == []
    assert "```{keys} sb3_ext.two_player.job:TwoPlayer\n" in text
    commands = re.findall(r"^python -m sb3_ext\.two_player (.+)$", text, re.MULTILINE)
    assert len(commands) >= 3
    for each in commands:
        parser_of(TwoPlayer).parse_args(each.split())
