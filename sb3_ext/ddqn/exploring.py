"""Choice of actions to collect with: epsilon-greedy, or drawn by their values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sb3_ext.config.registry import Registry
from sb3_ext.ddqn import targets
from sb3_ext.networks.extractors import FlattenExtractor
from sb3_ext.networks.policy_scores import action_values

ROLLOUT_PRECISIONS = ("auto", "float32", "bfloat16")

_FASTER_FROM = 2**25
"""Multiplications of a call from which on bfloat16 was measured to be the faster, with one thread
and with two, where the processor has instructions for such numbers."""


@cache
def _multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16 numbers."""
    try:
        has = torch.cpu.get_capabilities()
    except (AttributeError, RuntimeError):  # another PyTorch
        return False
    return bool(has.get("amx_bf16") or has.get("avx512_bf16"))


def is_faster_in_bfloat16(network: nn.Module, rows: int) -> bool:
    """Whether plain layers take less time with bfloat16 numbers; looks at nothing but sizes."""
    extractor = getattr(network, "features_extractor", None)
    if type(extractor) is not FlattenExtractor or not _multiplies_bfloat16():
        return False
    weights = [each for each in network.parameters() if each.dim() == 2 and each.is_cpu]
    return rows * sum(each.numel() for each in weights) >= _FASTER_FROM


EXPLORERS: Registry[type[QExplorer]] = Registry("exploration strategy")


class QExplorer(ABC):
    """Explores around action values, in every row by itself; legal actions only.

    Args:
        network: From observations of M rows to action values `[M, A]`, in evaluation mode.
        num_actions: A.
        precision: Of the network, one of `ROLLOUT_PRECISIONS`; `"auto"` is the faster one.
        evaluation: (K, N): of each N rows the last K do not explore.

    Attributes:
        exploration_rate: How much to explore, see `choose`; None: all actions are random, without
            the network.
    """

    highest_rate: ClassVar[float] = 1.0

    def __init__(
        self,
        network: nn.Module,
        num_actions: int,
        precision: str = "auto",
        evaluation: tuple[int, int] = (0, 1),
    ) -> None:
        self.network, self.num_actions, self.precision = network, num_actions, precision
        self.evaluation = evaluation
        self.exploration_rate: float | None = None

    @staticmethod
    @abstractmethod
    def choose(
        values: Tensor, legal: Tensor | None, rate: float, generator: torch.Generator, /
    ) -> Tensor:
        """Actions `[M]` int64 for values `[M, A]`; a rate of 0 takes the best ones."""

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Play with these weights of a network of the same layers from now on."""
        self.network.load_state_dict(weights)

    def __call__(
        self, observation: Any, legal: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        """Actions `[M]` int64, see `sb3_ext.off_policy.collector.Explorer`."""
        first = next(iter(observation.values())) if isinstance(observation, dict) else observation
        few, many = self.evaluation
        if self.exploration_rate is None:
            shape = (len(first), self.num_actions)
            allowed = legal
            if allowed is None:
                allowed = torch.ones(shape, dtype=torch.bool, device=generator.device)
            chosen = targets.uniform_legal(allowed, generator)
            if not few:
                return chosen
        half = self.precision == "bfloat16" or (
            self.precision == "auto" and is_faster_in_bfloat16(self.network, len(first))
        )
        with torch.no_grad():
            values = action_values(self.network, observation, half)
        if self.exploration_rate is not None:
            chosen = self.choose(values, legal, self.exploration_rate, generator)
        if few:
            row = torch.arange(len(first), device=values.device) % many
            chosen = torch.where(row >= many - few, targets.legal_argmax(values, legal), chosen)
        return chosen


@EXPLORERS.register("epsilon_greedy")
class EpsilonGreedy(QExplorer):
    """The best action, or with probability `exploration_rate` a random one."""

    choose = staticmethod(targets.epsilon_greedy)


@EXPLORERS.register("boltzmann")
class Boltzmann(QExplorer):
    """An action drawn by exp(value / temperature); `exploration_rate` is the temperature."""

    highest_rate = math.inf
    choose = staticmethod(targets.boltzmann)
