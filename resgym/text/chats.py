"""Played games as chats: what was decided in them, what would have been best, lines to learn from.

One chat is one decision, because a position says all: a model is taught with exactly the messages
with which `resgym.text.TextPlayer` asks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import start_positions
from resgym.game.spec import GameSpec, Role, check_integer
from resgym.game.state import state_from_points
from resgym.measure.games import record_all
from resgym.polynomials.monomials import Point
from resgym.polynomials.starts import resolve_starts
from resgym.render.games import GameRecord
from resgym.solver.labels import SOLVED, Labeller
from resgym.text.wording import action_of, axes_of, chat_of, write_answer

_SEED_WORD = 0x74657874  # keeps the starts apart from those of other uses of the seed


def record_games(
    host: Any,
    agent: Any,
    spec: GameSpec,
    games: int,
    *,
    seed: int = 0,
    max_moves: int = 200,
    starts: Any = None,
) -> list[GameRecord]:
    """Plays games from random starts side by side, so that players are asked in batches.

    Args:
        host: of what `resolve_player` takes.
        agent: likewise.
        spec: the game.
        games: how many; game i is the same for any number of games.
        seed: fixes the starts, and players that draw.
        max_moves: games are cut after so many.
        starts: the set that starts are drawn from, see `resgym.polynomials.starts.resolve_starts`.
    """
    games = check_integer("games", games, 1)
    row = torch.arange(games)
    rng = RowRandom.for_episode(row + (derive_seed(seed, _SEED_WORD) >> 1), torch.zeros_like(row))
    begin = start_positions(spec, rng.at(0, Stream.START), resolve_starts(starts, spec))
    return record_all(host, agent, begin, spec, rng, max_moves)


@dataclass(frozen=True)
class Decision:
    """What a player was asked in a game, what it did, and what is known about it.

    Attributes:
        game: number of the game, from 0.
        move: number of the move in it, from 0.
        role: the player's seat.
        points: the position.
        coords: for an agent the axes of the host's set, for a host none.
        played: the axes of the host's set, or the agent's one axis.
        optimal: all answers that reach the value; empty without a label.
        value: moves that the game takes from here, this one included, if both seats play best
            (after the host's set, for an agent); 0 without a label.
    """

    game: int
    move: int
    role: Role
    points: tuple[Point, ...]
    coords: tuple[int, ...]
    played: tuple[int, ...]
    optimal: tuple[tuple[int, ...], ...] = ()
    value: int = 0

    def chat(self, answer: Sequence[int]) -> dict[str, Any]:
        """A line to learn from, as plain data: ``messages``, which end with this answer."""
        chat = chat_of(self.role, self.points, self.coords)
        said = {"role": "assistant", "content": write_answer(answer, self.role)}
        about = ("game", "move", "role", "played", "optimal", "value")
        return {"messages": [*chat, said], **{name: getattr(self, name) for name in about}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Decision:
        """The decision that ``dataclasses.asdict`` made plain, also by way of JSON."""
        lists = {"points": data["points"], "optimal": data["optimal"]}
        tuples = {name: tuple(map(tuple, value)) for name, value in lists.items()}
        axes = {name: tuple(data[name]) for name in ("coords", "played")}
        return cls(**{**data, **tuples, **axes})


def decisions_of(records: Iterable[GameRecord], role: Role) -> list[Decision]:
    """The decisions of one seat in games, game by game, without labels."""
    return [
        Decision(
            game,
            move,
            role,
            tuple(points),
            axes if role == "agent" else (),
            (axis,) if role == "agent" else axes,
        )
        for game, record in enumerate(records)
        for move, (points, axes, axis) in enumerate(
            zip(record.positions[:-1], record.axes, record.axis, strict=True)
        )
    ]


def score_decisions(decisions: Sequence[Decision], *, budget: int = 20_000) -> list[Decision]:
    """The same decisions, all of one seat and dimension, with the labels that the solver proves.

    Args:
        decisions: N of them.
        budget: positions expanded for one label; where that is not enough there is none.

    Raises:
        ImportError: numba is missing.
        ValueError: the game has more axes than the solver labels.
    """
    if not decisions:
        return []
    role, dimension = decisions[0].role, len(decisions[0].points[0])
    width = max(2, *(len(each.points) for each in decisions))
    state = state_from_points([each.points for each in decisions], GameSpec(dimension, width))
    labeller = Labeller(dimension, width, budget=budget)
    points, count = state.points.numpy(), state.count.numpy()
    if role == "host":
        labels = labeller.host(points, count)
    else:
        sets = [action_of(each.coords, "host", dimension) for each in decisions]
        labels = labeller.agent(points, count, host_action_table(dimension)[sets].numpy())
    scored = []
    for each, optimal, value, status in zip(decisions, *labels, strict=True):
        found = [axes_of(int(action), role, dimension) for action in np.flatnonzero(optimal)]
        if status == SOLVED:
            each = replace(each, optimal=tuple(found), value=int(value))
        scored.append(each)
    return scored
