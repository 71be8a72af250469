"""The folder of an attack: every finished part is there as a whole and sealed by a digest.

attack.json         the player and the budget
scripted.json       the scripted responders
exact.json          the search, if there was one
seed-<k>/           the best version of a trained responder: a checkpoint that plays
seed-<k>.json       what it reached; written last
result.json         everything together
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.settings import AttackBudget
from sb3_ext.studies.json_files import check_seal, sealed, write_json

__all__ = ["AttackFolder"]

T = TypeVar("T")


class AttackFolder:
    """Reads and writes the files of an attack; without a path nothing is kept.

    A budget may differ from that of an earlier attack in its seeds alone, so that seeds can be
    added.

    Raises:
        ConfigError: the folder holds another attack, or cannot be written to.
    """

    def __init__(self, path: str | Path | None, frozen: FrozenPlayer, budget: AttackBudget) -> None:
        self.path = None if path is None else Path(path)
        if self.path is None:
            return
        budget_data = json.loads(json.dumps(budget.to_dict()))
        del budget_data["responder"]["seeds"]
        about = {"role": frozen.role, "fingerprint": frozen.fingerprint, "budget": budget_data}
        found = self.read("attack.json", dict)
        if found is not None:
            for field, what in (
                ("role", "attacks a player of the other seat"),
                ("fingerprint", "attacks a player that answers differently"),
                ("budget", "has another budget"),
            ):
                if found.get(field) != about[field]:
                    raise ConfigError(f"out: {self.path} {what}; take another folder")
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.write("attack.json", {"player": frozen.name, **about})
        except OSError as error:
            raise ConfigError(f"out: {self.path} cannot be written to: {error}") from None

    def read(self, name: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
        """A part that is finished, or None.

        Raises:
            ConfigError: the file is damaged.
        """
        if self.path is None or not (file := self.path / name).is_file():
            return None
        try:
            return parse(check_seal(json.loads(file.read_text(encoding="utf-8"))))
        except (KeyError, OSError, TypeError, ValueError) as error:
            raise ConfigError(
                f"out: {file} is damaged or of another version: {error}; delete it"
            ) from None

    def write(self, name: str, data: dict[str, Any]) -> None:
        """Writes a part that is finished."""
        if self.path is not None:
            write_json(self.path / name, sealed(data))
