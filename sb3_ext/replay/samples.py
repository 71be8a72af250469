"""A batch of transitions, n-step returns, and the normalisation of SB3's `VecNormalize`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from sb3_ext.adapter.observations import Observation


class TensorReplayBufferSamples(NamedTuple):
    """A batch of B transitions: the fields of SB3's `ReplayBufferSamples`, and the legal mask.

    Attributes:
        observations: `[B, ...]` in the dtype of the space, or a dictionary of such.
        actions: `[B, action_dim]`, int64 for discrete actions.
        next_observations: After the last transition of the window; where an episode ended, its
            final observation.
        dones: `[B, 1]` float32, 1 where the window ended by termination: do not bootstrap.
        rewards: `[B, 1]` float32, the n-step return.
        discounts: `[B, 1]` float32, gamma^(transitions in the window), for the bootstrapped value.
            None if the buffer has no gamma; then use the algorithm's own.
        next_legal: `[B, A]` bool, legal actions at `next_observations`; None if not stored.
    """

    observations: Observation
    actions: Tensor
    next_observations: Observation
    dones: Tensor
    rewards: Tensor
    discounts: Tensor | None = None
    next_legal: Tensor | None = None


def n_step_return(
    rewards: Tensor, ended: Tensor, newer: Tensor, gamma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum up to n rewards of each window, never past an end or past the newest transition.

    The transition that ends an episode is still taken, the one after it is not. Entries that are
    not taken may hold anything, NaN included.

    Args:
        rewards: `[B, n]` float32, rewards of n consecutive transitions, the sampled one first.
        ended: `[B, n]` bool, the transition ended its episode (terminated or truncated).
        newer: `[B]` int64, how many transitions after the first of the window exist.
        gamma: Discount of one step, in [0, 1].

    Returns:
        Sums of gamma^k r_k over the transitions taken, `[B]` float32; gamma^length, the factor of
        the bootstrapped value, `[B]` float32; and the length, 1 to n, `[B]` int64.
    """
    step = torch.arange(rewards.shape[1], device=rewards.device)
    ends_before = ended.cumsum(dim=1) - ended.long()
    taken = (ends_before == 0) & (step <= newer[:, None])
    length = taken.sum(dim=1)
    discounted = rewards * torch.pow(gamma, step.float())
    returns = torch.where(taken, discounted, 0.0).sum(dim=1)
    return returns, torch.pow(gamma, length.float()), length


def normalize_observation(observation: Observation, env: VecNormalize | None) -> Observation:
    """Observations as `env.normalize_obs` would return them, `[B, ...]`; statistics unchanged."""
    if env is None or not env.norm_obs:
        return observation
    if isinstance(observation, dict):
        statistics: dict[str, RunningMeanStd] = env.obs_rms  # type: ignore[assignment]
        return {
            key: _standardize(value, statistics[key], env) if key in statistics else value
            for key, value in observation.items()
        }
    return _standardize(observation, env.obs_rms, env)  # type: ignore[arg-type]


def normalize_reward(reward: Tensor, env: VecNormalize | None) -> Tensor:
    """Rewards as `env.normalize_reward` would return them; statistics unchanged."""
    if env is None or not env.norm_reward:
        return reward
    scale = float((env.ret_rms.var + env.epsilon) ** 0.5)
    return (reward / scale).clamp(-env.clip_reward, env.clip_reward)


def _standardize(value: Tensor, statistics: RunningMeanStd, env: VecNormalize) -> Tensor:
    mean = torch.as_tensor(statistics.mean, dtype=torch.float64, device=value.device)
    variance = torch.as_tensor(statistics.var, dtype=torch.float64, device=value.device)
    standard = (value.double() - mean) / torch.sqrt(variance + env.epsilon)
    return standard.clamp(-env.clip_obs, env.clip_obs).float()
