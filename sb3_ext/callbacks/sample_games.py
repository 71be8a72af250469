"""Writes down a few games of the learner, so that one can see how it plays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resgym.measure.games import sample_games
from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.rho_evaluation import GamesAgainst
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.config.checks import check_count
from sb3_ext.schedules.frequency import Every

if TYPE_CHECKING:
    from resgym.measure.games import GameRecord


def write_games(folder: Path, name: str, title: str, records: Sequence[GameRecord]) -> None:
    """Writes games into a folder, made if needed: ``<name>.txt`` to read and ``<name>.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [f"game {number}\n\n{record}" for number, record in enumerate(records, 1)]
    data = json.dumps([record.to_dict() for record in records])
    stem = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    write_text_durably(folder / f"{stem}.txt", "\n\n\n".join([title, *texts]) + "\n")
    write_text_durably(folder / f"{stem}.json", f"{data}\n")


class SampleGames(GamesAgainst):
    """Plays whole games without exploring and writes them as text and JSON, at the end too.

    Into ``<run_dir>/games/<updates>/``: ``<opponent>.txt`` to read and ``<opponent>.json``, a list
    of games with positions, the host's sets and the agent's axes. The starts are the same each
    time, so that versions of the learner can be compared.

    Arguments that are not told here are those of `GamesAgainst`.

    Args:
        run_dir: the folder of the run.
        max_moves: a game is cut after so many moves.

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
        super().__init__(opponents, every, games, seed, game)
        self.folder = Path(run_dir) / "games"
        self.max_moves = check_count("max_moves", max_moves)
        self.written: list[Path] = []

    def _on_step(self) -> bool:
        if self._is_due():
            self.write()
        return True

    def _on_training_end(self) -> None:
        if not self.written or self.written[-1] != self._target():
            self.write()

    def _target(self) -> Path:
        return self.folder / f"{num_updates(self.model):09d}"

    def write(self) -> Path:
        """Plays and writes now; returns the folder."""
        target, updates = self._target(), num_updates(self.model)
        for name, pair in self._pairs():
            records = sample_games(
                *pair, games=self.games, seed=self.seed, max_moves=self.max_moves, **self._game
            )
            title = f"trained {self._role} against {name}, after {updates} updates"
            write_games(target, name, title, records)
        self.written.append(target)
        return target
