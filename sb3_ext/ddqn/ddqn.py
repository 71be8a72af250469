"""Deep Q-learning, double by default, for many parallel games with legal-action masks.

The class reads from top to bottom: arguments, loop, acting, updates. `state.py` has how a model is
made, logged and saved. The loop stores a transition before the callbacks see the step; SB3 stores
it after. So a callback that saves or stops finds buffer, counters and environment at one step.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback, RolloutReturn, TrainFreq
from stable_baselines3.common.utils import check_for_correct_spaces, configure_logger
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import call_each, tell_buffer, to_arrays, to_device, walk_callbacks
from sb3_ext.config.checks import check_count, errors_of
from sb3_ext.ddqn.collector import (
    Collector,
    Explorer,
    Locals,
    ParallelStep,
    TensorCollector,
    infos_from,
    store,
)
from sb3_ext.ddqn.legality import (
    LOSSES,
    STRATEGIES,
    bootstrap_target,
    legal_argmax,
    masks_for,
    with_masks,
)
from sb3_ext.ddqn.policies import ALIASES, clip_gradients, forget_tiny_moments
from sb3_ext.ddqn.state import DDQNState, Playable, Settings
from sb3_ext.networks.mlp import in_mode
from sb3_ext.schedules.schedules import set_learning_rate

# Where the default is another one than SB3's.
_DEFAULTS: dict[str, Any] = {
    "batch_size": 256,
    "buffer_size": 500_000,
    "learning_starts": 1_000,
    "target_update_interval": 100,
    "train_freq": 1,
}


class LossTerms(NamedTuple):
    """The loss on B transitions, a scalar with gradients.

    `predicted` are the values of the chosen actions, `[B]`, and `target` what they should have
    been, `[B]`, without gradients.
    """

    loss: Tensor
    predicted: Tensor
    target: Tensor


class DDQN(DDQNState):
    """Double deep Q-learning (van Hasselt, Guez, Silver 2016), or plain with `double_q=False`.

    Differences from SB3's `DQN`: double Q by default; exploration, greedy choices and bootstrapped
    values use legal actions only; each row explores independently; schedules advance at every
    update; intervals have a unit; with a `TensorVecEnv` no data leave the device.

    Args:
        policy: `"HostPolicy"`, `"AgentPolicy"`, `"MlpPolicy"`, `"CnnPolicy"`,
            `"MultiInputPolicy"` or a class.
        env: As in SB3, or a batch of Gymnasium; an id `"resgym/..."` makes 256 games.
        learning_rate: A schedule for `schedules.parse_schedule`, or a callable as in SB3.
        double_q: False: the target network also chooses the next action (plain DQN).
        dueling: Value and advantage heads (Wang et al. 2016); same as the policy's argument.
        loss: `"huber"`, `"mse"` or `"mae"`, averaged over the batch.
        exploration_strategy: `"epsilon_greedy"`, or `"boltzmann"`: actions are drawn with
            probabilities proportional to exp(value / temperature).
        exploration_rate: Number or schedule: the probability of a random action, or the
            temperature. None: SB3's three exploration arguments apply.
        evaluation_rows: Number of rows, the last ones, that never explore; their episodes are also
            logged separately.
        warmup: Actions until `learning_starts`: `"uniform_legal"` at random, `"policy"` from the
            untrained network with exploration.
        mask_source: Source of the legal actions: `"observation"` (an entry `action_mask`,
            `action_masks` or the agent's `coords`), `"environment"` (`action_masks()`), `"none"`,
            `"auto"`.
        target_update_unit: Unit of `target_update_interval`, `"updates"` or `"transitions"`. In
            transitions, an interval ends with the parallel step that completes it.
        replay_ratio: updates * batch_size / transitions, the average number of uses of a
            transition; replaces `gradient_steps`.
        autocast: Use bfloat16 in the networks while collecting and in updates. Weights, gradients,
            loss, optimiser and `predict` stay float32.
        compile_networks: A mode of `torch.compile` for the networks in updates, such as
            `"default"`; the first update takes a minute. `"reduce-overhead"` makes CUDA graphs.
        log_interval_seconds: Seconds between two logs, or None.
        log_interval_updates: Updates between two logs, or None.
        **sb3: Further arguments of SB3's `DQN` by name. Other defaults: `batch_size` 256,
            `buffer_size` 500,000, `learning_starts` 1,000, `target_update_interval` 100,
            `train_freq` 1. `max_grad_norm=None` never clips.

    Attributes:
        extra_losses: Functions of the model that give a scalar with gradients, which every update
            adds to the loss; not saved.
        batch_changes: Functions of the model and a batch that give the batch to learn from, without
            writing to its tensors; not saved. Both may draw random numbers, but a run that is
            resumed has to draw the same ones: from a generator that is seeded by `num_updates`.

    Raises:
        ValueError, TypeError: An argument out of its range or of another type, in one line.
    """

    stop_requested = False  # whether the running `learn` or `fit` is to end
    _infos: Any = None  # gives those of the last step; None from other collectors

    policy_aliases = ALIASES

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Playable,
        learning_rate: Any = 5e-4,
        *,
        double_q: bool = True,
        dueling: bool = False,
        loss: str = "huber",
        exploration_strategy: str = "epsilon_greedy",
        exploration_rate: Any = None,
        evaluation_rows: int = 0,
        warmup: str = "uniform_legal",
        mask_source: str = "auto",
        target_update_unit: str = "updates",
        replay_ratio: float | None = None,
        autocast: bool = False,
        compile_networks: str | None = None,
        log_interval_seconds: float | None = 10.0,
        log_interval_updates: int | None = None,
        _init_setup_model: bool = True,
        **sb3: Any,
    ) -> None:
        given = locals()
        vars(self).update({name: given[name] for name in Settings.__annotations__})
        self.batch_changes: list[Callable[[DDQN, Any], Any]] = []
        self.extra_losses: list[Callable[[DDQN], Tensor]] = []
        sb3 = {**_DEFAULTS, **sb3}
        if dueling:
            sb3["policy_kwargs"] = {**(sb3.get("policy_kwargs") or {}), "dueling": dueling}
        super().__init__(policy, self.games_of(env), learning_rate, **sb3, _init_setup_model=False)  # type: ignore[arg-type]
        self.exploration = exploration_rate
        if _init_setup_model:
            self._setup_model()

    # The loop

    @property
    def collects_tensors(self) -> bool:
        """Whether the environment is played without leaving its device."""
        return isinstance(self.env, TensorVecEnv)

    def learn(  # type: ignore[override]
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
        *,
        collector: Collector | None = None,
    ) -> Self:
        """Collect and update until at least `total_timesteps` transitions were collected.

        As in SB3, with these differences. `log_interval`, in episodes, is None: the constructor's
        intervals apply. Callbacks may have `before_train()` and `after_train()`, called around
        every block of updates, and `after_learn()`, called when `learn` ends, also with an error.
        A `collector` replaces the model's own environment: it receives the weights and then
        returns `train_freq` parallel steps or more; the number of updates follows the transitions.

        Raises:
            FloatingPointError: A loss or gradient is NaN or infinite. Checked when logs are due, at
                `save` and at the end.
        """
        tb_log_name = tb_log_name or type(self).__name__
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        self.start_clock(episodes=log_interval)
        with self._session(callback, locals(), collector) as update:
            while self.num_timesteps < total_timesteps and not self.stop_requested:
                rollout = self.collect_rollouts(
                    self.env, callback, self.train_freq, self.replay_buffer
                )
                if not rollout.continue_training:
                    break
                update(self._updates_due(rollout.episode_timesteps))
                self._log_if_due()
        return self

    def fit(
        self,
        buffer: str | Path | None = None,
        *,
        updates: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
    ) -> Self:
        """Make updates from the replay buffer, without an environment.

        Every update counts as a step of callbacks: `on_step` is called after it, and False ends the
        fit. So SB3's `EvalCallback` counts updates; it needs a model with an environment. Schedules
        of the progress go from 0 to 1 in this call. Logs carry the number of updates.

        Args:
            buffer: A file of `save_replay_buffer`, which becomes the model's buffer; None: the
                model's buffer.
            updates: Number of updates.
            callback: As in `learn`.
            log_interval: Updates between two logs; None: the constructor's intervals.

        Raises:
            ValueError: The buffer is empty or has other spaces, or target updates count
                transitions.
            FloatingPointError: A loss or gradient became NaN or infinite.
        """
        updates = check_count("updates", updates, low=0)
        if self.target_update_unit != "updates":
            raise ValueError("target_update_unit: must be 'updates' for fit, got 'transitions'")
        if buffer is not None:
            self.load_replay_buffer(buffer)
        with errors_of("buffer"):
            check_for_correct_spaces(self.replay_buffer, self.observation_space, self.action_space)
        self.stop_requested = False
        if not self._custom_logger:
            self._logger = configure_logger(self.verbose, self.tensorboard_log, "fit")
        callbacks = self._init_callback(callback)
        self._fitting = True
        try:
            self.start_clock(updates=log_interval)
            with self._session(callbacks, {"self": self, "total_timesteps": updates}) as update:
                for done in range(updates):
                    self._update_current_progress_remaining(done, updates)
                    update(1)
                    if not callbacks.on_step() or self.stop_requested:
                        break
                    self._log_if_due()
        finally:
            self._fitting = False
        return self

    def request_stop(self) -> None:
        """End `learn` after the updates for the collected data, or `fit` at once.

        A callback that returns False ends `learn` before these updates, so a resumed run would
        differ.
        """
        self.stop_requested = True

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        before, counted = self._last_obs, self.num_timesteps
        self.stop_requested = False
        self.read_episodes()
        total_timesteps, callback = super()._setup_learn(*args, **kwargs)
        self._earlier_transitions += counted - self.num_timesteps
        if not self.ep_info_buffer:  # SB3 began anew
            self.evaluation_buffer.clear()
        if self._last_obs is not before:  # the environments were reset
            self.last_legal = self.last_said = None
            tell_buffer(self, "cut")
        self.start_clock()
        return total_timesteps, callback

    def _init_callback(self, *args: Any, **kwargs: Any) -> BaseCallback:
        callback = super()._init_callback(*args, **kwargs)
        for each in walk_callbacks(callback):
            if isinstance(each, EvalCallback):  # SB3's calls `predict` without masks
                each.model = with_masks(self, each.eval_env)
        return callback

    @contextmanager
    def _session(
        self, callback: BaseCallback, shown: dict[str, Any], collector: Any = None
    ) -> Iterator[Any]:
        """Prepare and end a loop; yield a function that makes this many updates."""

        def update(number: int) -> None:
            if number > 0:
                call_each(callback, "before_train")
                with self.seconds.timed("update"):
                    self.train(gradient_steps=number, batch_size=self.batch_size)
                call_each(callback, "after_train")

        session = getattr(collector, "session", None)
        try:
            # Before the session, which may take its time, so that callbacks hear of signals.
            callback.on_training_start(shown, {})
            with nullcontext(collector) if session is None else session(self) as self._collector:
                with in_mode(self.policy, training=False):
                    yield update
                self.check_finite()
                self.read_episodes()
                if not self._log_every[2]:
                    self.dump_logs()
                callback.on_training_end()
        finally:
            if self.collects_tensors:
                self.env.flush()  # type: ignore[union-attr]
            call_each(callback, "after_learn")
            self._collector = None

    def _updates_due(self, transitions: int) -> int:
        """Return the gradient steps due after new transitions; carry fractions over."""
        if self.num_timesteps <= self.learning_starts:
            return 0
        self._updates_owed += self.updates_for(transitions)
        due = int(self._updates_owed)
        self._updates_owed -= due
        return due

    def updates_for(self, transitions: int) -> float:
        """Return the gradient steps due for this many transitions, once learning has begun."""
        if self.replay_ratio is not None:
            return self.replay_ratio * transitions / self.batch_size
        if self.gradient_steps < 0:
            return transitions
        return self.gradient_steps * transitions / (self.train_freq.frequency * self.n_envs)

    def collect_rollouts(  # type: ignore[override]
        self,
        env: VecEnv | None,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: Any,
        **_: Any,
    ) -> RolloutReturn:
        """Play `train_freq` parallel steps into the buffer, networks in evaluation mode.

        Further arguments of SB3 are ignored. The number of episodes in the result is 0: counting
        them would wait for the device.
        """
        with in_mode(self.policy, training=False):
            callback.on_rollout_start()
            for each in (callback, *walk_callbacks(callback)):
                each.locals = Locals(each.locals)
            before, num_collected_steps = self.num_timesteps, 0
            for played in self.play(env, train_freq.frequency):
                store(played, replay_buffer, self._infos)
                stored = self.num_timesteps + played.rewards.numel()
                for step in played.each():
                    num_collected_steps += 1
                    callback.update_locals(locals())
                    if not self._count(step, callback):
                        self.num_timesteps = stored
                        return RolloutReturn(stored - before, 0, continue_training=False)
            callback.on_rollout_end()
        return RolloutReturn(self.num_timesteps - before, 0, continue_training=True)

    def _count(self, step: ParallelStep, callback: BaseCallback) -> bool:
        """Count one stored step, and show it to the callbacks; whether they want to continue."""
        before, episodes, every = self.num_timesteps, self._episode_num, self._log_every[2]
        if step.episode is not None:
            self._note_episodes(step.episode)
        self.num_timesteps += len(step.rewards)
        callback.update_locals(
            {
                "actions": step.actions,
                "buffer_actions": step.actions,
                "dones": step.terminated | step.truncated,
                "infos": self._infos or cache(partial(infos_from, step)),
                "new_obs": self._last_obs if self._collector is None else step.next_observations,
                "rewards": step.rewards,
            }
        )
        goes_on = callback.on_step()
        self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
        if self.target_update_unit == "transitions":
            interval = self.target_update_interval
            if self.num_timesteps // interval > before // interval:
                self.update_target()
        if every and self._episode_num // every > episodes // every:
            self.dump_logs()
        return goes_on

    def play(self, env: Any, steps: int) -> Iterator[ParallelStep]:
        """Parallel steps in tensors, from the collector that was given or from the environment.

        A `TensorVecEnv` in which another has played meanwhile, as in an evaluation, begins anew.
        """
        self._infos = None
        if self._collector is not None:
            rate = self.explorer().exploration_rate
            self._collector.publish(self.num_updates, self.q_net.state_dict(), rate)
            with self.seconds.timed("environment"):
                played = self._collector.collect(steps)
            yield from (step.on(self.device) for step in played)
            return
        source = self.random_streams["explore"]
        shown = to_device(self._last_obs, self.device)
        own = TensorCollector(env, self.explorer(), self.legal_actions, source, shown)
        own.legal = self.last_legal
        if self._vec_normalize_env is not None:
            own.original = to_device(self._last_original_obs, self.device)
        for number in range(steps):
            if self.last_said is not None and env.said is not self.last_said:
                tell_buffer(self, "cut")
                own.observation = own.legal = None  # not those of the games now
            if number > 0:
                own.explorer = self.explorer()
            before = own.seconds
            step = own.step()
            self.seconds["environment"] += own.seconds - before
            self._last_obs, self._last_original_obs = own.observation, own.original
            self.last_legal, self._infos = own.legal, own.infos
            self.last_said = env.said if self.collects_tensors else None
            yield step

    # Acting

    def explorer(self) -> Explorer:
        """What chooses the actions to collect with now; asked before every parallel step."""
        rate = float(self.exploration_schedule(self._current_progress_remaining))
        self.exploration_rate = rate
        at_random = self.num_timesteps < self.learning_starts and self.warmup == "uniform_legal"
        chance, strategy = None if at_random else rate, self.exploration_strategy
        number = int(self.action_space.n)  # type: ignore[attr-defined]
        rows = (self.evaluation_rows, self.n_envs)
        return Explorer(self.q_net, number, strategy, rows, self.autocast, chance)

    def explorer_elsewhere(self) -> Explorer:
        """As `explorer`, with a network of its own on the CPU that only plays, to be sent away."""
        with in_mode(self.policy, training=False):
            explorer = copy.deepcopy(self.explorer())
        explorer.network.cpu().requires_grad_(False)
        return explorer

    def predict(  # type: ignore[override]
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """Actions for arrays or tensors of one row, `[]`, or of N rows, `[N]`, as in SB3.

        Rows explore unless `deterministic` as in training, with the rate of now, among legal
        actions: `action_masks` `[A]` or `[N, A]`, or those that the observation names, or those of
        the `TensorVecEnv` that has returned this very object last.
        `state` is returned as it is.
        """
        if isinstance(observation, tuple):
            self.policy.predict(observation)  # type: ignore[arg-type]  # raises, in SB3's words
        tensors, many = self.policy.obs_to_tensor(to_arrays(observation))
        with in_mode(self.policy, training=False), torch.no_grad():
            values = self.q_net(tensors)
        legal = self.legal_actions.of_observation(tensors)
        asked = legal is None and self.mask_source != "none"
        if action_masks is not None or asked:
            legal = masks_for(values, observation, action_masks)
        if deterministic:
            actions = legal_argmax(values, legal)
        else:
            choose = STRATEGIES[self.exploration_strategy]
            actions = choose(values, legal, self.exploration_rate, self.random_streams["predict"])
        array = actions.cpu().numpy()
        return (array if many else array.squeeze(0)), state

    # Updates

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """Make updates: sample, loss, gradient, clip, optimiser, target network when due."""
        optimizer = self.policy.optimizer
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        with in_mode(self.policy, training=self._has_modes):
            for _ in range(gradient_steps):
                batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
                for change in self.batch_changes:
                    batch = change(self, batch)
                rate = float(self.lr_schedule(self._current_progress_remaining))
                set_learning_rate(optimizer, rate)
                loss, predicted, target = self.compute_loss(batch)
                for extra_loss in self.extra_losses:
                    loss = loss + extra_loss(self)
                for parameter in parameters:
                    parameter.grad = None
                loss.backward()
                norm = clip_gradients(parameters, self.max_grad_norm)
                optimizer.step()
                self._n_updates += 1
                errors = self._measure(loss.detach(), norm, predicted.detach(), target)
                if getattr(batch, "indices", None) is not None:
                    self.replay_buffer.update_priorities(batch.indices, errors)
                if self._n_updates % 100 == 0 and self.device.type == "cpu":
                    forget_tiny_moments(optimizer)
                by_updates = self.target_update_unit == "updates"
                if by_updates and self._n_updates % self.target_update_interval == 0:
                    self.update_target()

    def compute_loss(self, batch: Any) -> LossTerms:
        """The loss on a batch of the replay buffer; a subclass may learn something else."""
        with torch.no_grad():
            target = self.compute_target(batch)
        predicted = self._online(batch.observations).gather(1, batch.actions.long()).squeeze(1)
        weights = getattr(batch, "weights", None)
        if weights is None:
            return LossTerms(LOSSES[self.loss](predicted, target), predicted, target)
        losses = LOSSES[self.loss](predicted, target, reduction="none")
        return LossTerms((weights * losses).mean(), predicted, target)

    def compute_target(self, batch: Any) -> Tensor:
        """Return the targets of B transitions, `[B]`: see `bootstrap_target`."""
        next_obs = batch.next_observations
        legal = getattr(batch, "next_legal", None)
        if legal is None:
            legal = self.legal_actions.of_observation(next_obs)
        online = None
        if self.double_q:
            # In evaluation mode: the next observations must not enter BatchNorm's statistics.
            with in_mode(self.policy, training=False):
                online = self._online(next_obs)
        discounts = self.gamma if batch.discounts is None else batch.discounts[:, 0]
        rewards, dones = batch.rewards[:, 0], batch.dones[:, 0]
        return bootstrap_target(rewards, dones, discounts, self._target(next_obs), legal, online)

    @torch.no_grad()
    def update_target(self) -> None:
        """Move the target network towards the online one with weight `tau` now."""
        target = [*self.q_net_target.parameters(), *self.batch_norm_stats_target]
        torch._foreach_lerp_(target, [*self.q_net.parameters(), *self.batch_norm_stats], self.tau)
        self.num_target_updates += 1


def complete_signature(algorithm: Any, base: Any, defaults: Mapping[str, Any]) -> None:
    """Show `base`'s arguments in the place of `**arguments`; configurations are checked by them."""
    parameters = inspect.signature(algorithm.__init__).parameters
    own = {name: each for name, each in parameters.items() if each.kind != each.VAR_KEYWORD}
    for name, each in inspect.signature(base.__init__).parameters.items():
        if name not in own:
            default = defaults.get(name, each.default)
            own[name] = each.replace(default=default, kind=each.KEYWORD_ONLY)
    # Not of the class, whose subclasses have constructors of their own.
    algorithm.__init__.__signature__ = inspect.Signature(list(own.values()))


complete_signature(DDQN, DQN, _DEFAULTS)
