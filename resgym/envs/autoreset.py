"""What every vector environment of the package does around a move.

Stepping is total. For a row of an environment that was reset:

    situation                       outcome
    legal action                    the move is played
    illegal, invalid_action=error   ValueError before anything changes
    illegal, noop                   position stays, reward 0, the step counts
    illegal, penalty                as noop, reward -1
    illegal, terminate              terminated, reward -1
    one point left                  terminated
    max_episode_steps reached       truncated (unless terminated)
    a coordinate would pass 2^59    position stays, truncated, info["overflow"]
    ended row, SAME_STEP            cannot be met: the row has restarted already
    ended row, NEXT_STEP            the action is ignored, the row restarts, reward 0
    ended row, DISABLED             ValueError until reset with options={"reset_mask": ...}
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from resgym.envs.arguments import (
    check_choice,
    parse_actions,
    parse_autoreset_mode,
    parse_options,
    parse_reset_mask,
    parse_seeds,
    shorten,
)
from resgym.envs.held import HeldField, Holder, as_tensor
from resgym.envs.one_pass import start_in_one_pass, step_in_one_pass
from resgym.envs.saving import check_fields, check_rows, load_table_state, table_state
from resgym.envs.table import Table
from resgym.game import devices
from resgym.game.spec import check_integer
from resgym.game.state import GameState
from resgym.kernels.step import StepPlan
from resgym.render.positions import RENDER_MODES, check_render_mode, render_modes, render_row

__all__ = ["INVALID_ACTION", "OUTPUTS", "Outcome", "TensorVectorEnv", "map_tensors"]

INVALID_ACTION = ("error", "noop", "penalty", "terminate")
OUTPUTS = ("torch", "numpy")
INVALID_ACTION_REWARD = -1.0

Observation = Any


class Outcome(NamedTuple):
    """What a batch of legal actions led to; every field [N] and neutral in rows not played."""

    reward: Tensor
    finished: Tensor
    overflow: Tensor


def map_tensors(tree: Any, function: Callable[[Tensor], Any]) -> Any:
    """Applies a function to every tensor of nested dicts."""
    if isinstance(tree, dict):
        return {key: map_tensors(value, function) for key, value in tree.items()}
    return function(tree)


class TensorVectorEnv(Holder, VectorEnv):
    """Base of the vector environments: actions in, masks, autoreset, statistics, results out.

    Subclasses set the spaces and implement `_legal`, `_play`, `_begin` and `_observe`.

    Attributes:
        table: the games.
        num_envs: N.
        device: where results live when ``output`` is ``torch``.
    """

    # As Gymnasium declares it: each instance has its own, with its autoreset mode.
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
    }

    _return = HeldField(lambda held: as_tensor(held.returns))
    _length = HeldField(lambda held: as_tensor(held.lengths))
    _ended = HeldField(lambda held: as_tensor(held.ended))

    def __init__(
        self,
        table: Table,
        single_observation_space: spaces.Space[Any],
        single_action_space: spaces.Discrete,
        *,
        max_episode_steps: int | None,
        invalid_action: str,
        autoreset_mode: AutoresetMode | str,
        output: str,
        render_mode: str | None,
    ) -> None:
        self.table = table
        self.num_envs = table.num_games
        self.device = table.device
        self.single_observation_space = single_observation_space
        self.single_action_space = single_action_space
        self._num_choices = int(single_action_space.n)
        self.observation_space = batch_space(single_observation_space, self.num_envs)
        self.action_space = batch_space(single_action_space, self.num_envs)
        if max_episode_steps is not None:
            max_episode_steps = check_integer("max_episode_steps", max_episode_steps, 1)
        self.max_episode_steps = max_episode_steps
        self.invalid_action = check_choice("invalid_action", invalid_action, INVALID_ACTION)
        self.output = check_choice("output", output, OUTPUTS)
        self.autoreset_mode = parse_autoreset_mode(autoreset_mode)
        # Per instance: the class dictionary is shared by all environments.
        self.metadata = {
            **type(self).metadata,
            "autoreset_mode": self.autoreset_mode,
            "render_modes": render_modes(table.spec.dimension),
        }
        self.render_mode = check_render_mode(render_mode, table.spec.dimension)
        self._started = False
        self._memory: Any = None  # of the backend, see `resgym.kernels.step`
        self._return = torch.zeros(self.num_envs, device=self.device)
        self._length = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self._ended = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)

    # What learners may leave out. A subclass that does it another way takes the promise back.

    @property
    def all_actions_legal(self) -> bool:
        """Whether every action is legal in every position: nobody needs `action_masks` then."""
        return False

    @property
    def final_obs_of_all_rows(self) -> bool:
        """Whether rows that go on have their observation in ``final_obs``, where a step has it.

        So it is what the actions of all rows led to.
        """
        return type(self).step is TensorVectorEnv.step

    # What a subclass provides.

    @abstractmethod
    def _legal(self) -> Tensor:
        """Bool [N, A]: the legal actions of the current observation."""

    @abstractmethod
    def _play(self, actions: Tensor, mask: Tensor) -> Outcome:
        """Plays the rows of ``mask``, whose actions int64 [N] are legal."""

    @abstractmethod
    def _observe(self, rows: Tensor | None = None) -> Observation:
        """New tensors that show all rows, or those of an index int64 [M]."""

    @abstractmethod
    def _observation(self, points: Any, coords: Any) -> Observation:
        """The observation that shows these points float32 [N, P, D] and sets int8 [N, D]."""

    def _plan(self) -> StepPlan | None:
        """What a backend must know to play a step as one operation; None if it cannot."""
        return None

    def _step_in_passes(self, values: Tensor) -> Any:
        """What `step` returns, by passes of the backend around opponents; None if it cannot."""

    def _set_may_wait(self, named: Tensor, finished: Tensor) -> Tensor:
        """Bool [N]: whether rows may have a set that awaits an answer (bool [N]), or none.

        Args:
            named: bool [N], where one does.
            finished: bool [N], where one point is left.
        """
        return ~(named & finished)

    def _begin(self, mask: Tensor) -> None:
        """Called after the rows of ``mask`` (bool [N]) have got a new starting position."""

    # The public contract.

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts new episodes.

        Args:
            seed: s seeds row i with s + i; a list gives one seed per row. Rows with None go on with
                their own random numbers (the first time, with fresh entropy).
            options: ``points`` (one game or N of them) to start from; ``reset_mask`` (bool [N],
                torch or numpy) to restart some rows only. Not modified.

        Raises:
            ValueError, TypeError: an option is unknown or does not fit; nothing has changed then.
        """
        self._require_open()
        options = parse_options(options)
        mask = parse_reset_mask(
            options.get("reset_mask"), self.num_envs, self.device, self._started
        )
        seeds = parse_seeds(seed, self.num_envs, fresh=not self._started)
        points = options.get("points")
        kept = self._snapshot()
        try:
            self.table.reseed(seeds, mask)
            observation = None if points is not None else start_in_one_pass(self, mask)
            if observation is None:
                observation = self._start_in_parts(mask, points)
            self._started = True
        except BaseException:
            self._restore(kept)
            raise
        self._show()
        return observation, {}

    def _start_in_parts(self, mask: Tensor, points: Any) -> Observation:
        """Starts episodes by small operations: the reference, and for given positions."""
        self.table.start(mask, points)
        self._ended = self._ended & ~mask
        self._return = torch.where(mask, 0.0, self._return)
        self._length = torch.where(mask, 0, self._length)
        self._begin(mask)
        return self._out(self._observe())

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, dict[str, Any]]:
        """Plays one action in every row.

        Args:
            actions: int [N], torch or numpy.

        Returns:
            observation, reward float32 [N], terminated bool [N], truncated bool [N] and info with
            ``overflow`` bool [N]; ``final_obs`` (as the observation, dense, never overwritten) with
            its mask ``_final_obs``, and ``episode`` = {r, l} with its mask ``_episode``. On the CPU
            these four are there only when an episode ended; on an accelerator always.

        Raises:
            ValueError, TypeError: actions of a wrong shape, dtype or (``invalid_action="error"``)
                an illegal one; stepping before a reset, after close, or an ended row in DISABLED
                mode. Nothing has changed then, nor after an error of an opponent or of a reward
                function, which is passed on.
        """
        self._require_open()
        self._require_started("step")
        values = parse_actions(actions, self.num_envs, self.device)
        result = (
            step_in_one_pass(self, values)
            or self._step_in_passes(values)
            or self._step_in_parts(values, actions)
        )
        self._show()
        return result

    def _step_in_parts(
        self, values: Tensor, actions: Any
    ) -> tuple[Observation, Any, Any, Any, dict[str, Any]]:
        """The step put together from small operations: the reference, and for any player."""
        active = ~self._ended
        if self.autoreset_mode == AutoresetMode.DISABLED:
            self._refuse_ended()
        num_actions = self._num_choices
        in_range = (values >= 0) & (values < num_actions)
        values = values.clamp(0, num_actions - 1)
        legal = in_range & self._is_legal(values)
        if self.invalid_action == "error":
            self._refuse_illegal(active & ~legal, actions)
        illegal = active & ~legal
        kept = self._snapshot()
        try:
            outcome = self._play(values, active & legal)
            return self._finish(active, illegal, outcome)
        except BaseException:
            self._restore(kept)
            raise

    def _is_legal(self, values: Tensor) -> Tensor:
        return self._legal().gather(1, values[:, None])[:, 0]

    def action_masks(self) -> Any:
        """Bool [N, A], True = legal, for the current observation.

        Raises:
            ValueError: before the first reset, or after close.
        """
        self._require_open()
        self._require_started("action_masks")
        return self._out(self._legal().clone())

    def render(self) -> tuple[Any, ...] | None:
        """One frame per row in ``render_mode``, or None without one.

        ``ansi`` and ``svg`` frames are text, ``rgb_array`` frames uint8 [H, W, 3] of one size. In
        ``human`` the frames of row 0 are printed at every reset and step, and here is None.

        Raises:
            ValueError: before the first reset, or after close.
        """
        self._require_open()
        if self.render_mode is None:
            return None
        self._require_started("render")
        if self.render_mode == "human":
            return None
        return tuple(render_row(self.table, row, self.render_mode) for row in range(self.num_envs))

    def _show(self) -> None:
        if self.render_mode == "human":
            print(render_row(self.table, 0, "ansi"))

    def set_stage(self, num_points: int | None = None, max_value: int | None = None) -> None:
        """Makes random starts smaller, for a curriculum; each row's next episode is the first.

        Args:
            num_points: points drawn for a start, 2 to ``max_num_points``; None for all.
            max_value: largest coordinate drawn, 1 to the environment's own; None for that.

        Raises:
            ValueError, TypeError: a size is out of its range; nothing has changed then.
        """
        self.table.set_starts(num_points, max_value)

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on, beside the players: copies of tensors, plain data."""
        return {
            "table": table_state(self.table),
            "episodes": {name: value.clone() for name, value in self._episode_fields().items()},
            "started": self._started,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken, with as many rows of the same game.

        Raises:
            ValueError, TypeError: the state is of another game or form, or holds values that no
                game of this environment can have. Nothing has changed then.
        """
        self._require_open()
        if set(state) != {"table", "episodes", "started"}:
            raise ValueError(f"state must have table, episodes and started, got {sorted(state)}")
        started = state["started"]
        if not isinstance(started, bool):
            raise TypeError(f"started must be True or False, got {started!r}")
        episodes = check_fields(state["episodes"], self._episode_fields())
        episodes = {name: value.to(self.device) for name, value in episodes.items()}
        check_rows("length", episodes["length"] >= 0, "at least 0")

        def check(positions: GameState, coords: Tensor) -> None:
            if not started:
                return
            finished, ended = positions.finished(), episodes["ended"]
            fits = self._set_may_wait(coords.any(1), finished)
            check_rows("coords", fits, "a set if, and only if, an answer is awaited here")
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                check_rows("ended", ~ended, "False in SAME_STEP mode")
            check_rows("ended", ended | ~finished, "True where one point is left")

        load_table_state(self.table, state["table"], check)
        for name, value in episodes.items():
            setattr(self, f"_{name}", value)
        self._started = started

    def _episode_fields(self) -> dict[str, Tensor]:
        return {"ended": self._ended, "length": self._length, "return": self._return}

    def close_extras(self, **kwargs: Any) -> None:
        """Nothing is held open."""

    # Around a move.

    def _finish(
        self, active: Tensor, illegal: Tensor, outcome: Outcome
    ) -> tuple[Observation, Any, Any, Any, dict[str, Any]]:
        reward = outcome.reward
        terminated = outcome.finished
        if self.invalid_action in ("penalty", "terminate"):
            reward = torch.where(illegal, INVALID_ACTION_REWARD, reward)
        if self.invalid_action == "terminate":
            terminated = terminated | illegal
        self._return = self._return + reward
        self._length = self._length + active
        truncated = outcome.overflow
        if self.max_episode_steps is not None:
            truncated = truncated | (self._length >= self.max_episode_steps)
        truncated = truncated & active & ~terminated
        ended = terminated | truncated
        info: dict[str, Any] = {"overflow": outcome.overflow}

        restart, self._ended = self._ended, ended
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            restart = ended
        observation = self._restart(restart, ended, info)
        return (
            self._out(observation),
            self._out(reward),
            self._out(terminated),
            self._out(truncated),
            self._out(info),
        )

    def _restart(self, restart: Tensor, ended: Tensor, info: dict[str, Any]) -> Observation:
        """Restarts rows as the mode says, fills info, and observes."""
        looking = devices.can_look(self.device)
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        if not looking or bool(ended.any()):
            info["episode"] = {"r": self._return.clone(), "l": self._length.clone()}
            info["_episode"] = ended.clone()
        # Only the CPU can look at the data at no cost; elsewhere every row is handled, masked.
        rows = restart.nonzero()[:, 0] if looking else None
        if self.autoreset_mode == AutoresetMode.DISABLED or (rows is not None and not len(rows)):
            return self._observe()
        final = None
        if same_step:
            final = self._observe()
            info["final_obs"], info["_final_obs"] = final, ended.clone()
            self._ended = torch.zeros_like(ended)
        self.table.start(restart)
        self._return = torch.where(restart, 0.0, self._return)
        self._length = torch.where(restart, 0, self._length)
        self._begin(restart)
        if rows is None or final is None:
            return self._observe()
        return _replace_rows(final, rows, self._observe(rows))

    def _out(self, tree: Any) -> Any:
        if self.output == "torch":
            return tree
        return map_tensors(tree, lambda tensor: tensor.cpu().numpy())

    @property
    def started(self) -> bool:
        """Whether there are games to look at: it was reset and is not closed."""
        return self._started and not self.closed

    def _snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """All fields of this object and of the table.

        Tensors are replaced, never written to, so that putting the fields back undoes whatever an
        opponent or a reward function has interrupted.
        """
        return self.snapshot(), self.table.snapshot()

    def _restore(self, kept: tuple[dict[str, Any], dict[str, Any]]) -> None:
        self.restore(kept[0])
        self.table.restore(kept[1])

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError("the environment is closed: make a new one")

    def _require_started(self, what: str) -> None:
        if not self._started:
            raise ValueError(f"{what} before reset: call reset() first")

    def _refuse_ended(self) -> None:
        if not bool(self._ended.any()):
            return
        rows = shorten(self._ended.nonzero()[:, 0].tolist())
        raise ValueError(
            f"rows {rows} have ended: reset them with options={{'reset_mask': ...}}"
            if self.num_envs > 1
            else "the episode has ended: call reset()"
        )

    def _refuse_illegal(self, illegal: Tensor, actions: Any) -> None:
        if not bool(illegal.any()):
            return
        row = int(illegal.nonzero()[0, 0])
        allowed = self._legal()[row].nonzero()[:, 0].tolist()
        # As an array: torch refuses to read large unsigned numbers.
        given = np.asarray(actions.cpu() if isinstance(actions, Tensor) else actions)[row]
        raise ValueError(f"action of row {row} must be one of {shorten(allowed)}, got {given}")


def _replace_rows(tree: Observation, rows: Tensor, fresh: Observation) -> Observation:
    """A copy of an observation in which some rows (int64 [M]) are others."""
    if isinstance(tree, dict):
        return {key: _replace_rows(value, rows, fresh[key]) for key, value in tree.items()}
    return tree.index_copy(0, rows, fresh)
