"""Writes down a few games of the learner, so that one can see how it plays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from resgym.measure.games import sample_games
from resgym.players import player_name
from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.rho_evaluation import player_of, role_of
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.config.checks import check_count
from sb3_ext.schedules.frequency import Every, parse_every

__all__ = ["SampleGames"]


class SampleGames(BaseCallback):
    """Plays whole games without exploring and writes them as text and JSON, at the end too.

    Into ``<run_dir>/games/<updates>/``: ``<opponent>.txt`` to read and ``<opponent>.json``, a list
    of games with positions, the host's sets and the agent's axes. The starts are the same each
    time, so that versions of the learner can be compared.

    Attributes:
        written: the folders written, oldest first.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        opponents: Sequence[Any],
        every: Every | Mapping[str, Any],
        *,
        games: int = 3,
        seed: int = 0,
        max_moves: int = 200,
        **game: Any,
    ) -> None:
        """Prepares.

        Args:
            run_dir: the folder of the run.
            opponents: players of the other seat, by name or as objects.
            every: when to play, an `Every` or ``{"updates": 1000}``.
            games: games against each opponent.
            seed: fixes the starts.
            max_moves: a game is cut after so many moves.
            **game: as `resgym.rho` (max_value, ...); the model's own sizes are the default.

        Raises:
            ValueError, TypeError: an argument is out of its range.
        """
        super().__init__()
        if isinstance(opponents, str) or not opponents:
            raise ValueError(f"opponents must be a list of at least one player, got {opponents!r}")
        self.folder = Path(run_dir) / "games"
        self.opponents = {player_name(opponent): opponent for opponent in opponents}
        self.every = parse_every(every)
        self.games, self.seed = check_count("games", games), seed
        self.max_moves, self.game = check_count("max_moves", max_moves), game
        self.written: list[Path] = []

    def _on_training_start(self) -> None:
        self._role = role_of(self.model.observation_space)
        space: Any = self.model.observation_space
        rows, dimension = (space["points"] if self._role == "agent" else space).shape
        self._game = {"dimension": dimension, "max_num_points": rows, **self.game}

    def _updates(self) -> int:
        return num_updates(self.model)

    def _on_step(self) -> bool:
        if self.every.due(updates=self._updates(), transitions=self.num_timesteps):
            self.write()
        return True

    def _on_training_end(self) -> None:
        if not self.written or self.written[-1] != self._target():
            self.write()

    def _target(self) -> Path:
        return self.folder / f"{self._updates():09d}"

    def write(self) -> Path:
        """Plays and writes now; returns the folder."""
        mine, target = player_of(self.model), self._target()
        target.mkdir(parents=True, exist_ok=True)
        for name, other in self.opponents.items():
            pair = (mine, other) if self._role == "host" else (other, mine)
            records = sample_games(
                *pair, games=self.games, seed=self.seed, max_moves=self.max_moves, **self._game
            )
            title = f"trained {self._role} against {name}, after {self._updates()} updates"
            texts = [f"game {number}\n\n{record}" for number, record in enumerate(records, 1)]
            file = target / "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
            write_text_durably(
                file.with_name(file.name + ".txt"), "\n\n\n".join([title, *texts]) + "\n"
            )
            data = [record.to_dict() for record in records]
            write_text_durably(file.with_name(file.name + ".json"), json.dumps(data) + "\n")
        self.written.append(target)
        return target

    def state_dict(self) -> dict[str, Any]:
        """When it was last due."""
        return {"every": self.every.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on in the same rhythm."""
        self.every.load_state_dict(state["every"])
