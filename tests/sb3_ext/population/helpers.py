"""Populations that take seconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sb3_ext.config.reading import apply_settings
from tests.sb3_ext.two_player.helpers import tiny

RATE = "roles.host.learning_rate"


def plain(*settings: str, **keys: Any) -> dict[str, Any]:
    """Two members, two rounds; changes as on the command line."""
    data: dict[str, Any] = {
        "config_version": 1,
        "name": "tiny",
        "seed": 3,
        "members": 2,
        "rounds": 2,
        "steps_per_round": 4,
        "two_player": tiny("evaluation.games=4", "evaluation.action_games=4"),
        "settings": [],
        "league": {
            "games": 4,
            "keep": 1,
            "opponents": "pfsp",
            "power": 2.0,
            "draws": 2,
            "latest_share": 0.5,
        },
        "exploit": {"share": 0.5},
        "explore": {RATE: {"factors": [0.5, 2.0], "low": 1.0e-5, "high": 0.1}},
    }
    return apply_settings({**data, **keys}, settings)


def written(path: Path, data: Mapping[str, Any]) -> str:
    """The file of a configuration."""
    path.write_text(yaml.safe_dump(dict(data), sort_keys=False), encoding="utf-8")
    return str(path)
