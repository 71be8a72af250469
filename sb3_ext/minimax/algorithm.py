"""Minimax Q-learning on the exact model: a host that learns what the best agent would answer.

The game itself says what every set and every answer lead to, so the values of all sets of a
position are learnt at once, from the worst answer to each (Littman 1994, with the model in place of
sampled answers). No label of a solver and no opponent enters the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from resgym import functional
from resgym.game.pruning import prune_dominated
from resgym.game.rng import RowRandom, mix64
from resgym.game.spec import Role
from resgym.game.state import GameState
from resgym.players.registry import given_sets
from resgym.solver.responses import Graph
from sb3_ext.callbacks import CALLBACKS, GrowingStarts
from sb3_ext.config.checks import check_count
from sb3_ext.ddqn import DDQN, LossTerms
from sb3_ext.ddqn.ddqn import complete_signature
from sb3_ext.ddqn.legality import LOSSES
from sb3_ext.networks.mlp import plays_every_size

LEAVES = 20_000
"""Positions of a network, at most, that `ValueHost` asks for together."""
ROUNDS = 2
"""Rounds of `fingerprints`: one mistakes 16 of 11,761 kinds of positions in five axes, two none."""
LINES = 2
"""Positions after each number of moves that are followed first."""

# Where the default is another one than that of `DDQN`.
_DEFAULTS = {
    "batch_size": 128,
    "buffer_size": 100_000,
    "exploration_rate": 0.1,
    "gamma": 0.98,  # values lie above -50
    "learning_starts": 2048,
    "target_update_interval": 1,
    "tau": 0.02,
}
_NETWORK = {
    "extractor": "point_pairs",
    "features_extractor_kwargs": {
        "point_net": [48],
        "pair_net": [96, 96],
        "quotients": True,
    },
    "net_arch": [128],
    "sort_axes": True,
}


def positions_of(observations: Tensor) -> GameState:
    """The positions of unscaled observations, float [N, P, D] with absent rows -1."""
    return GameState(observations.long(), (observations[:, :, 0] >= 0).sum(1))


def observations_of(state: GameState, rows: int, scale: bool = False) -> Tensor:
    """What environments with this many rows of points show of N positions, float32 [N, rows, D]."""
    seen = functional.observe(state, scale)
    return pad(seen, (0, 0, 0, rows - seen.shape[1]), value=-1.0)


def position_values(network: Any, state: GameState, gamma: float = 1.0, plies: int = 0) -> Tensor:
    """What N positions are worth to the host: its best set by the network, 0 at the end.

    On a CPU a network for every size is asked once about positions that differ by names alone.

    Args:
        network: values of the host's sets, [N, A], of unscaled observations.
        state: the positions.
        gamma: see `minimax_targets`.
        plies: exact moves of both players before the network is asked.
    """
    going, place = ~state.finished(), None
    if state.device.type == "cpu" and plays_every_size(network):
        index = going.nonzero()[:, 0]
        names = fingerprints(state.select(index)).numpy()
        _, first, back = np.unique(names, return_index=True, return_inverse=True)
        state, place = state.select(index[torch.from_numpy(first)]), torch.from_numpy(back)
    if plies:
        found = minimax_targets(network, state, gamma, plies).amax(1)
    else:
        found = network(functional.observe(state, scale=False)).amax(1)
    if place is None:
        return found.masked_fill(~going, 0.0)
    return found.new_zeros(len(going)).masked_scatter(going, found[place])


def fingerprints(state: GameState) -> Tensor:
    """Numbers of N positions, int64 [N], the same for a shift or another order of points and axes.

    Others have other numbers, but for an accident of 64 bits.
    """
    return _entries(state).sum((1, 2))


def _entries(state: GameState) -> Tensor:
    """Numbers of all coordinates, int64 [N, P, D], 0 where there is no point."""
    absent = state.points < 0
    lowest = state.points.masked_fill(absent, 2**60).amin(1, keepdim=True)
    entries = mix64(state.points - lowest + 1).masked_fill(absent, 0)
    for _ in range(ROUNDS):  # each tells every entry more about its point and its axis
        row, column = (mix64(entries.sum(each, keepdim=True)) for each in (2, 1))
        entries = mix64(entries + 3 * row + 5 * column).masked_fill(absent, 0)
    return entries


class EquivariantGraph(Graph):
    """The graph of a host that plays alike whatever the axes are called.

    Positions that differ by names of axes are one, so fewer are followed: half in four axes.
    """

    def add(self, state: GameState, dropped: Any = False) -> np.ndarray:
        """See `Graph.add`."""
        order = _entries(state).sum(1, keepdim=True).argsort(2)
        points = state.points.gather(2, order.expand_as(state.points))
        points, count = prune_dominated(points.permute(2, 1, 0), state.count, points.shape[1])
        return super().add(GameState(points, count), dropped)


class ValueHost:
    """Look moves ahead with the exact model: a host's network at the leaves.

    Each ply multiplies the cost by the number of moves: 9 in three axes, 28 in four.

    Args:
        network: as for `ValueAgent`, of a host that learned with `gamma`.
        lookahead: plies, moves of both players, at least 1.
        gamma: see `minimax_targets`.
    """

    role: Role = "host"
    name = "values"

    def __init__(
        self, network: Callable[[Tensor], Tensor], lookahead: int = 2, gamma: float = 0.98
    ) -> None:
        self.network = network
        self.gamma = gamma
        self.lookahead = check_count("lookahead", lookahead)

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        leaves = len(functional.moves(state.points.shape[2])[0]) ** self.lookahead
        parts = torch.arange(state.num_games, device=state.device).split(max(1, LEAVES // leaves))
        with torch.no_grad():
            values = [
                minimax_targets(self.network, state.select(each), self.gamma, self.lookahead)
                for each in parts
            ]
        return torch.cat(values).argmax(1)


class ValueAgent:
    """Answers so that what is left is worth least to the host: the agent of a host's network.

    Args:
        network: values of the host's sets, [N, A], of unscaled observations [N, P, D], such as
            ``host.scores`` of a loaded host.
        name: in tables.
    """

    role: Role = "agent"

    def __init__(self, network: Callable[[Tensor], Tensor], name: str = "values") -> None:
        self.network = network
        self.name = name

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        number, axes = coords.shape
        row = torch.arange(number, device=coords.device).repeat_interleave(axes)
        axis = torch.arange(axes, device=coords.device).repeat(number)
        after, _ = functional.move(state.select(row), coords[row], axis)
        with torch.no_grad():
            worth = position_values(self.network, after).view(coords.shape)
        return torch.where(coords, worth, torch.inf).argmin(1)


def minimax_targets(network: Any, state: GameState, gamma: float, plies: int = 1) -> Tensor:
    """Return values of the host's sets, float32 [N, A].

    The value of a set is -1 for the move plus ``gamma`` times the value of the position after the
    agent's answer; the answer with the lowest value counts. A finished position has the value 0,
    another one the highest of its sets' values by the network.

    Args:
        network: values of the host's sets, [N, A], of unscaled observations [N, P, D].
        state: N positions.
        gamma: the discount; below 1, values lie above -1 / (1 - gamma), and a shorter game still
            has a higher value.
        plies: moves of both players, at least 1, after which the network values the positions.
    """
    after, overflow = functional.successors(state)
    values = gamma * position_values(network, after, gamma, plies - 1).view(overflow.shape)
    return worst_answers(values, state.points.shape[2]) - 1.0


def worst_answers(values: Tensor, dimension: int) -> Tensor:
    """The lowest value after each of the host's sets, [N, A], of those after all moves, [N, K]."""
    action, _ = functional.moves(dimension)
    index = action.to(values.device).expand_as(values)
    lowest = values.new_zeros(len(values), int(action[-1]) + 1)
    return lowest.scatter_reduce(1, index, values, "amin", include_self=False)


