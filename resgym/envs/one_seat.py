"""Seats a learner in one role and lets players answer in the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from resgym.envs.arguments import parse_integers
from resgym.envs.autoreset import Observation, Outcome, TensorVectorEnv
from resgym.envs.one_pass import step_around_players, step_plan
from resgym.envs.two_player import HironakaVectorEnv, points_space
from resgym.game import devices
from resgym.game.rewards import Transition, role_reward
from resgym.game.rng import RowRandom, Stream
from resgym.game.spec import Role
from resgym.game.state import GameState
from resgym.kernels.step import StepPlan
from resgym.players import (
    Mixture,
    Player,
    compiled_name,
    make_mixture,
    resolve_player,
    rows_of,
)

__all__ = ["AlternatingPlayers"]


class AlternatingPlayers(TensorVectorEnv):
    """One-seat view of a `HironakaVectorEnv`: a step is a whole move.

    Seat ``host`` (``resgym/HironakaHost-v0``): action ``Discrete(2^D - D - 1)``, an axis set;
    observation float32 [N, P, D], the points.

    Seat ``agent`` (``resgym/HironakaAgent-v0``): action ``Discrete(D)``, an axis of the observed
    set; observation ``points`` float32 [N, P, D] and ``coords`` int8 [N, D], the set that the host
    has named, which is the legal-action mask at once and the set that will be played.

    ``max_episode_steps`` of the wrapped environment counts half-moves, so an episode here lasts at
    most half as many steps.
    """

    def __init__(
        self,
        env: HironakaVectorEnv,
        seat: Role = "host",
        opponent: Any = None,
    ) -> None:
        """Wraps an environment, whose games this one then plays; do not step it on its own.

        Args:
            env: the two-seat environment. Its reward, limits and modes carry over.
            seat: the learner's role.
            opponent: who answers: a player's name, a `Player`, a callable, a saved model's path;
                or several, see `set_opponent`. The default is ``random``.

        Raises:
            ValueError, TypeError: the seat or an opponent is none.
        """
        if not isinstance(env, HironakaVectorEnv):
            raise TypeError(f"env must be a HironakaVectorEnv, got {type(env).__name__}")
        if seat not in ("host", "agent"):
            raise ValueError(f"seat must be 'host' or 'agent', got {seat!r}")
        self.env = env
        self.seat: Role = seat
        self.opponent_role: Role = "agent" if seat == "host" else "host"
        self.reward = env.reward
        self.scale_observation = env.scale_observation
        self._sets = env._sets
        spec = env.spec_of_game
        self.spec_of_game = spec
        points = points_space(spec, env.scale_observation)
        limit = env.max_episode_steps
        super().__init__(
            env.table,
            points
            if seat == "host"
            else spaces.Dict(points=points, coords=spaces.MultiBinary(spec.dimension)),
            spaces.Discrete(spec.num_host_actions if seat == "host" else spec.dimension),
            max_episode_steps=None if limit is None else (limit + 1) // 2,
            invalid_action=env.invalid_action,
            autoreset_mode=env.autoreset_mode,
            output=env.output,
            render_mode=env.render_mode,
        )
        self.set_opponent("random" if opponent is None else opponent)

    # Opponents.

    def set_opponent(self, opponent: Any, assignment: Any = None) -> None:
        """Replaces the opponent, from the next move on.

        Args:
            opponent: one opponent; or a sequence of them, to whom the games are dealt out in turn
                (N of them: one per row); or a mapping of opponents to weights. See `Mixture`.
            assignment: int [N], which of a sequence plays each row, whatever the episode.

        Raises:
            ValueError, TypeError: an opponent is none, or the assignment does not fit.
        """
        several = isinstance(opponent, Mapping) or (
            isinstance(opponent, Sequence) and not isinstance(opponent, str)
        )
        if assignment is not None and (not several or isinstance(opponent, Mapping)):
            raise ValueError("assignment needs a sequence of opponents")
        if not several:
            self._players = [resolve_player(opponent, self.opponent_role, self.spec_of_game)]
            self._mixture: Mixture | None = None
            self._fixed: Tensor | None = None
            return
        mixture = make_mixture(opponent, self.opponent_role, self.spec_of_game)
        fixed = None
        if assignment is not None:
            rows = parse_integers("assignment", assignment, self.num_envs, torch.device("cpu"))
            if int(rows.min()) < 0 or int(rows.max()) >= len(mixture.players):
                raise ValueError(
                    f"assignment must be in 0..{len(mixture.players) - 1} (opponents), "
                    f"got {int(rows.min())}..{int(rows.max())}"
                )
            fixed = rows.to(self.device)
        # Rows that share a player are answered in one call.
        distinct: list[Player] = []
        for player in mixture.players:
            if not any(player is known for known in distinct):
                distinct.append(player)
        number = [next(i for i, d in enumerate(distinct) if d is p) for p in mixture.players]
        self._players = distinct
        self._number = torch.tensor(number, device=self.device)
        self._mixture, self._fixed = mixture, fixed

    def _assignment(self) -> Tensor | None:
        """Int64 [N], who of the distinct players answers each row now; None: the only one."""
        if self._mixture is None:
            return None
        seats = self._mixture.seats(self.table.episode) if self._fixed is None else self._fixed
        return self._number[seats]

    @property
    def opponents(self) -> list[Player]:
        """The distinct players that answer."""
        return list(self._players)

    def _answers(self, actions: Tensor, playing: Tensor) -> Tensor:
        """The opposing agents' choices int64 [N] if these actions were played, which are not yet.

        Args:
            actions: int64 [N], in range.
            playing: bool [N], the rows that are played.
        """
        table = self.table
        coords = torch.where(playing[:, None], self._sets[actions], self._sets[:1])
        rng = table._episode_rng.at_later(table.half_moves + playing, Stream.AGENT)
        return self._ask(table.state, coords, rng)

    def _respond(self, rows: Tensor | None = None) -> Tensor:
        """The opponents' choices int64 [N], or [M] for an index ``rows``."""
        table = self.table
        stream = Stream.AGENT if self.seat == "host" else Stream.HOST
        coords = None
        if self.seat == "host":
            # Rows in which no set was named (an illegal action, a restart) get any set: a player
            # is never asked to choose from nothing.
            named = table.coords.any(1, keepdim=True)
            coords = torch.where(named, table.coords, self._sets[:1])
        return self._ask(table.state, coords, table.rng(stream), rows)

    def _ask(
        self, state: GameState, coords: Tensor | None, rng: RowRandom, rows: Tensor | None = None
    ) -> Tensor:
        """The opponents' choices in these positions of all rows, for all or for an index."""
        assignment = self._assignment()
        if rows is not None:
            state, rng = state.select(rows), rng.select(rows)
            coords = None if coords is None else coords[rows]
            assignment = None if assignment is None else assignment[rows]
        if assignment is None:
            player = self._players[0] if rows is None else rows_of(self._players[0], rows)
            return player.act(state, coords, rng)
        choice = torch.zeros_like(assignment)
        for number, player in enumerate(self._players):
            mine = assignment == number
            if devices.is_host_memory(self.device):
                index = mine.nonzero()[:, 0]
                if len(index):
                    own = rows_of(player, index if rows is None else rows[index])
                    chosen = own.act(
                        state.select(index),
                        None if coords is None else coords[index],
                        rng.select(index),
                    )
                    choice = choice.index_copy(0, index, chosen)
            else:
                choice = torch.where(mine, player.act(state, coords, rng), choice)
        return choice

    # The move.

    @property
    def all_actions_legal(self) -> bool:
        """True for the host, whose sets are all legal."""
        own, mine = type(self), AlternatingPlayers
        unchanged = own._legal is mine._legal and own.action_masks is mine.action_masks
        return self.seat == "host" and unchanged

    def _legal(self) -> Tensor:
        if self.seat == "host":
            shape = (self.num_envs, self.spec_of_game.num_host_actions)
            return torch.ones(shape, dtype=torch.bool, device=self.device)
        return self.table.coords

    def _is_legal(self, values: Tensor) -> Tensor:
        if self.seat == "host":
            return torch.ones_like(values, dtype=torch.bool)
        return super()._is_legal(values)

    def _begin(self, mask: Tensor) -> None:
        if self.seat == "agent":
            self._host_names(mask)

    def _host_names(self, mask: Tensor) -> None:
        """The opposing host names its set in the rows of ``mask``."""
        if not devices.is_host_memory(self.device):
            self.table.name_set(self._sets[self._respond()], mask)
            return
        rows = mask.nonzero()[:, 0]
        if len(rows) == self.num_envs:
            self.table.name_set(self._sets[self._respond()], mask)
        elif len(rows):
            coords = torch.zeros_like(self.table.coords)
            coords[rows] = self._sets[self._respond(rows)]
            self.table.name_set(coords, mask)

    def _play(self, actions: Tensor, mask: Tensor) -> Outcome:
        table = self.table
        before = table.state
        if self.seat == "host":
            table.name_set(self._sets[actions], mask)
            axis = self._respond()
        else:
            axis = actions
        coords = table.coords
        overflow = table.answer(axis, mask)
        finished = mask & table.state.finished()
        reward = role_reward(
            self.reward, Transition(before, coords, axis, table.state, finished, self.seat)
        )
        if self.seat == "agent":
            self._host_names(mask & ~finished)
        return Outcome(torch.where(mask, reward, 0.0), finished, overflow)

    def _observe(self, rows: Tensor | None = None) -> Observation:
        state, coords = self.table.state, self.table.coords
        if rows is not None:
            state, coords = state.select(rows), coords[rows]
        points = self.table.backend.observe_points(state, self.scale_observation)
        return self._observation(points, coords.to(torch.int8))

    def _observation(self, points: Any, coords: Any) -> Observation:
        return points if self.seat == "host" else {"coords": coords, "points": points}

    def _plan(self) -> StepPlan | None:
        opponent = compiled_name(self._players[0]) if self._mixture is None else None
        return None if opponent is None else step_plan(self, self.seat, opponent)

    def _step_in_passes(self, values: Tensor) -> Any:
        return step_around_players(self, values)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the wrapped environment too."""
        self.env.close()
