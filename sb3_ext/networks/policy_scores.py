"""The action scores of SB3's and sb3-contrib's policies."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sb3_ext.networks.mlp import in_mode


def seat_of(policy: Any) -> tuple[Any, Any]:
    """The seat of a model or policy by its observations, and the space [P, D] of their points."""
    space = policy.observation_space  # a dictionary is the agent's
    return ("agent", space.get("points")) if hasattr(space, "spaces") else ("host", space)


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


def recurrent_scores(
    policy: Any, observation: Any, memory: Tensor | None, begins: Tensor
) -> tuple[Tensor, Tensor]:
    """As `action_scores`, of a recurrent policy, with its memory after this observation.

    Args:
        policy: a policy of RecurrentPPO.
        observation: as for `action_scores`.
        memory: float [N, 2 L H], hidden and cell states of L layers of width H; None: none yet.
        begins: bool [N]: rows whose memory is forgotten first.

    Returns:
        Logits [N, A], and the new memory.
    """
    layers, _, width = policy.lstm_hidden_state_shape
    rows = len(begins)
    if memory is None:
        memory = torch.zeros(rows, 2 * layers * width, device=begins.device)
    hidden, cell = memory.reshape(rows, 2, layers, width).permute(1, 2, 0, 3).contiguous()
    with in_mode(policy, training=False), torch.no_grad():
        found, states = policy.get_distribution(observation, (hidden, cell), begins.float())
    return found.distribution.logits, torch.stack(states).permute(2, 0, 1, 3).reshape(rows, -1)
