"""The modes of policies, and what those of SB3 and sb3-contrib think of every action."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


@contextmanager
def in_mode(policy: Any, training: bool) -> Iterator[None]:
    """Puts a policy into training or evaluation mode, and back even after an error."""
    before = policy.training
    if before != training:  # setting it visits every module, which costs as much as a small network
        policy.set_training_mode(training)
    try:
        yield
    finally:
        if policy.training != before:
            policy.set_training_mode(before)


def action_values(network: Any, observation: Any, bfloat16: bool = False) -> Tensor:
    """Values of the actions, float32 [N, A]; the network may calculate with bfloat16 numbers.

    Not with a cache of the weights in bfloat16, which a captured update would keep.
    """
    first = next(iter(observation.values())) if isinstance(observation, dict) else observation
    kind = first.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=bfloat16, cache_enabled=False):
        return network(observation).float()  # type: ignore[no-any-return]


def action_scores(policy: Any, observation: Any) -> Tensor:
    """Scores of the actions of a discrete policy, float [N, A], higher is better.

    Args:
        policy: a policy of DQN, DDQN, QRDQN (values), A2C, PPO or MaskablePPO (logits); left in the
            mode (training or not) it was in.
        observation: tensors as the policy's features extractor takes them, [N, ...] each.

    Raises:
        TypeError: the policy is of no such kind.
    """
    with in_mode(policy, training=False), torch.no_grad():
        if hasattr(policy, "q_net"):
            return policy.q_net(observation)
        if hasattr(policy, "quantile_net"):
            return policy.quantile_net(observation).mean(1)
        if hasattr(policy, "get_distribution") and not hasattr(policy, "lstm_actor"):
            return policy.get_distribution(observation).distribution.logits
    raise TypeError(f"policy must choose among discrete actions, got {type(policy).__name__}")
