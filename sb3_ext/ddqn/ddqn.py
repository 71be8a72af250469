"""Deep Q-learning, double by default, for many parallel games with legal-action masks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv
from torch import Tensor
from torch.optim import Optimizer

from sb3_ext.adapter.observations import to_arrays
from sb3_ext.ddqn import targets
from sb3_ext.ddqn.arguments import check_acceleration, check_arguments, read_schedule
from sb3_ext.ddqn.exploring import EXPLORERS, QExplorer
from sb3_ext.ddqn.policies import AgentPolicy, HostPolicy, MlpPolicy, MultiInputPolicy
from sb3_ext.ddqn.update import (
    MEASURED,
    Loss,
    LossTerms,
    UpdateExtension,
    graphed_update,
    loss_terms,
    make_update,
    update_networks,
    updates_are_plain,
)
from sb3_ext.networks.optimizers import forget_tiny_moments
from sb3_ext.networks.policy_scores import in_mode
from sb3_ext.off_policy.algorithm import OffPolicy
from sb3_ext.off_policy.graphed import GraphedUpdate
from sb3_ext.off_policy.log import UpdateSums
from sb3_ext.schedules.binding import (
    BoundSchedule,
    bind_schedules,
    rebind_schedules,
    set_learning_rate,
)
from sb3_ext.schedules.schedules import Schedule


class DDQN(OffPolicy, DQN):
    """Double deep Q-learning (van Hasselt, Guez, Silver 2016), or plain with `double_q=False`.

    Against SB3's `DQN`: double Q by default; illegal actions are left out of exploration, of the
    greedy choice and of the bootstrapped value; one exploration coin per row; schedules advance at
    every update; intervals say their unit; with a `TensorVecEnv` nothing leaves the device. The
    arguments up to `device` have SB3's names and order; the defaults fit many parallel rows.

    Args:
        policy: `"HostPolicy"`, `"AgentPolicy"`, `"MlpPolicy"`, `"MultiInputPolicy"` or a class.
        env: The environment, its id, or None.
        learning_rate: What `schedules.parse_schedule` reads, or a callable as in SB3.
        buffer_size: Capacity in transitions.
        learning_starts: Transitions collected before the first update.
        batch_size: Transitions B of an update.
        tau: Weight of the online network in a target update, in (0, 1]; 1 copies it.
        gamma: Discount of one step, 0..1.
        train_freq: Parallel steps between two blocks of updates.
        gradient_steps: Updates in a block; -1: as many as transitions were collected for it.
        replay_buffer_class: None: `TensorReplayBuffer`.
        replay_buffer_kwargs: Its arguments.
        optimize_memory_usage: As in SB3; `TensorReplayBuffer` refuses it.
        n_steps: Rewards summed before the value is bootstrapped.
        target_update_interval: Distance of target updates, in `target_update_unit`.
        exploration_fraction: SB3's linear fall of the exploration rate from
            `exploration_initial_eps` to `exploration_final_eps` over this part of the progress;
            used if `exploration_rate` is None.
        max_grad_norm: Clip the gradient's norm to this; None: never.
        stats_window_size: As in SB3 (numpy loop only).
        policy_kwargs: Arguments of the policy, see `sb3_ext.ddqn.policies`.
        seed: Seed of everything random.
        device: Where networks, buffer and exploration live.
        double_q: False: the target network also chooses the next action (plain DQN).
        dueling: Value and advantage heads (Wang et al. 2016); same as the policy's argument.
        target_update_unit: `"updates"` or `"transitions"`. In transitions an interval ends with
            the parallel step that completes it.
        replay_ratio: updates * batch_size / transitions, how often each one is used on average;
            replaces `gradient_steps`.
        warmup: Until `learning_starts`: `"uniform_legal"` plays at random among legal actions,
            `"policy"` explores around the untrained network.
        mask_source: Who knows the legal actions: `"observation"` (an entry `action_mask` or
            `coords`), `"environment"` (`action_masks()`), `"none"`, `"auto"`.
        exploration_strategy: `"epsilon_greedy"`, or `"boltzmann"`: actions are drawn with
            probabilities proportional to exp(value / temperature).
        exploration_rate: A number or a schedule, as for `learning_rate`: the probability of a
            random action, or the temperature. None: SB3's three arguments above.
        evaluation_rows: So many of the environment's rows, the last ones, never explore; their
            episodes are logged by themselves too.
        loss: Of a value against its target, averaged over the batch: `"huber"`, `"mse"`, `"mae"`,
            or a function as those of `torch.nn.functional`, with an argument `reduction`.
        autocast: Updates pass through the networks with bfloat16 numbers; weights, gradients, loss
            and optimiser are float32.
        rollout_precision: Of the networks while collecting. `"bfloat16"` is faster on processors
            that multiply such matrices, and now and then chooses the other of two actions of nearly
            the same value. `"auto"` is that for plain layers and many rows on such a processor
            (AMX, AVX512_BF16); otherwise `"float32"`. `predict` is always float32.
        cuda_graphs: Capture the update as a CUDA graph and replay it: equal within rounding,
            started as one piece of work. Needs `device="cuda"`, an optimiser that can be captured
            (Adam, AdamW), and a `_compute_loss` that looks at no value.
        compile_networks: Let `torch.compile` translate the networks that updates use, which
            takes a minute at the first update. Needs a C++ compiler on a CPU, Triton on CUDA.
        log_interval_seconds: Log when so many have passed, unless None.
        log_interval_updates: Likewise.

    Attributes:
        num_target_updates: Target updates so far.
        extensions: What takes part in every update beside the loss; not saved.

    Raises:
        ValueError, TypeError: An argument out of its range or of another type, in one line.
    """

    _graphed: GraphedUpdate | None = None
    _compiled: Any = None

    own_counters = (*OffPolicy.own_counters, "num_target_updates")
    sets_rate_at_every_update = True  # so `bind_schedules` need not

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        each.__name__: each for each in (AgentPolicy, HostPolicy, MlpPolicy, MultiInputPolicy)
    }

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str | None,
        learning_rate: Any = 5e-4,
        buffer_size: int = 500_000,
        learning_starts: int = 1_000,
        batch_size: int = 256,
        tau: float = 1.0,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 1,
        gradient_steps: int = 1,
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        n_steps: int = 1,
        target_update_interval: int = 500,
        exploration_fraction: float = 0.1,
        exploration_initial_eps: float = 1.0,
        exploration_final_eps: float = 0.05,
        max_grad_norm: float | None = 10.0,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        _init_setup_model: bool = True,
        *,
        double_q: bool = True,
        dueling: bool = False,
        target_update_unit: str = "updates",
        replay_ratio: float | None = None,
        warmup: str = "uniform_legal",
        mask_source: str = "auto",
        exploration_strategy: str = "epsilon_greedy",
        exploration_rate: Any = None,
        evaluation_rows: int = 0,
        loss: str | Loss = "huber",
        autocast: bool = False,
        rollout_precision: str = "auto",
        cuda_graphs: bool = False,
        compile_networks: bool = False,
        log_interval_seconds: float | None = 10.0,
        log_interval_updates: int | None = None,
    ) -> None:
        self.double_q = double_q
        self.target_update_unit = target_update_unit
        self.replay_ratio = replay_ratio
        self.warmup = warmup
        self.mask_source = mask_source
        self.rollout_precision = rollout_precision
        self.cuda_graphs = cuda_graphs
        self.compile_networks = compile_networks
        self.log_interval_seconds = log_interval_seconds
        self.log_interval_updates = log_interval_updates
        self.num_target_updates = 0
        self.extensions: list[UpdateExtension] = []
        self.exploration_strategy = exploration_strategy
        self.evaluation_rows = evaluation_rows
        self.loss = loss
        self.autocast = autocast
        highest = self.highest_exploration_rate
        self.exploration = read_schedule("exploration_rate", exploration_rate, highest)
        policy_kwargs = dict(policy_kwargs or {})
        if dueling:
            policy_kwargs["dueling"] = True
        super().__init__(
            policy,  # type: ignore[arg-type]
            env,  # type: ignore[arg-type]
            read_schedule("learning_rate", learning_rate),  # type: ignore[arg-type]
            buffer_size,
            learning_starts,
            batch_size,
            tau,
            gamma,
            train_freq,
            gradient_steps,
            replay_buffer_class,
            replay_buffer_kwargs,
            optimize_memory_usage,
            n_steps,
            target_update_interval,
            exploration_fraction,
            exploration_initial_eps,
            exploration_final_eps,
            torch.inf if max_grad_norm is None else max_grad_norm,
            stats_window_size,
            tensorboard_log,
            policy_kwargs,
            verbose,
            seed,
            device,
            _init_setup_model=False,
        )
        check_arguments(self)
        if _init_setup_model:
            self._setup_model()
            check_acceleration(self)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.update_sums = UpdateSums(MEASURED, self.device)
        if not hasattr(self, "bound_schedules"):
            if isinstance(self.learning_rate, Schedule) or self.exploration is not None:
                bind_schedules(self, exploration_rate=self.exploration)
        elif isinstance(self.learning_rate, BoundSchedule):  # of a loaded model
            rebind_schedules(self)
        else:  # another one was passed to load()
            bind_schedules(self, learning_rate=self.learning_rate)

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        assert isinstance(self.action_space, spaces.Discrete)
        return int(self.action_space.n)

    @property
    def highest_exploration_rate(self) -> float:
        """What `exploration_rate` may be at most: 1 for a probability."""
        return EXPLORERS.resolve(self.exploration_strategy).highest_rate

    def explorer(self) -> QExplorer:
        """What chooses the actions to collect with now."""
        rate = float(self.exploration_schedule(self._current_progress_remaining))
        self.exploration_rate = rate
        rows = (self.evaluation_rows, self.n_envs)
        make = EXPLORERS.resolve(self.exploration_strategy)
        explorer = make(self.q_net, self.num_actions, self.rollout_precision, rows)
        at_random = self.num_timesteps < self.learning_starts and self.warmup == "uniform_legal"
        explorer.exploration_rate = None if at_random else rate
        return explorer

    def playing_weights(self) -> Mapping[str, Tensor]:
        """Of the online network."""
        return self.q_net.state_dict()

    def predict(  # type: ignore[override]
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: Any = False,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """Actions for arrays or tensors of one row, `[]`, or of N rows, `[N]`, as in SB3.

        Rows that are not `deterministic` (a bool, or `[N]` of them) explore as in training, with
        the rate of now, among legal actions: `action_masks` `[A]` or `[N, A]`, or those that the
        observation names, if it does. `state` is returned as it is.
        """
        if isinstance(observation, tuple):
            raise ValueError(
                "observation: got a tuple; reset() and step() of Gymnasium return the observation"
                " first, pass that alone"
            )
        tensors, many = self.policy.obs_to_tensor(to_arrays(observation))
        with in_mode(self.policy, training=False), torch.no_grad():
            values = self.q_net(tensors)
        legal = self.legal_actions.of_observation(tensors)
        if action_masks is not None:
            legal = torch.as_tensor(action_masks, device=self.device).bool()
            if legal.shape not in (values.shape, values.shape[1:] if not many else values.shape):
                raise ValueError(
                    f"action_masks: got shape {tuple(legal.shape)}, need {tuple(values.shape)}"
                )
            legal = legal.reshape(values.shape)
        greedy = torch.as_tensor(deterministic, device=self.device).bool()
        if greedy.shape not in ((), values.shape[:1]):
            raise ValueError(
                f"deterministic: got shape {tuple(greedy.shape)}, need {tuple(values.shape[:1])}"
            )
        actions = targets.legal_argmax(values, legal)
        if not np.all(deterministic):
            choose = EXPLORERS.resolve(self.exploration_strategy).choose
            source = self.random_streams.predict
            explored = choose(values, legal, self.exploration_rate, source)
            actions = torch.where(greedy, actions, explored)
        array = actions.cpu().numpy()
        return (array if many else array[0]), state

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """Make updates: sample, loss, gradient, clip, optimiser, target network when due."""
        assert self.replay_buffer is not None
        optimizer = self.policy.optimizer
        self._graphed = graphed_update(self, self._graphed)
        plain = self._graphed is None and updates_are_plain(self, DDQN._compute_loss)
        parameters = list(self.q_net.parameters())
        update = self._graphed or partial(make_update, self, parameters, plain=plain)
        with in_mode(self.policy, training=not plain):
            for _ in range(gradient_steps):
                batch: Any = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
                for extension in self.extensions:
                    batch = extension.change_batch(self, batch)
                self._update_learning_rate(optimizer)
                measured = update(batch)
                self._n_updates += 1
                self.update_sums.add(measured[: len(MEASURED)])
                if len(measured) > len(MEASURED):
                    errors = measured[len(MEASURED) :]
                    self.replay_buffer.update_priorities(batch.indices, errors)  # type: ignore[attr-defined]
                if self._n_updates % 100 == 0 and self.device.type == "cpu":
                    forget_tiny_moments(optimizer)
                by_updates = self.target_update_unit == "updates"
                if by_updates and self._n_updates % self.target_update_interval == 0:
                    self.update_target()

    def _compute_loss(self, batch: Any) -> LossTerms:
        """The loss on a batch of the replay buffer; replace it to learn something else."""
        with torch.no_grad():
            target = self._compute_target(batch)
        values = update_networks(self)[0](batch.observations)
        return loss_terms(self.loss, values, target, batch)

    def _compute_target(self, batch: Any) -> Tensor:
        """Targets `[B]` of a batch."""
        next_obs = batch.next_observations
        legal = getattr(batch, "next_legal", None)
        if legal is None:
            legal = self.legal_actions.of_observation(next_obs)
        online_net, target_net = update_networks(self)
        online = None
        if self.double_q:
            # In evaluation mode: the next observations must not enter BatchNorm's statistics.
            with in_mode(self.policy, training=False):
                online = online_net(next_obs)
        discounts = self.gamma if batch.discounts is None else batch.discounts[:, 0]
        returns = (batch.rewards[:, 0], batch.dones[:, 0], discounts)
        return targets.bootstrap_target(*returns, target_net(next_obs), legal, online)

    def _update_learning_rate(self, optimizers: list[Optimizer] | Optimizer) -> None:
        rate = float(self.lr_schedule(self._current_progress_remaining))
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            set_learning_rate(optimizer, rate)

    def update_target(self) -> None:
        """Move the target network towards the online one with weight `tau`, whatever is due."""
        with torch.no_grad():
            target = [*self.q_net_target.parameters(), *self.batch_norm_stats_target]
            online = [*self.q_net.parameters(), *self.batch_norm_stats]
            torch._foreach_lerp_(target, online, self.tau)
        self.num_target_updates += 1

    def _on_step(self) -> None:
        if self.target_update_unit == "transitions":
            interval = self.target_update_interval
            before = self.num_timesteps - (self._transitions_of_step or self.n_envs)
            if self.num_timesteps // interval > before // interval:
                self.update_target()

    def dump_logs(self) -> None:
        """Write what happened since the last log; waits for the device once."""
        rate = float(self.policy.optimizer.param_groups[0]["lr"])
        self.logger.record("train/learning_rate", rate)
        self.logger.record("train/target_updates", self.num_target_updates)
        self.logger.record("rollout/exploration_rate", self.exploration_rate)
        super().dump_logs()

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_graphed", "_compiled", "extensions"]
