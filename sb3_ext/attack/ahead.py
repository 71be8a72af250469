"""A player that looks ahead against an opponent that it knows, or against every opponent."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.kernels import resolve_backend
from resgym.measure.games import play_lengths
from resgym.measure.worst_case import worst_case_moves
from resgym.players import Player, ask_player, player_name

_ROLLOUT = 0x726F6C6C  # rollouts draw other random numbers than the game that is played
_AT_ONCE = 500  # positions walked from at once, for the sake of memory
_WALKED = 5_000  # positions looked at before a walk counts as endless


class Ahead:
    """One step of policy improvement by games to the end (Tesauro and Galperin 1996).

    For every legal answer the game is simulated with the opponent itself and a policy for the
    player's own later moves, and the answer with the longest game (an agent) or the shortest (a
    host) is given; of several equally good ones that of the policy, or else the first. Against an
    opponent that draws random numbers the rollouts draw their own.

    A host without an opponent names the set after which the longest game that any agent can have
    with its policy is the shortest: where the walks through all answers come to an end, its longest
    game is never longer than the policy's own. The policy has to be deterministic.

    Args:
        policy: plays the later moves; a player of the same seat.
        opponent: the player of the other seat, or None.
        spec: the game.
        moves: games are cut after so many moves.
    """

    def __init__(
        self, policy: Player, opponent: Player | None, spec: GameSpec, moves: int = 200
    ) -> None:
        self.role: Role = policy.role
        self.name = f"{player_name(policy)} with lookahead"
        self.policy, self.opponent, self.spec, self.moves = policy, opponent, spec, moves

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; costs as many moves as the games have."""
        usual = ask_player(self.policy, state, coords, rng)
        device = usual.device
        if self.opponent is None:
            state, usual = GameState(state.points.cpu(), state.count.cpu()), usual.cpu()
        _, rows, axes = state.points.shape
        spec = replace(self.spec, dimension=axes, max_num_points=rows)
        sets = host_action_table(axes, state.device)
        legal = usual.new_ones(len(usual), len(sets)) if coords is None else coords
        row, option = legal.nonzero(as_tuple=True)
        if coords is not None:
            named, axis = coords[row], option
        elif self.opponent is None:
            every, axis = sets[option].nonzero(as_tuple=True)
            row, option = row[every], option[every]
            named = sets[option]
        else:
            named = sets[option]
            draws = rng.split(_ROLLOUT).select(row).split(1)
            axis = ask_player(self.opponent, state.select(row), named, draws)
        backend = resolve_backend("auto", state.device, spec)
        after, overflow = backend.move(state.select(row), named, axis, spec)
        if self.opponent is None:
            length, cut = self._longest(after, spec), self.moves + 1
        else:
            length, cut = self._played(after, rng.split(_ROLLOUT).select(row).split(2)), self.moves
        # An overflow counts as never ending.
        length = length.masked_fill(overflow, cut)
        worst = usual.new_full(legal.shape, -1)
        place = row * legal.shape[1] + option
        worst.view(-1).scatter_reduce_(0, place, length.to(worst.dtype), "amax")
        score = worst if self.role == "agent" else -worst
        # Twice, to make room for a preference among equals.
        best = (2 * score).scatter_add(1, usual[:, None], torch.ones_like(usual[:, None])).argmax(1)
        return best.to(device)

    def _played(self, begin: GameState, draws: RowRandom) -> Tensor:
        assert self.opponent
        pair = (self.policy, self.opponent)
        pair = pair if self.role == "host" else (self.opponent, self.policy)
        found = play_lengths(*pair, begin, self.spec, draws, self.moves)
        return torch.where(found.overflow, self.moves, found.moves)

    def _longest(self, begin: GameState, spec: GameSpec) -> Tensor:
        """int64 [N]: the policy's longest games, one more than ``moves`` for what is not known."""
        points, place = torch.unique(begin.points, dim=0, return_inverse=True)
        count = torch.empty_like(points[:, 0, 0]).scatter_(0, place, begin.count)
        found = []
        for part in torch.arange(len(count)).split(_AT_ONCE):
            starts = GameState(points, count).select(part)
            moves, given_up = worst_case_moves(self.policy, starts, spec, self.moves, _WALKED)
            found.append(moves.masked_fill(given_up, self.moves + 1))
        return torch.cat(found)[place]
