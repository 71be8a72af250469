"""The pages show every key, with its description in the code, and their commands exist."""

import re
import runpy
from pathlib import Path

import pytest

from sb3_ext.runs.driver import parser_of
from sb3_ext.two_player.job import TwoPlayer
from sb3_ext.two_player.league import League

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("page", "command", "job"),
    [("two_player.md", ".two_player", TwoPlayer), ("population.md", " population", League)],
)
def test_a_page_shows_every_key_and_commands_that_exist(page, command, job):
    text = (DOCS / page).read_text()
    keys = dict(runpy.run_path(str(DOCS / "keys.py"))["key_rows"](job.Config))
    assert len(keys) > 10
    assert [key for key, meaning in keys.items() if not meaning] == []
    assert f"```{{keys}} {job.__module__}:{job.__name__}\n" in text
    commands = re.findall(rf"^python -m sb3_ext{re.escape(command)} (.+)$", text, re.MULTILINE)
    assert len(commands) >= 3
    for each in commands:
        parser_of(job).parse_args(each.split())
