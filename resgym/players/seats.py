"""Players that are asked about lists of points.

Positions are those of `resgym.game.exact`, in the order in which they were typed.
Zeillinger's host takes the first of several equally good pairs, so it is asked about the list
itself. All other players get the sorted state of the environments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from resgym.game.exact import Position, WeightedPosition
from resgym.game.rng import RowRandom
from resgym.game.spec import Axes, GameSpec, Point, Role, action_axes
from resgym.game.state import GameState, state_from_points
from resgym.players import Player, ask_exactly, own_attribute, player_name, resolve_player
from resgym.polynomials.monomials import Exponents

_ROWS = 20


class Seat:
    """A player (anything that `resolve_player` takes) that is asked about lists of points.

    The start gives the number of axes, ``game`` the rule. The player is asked with ``ask``, by
    default so that the position decides its answers.
    """

    def __init__(
        self,
        player: Any,
        role: Role,
        position: Exponents,
        game: GameSpec | None = None,
        ask: Callable[..., Tensor] = ask_exactly,
    ) -> None:
        game = GameSpec() if game is None else game
        # To subtract what is least changes no answer.
        rows, dimension = max(_ROWS, len(position)), position.dimension
        self.spec = replace(game, dimension=dimension, max_num_points=rows, reposition=False)
        self.player: Player = resolve_player(player, role, self.spec, role)
        self._ask = ask
        self.reads_order = bool(own_attribute(self.player, "reads_order"))
        self.name = player if isinstance(player, str) else player_name(self.player)

    def host_sets(self, positions: Sequence[Position], rng: RowRandom | None = None) -> list[Axes]:
        """The host's set in every position."""
        sets = action_axes(self.spec.dimension, self.spec.least_axes)
        return [sets[action] for action in self._answers(positions, None, rng)]

    def agent_axes(
        self,
        positions: Sequence[Position],
        sets: Sequence[Axes],
        rng: RowRandom | None = None,
    ) -> list[int]:
        """The agent's axis for a position and a host's set each."""
        every = range(self.spec.dimension)
        coords = torch.tensor([[axis in axes for axis in every] for axes in sets])
        return self._answers(positions, coords, rng)

    def _answers(
        self, positions: Sequence[Position], coords: Tensor | None, rng: RowRandom | None
    ) -> list[int]:
        if self.reads_order:
            rows, sizes = [*map(torch.tensor, positions)], [*map(len, positions)]
            points = pad_sequence(rows, batch_first=True, padding_value=-1)
            state = GameState(points, torch.tensor(sizes))
        else:
            state = self._state(positions)
            coords = None if coords is None else state.answers(coords)
        answers: list[int] = self._ask(self.player, state, coords, rng).tolist()
        return answers

    def _state(self, positions: Sequence[Position]) -> GameState:
        games = [list(position) for position in positions]
        weights: list[Point] = []
        for game, position in zip(games, positions, strict=True):
            if isinstance(position, WeightedPosition):
                assert position.marked is not None
                game.remove(position.marked)
                game.append(position.marked)
                weights.append(position.weights)
        return state_from_points(games, self.spec, weights=weights or None)
