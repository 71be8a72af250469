"""A responder that chooses its answers by rollouts against the frozen player."""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.kernels import resolve_backend
from resgym.measure.games import play_lengths
from resgym.players import Player, ask_player

__all__ = ["RolloutPlayer"]

_ROLLOUT = 0x726F6C6C  # rollouts draw other random numbers than the game that is played


class RolloutPlayer:
    """One step of policy improvement by rollouts to the end (Tesauro and Galperin 1996).

    The opponent is known, since it is frozen. For every legal answer the game is simulated with the
    opponent itself and a policy for the player's own later moves, and the answer with the longest
    game (an agent) or the shortest (a host) is given; of several equally good ones that of the
    policy, or else the first. Against an opponent that draws random numbers the rollouts draw their
    own, so nothing is known in advance.

    Args:
        policy: plays the later moves; a player of the same seat.
        opponent: the frozen player.
        spec: the game.
        moves: rollouts are cut after so many.
    """

    def __init__(self, policy: Player, opponent: Player, spec: GameSpec, moves: int) -> None:
        self.role: Role = policy.role
        self.name = f"{getattr(policy, 'name', type(policy).__name__)} with lookahead"
        self.policy, self.opponent, self.spec, self.moves = policy, opponent, spec, moves

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; costs as many moves as the rollouts have."""
        usual = ask_player(self.policy, state, coords, rng)
        games = state.num_games
        options = self.spec.dimension if self.role == "agent" else self.spec.num_host_actions
        legal = usual.new_ones(games, options) if coords is None else coords
        row, option = legal.nonzero(as_tuple=True)
        length = usual.new_full((games, options), self.moves + 1 if self.role == "host" else -1)
        length[row, option] = self._lengths(
            state.select(row),
            None if coords is None else coords[row],
            option,
            rng.split(_ROLLOUT).select(row),
        )
        score = length if self.role == "agent" else -length
        # Twice, to make room for a preference among equals.
        return (2 * score).scatter_add(1, usual[:, None], torch.ones_like(usual[:, None])).argmax(1)

    def _lengths(
        self, state: GameState, coords: Tensor | None, option: Tensor, rng: RowRandom
    ) -> Tensor:
        """int64 [R]: moves of the game after each answer; an overflow counts as never ending."""
        if coords is None:
            coords = host_action_table(self.spec.dimension, state.device)[option]
            axis = ask_player(self.opponent, state, coords, rng.split(1))
        else:
            axis = option
        kernels = resolve_backend("auto", state.device, self.spec)
        after, overflow = kernels.move(state, coords, axis, self.spec)
        pair = (self.opponent, self.policy)
        host, agent = pair if self.role == "agent" else pair[::-1]
        found = play_lengths(host, agent, after, self.spec, rng.split(2), self.moves)
        return torch.where(overflow | found.overflow, self.moves, found.moves)
