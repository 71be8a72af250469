"""A player that looks ahead against an opponent that it knows."""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.kernels import resolve_backend
from resgym.measure.games import play_lengths
from resgym.players import Player, ask_player, player_name

_ROLLOUT = 0x726F6C6C  # rollouts draw other random numbers than the game that is played


class Ahead:
    """One step of policy improvement by rollouts to the end (Tesauro and Galperin 1996).

    For every legal answer the game is simulated with the opponent itself and a policy for the
    player's own later moves, and the answer with the longest game (an agent) or the shortest (a
    host) is given; of several equally good ones that of the policy, or else the first. Against an
    opponent that draws random numbers the rollouts draw their own.

    Args:
        policy: plays the later moves; a player of the same seat.
        opponent: the player of the other seat.
        spec: the game.
        moves: rollouts are cut after so many.
    """

    def __init__(self, policy: Player, opponent: Player, spec: GameSpec, moves: int) -> None:
        self.role: Role = policy.role
        self.name = f"{player_name(policy)} with lookahead"
        self.policy, self.opponent, self.spec, self.moves = policy, opponent, spec, moves

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; costs as many moves as the rollouts have."""
        usual = ask_player(self.policy, state, coords, rng)
        sets = host_action_table(self.spec.dimension, state.device)
        legal = usual.new_ones(len(usual), len(sets)) if coords is None else coords
        row, option = legal.nonzero(as_tuple=True)
        begin, draws = state.select(row), rng.split(_ROLLOUT).select(row)
        if coords is None:
            named, pair = sets[option], (self.policy, self.opponent)
            axis = ask_player(self.opponent, begin, named, draws.split(1))
        else:
            named, pair, axis = coords[row], (self.opponent, self.policy), option
        backend = resolve_backend("auto", state.device, self.spec)
        after, overflow = backend.move(begin, named, axis, self.spec)
        found = play_lengths(*pair, after, self.spec, draws.split(2), self.moves)
        # An overflow counts as never ending.
        length = torch.where(overflow | found.overflow, self.moves, found.moves)
        worst = -1 if self.role == "agent" else -self.moves - 1
        score = usual.new_full(legal.shape, worst)
        score[row, option] = length if self.role == "agent" else -length
        # Twice, to make room for a preference among equals.
        return (2 * score).scatter_add(1, usual[:, None], torch.ones_like(usual[:, None])).argmax(1)
