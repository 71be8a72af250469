"""A batch of transitions, n-step returns, and the normalisation of SB3's `VecNormalize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from sb3_ext.adapter.observations import Observation, entries_of, to_arrays, to_device


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
        weights: `[B]` float32, of each transition in the loss; None: 1 for all.
        indices: `[B]` int64, for `update_priorities`; None if the buffer has no priorities.
    """

    observations: Observation
    actions: Tensor
    next_observations: Observation
    dones: Tensor
    rewards: Tensor
    discounts: Tensor | None = None
    next_legal: Tensor | None = None
    weights: Tensor | None = None
    indices: Tensor | None = None


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


def normalize_observation(observation: Observation, env: VecNormalize | None) -> Any:
    """Observations, `[B, ...]`, as `env.normalize_obs` returns them; statistics unchanged."""
    if env is None:
        return observation
    device = next(iter(entries_of(observation).values())).device
    return to_device(env.normalize_obs(to_arrays(observation)), device)


def normalize_reward(reward: Tensor, env: VecNormalize | None) -> Tensor:
    """Rewards as `env.normalize_reward` returns them; statistics unchanged."""
    if env is None:
        return reward
    return torch.from_numpy(env.normalize_reward(reward.cpu().numpy())).to(reward.device)


def check_seed(seed: int) -> int:
    """The seed of a buffer's sampling; a ValueError if it is out of range."""
    if not 0 <= int(seed) < 2**63:
        raise ValueError(f"seed: got {seed}, allowed are 0 to 2**63 - 1")
    return int(seed)


def checked_counters(
    counters: Mapping[str, int | bool], own: Mapping[str, int | bool]
) -> tuple[int, bool, int, int]:
    """Position, whether it is full, seed and batches drawn of a saved buffer that is like `own`."""
    # Earlier checkpoints do not say how observations are stored: both of them.
    counters = {"optimize_memory_usage": False, **counters}
    missing = own.keys() - counters.keys()
    if missing:
        raise ValueError(f"replay buffer counters: {sorted(missing)} missing")
    for name in ("num_slots", "n_envs", "optimize_memory_usage"):
        if counters[name] != own[name]:
            raise ValueError(f"replay buffer {name}: got {counters[name]}, need {own[name]}")
    pos, last = int(counters["pos"]), own["num_slots"] - 1
    if not 0 <= pos <= last:
        raise ValueError(f"replay buffer pos: got {pos}, allowed are 0 to {last}")
    seed = check_seed(int(counters["seed"]))
    return pos, bool(counters["full"]), seed, int(counters["num_batches_drawn"])


def batch_seed(seed: int, batch: int) -> int:
    """A 64-bit word from two numbers (finaliser of SplitMix64), so that nearby seeds share none."""
    word = (seed * 0x9E3779B97F4A7C15 + batch) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> shift)) * factor % 2**64
    return word ^ (word >> 31)
