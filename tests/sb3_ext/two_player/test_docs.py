"""The documentation lists every key, with the words of the code, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from sb3_ext.config.sections import Section
from sb3_ext.runs.driver import parser_of
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.job import TwoPlayer
from sb3_ext.two_player.off_policy import OffPolicyRole
from sb3_ext.two_player.on_policy import PPORole

PAGE = Path(__file__).parents[3] / "docs" / "two_player.md"


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


def test_every_key_is_listed_with_its_meaning():
    listed = [
        line for line in PAGE.read_text().splitlines() if re.match(r"\| `[a-z0-9_.<>]+` \|", line)
    ]
    keys = list(rows(TrainerConfig))
    assert len(keys) > 50
    assert [line for line in keys if line not in listed] == []


def test_commands_are_understood():
    commands = re.findall(r"^python -m sb3_ext\.two_player (.+)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        parser_of(TwoPlayer).parse_args(command.split())
