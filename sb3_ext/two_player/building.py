"""Models for the roles, and networks put in the place of others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import get_parameters_by_name, polyak_update
from torch import Tensor, nn

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.sb3_private import networks_were_replaced
from sb3_ext.config.arguments import REFUSALS
from sb3_ext.config.sections import ConfigError
from sb3_ext.networks.optimizers import OPTIMIZERS
from sb3_ext.schedules.binding import bind_schedules, rebind_schedules
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.two_player.config import TrainedRole
from sb3_ext.two_player.registries import ALGORITHMS, BUFFERS

__all__ = ["build_model", "frozen_copy", "playing_weights", "replace_network", "target_updater"]

# The trainer updates the target networks itself; the algorithms' own interval never ends.
NEVER = 2**62

# Names of online networks that have a copy `<name>_target`: DQN and DDQN, QRDQN.
_ONLINE = ("q_net", "quantile_net")


def build_model(
    role: str, section: TrainedRole, env: TensorVecEnv, seed: int, device: str
) -> OffPolicyAlgorithm:
    """The model of a role as its section of the configuration says.

    Raises:
        ConfigError: the algorithm or its policy does not accept an argument.
    """
    algorithm: Any = ALGORITHMS.resolve(section.algorithm)
    learning_rate = parse_schedule(section.learning_rate, "learning_rate", "updates")
    exploration = parse_schedule(section.exploration_rate, "exploration_rate", "updates")
    norm = section.max_grad_norm
    try:
        model = algorithm(
            section.policy,
            env,
            learning_rate=learning_rate(0),
            buffer_size=section.replay_buffer.size,
            learning_starts=0,
            batch_size=section.batch_size,
            tau=section.target_update.tau,
            gamma=section.gamma,
            train_freq=section.rollout.max_rollout_steps,
            gradient_steps=1,
            replay_buffer_class=BUFFERS.resolve(section.replay_buffer.name),
            replay_buffer_kwargs=dict(section.replay_buffer.arguments),
            target_update_interval=NEVER,
            max_grad_norm=float("inf") if norm is None else norm,
            policy_kwargs={
                **copy.deepcopy(section.policy_arguments),
                "net_arch": copy.deepcopy(section.net_arch),
                "optimizer_class": OPTIMIZERS.resolve(section.optimizer.name),
                "optimizer_kwargs": dict(section.optimizer.arguments),
            },
            seed=seed,
            device=device,
            **copy.deepcopy(section.algorithm_arguments),
        )
        bind_schedules(model, learning_rate=learning_rate, exploration_rate=exploration)
    except REFUSALS as error:
        raise ConfigError(f"roles.{role}: {' '.join(str(error).split())}") from error
    return cast("OffPolicyAlgorithm", model)


def target_updater(model: Any) -> Callable[[], None]:
    """The function that moves a model's target network by its `tau`.

    Raises:
        ConfigError: the algorithm has no target network that is known here.
    """
    if hasattr(model, "update_target"):
        return cast("Callable[[], None]", model.update_target)
    name = _online_name(model.policy)
    online, target = getattr(model.policy, name), getattr(model.policy, f"{name}_target")

    def update() -> None:
        polyak_update(online.parameters(), target.parameters(), model.tau)
        statistics = ["running_"]
        polyak_update(
            get_parameters_by_name(online, statistics),
            get_parameters_by_name(target, statistics),
            model.tau,
        )

    return update


def _online_name(policy: Any) -> str:
    for name in _ONLINE:
        if hasattr(policy, name) and hasattr(policy, f"{name}_target"):
            return name
    raise ConfigError(
        f"algorithm: {type(policy).__name__} has no network and target network named "
        f"{' or '.join(_ONLINE)}, nor has its algorithm update_target()"
    )


def frozen_copy(policy: Any) -> Any:
    """A copy of a policy that plays but does not learn: no optimiser, evaluation mode."""
    optimizer, policy.optimizer = policy.optimizer, None
    try:
        duplicate = copy.deepcopy(policy)
    finally:
        policy.optimizer = optimizer
    duplicate.set_training_mode(False)
    return duplicate.requires_grad_(False)


def playing_weights(policy: Any) -> dict[str, Tensor]:
    """A policy's own tensors, by name, without those of its target network."""
    return {
        name: value.detach()
        for name, value in policy.state_dict().items()
        if "_target." not in name
    }


class _Whole(nn.Module):
    """Hands an observation on as it is."""

    def forward(self, observation: Any) -> Any:
        return observation


def replace_network(model: Any, network: nn.Module) -> None:
    """Puts a network in the place of a model's, with a new target network and a new optimiser.

    Args:
        model: a model whose policy has `q_net` and `q_net_target` (DQN, DDQN).
        network: from observations of N rows (float tensors [N, ...], or a dictionary of them) to
            action values [N, A]. It becomes part of the model.

    Raises:
        TypeError: it is no network, or the model is of another kind.
        ValueError: its results have another shape, or are not finite.
    """
    if not isinstance(network, nn.Module):
        raise TypeError(f"a network must be a torch.nn.Module, got {network!r}")
    policy = model.policy
    if not (hasattr(policy, "q_net") and hasattr(policy, "q_net_target")):
        raise TypeError(f"{type(policy).__name__} has no q_net to replace")
    parameters = list(network.parameters())
    if not parameters:
        raise ValueError("a network that learns needs parameters, got one without any")
    online = copy.deepcopy(policy.q_net)
    online.features_extractor, online.q_net = _Whole(), network
    online.to(model.device)
    online.set_training_mode(False)
    _try_out(model, online)
    target = copy.deepcopy(online)
    # Only now is anything changed: a network that does not fit leaves the model as it was.
    policy.q_net, policy.q_net_target = online, target
    rate = model.policy.optimizer.param_groups[0]["lr"]
    policy.optimizer = policy.optimizer_class(
        online.parameters(), lr=rate, **policy.optimizer_kwargs
    )
    networks_were_replaced(model)
    rebind_schedules(model)


def _try_out(model: Any, online: nn.Module) -> None:
    space, num_actions = model.observation_space, int(model.action_space.n)
    samples = [space.sample() for _ in range(2)]
    if isinstance(samples[0], dict):
        batch: Any = {
            key: torch.stack([torch.as_tensor(each[key]) for each in samples]).to(model.device)
            for key in samples[0]
        }
    else:
        batch = torch.stack([torch.as_tensor(each) for each in samples]).to(model.device)
    with torch.no_grad():
        values = online(batch)
    if not isinstance(values, Tensor) or tuple(values.shape) != (2, num_actions):
        given = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(f"a network must return [N, {num_actions}] values, got {given} for N = 2")
