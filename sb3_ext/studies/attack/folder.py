"""The folder of an attack: every finished part is there as a whole, or not at all.

attack.json         the player and the budget
scripted.json       the scripted responders
exact.json          the search, if there was one
seed-<k>/           the best version of a trained responder: a checkpoint that plays
seed-<k>.json       what it reached; written last
result.json         everything together
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from resgym.measure.rho import RhoResult
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.best import save_player
from sb3_ext.runs.folder import RunFolder
from sb3_ext.studies.attack.exact import ExactResult, rho_from_dict
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.result import AttackResult, SeedResult
from sb3_ext.studies.attack.settings import AttackBudget

__all__ = ["AttackFolder"]


class AttackFolder(RunFolder):
    """Reads and writes the files of an attack, in a block.

    A budget may differ from that of an earlier attack in its seeds alone, so that seeds can be
    added.

    Args:
        path: the folder, made if needed.
        frozen: the player under attack.
        budget: the budget.

    Raises:
        ConfigError: on entering: the folder holds another attack.
        FolderError: on entering: the folder cannot be written to, or another process is in it.
    """

    def __init__(self, path: str | Path, frozen: FrozenPlayer, budget: AttackBudget) -> None:
        super().__init__(path)
        self._player = frozen.name
        self._about = {
            "role": frozen.role,
            "fingerprint": frozen.fingerprint,
            "budget": _without_seeds(budget),
        }

    def __enter__(self) -> AttackFolder:
        super().__enter__()
        try:
            found = self._read("attack.json")
            if found is None:
                self.write_json("attack.json", {"player": self._player, **self._about})
                return self
            for field, what in (
                ("role", "attacks a player of the other seat"),
                ("fingerprint", "attacks a player that answers differently"),
                ("budget", "has another budget"),
            ):
                if found.get(field) != self._about[field]:
                    raise ConfigError(f"out: {self.path} {what}; take another folder")
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def scripted(self) -> dict[str, RhoResult] | None:
        """The scripted responders, if they were measured."""
        found = self._read("scripted.json")
        return None if found is None else {name: rho_from_dict(r) for name, r in found.items()}

    def keep_scripted(self, scripted: dict[str, RhoResult]) -> None:
        """Writes them."""
        self.write_json(
            "scripted.json", {name: found.to_dict() for name, found in scripted.items()}
        )

    def exact(self) -> ExactResult | None:
        """The search, if it was made."""
        found = self._read("exact.json")
        return None if found is None else ExactResult.from_dict(found)

    def keep_exact(self, exact: ExactResult) -> None:
        """Writes it."""
        self.write_json("exact.json", exact.to_dict())

    def seed(self, seed: int) -> SeedResult | None:
        """A responder, if it is finished."""
        found = self._read(f"seed-{seed}.json")
        if found is None:
            return None
        try:
            return SeedResult.from_dict(found)
        except (KeyError, TypeError, ValueError) as error:
            name = self.path / f"seed-{seed}.json"
            raise ConfigError(f"out: {name} is no result of a seed: {error}; delete it") from None

    def keep_seed(self, found: SeedResult, model: Any) -> None:
        """Writes a finished responder, its network first."""
        save_player(self.path / f"seed-{found.seed}", model, found.best, archive=False)
        self.write_json(f"seed-{found.seed}.json", found.to_dict())

    def keep_result(self, result: AttackResult) -> None:
        """Writes everything together."""
        self.write_json("result.json", result.to_dict())

    def _read(self, name: str) -> Any:
        file = self.path / name
        if not file.is_file():
            return None
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise ConfigError(f"out: {file} is not readable: {error}; delete it") from None
        if not isinstance(data, dict):
            raise ConfigError(f"out: {file} is not readable: no mapping; delete it")
        return data


def _without_seeds(budget: AttackBudget) -> Any:
    data = budget.to_dict()
    del data["responder"]["seeds"]
    return json.loads(json.dumps(data))
