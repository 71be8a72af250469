"""Epsilon-greedy choice of actions to collect with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from sb3_ext.ddqn import targets
from sb3_ext.networks.extractors import FlattenExtractor

ROLLOUT_PRECISIONS = ("auto", "float32", "bfloat16")

_FASTER_FROM = 2**25
"""Multiplications of a call from which on bfloat16 was measured to be the faster, with one thread
and with two, where the processor multiplies matrices of such numbers."""


@cache
def _multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16 matrices (Intel's AMX)."""
    try:
        return bool(torch.cpu.get_capabilities()["amx_bf16"])
    except (AttributeError, KeyError, RuntimeError):  # another processor, or another PyTorch
        return False


def is_faster_in_bfloat16(network: nn.Module, rows: int) -> bool:
    """Whether plain layers take less time with bfloat16 numbers; looks at nothing but sizes."""
    extractor = getattr(network, "features_extractor", None)
    if type(extractor) is not FlattenExtractor or not _multiplies_bfloat16():
        return False
    weights = [each for each in network.parameters() if each.dim() == 2 and each.is_cpu]
    return rows * sum(each.numel() for each in weights) >= _FASTER_FROM


class EpsilonGreedy:
    """The best legal action, or with some probability a random legal one, in every row by itself.

    Args:
        network: From observations of M rows to action values `[M, A]`, in evaluation mode.
        num_actions: A.
        precision: Of the network, one of `ROLLOUT_PRECISIONS`; `"auto"` is the faster one.

    Attributes:
        exploration_rate: Probability of a random action; None: all are random, without the network.
    """

    def __init__(self, network: nn.Module, num_actions: int, precision: str = "auto") -> None:
        self.network, self.num_actions, self.precision = network, num_actions, precision
        self.exploration_rate: float | None = None

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Play with these weights of a network of the same layers from now on."""
        self.network.load_state_dict(weights)

    def __call__(
        self, observation: Any, legal: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        """Actions `[M]` int64, see `sb3_ext.off_policy.collector.Explorer`."""
        first = next(iter(observation.values())) if isinstance(observation, dict) else observation
        if self.exploration_rate is None:
            if legal is None:
                shape = (len(first), self.num_actions)
                legal = torch.ones(shape, dtype=torch.bool, device=generator.device)
            return targets.uniform_legal(legal, generator)
        half = self.precision == "bfloat16" or (
            self.precision == "auto" and is_faster_in_bfloat16(self.network, len(first))
        )
        with torch.no_grad(), torch.autocast(first.device.type, torch.bfloat16, enabled=half):
            values = self.network(observation).float()
        return targets.epsilon_greedy(values, legal, self.exploration_rate, generator)
