"""Deep Q-learning, double by default, for many parallel games with legal-action masks.

What is replaced of SB3's `DQN` (2.9.2), beside what `sb3_ext.off_policy.loop` lists:

    __init__              the arguments below, checked
    _setup_model          schedules of updates, what is measured
    _update_learning_rate before every update, not once per block of updates
    _on_step              target updates by transitions; SB3 rounds the interval
    train                 the update, in pieces that can be replaced (`learning.py`)
    predict               legal actions, one exploration coin per row
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv
from torch import Tensor

from sb3_ext.ddqn import targets
from sb3_ext.ddqn.arguments import check_acceleration, check_arguments, read_schedule
from sb3_ext.ddqn.learning import MEASURED, QLearning
from sb3_ext.ddqn.policies import AgentPolicy, HostPolicy, MlpPolicy, MultiInputPolicy
from sb3_ext.ddqn.stacked import stacked_network
from sb3_ext.networks.observations import to_arrays
from sb3_ext.off_policy.log import UpdateSums
from sb3_ext.schedules.binding import BoundSchedule, bind_schedules, rebind_schedules
from sb3_ext.schedules.schedules import Schedule

__all__ = ["DDQN"]


class DDQN(QLearning):
    """Double deep Q-learning (van Hasselt, Guez, Silver 2016), or plain with `double_q=False`.

    Against SB3's `DQN`: double Q by default; illegal actions are left out of exploration, of the
    greedy choice and of the bootstrapped value; one exploration coin per row; schedules advance at
    every update; intervals say their unit; with a `TensorVecEnv` nothing leaves the device. The
    arguments up to `device` have SB3's names and order; the defaults fit many parallel rows.

    Args:
        policy: `"HostPolicy"`, `"AgentPolicy"`, `"MlpPolicy"`, `"MultiInputPolicy"` or a class.
        env: The environment, its id, or None.
        learning_rate: A number, anything that `schedules.parse_schedule` reads, or a callable
            of the remaining progress as in SB3.
        buffer_size: Capacity in transitions.
        learning_starts: Transitions collected before the first update.
        batch_size: Transitions B of an update.
        tau: Weight of the online network in a target update, in (0, 1]; 1 copies it. Running
            statistics of BatchNorm move with the same weight.
        gamma: Discount of one step, 0..1.
        train_freq: Parallel steps between two blocks of updates.
        gradient_steps: Updates in a block; -1: as many as transitions were collected for it.
        replay_buffer_class: None: `TensorReplayBuffer`.
        replay_buffer_kwargs: Arguments of it.
        optimize_memory_usage: Store every observation once: about half the memory, the same
            batches (`TensorReplayBuffer`; `final_share` is among `replay_buffer_kwargs`).
        n_steps: Rewards summed before the value is bootstrapped.
        target_update_interval: Distance of target updates, in `target_update_unit`.
        exploration_fraction: With the two below, SB3's linear fall of the exploration rate over
            this part of the progress; used if `exploration_rate` is None.
        exploration_initial_eps: Its first value.
        exploration_final_eps: Its last value.
        max_grad_norm: Clip the gradient's norm to this; None: never.
        stats_window_size: As in SB3 (numpy loop only).
        tensorboard_log: As in SB3.
        policy_kwargs: Arguments of the policy, see `sb3_ext.ddqn.policies`.
        verbose: 0 nothing, 1 info, 2 debug.
        seed: Seed of everything random.
        device: Where networks, buffer and exploration live.
        double_q: False: the target network also chooses the next action (plain DQN).
        dueling: Value and advantage heads (Wang et al. 2016); same as the policy's argument.
        target_update_unit: `"updates"` or `"transitions"`. In transitions an interval ends with
            the parallel step that completes it.
        replay_ratio: How many transitions are sampled for updates per transition collected, that
            is updates * batch_size / transitions; how often each one is used on average.
            Replaces `gradient_steps`; fractions of an update are carried over.
        warmup: Until `learning_starts`: `"uniform_legal"` plays at random among legal actions,
            `"policy"` explores around the untrained network.
        mask_source: Who knows the legal actions: `"observation"` (an entry `action_mask` or
            `coords`), `"environment"` (`action_masks()`), `"none"`, `"auto"`.
        exploration_rate: A number or a schedule, as for `learning_rate`.
        rollout_precision: Of the networks while collecting. `"bfloat16"` takes two to five times
            less time for many rows on processors that multiply such matrices, and chooses now and
            then another of two actions of nearly the same value. `"auto"` is that where it is the
            faster: for plain layers and many rows on a CPU with AMX; otherwise `"float32"`.
            Updates and `predict` are always float32.
        cuda_graphs: Capture the update as a CUDA graph and replay it: the same arithmetic, equal
            within rounding, started as one piece of work. Needs `device="cuda"`, an optimiser
            that can be captured (Adam, AdamW), and a `_compute_loss` that looks at no value.
        compile_networks: Let `torch.compile` translate the networks that updates use, which
            takes a minute at the first update. Needs a C++ compiler on a CPU, Triton on CUDA.
        log_interval_seconds: Log when this many seconds have passed; None: not by time.
        log_interval_updates: Log when this many updates have passed; None: not by updates.

    Raises:
        ValueError: An argument out of its range, in one line.
        TypeError: An argument of another type.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "AgentPolicy": AgentPolicy,
        "HostPolicy": HostPolicy,
        "MlpPolicy": MlpPolicy,
        "MultiInputPolicy": MultiInputPolicy,
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
        exploration_rate: Any = None,
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
        self.extensions = []
        self.exploration = read_schedule("exploration_rate", exploration_rate, highest=1.0)
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
        with warnings.catch_warnings():
            # About the rounding of the interval in transitions, which `_on_step` does not do.
            warnings.filterwarnings("ignore", "The number of environments used is greater")
            super()._setup_model()
        self.update_sums = UpdateSums(MEASURED, self.device)
        self._bind_schedules()

    def _bind_schedules(self) -> None:
        """Let schedules read this model's counters; a loaded model has some already."""
        given = None if isinstance(self.learning_rate, BoundSchedule) else self.learning_rate
        if hasattr(self, "bound_schedules"):
            if given is None:
                rebind_schedules(self)
            else:  # another learning rate was passed to load()
                bind_schedules(self, learning_rate=given)
            return
        rate = given if isinstance(given, Schedule) else None
        if rate is not None or self.exploration is not None:
            bind_schedules(self, learning_rate=rate, exploration_rate=self.exploration)

    # ------------------------------------------------------------------ acting

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        assert isinstance(self.action_space, spaces.Discrete)
        return int(self.action_space.n)

    def _current_exploration_rate(self) -> float:
        return float(self.exploration_schedule(self._current_progress_remaining))

    def _explore(self, observation: Any, legal: Tensor | None) -> Tensor:
        self.exploration_rate = self._current_exploration_rate()
        source = self.random_streams.explore
        if self.num_timesteps < self.learning_starts and self.warmup == "uniform_legal":
            if legal is None:
                shape = (self.n_envs, self.num_actions)
                legal = torch.ones(shape, dtype=torch.bool, device=self.device)
            return targets.uniform_legal(legal, source)
        values = self._values_to_explore(observation)
        return targets.epsilon_greedy(values, legal, self.exploration_rate, source)

    def _values_to_explore(self, observation: Any) -> Tensor:
        # The memory of the hidden layers is kept: for many rows that saves a part of the time.
        stack = stacked_network(self.q_net, self._stacks[0])
        self._stacks = stack, self._stacks[1]
        if stack is not None:
            return stack.to_explore(observation, self.rollout_precision)
        half = self.rollout_precision == "bfloat16"
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            return self.q_net(observation).float()

    def predict(  # type: ignore[override]
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """Actions for one observation or a batch, as in SB3.

        Args:
            observation: Arrays or tensors of one row, or of N rows.
            state: Returned as it is: the policy has no memory.
            episode_start: Not used, for the same reason.
            deterministic: False: each row explores with probability `exploration_rate`, among
                legal actions.
            action_masks: Legal actions `[A]` or `[N, A]`, True = legal. None: those that the
                observation names, if it does.

        Returns:
            Actions as an array `[N]`, or `[]` for one row, and `state`.

        Raises:
            ValueError: The mask has another shape.
        """
        if isinstance(observation, tuple):
            raise ValueError(
                "observation: got a tuple; reset() and step() of Gymnasium return the observation"
                " first, pass that alone"
            )
        tensors, many = self.policy.obs_to_tensor(to_arrays(observation))
        with self.training_mode(False), torch.no_grad():
            values = self.q_net(tensors)
        legal = self.legal_actions.of_observation(tensors)
        if action_masks is not None:
            legal = torch.as_tensor(action_masks, device=self.device).bool()
            if legal.shape not in (values.shape, values.shape[1:] if not many else values.shape):
                raise ValueError(
                    f"action_masks: got shape {tuple(legal.shape)}, need {tuple(values.shape)}"
                )
            legal = legal.reshape(values.shape)
        if deterministic:
            actions = targets.legal_argmax(values, legal)
        else:
            actions = targets.epsilon_greedy(
                values, legal, self.exploration_rate, self.random_streams.predict
            )
        array = actions.cpu().numpy()
        return (array if many else array[0]), state

    def _excluded_save_params(self) -> list[str]:
        mine = ("_graphed", "_compiled", "_stacks", "_stacked", "extensions")
        return [*super()._excluded_save_params(), *mine]

    # ------------------------------------------------------------------ logs

    def _counters(self) -> tuple[str, ...]:
        return (*super()._counters(), "num_target_updates")

    def dump_logs(self) -> None:
        """Write what happened since the last log; waits for the device once."""
        rate = float(self.policy.optimizer.param_groups[0]["lr"])
        self.logger.record("train/learning_rate", rate)
        self.logger.record("train/target_updates", self.num_target_updates)
        self.logger.record("rollout/exploration_rate", self.exploration_rate)
        super().dump_logs()
