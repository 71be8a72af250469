"""Every shipped configuration is whole, and every key and command is on the page."""

import re
import runpy
from pathlib import Path

import pytest
import yaml

from sb3_ext.runs.driver import parser_of
from sb3_ext.two_player import read_config, shipped_configs
from sb3_ext.two_player.config import smoke_version
from sb3_ext.two_player.job import TwoPlayer

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_configurations_are_valid_and_come_back_equal(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("host.zip").touch()  # a model that somebody saved; no key or name is its path
    config = read_config(name)
    assert config.name == name
    for each in (config, smoke_version(config)):
        assert read_config(yaml.safe_load(yaml.safe_dump(each.to_dict()))) == each


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
