"""Which actions are chosen: a policy that has collapsed chooses one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from sb3_ext.adapter.observations import to_arrays
from sb3_ext.callbacks.base import PeriodicCallback, as_tensor
from sb3_ext.schedules.frequency import Every

_MOST_SHARES = 32


def entropy_of_counts(counts: Tensor | Sequence[int]) -> float:
    """Entropy of counts [A] in units of log A: 1 is uniform, 0 is one action or no count."""
    counts = torch.as_tensor(counts)
    total = counts.sum().item()
    if total == 0 or len(counts) < 2:
        return 0.0
    entropy = torch.special.entr(counts.double() / total).sum().item()
    return max(entropy, 0.0) / math.log(len(counts))


class ActionCounts(PeriodicCallback):
    """Counts the actions of the rollouts, exploration included, and the greedy ones.

    Logs, each time it is due: ``actions/<k>``, the share of action k since the last time (up to 32
    actions); ``actions/entropy``, see `entropy_of_counts`; ``actions/most_common_share``; and the
    last two for what the policy would choose without exploring in the rows' present states, as
    ``actions/greedy_entropy`` and ``actions/greedy_most_common_share``.

    Counts stay on the device between two logs. Training is not touched: no random number is drawn.

    Attributes:
        last: the counts of the last log, by ``rollout`` and ``greedy``; lists of A integers.
    """

    def __init__(self, every: Every | Mapping[str, Any], *, greedy: bool = True) -> None:
        """``greedy``: also ask the policy for its greedy choices, each time it is due."""
        super().__init__(every)
        self.greedy = greedy
        self.last: dict[str, list[int]] = {}
        self._counts: Tensor | None = None

    def _on_training_start(self) -> None:
        space = self.model.action_space
        if not isinstance(space, spaces.Discrete):
            raise ValueError(f"action counts: need a Discrete action space, got {space}")
        self._num_actions, self._first = int(space.n), int(space.start)

    def _on_step(self) -> bool:
        index = as_tensor(self.locals["actions"]).reshape(-1).long() - self._first
        if self._counts is None:
            self._counts = torch.zeros(self._num_actions, dtype=torch.int64, device=index.device)
        # Unlike bincount this does not wait for the device.
        counts = self._counts.to(index.device)
        self._counts = counts.index_add(0, index, torch.ones_like(index))
        if self._is_due():
            self._log()
        return True

    def _log(self) -> None:
        assert self._counts is not None
        counts, self._counts = self._counts.cpu(), None
        self._record(counts, "")
        self.last = {"rollout": counts.tolist()}
        shares = (counts / counts.sum()).tolist()
        for action, share in enumerate(shares[:_MOST_SHARES]):
            self.logger.record(f"actions/{action + self._first}", share, exclude="stdout")
        if self.greedy:
            model: Any = self.model
            env: Any = self.training_env
            legal = getattr(model, "legal_actions", None)
            told = legal is not None and legal.source == "environment"
            masks = {"action_masks": env.action_masks()} if told else {}
            observation = to_arrays(self.locals["new_obs"])
            chosen, _ = model.predict(observation, deterministic=True, **masks)
            index = torch.as_tensor(chosen).reshape(-1).long() - self._first
            greedy = torch.bincount(index, minlength=self._num_actions)
            self._record(greedy, "greedy_")
            self.last["greedy"] = greedy.tolist()

    def _record(self, counts: Tensor, prefix: str) -> None:
        most = counts.max().item() / max(counts.sum().item(), 1)
        self.logger.record(f"actions/{prefix}entropy", entropy_of_counts(counts))
        self.logger.record(f"actions/{prefix}most_common_share", most)

    def state_dict(self) -> dict[str, Any]:
        """What was counted since the last log, too."""
        return {**super().state_dict(), "counts": self._counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        super().load_state_dict(state)
        counts = state["counts"]
        self._counts = None if counts is None else counts.clone()
