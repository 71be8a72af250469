"""Deep Q-learning, double by default, for many parallel games with legal-action masks.

`state.py` has how a model is made, logged and saved, `loop.py` has `learn` and `fit`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv
from torch import Tensor, nn
from torch.optim import Optimizer

from sb3_ext.adapter.observations import to_arrays
from sb3_ext.ddqn.collector import Explorer
from sb3_ext.ddqn.loop import DDQNLoop
from sb3_ext.ddqn.policies import AgentPolicy, HostPolicy, MlpPolicy, MultiInputPolicy
from sb3_ext.ddqn.state import Settings
from sb3_ext.ddqn.targets import LOSSES, STRATEGIES, bootstrap_target, legal_argmax
from sb3_ext.networks.optimizers import forget_tiny_moments
from sb3_ext.networks.policy_scores import in_mode
from sb3_ext.schedules.binding import set_learning_rate

# Where the default is another one than SB3's.
_DEFAULTS: dict[str, Any] = {
    "batch_size": 256,
    "buffer_size": 500_000,
    "learning_starts": 1_000,
    "target_update_interval": 500,
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


class UpdateExtension:
    """Takes part in every update; put objects of subclasses into ``model.extensions``.

    An update calls `change_batch` of every extension, in turn, before the loss and `extra_loss` of
    every one after it. Both may draw random numbers, but a run that is resumed has to draw the
    same ones: take them from a generator that is seeded by ``model.num_updates``, which counts the
    finished ones. Models are saved without extensions.
    """

    def change_batch(self, model: Any, batch: Any) -> Any:
        """The batch to learn from; tensors of the one that was sampled must not be written to."""
        return batch

    def extra_loss(self, model: Any) -> Tensor | None:
        """A scalar with gradients that is added to the loss, or None."""
        return None


class DDQN(DDQNLoop):
    """Double deep Q-learning (van Hasselt, Guez, Silver 2016), or plain with `double_q=False`.

    Against SB3's `DQN`: double Q by default; illegal actions are left out of exploration, of the
    greedy choice and of the bootstrapped value; one exploration coin per row; schedules advance at
    every update; intervals say their unit; with a `TensorVecEnv` nothing leaves the device.

    Args:
        policy: `"HostPolicy"`, `"AgentPolicy"`, `"MlpPolicy"`, `"MultiInputPolicy"` or a class.
        env: The environment, its id, or None.
        learning_rate: What `schedules.parse_schedule` reads, or a callable as in SB3.
        double_q: False: the target network also chooses the next action (plain DQN).
        dueling: Value and advantage heads (Wang et al. 2016); same as the policy's argument.
        loss: Of a value against its target, averaged over the batch: `"huber"`, `"mse"`, `"mae"`.
        exploration_strategy: `"epsilon_greedy"`, or `"boltzmann"`: actions are drawn with
            probabilities proportional to exp(value / temperature).
        exploration_rate: A number or a schedule, as for `learning_rate`: the probability of a
            random action, or the temperature. None: SB3's three arguments of the exploration.
        evaluation_rows: So many of the environment's rows, the last ones, never explore; their
            episodes are logged by themselves too.
        warmup: Until `learning_starts`: `"uniform_legal"` plays at random among legal actions,
            `"policy"` explores around the untrained network.
        mask_source: Who knows the legal actions: `"observation"` (an entry `action_mask` or
            `coords`), `"environment"` (`action_masks()`), `"none"`, `"auto"`.
        target_update_unit: Of `target_update_interval`, `"updates"` or `"transitions"`. In
            transitions an interval ends with the parallel step that completes it.
        replay_ratio: updates * batch_size / transitions, how often each one is used on average;
            replaces `gradient_steps`.
        autocast: The networks calculate with bfloat16 numbers while collecting and in updates;
            weights, gradients, loss and optimiser are float32, and so is `predict`.
        compile_networks: True, or a mode of `torch.compile`, which then translates the networks
            that updates use; the first update takes a minute. `"reduce-overhead"` makes CUDA graphs
            of them.
        log_interval_seconds: Log when so many have passed, unless None.
        log_interval_updates: Likewise.
        **sb3: Further arguments of SB3's `DQN` by name. Other defaults: `batch_size` 256,
            `buffer_size` 500,000, `learning_starts` 1,000, `target_update_interval` 500,
            `train_freq` 1. `max_grad_norm=None` never clips.

    Attributes:
        extensions: What takes part in every update beside the loss; not saved.

    Raises:
        ValueError, TypeError: An argument out of its range or of another type, in one line.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        each.__name__: each for each in (AgentPolicy, HostPolicy, MlpPolicy, MultiInputPolicy)
    }

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str | None,
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
        compile_networks: bool | str = False,
        log_interval_seconds: float | None = 10.0,
        log_interval_updates: int | None = None,
        _init_setup_model: bool = True,
        **sb3: Any,
    ) -> None:
        given = locals()
        vars(self).update({name: given[name] for name in Settings.__annotations__})
        self.extensions: list[UpdateExtension] = []
        sb3 = {**_DEFAULTS, **sb3}
        if dueling:
            sb3["policy_kwargs"] = {**(sb3.get("policy_kwargs") or {}), "dueling": True}
        super().__init__(policy, env, learning_rate, **sb3, _init_setup_model=False)  # type: ignore[arg-type]
        self._check_arguments()
        highest = self.highest_exploration_rate
        self.exploration = self._read_schedule("exploration_rate", exploration_rate, highest)
        self.max_grad_norm = torch.inf if self.max_grad_norm is None else self.max_grad_norm
        if _init_setup_model:
            self._setup_model()

    def explorer(self) -> Explorer:
        """What chooses the actions to collect with now; asked before every parallel step."""
        rate = float(self.exploration_schedule(self._current_progress_remaining))
        self.exploration_rate = rate
        rows = (self.evaluation_rows, self.n_envs)
        number = int(self.action_space.n)  # type: ignore[attr-defined]
        made = Explorer(self.q_net, number, self.exploration_strategy, rows, self.autocast)
        at_random = self.num_timesteps < self.learning_starts and self.warmup == "uniform_legal"
        made.exploration_rate = None if at_random else rate
        return made

    def explorer_elsewhere(self) -> Explorer:
        """As `explorer`, with a network of its own on the CPU that only plays, to be sent away."""
        with in_mode(self.policy, training=False):
            explorer = copy.deepcopy(self.explorer())
        explorer.network.cpu().requires_grad_(False)
        return explorer

    def playing_weights(self) -> Mapping[str, Tensor]:
        """Those that the explorer of a collector elsewhere needs: of the online network."""
        return self.q_net.state_dict()

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
        actions: `action_masks` `[A]` or `[N, A]`, or those that the observation names, if it does.
        `state` is returned as it is.
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
                need = f"need {tuple(values.shape)}"
                raise ValueError(f"action_masks: got shape {tuple(legal.shape)}, {need}")
            legal = legal.reshape(values.shape)
        if deterministic:
            actions = legal_argmax(values, legal)
        else:
            choose = STRATEGIES[self.exploration_strategy]
            actions = choose(values, legal, self.exploration_rate, self.random_streams.predict)
        array = actions.cpu().numpy()
        return (array if many else array[0]), state

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """Make updates: sample, loss, gradient, clip, optimiser, target network when due."""
        optimizer, parameters = self.policy.optimizer, list(self.q_net.parameters())
        with in_mode(self.policy, training=True):
            for _ in range(gradient_steps):
                batch: Any = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
                for extension in self.extensions:
                    batch = extension.change_batch(self, batch)
                self._update_learning_rate(optimizer)
                loss, predicted, target = self.compute_loss(batch)
                for extension in self.extensions:
                    extra = extension.extra_loss(self)
                    loss = loss if extra is None else loss + extra
                optimizer.zero_grad()
                loss.backward()
                self.ranks.average_gradients(parameters)
                norm = nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
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
        predicted = self._online(batch.observations).gather(1, batch.actions)[:, 0]
        weights = getattr(batch, "weights", None)
        if weights is None:
            return LossTerms(LOSSES[self.loss](predicted, target), predicted, target)
        losses = LOSSES[self.loss](predicted, target, reduction="none")
        return LossTerms((weights * losses).mean(), predicted, target)

    def compute_target(self, batch: Any) -> Tensor:
        """Targets `[B]` of a batch."""
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
        returns = (batch.rewards[:, 0], batch.dones[:, 0], discounts)
        return bootstrap_target(*returns, self._target(next_obs), legal, online)

    def _update_learning_rate(self, optimizers: list[Optimizer] | Optimizer) -> None:
        rate = float(self.lr_schedule(self._current_progress_remaining))
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            set_learning_rate(optimizer, rate)

    @torch.no_grad()
    def update_target(self) -> None:
        """Move the target network towards the online one with weight `tau`, whatever is due."""
        target = [*self.q_net_target.parameters(), *self.batch_norm_stats_target]
        torch._foreach_lerp_(target, [*self.q_net.parameters(), *self.batch_norm_stats], self.tau)
        self.num_target_updates += 1


def _signature() -> inspect.Signature:
    """Of `DDQN`, with SB3's arguments in the place of `**sb3`: configurations are checked by it."""
    own = dict(inspect.signature(DDQN.__init__).parameters)
    del own["self"], own["sb3"]
    for name, each in inspect.signature(DQN.__init__).parameters.items():
        if name != "self" and name not in own:
            default = _DEFAULTS.get(name, each.default)
            own[name] = each.replace(default=default, kind=each.KEYWORD_ONLY)
    return inspect.Signature(list(own.values()))


DDQN.__signature__ = _signature()  # type: ignore[attr-defined]
