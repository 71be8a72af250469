"""A player that looks ahead against a known opponent."""

from __future__ import annotations

from torch import Tensor, where

from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, host_action_table
from resgym.game.state import GameState
from resgym.kernels.dispatch import resolve_backend
from resgym.measure.games import play_lengths
from resgym.players import Player, ask_player, player_name

_ROLLOUT = 0x726F6C6C  # rollouts draw other random numbers than the game that is played


class Ahead:
    """One step of policy improvement by simulated games (Tesauro and Galperin 1996).

    For every legal answer the game is simulated with the opponent and a policy for the player's own
    later moves. An agent takes the answer with the longest game, a host the shortest; ties go to
    the policy's answer, or else to the first. Simulations draw random numbers of their own.

    Args:
        policy: plays the later moves; a player of the same seat.
        opponent: the player of the other seat.
        spec: the game.
        moves: number of moves after which games are cut.
    """

    def __init__(self, policy: Player, opponent: Player, spec: GameSpec, moves: int) -> None:
        self.role = policy.role
        self.name = f"{player_name(policy)} with lookahead"
        self.policy, self.opponent, self.spec, self.moves = policy, opponent, spec, moves

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; costs as many moves as the games have."""
        usual = ask_player(self.policy, state, coords, rng)
        sets = host_action_table(self.spec.dimension, state.device)
        legal = usual.new_ones(len(usual), len(sets)) if coords is None else coords
        row, option = legal.nonzero(as_tuple=True)
        state, draws = state.select(row), rng.split(_ROLLOUT).select(row)
        if coords is None:
            pair = (self.policy, self.opponent)
            coords = sets[option]
            axis = ask_player(self.opponent, state, coords, draws.split(1))
        else:
            pair = (self.opponent, self.policy)
            coords, axis = coords[row], option
        after, overflow = resolve_backend("auto", state.device, self.spec).move(
            state, coords, axis, self.spec
        )
        found = play_lengths(*pair, after, self.spec, draws.split(2), self.moves)
        # An overflow counts as never ending.
        length = where(overflow | found.overflow, self.moves, found.moves)
        score = usual.new_full(legal.shape, -self.moves - 1)
        score[row, option] = length if self.role == "agent" else -length
        # Twice, to make room for a preference among equals.
        return (2 * score).scatter_add(1, usual[:, None], usual.new_ones(len(usual), 1)).argmax(1)
