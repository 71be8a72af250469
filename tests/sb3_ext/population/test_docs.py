"""The page lists every key, with the words of the code, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from sb3_ext.population.cli import _parser
from sb3_ext.population.config import ExploreRule, PopulationConfig
from tests.sb3_ext.two_player.test_docs import rows

PAGE = (Path(__file__).parents[3] / "docs" / "population.md").read_text()


def test_every_key_is_listed_with_its_meaning() -> None:
    keys = [row for row in rows(PopulationConfig) if not row.startswith("| `explore.")]
    keys += rows(ExploreRule, "explore.<name>.")
    assert len(keys) > 15
    assert [row for row in keys if row not in PAGE.splitlines()] == []


def test_commands_are_understood() -> None:
    commands = re.findall(r"^python -m sb3_ext population (.+)$", PAGE, re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        _parser().parse_args(command.split())