def value_of_moves(moves: Tensor, gamma: float) -> Tensor:
    """The return of games of this many moves at -1 a move, float32, of any shape."""
    length = moves.float()
    return -length if gamma == 1.0 else (gamma**length - 1.0) / (1.0 - gamma)


class MinimaxDQN(DDQN):
    """Deep Q-learning of a host with minimax targets of all its sets, by the exact model.

    Three minutes of one core give a host that wins from most starts against every agent::

        MinimaxDQN("resgym/HironakaHost-v0", seed=0).learn(770_048)

    The environment is that of the host with ``scale_observation=False``; what it plays against
    chooses the positions to learn from, and nothing else. Rewards, actions and next observations of
    the batch are not used, nor are windows of several steps.

    Args:
        policy: as in `DDQN`. The environment alone may be given in its place, for `"HostPolicy"`.
        env: as in `DDQN`; an id makes 256 exact games against the agent `random`.
        learning_rate: as in `DDQN`; by default it falls to 0 during `learn`.
        **ddqn: further arguments of `DDQN` by name. Other defaults: `batch_size` 128,
            `buffer_size` 100,000, `exploration_rate` 0.1, `gamma` 0.98, `learning_starts` 2048,
            `target_update_interval` 1, `tau` 0.02, the optimiser `muon`, and a network of
            pairs of points where `policy_kwargs` name no extractor.

    Raises:
        ValueError: the environment is not the host's, or scales its observations.
    """

    game: ClassVar = {"opponent": "random", "reposition": True, "scale_observation": False}

    def __init__(
        self, policy: Any, env: Any = None, learning_rate: Any = "lin_3e-3", **ddqn: Any
    ) -> None:
        if env is None and not (isinstance(policy, type) or policy in self.policy_aliases):
            policy, env = "HostPolicy", policy
        super().__init__(policy, env, learning_rate, **{**_DEFAULTS, **ddqn})

    def _setup_model(self) -> None:
        space = self.observation_space
        scaled = float(getattr(space, "high", torch.ones(1)).max()) <= 1
        scaled |= getattr(self._vec_normalize_env, "norm_obs", False)
        if scaled or len(space.shape or ()) != 2:
            raise ValueError(
                "env must be of the host with scale_observation=False and not normalised, whose "
                f"positions are exact, got observations {space}"
            )
        named = self.policy_kwargs.keys() & {"extractor", "features_extractor_class"}
        network = {} if named else _NETWORK
        self.policy_kwargs = {"optimizer_class": "muon", **network, **self.policy_kwargs}
        super()._setup_model()

    def learn(  # type: ignore[override]
        self, total_timesteps: int, callback: Any = None, *arguments: Any, **named: Any
    ) -> Self:
        """As in `DDQN`, but None stands for `WorstCasePositions()` and `GrowingStarts()`.

        Any other value replaces both. So `callback=[]` learns without them, and a callback of your
        own needs them beside it: `callback=[WorstCasePositions(), GrowingStarts(), mine]`.
        """
        if callback is None:
            callback = [CALLBACKS["worst_case_positions"](), GrowingStarts()]
        return super().learn(total_timesteps, callback, *arguments, **named)

    def compute_loss(self, batch: Any) -> LossTerms:
        """The mean over all sets; measured are the values of the best sets."""
        with torch.no_grad():
            target = minimax_targets(self._target, positions_of(batch.observations), self.gamma)
        predicted = self._online(batch.observations)
        losses = LOSSES[self.loss](predicted, target, reduction="none").mean(1)
        weights = getattr(batch, "weights", None)
        losses = losses if weights is None else weights * losses
        return LossTerms(losses.mean(), predicted.amax(1), target.amax(1))


