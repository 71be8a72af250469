"""A few whole games between two players, to be read."""

from __future__ import annotations

from typing import Any

import torch

from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec, check_integer
from resgym.measure.games import record_game
from resgym.render.games import GameRecord

__all__ = ["sample_games"]

_SEED_WORD = 0x67616D65  # keeps these starts apart from those of other uses of the seed


def sample_games(
    host: Any,
    agent: Any,
    *,
    games: int = 3,
    seed: int = 0,
    max_moves: int = 200,
    **game: Any,
) -> list[GameRecord]:
    """Plays games from random starts and keeps every position.

    Args:
        host: name, `Player`, callable or path of a saved model.
        agent: likewise.
        games: how many, each from its own start.
        seed: fixes the starts and what random players do.
        max_moves: a game is cut after so many moves.
        **game: sizes and options of a `GameSpec`: dimension, max_num_points, max_value, ...

    Raises:
        ValueError, TypeError: an argument is out of range.
    """
    games = check_integer("games", games, 1)
    spec = GameSpec(**game)
    row = torch.arange(games, dtype=torch.int64)
    seeds = torch.tensor([derive_seed(seed, _SEED_WORD)]).expand(games) + row
    starts = random_starts(spec, RowRandom.for_episode(seeds, row * 0).at(0, Stream.START))
    return [
        record_game(
            host,
            agent,
            starts.select(row[number : number + 1]),
            spec,
            seed=derive_seed(seed, _SEED_WORD, number),
            max_moves=max_moves,
        )
        for number in range(games)
    ]
