"""The common part of the environments: check the input, let a backend play, return the results.

`resgym.game.episode.Backend.step` has a table of what a step does in every situation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from resgym.envs.forms import (
    Info,
    LegalMultiDiscrete,
    ResultForm,
    StateDict,
    load_state,
    parse_integers,
    parse_options,
    parse_reset_mask,
    parse_seeds,
    refusal,
    save_state,
    start_sizes,
)
from resgym.envs.frames import RENDER_MODES, check_render_mode, render_game, render_modes
from resgym.game.episode import Backend, legal_actions
from resgym.game.rng import RowRandom
from resgym.game.rules import given_starts
from resgym.game.spec import Axes, action_axes
from resgym.game.stepping import (
    EpisodeState,
    Games,
    RefusedStep,
    RewardFunction,
    StepPlan,
    check_reward,
)
from resgym.players import Player, player_name
from resgym.players.asking import Mixture, make_mixture
from resgym.players.registry import check_role
from resgym.texts import shown


class PlannedVectorEnv(VectorEnv):
    """N games of a plan; `HironakaVectorEnv` makes the plan.

    Attributes:
        num_envs: N.
        plan: the game, and what a step does.
        backend: the implementation that plays.
        device: device of the results, if they are tensors.
        form: form of the results.
        all_actions_legal: a promise to learners: every action is legal in every position, so
            `action_masks` is not needed. A subclass that breaks the promise must unset it.
        final_obs_of_all_rows: a promise likewise: ``final_obs``, where a step has it, also holds
            the observations of rows that continue, so it is the result of all rows' actions.
        returns_new_tensors: a promise likewise: no later step writes to what a step returned.
    """

    # As Gymnasium declares it: each instance has its own, with its autoreset mode.
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
    }
    all_actions_legal = False
    final_obs_of_all_rows = True
    returns_new_tensors = True

    def __init__(
        self,
        num_envs: int,
        plan: StepPlan,
        backend: Backend,
        device: torch.device,
        form: ResultForm,
        render_mode: str | None,
        opponent: Any,
    ) -> None:
        self.num_envs = num_envs
        self.plan = plan
        self.backend = backend
        self.device = device
        self.form = form
        self.seat = plan.seat
        self.all_actions_legal = plan.seat == "host" and not plan.spec.kind.limits_sets
        self.autoreset_mode = AutoresetMode[plan.autoreset_mode]
        self.single_observation_space = form.space(plan)
        self.single_action_space = spaces.Discrete(plan.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {
            **type(self).metadata,
            "autoreset_mode": self.autoreset_mode,
            "render_modes": render_modes(plan.spec.dimension),
        }
        self.render_mode = check_render_mode(render_mode, plan.spec.dimension)
        self._started = False
        # For frames: the games before the last step, actions, overflows, answers of agents.
        self._last: tuple[EpisodeState, Tensor, Tensor, Tensor | None] | None = None
        self._games: Games = EpisodeState.empty(num_envs, plan.spec, device)
        self._opponents = Mixture(())  # with both seats there are none
        self._answer: Tensor | None = None
        if plan.seat != "both":
            self.set_opponent("random" if opponent is None else opponent)
        elif opponent is not None:
            raise ValueError(f"opponent must be None with seat 'both', got {shown(opponent)}")
        self._sample_legal()

    def _sample_legal(self) -> None:
        if not self.all_actions_legal:
            self.action_space = LegalMultiDiscrete(self.action_space, self._legal_now)

    def __setstate__(self, state: StateDict) -> None:
        vars(self).update(state)
        self._sample_legal()

    def set_opponent(self, opponent: Any, assignment: Any = None) -> None:
        """Replace the opponent, from the next move on.

        Args:
            opponent: one opponent, as in `resgym.players.resolve_player`: a player's name, a
                `Player`, a callable or a saved model's path. Or a sequence of them, which meet the
                games in turn (N of them: one per row). Or a mapping of opponents to weights. See
                `Mixture`.
            assignment: int [N], the index of each row's opponent in a sequence, in all episodes.

        Raises:
            ValueError, TypeError: an opponent is invalid, or the assignment does not fit.
        """
        if self.seat == "both":
            raise ValueError("opponent: both seats are played here")
        role = check_role("agent" if self.seat == "host" else "host")
        mixture = make_mixture(opponent, role, self.plan.spec)
        if assignment is not None:
            rows = parse_integers("assignment", assignment, self.num_envs, self.device)
            most = len(mixture.players) - 1
            if mixture.shares or ((rows < 0) | (rows > most)).any():
                raise ValueError(f"assignment must be in 0..{most}, of a sequence of opponents")
            mixture = mixture._replace(assignment=rows)
        self._opponents = mixture
        # Frames show the answers, so the players themselves are asked.
        self.plan = replace(self.plan, opponent=None if self.render_mode else mixture.compiled)

    @property
    def opponents(self) -> list[Player]:
        """The players that answer."""
        return list(self._opponents.players)

    def __repr__(self) -> str:
        return (
            f"{super().__repr__()[:-1]}, seat={self.seat}, "
            f"opponent={', '.join(map(player_name, self.opponents))})"
        )

    @property
    def reward(self) -> str | RewardFunction:
        """The reward, a name or a function; a new one applies from the next step on."""
        return self.plan.reward

    @reward.setter
    def reward(self, reward: str | RewardFunction) -> None:
        check_reward(reward)
        self.plan = replace(self.plan, reward=reward)

    @property
    def games(self) -> EpisodeState:
        """The current games, as tensors that no later step writes to."""
        games = self._games = self._games.tensors()
        return games

    def action_masks(self) -> Any:
        """Bool [N, A], True = legal, for the current observation.

        Raises:
            ValueError: before the first reset, or after close.
        """
        self._require_started("action_masks")
        return self.form.out(legal_actions(self.plan, self.games).clone())

    def _legal_now(self) -> np.ndarray | None:
        return legal_actions(self.plan, self.games).cpu().numpy() if self._started else None

    def render(self) -> tuple[Any, ...] | None:
        """Return one frame per row in ``render_mode``, or None without one.

        It shows the position, and the last move of its game if the last step played one.
        ``ansi`` and ``svg`` frames are text, ``rgb_array`` frames uint8 [H, W, 3] of one
        size. In ``human`` row 0's are printed at every reset and step, and here is None.

        Raises:
            ValueError: before the first reset, or after close.
        """
        self._require_open()
        if self.render_mode is None:
            return None
        self._require_started("render")
        if self.render_mode == "human":
            return None
        return tuple(self._frame(row, self.render_mode) for row in range(self.num_envs))

    def _frame(self, row: int, render_mode: str) -> Any:
        games = self.games
        points = games.position.select(slice(row, row + 1)).point_lists()[0]
        coords = games.coords[row].nonzero()[:, 0].tolist()
        move = int(games.half_moves[row]) // 2
        return render_game(points, coords, move, render_mode, self._last_move(row))

    def _last_move(self, row: int) -> tuple[Axes, int] | None:
        """Return the set and the axis of a row in the last step, if that completed a move."""
        if not self._last:
            return None
        before, actions, overflow, answer = self._last
        if self.games.half_moves[row] <= before.half_moves[row] or overflow[row]:
            return None
        action = int(actions[row])
        spec = self.plan.spec
        if answer is not None:
            return action_axes(spec.dimension, spec.least_axes)[action], int(answer[row])
        axes = tuple(before.coords[row].nonzero()[:, 0].tolist())
        return (axes, action) if axes else None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, Info]:
        """Start new episodes.

        Args:
            seed: s seeds row i with s + i; a list has one seed per row. Rows with None continue
                their random numbers (the first time, from fresh entropy).
            options: ``points`` (one game or N) to start from, with rule ``thom`` also ``weights``,
                see `resgym.state_from_points`; ``reset_mask`` (bool [N], torch or numpy) restarts
                some rows only. Not modified.

        Raises:
            ValueError, TypeError: an option is unknown or does not fit; nothing changes then.
        """
        self._require_open()
        options = parse_options(options)
        mask = parse_reset_mask(
            options.get("reset_mask"), self.num_envs, self.device, self._started
        )
        seeds = parse_seeds(seed, self.num_envs, fresh=not self._started)
        points = options.get("points")
        weights = options.get("weights")
        starts = None
        if points is not None:
            starts = given_starts(points, self.plan.spec, self.num_envs, self.device, weights)
        elif weights is not None:
            raise ValueError("options: weights need points")
        games = self._reseeded(seeds, mask)
        result = self.backend.start(self.plan, games, mask, self._ask, starts)
        self._games = result.games
        self._started = True
        self._last = None
        self._show()
        observation = self.form.seen(self.seat, result.points, result.coords)
        info = self.form.info(self.plan, result, observation) if self.form.full_info else {}
        return observation, info

    def _reseeded(self, seeds: Sequence[int | None], mask: Tensor) -> Games:
        """Return the games with new seeds in the rows of ``mask`` that have one; counts restart."""
        if all(seed is None for seed in seeds):
            return self._games
        games = self.games
        given = torch.tensor([seed is not None for seed in seeds], device=self.device) & mask
        fresh = torch.tensor([seed or 0 for seed in seeds], device=self.device)
        return games._replace(
            seed=torch.where(given, fresh, games.seed),
            episode=torch.where(given, -1, games.episode),
        )

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        """Play one action in every row.

        Args:
            actions: int [N], torch or numpy.

        Returns:
            observation, reward float32 [N] (float64 in NumPy), terminated bool [N], truncated bool
            [N] and info with ``overflow`` bool [N]. Info also has ``final_obs`` (as the
            observation, dense, never overwritten) with its mask ``_final_obs``, and ``episode`` =
            {r, l} with its mask ``_episode``. On the CPU these four are there only if an episode
            ended; on an accelerator, and with ``full_info``, always. In NumPy every key has its
            mask, also ``_overflow``.

        Raises:
            ValueError, TypeError: actions have a wrong shape or dtype, or one is illegal with
                ``invalid_action="error"``; a step before a reset, after close, or of an ended row
                in DISABLED mode. Nothing changes then. Errors of an opponent or of a reward
                function are passed on, and change nothing either.
        """
        self._require_started("step")
        values = parse_integers("actions", actions, self.num_envs, self.device)
        before = self.games if self.render_mode else None
        self._answer = None
        try:
            result = self.backend.step(self.plan, self._games, values, self._ask)
        except RefusedStep:
            raise refusal(self.plan, self.games, values) from None
        self._games = result.games
        if before:
            self._last = before, values, torch.as_tensor(result.overflow), self._answer
        self._show()

        form = self.form
        observation = form.seen(self.seat, result.points, result.coords)
        info = form.info(self.plan, result, observation)
        if "_rewards" in info and self.plan.autoreset_mode == "NEXT_STEP":  # not of rows only reset
            info["_rewards"] = form.out(self.games.lengths > 0)
        return (
            observation,
            form.paid(result.reward),
            form.out(result.terminated),
            form.out(result.truncated),
            info,
        )

    def _ask(
        self, games: EpisodeState, coords: Tensor | None, rng: RowRandom, rows: Tensor | None
    ) -> Tensor:
        """Ask the other seat; see `resgym.game.stepping.Ask`."""
        answer = self._opponents.ask(games, coords, rng, rows)
        self._answer = None if coords is None else answer
        return answer

    def set_stage(self, num_points: int | None = None, max_value: int | None = None) -> None:
        """Make random starts smaller, for a curriculum, from each row's next episode on.

        Starts have 2 to ``max_num_points`` points and largest coordinates of 1 to ``max_value``;
        None is the environment's own. Raises ValueError if the environment has a set of starts.
        """
        if self.plan.starts:
            raise ValueError("starts are given, so there are no random starts to make smaller")
        starts = start_sizes(self.plan.spec, num_points, max_value)
        self.plan = replace(self.plan, start_spec=starts)

    def state_dict(self) -> StateDict:
        """Return all that the next steps depend on except the players: copied tensors and data."""
        return save_state(self.plan, self.games, self._started)

    def load_state_dict(self, state: StateDict) -> None:
        """Continue where `state_dict` was taken, with as many rows of the same game.

        Raises:
            ValueError, TypeError: the state belongs to another game or form, or holds values that
                no game of this environment can have. Nothing changes then.
        """
        self._require_open()
        self.plan, self._games, self._started = load_state(self.plan, self.games, state)
        self._last = None

    def _show(self) -> None:
        if self.render_mode == "human":
            print(self._frame(0, "ansi"))

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError("the environment is closed: make a new one")

    def _require_started(self, what: str) -> None:
        self._require_open()
        if not self._started:
            raise ValueError(f"{what} before reset: call reset() first")