complete_signature(MinimaxDQN, DDQN, _DEFAULTS)


def set_costs(graph: Graph, state: GameState, most: int) -> Tensor:
    """Moves of the longest game that begins with each of the host's sets, int64 [N, A].

    A host that takes the set of least cost is at least as good: a step of policy iteration.

    Args:
        graph: of a host that draws nothing and remembers nothing; no positions beyond its limit are
            followed.
        state: N unfinished positions, of the basic rule.
        most: stands for all longer games; costs are 1 to `most`, or 0 where none is proved.
    """
    after, overflow = functional.successors(state)
    begins = graph.begin(after)
    for _ in graph.walk(begins, most - 1, 0, LINES):
        pass  # what is too long is found soon
    while len(open_ := np.flatnonzero(graph.rows["asked"][: len(graph.keys)] == 0)[2:]):
        if graph.limits.reached(len(graph.keys)):
            break
        graph.expand(open_[: graph.batch])
    bounds = (torch.from_numpy(each[begins]).view(overflow.shape) for each in graph.bounds(begins))
    longest = (each.clamp(max=most - 1).masked_fill(overflow, most - 1) for each in bounds)
    low, high = (1 - worst_answers(-each, state.points.shape[2]) for each in longest)
    return torch.where(low == high, low, 0).long()
