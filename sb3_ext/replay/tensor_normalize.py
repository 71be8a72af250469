"""The normalisation of SB3's `VecNormalize`, applied to tensors where they are."""

from __future__ import annotations

import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

__all__ = ["normalize_observation", "normalize_reward"]

Observation = Tensor | dict[str, Tensor]


def normalize_observation(observation: Observation, env: VecNormalize | None) -> Observation:
    """Observations as `env.normalize_obs` would return them, `[B, ...]`; statistics unchanged."""
    if env is None or not env.norm_obs:
        return observation
    if isinstance(observation, dict):
        keys = env.norm_obs_keys or []
        statistics: dict[str, RunningMeanStd] = env.obs_rms  # type: ignore[assignment]
        return {
            key: _standardize(value, statistics[key], env) if key in keys else value
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
