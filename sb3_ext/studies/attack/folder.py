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

from resgym.measure.rho import RhoResult
from sb3_ext.checkpoints.checkpoint import save_checkpoint
from sb3_ext.checkpoints.model_state import network_description
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.attack.exact import ExactResult, rho_from_dict
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.result import AttackResult, SeedResult
from sb3_ext.studies.attack.settings import AttackBudget
from sb3_ext.studies.json_files import check_seal, sealed, write_json

__all__ = ["AttackFolder"]

T = TypeVar("T")


class AttackFolder:
    """Reads and writes the files of an attack.

    A budget may differ from that of an earlier attack in its seeds alone, so that seeds can be
    added.

    Args:
        path: the folder, made if needed; None keeps nothing.
        frozen: the player under attack.
        budget: the budget.

    Raises:
        ConfigError: the folder holds another attack, or cannot be written to.
    """

    def __init__(self, path: str | Path | None, frozen: FrozenPlayer, budget: AttackBudget) -> None:
        self.path = None if path is None else Path(path)
        if self.path is None:
            return
        about = {
            "role": frozen.role,
            "fingerprint": frozen.fingerprint,
            "budget": _without_seeds(budget),
        }
        found = self._read("attack.json", dict)
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
            self._write("attack.json", {"player": frozen.name, **about})
        except OSError as error:
            raise ConfigError(f"out: {self.path} cannot be written to: {error}") from None

    def scripted(self) -> dict[str, RhoResult] | None:
        """The scripted responders, if they were measured."""
        return self._read(
            "scripted.json", lambda found: {name: rho_from_dict(r) for name, r in found.items()}
        )

    def keep_scripted(self, scripted: dict[str, RhoResult]) -> None:
        """Writes them."""
        self._write("scripted.json", {name: found.to_dict() for name, found in scripted.items()})

    def exact(self) -> ExactResult | None:
        """The search, if it was made."""
        return self._read("exact.json", ExactResult.from_dict)

    def keep_exact(self, exact: ExactResult) -> None:
        """Writes it."""
        self._write("exact.json", exact.to_dict())

    def seed(self, seed: int) -> SeedResult | None:
        """A responder, if it is finished."""
        return self._read(f"seed-{seed}.json", SeedResult.from_dict)

    def keep_seed(self, found: SeedResult, model: Any) -> None:
        """Writes a finished responder, its network first."""
        if self.path is None:
            return
        state = {
            "evaluation": found.best,
            "network": network_description(model.policy),
            "policy": dict(model.policy.state_dict()),
        }
        save_checkpoint(self.path / f"seed-{found.seed}", state, latest=False)
        self._write(f"seed-{found.seed}.json", found.to_dict())

    def keep_result(self, result: AttackResult) -> None:
        """Writes everything together."""
        self._write("result.json", result.to_dict())

    def _read(self, name: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
        if self.path is None or not (file := self.path / name).is_file():
            return None
        try:
            return parse(check_seal(json.loads(file.read_text(encoding="utf-8"))))
        except (KeyError, OSError, TypeError, ValueError) as error:
            raise ConfigError(
                f"out: {file} is damaged or of another version: {error}; delete it"
            ) from None

    def _write(self, name: str, data: dict[str, Any]) -> None:
        if self.path is not None:
            write_json(self.path / name, sealed(data))


def _without_seeds(budget: AttackBudget) -> Any:
    data = budget.to_dict()
    del data["responder"]["seeds"]
    return json.loads(json.dumps(data))
