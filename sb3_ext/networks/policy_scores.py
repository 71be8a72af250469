"""What a policy thinks of every action: one function for the policies of SB3 and sb3-contrib."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["action_scores"]


def action_scores(policy: Any, observation: Any) -> Tensor:
    """Scores of the actions of a discrete policy, float [N, A], higher is better.

    Args:
        policy: a policy of DQN, DDQN, QRDQN (values), A2C, PPO or MaskablePPO (logits); left in the
            mode (training or not) it was in.
        observation: tensors as the policy's features extractor takes them, [N, ...] each.

    Raises:
        TypeError: the policy is of no such kind.
    """
    was_training = policy.training
    if was_training:  # setting it visits every module, which costs as much as a small network
        policy.set_training_mode(False)
    try:
        with torch.no_grad():
            if hasattr(policy, "q_net"):
                return policy.q_net(observation)
            if hasattr(policy, "quantile_net"):
                return policy.quantile_net(observation).mean(1)
            if hasattr(policy, "get_distribution") and not hasattr(policy, "lstm_actor"):
                distribution = policy.get_distribution(observation).distribution
                return distribution.logits
    finally:
        if was_training:
            policy.set_training_mode(True)
    raise TypeError(f"policy must choose among discrete actions, got {type(policy).__name__}")
