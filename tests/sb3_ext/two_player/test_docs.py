"""The documentation lists every key, with the words of the code, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sb3_ext.config.sections import Section
from sb3_ext.runs.driver import parser_of
from sb3_ext.two_player.job import TwoPlayer
from sb3_ext.two_player.kinds import OffPolicyRole, PPORole
from sb3_ext.two_player.league import League

DOCS = Path(__file__).parents[3] / "docs"


def section_of(annotation):
    for each in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(each, type) and issubclass(each, Section):
            return each
    return None


def rows(model, prefix=""):
    """Every key and its meaning, nested ones too."""
    for name, field in model.model_fields.items():
        inner = section_of(field.annotation)
        label = f"{prefix}{name}"
        if label == "roles":
            for role in (OffPolicyRole, PPORole):
                yield from rows(role, "roles.<role>.")
        elif inner is None:
            yield f"| `{label}` | {field.description} |"
        else:
            yield from rows(inner, f"{label}.")


@pytest.mark.parametrize(
    ("page", "command", "job"),
    [("two_player.md", ".two_player", TwoPlayer), ("population.md", " population", League)],
)
def test_a_page_lists_every_key_and_commands_that_exist(page, command, job):
    text = (DOCS / page).read_text()
    assert [row for row in rows(job.Config) if row not in text.splitlines()] == []
    commands = re.findall(rf"^python -m sb3_ext{re.escape(command)} (.+)$", text, re.MULTILINE)
    assert len(commands) >= 3
    for each in commands:
        parser_of(job).parse_args(each.split())
