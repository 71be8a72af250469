"""Prioritised experience replay (Schaul et al. 2016, proportional) on tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from sb3_ext.config.checks import check_number
from sb3_ext.replay.buffers import TensorReplayBuffer, TensorReplayBufferSamples
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.types import StateDict

_LARGEST_ERROR = 1e38  # what is infinite or NaN counts as this: sums have to stay finite


class PrioritizedReplayBuffer(TensorReplayBuffer):
    """Draw transition i with probability P(i) = p_i / sum of p, where p = (abs(error) + eps)^alpha.

    A batch is stratified: it has one transition from each of B equal parts of the sum. The
    algorithm must weigh its losses by w_i = (n P(i))^-beta for n transitions, divided by the
    largest w of the batch, and pass its errors to `update_priorities`. `DDQN` does both, SB3's own
    algorithms do neither. A new transition gets the largest priority so far, at first 1.

    A batch adds up all priorities: half a millisecond for 500,000 on one core. A tree of sums would
    save this, in many small steps.

    Args:
        *arguments: Those of `TensorReplayBuffer`, keywords too.
        alpha: Exponent of the errors, in [0, 1]; 0 draws uniformly.
        beta: Exponent of the weights, in [0, 1]: a number, or a schedule of updates, such as
            ``"lin_0.4_1.0_100000"``.
        priority_eps: Added to every error, > 0, so that every transition can be drawn.

    Raises:
        ValueError, TypeError: An argument is out of its range or of another type.
    """

    _largest: Tensor

    def __init__(
        self,
        *arguments: Any,
        alpha: float = 0.6,
        beta: Any = 0.4,
        priority_eps: float = 1e-6,
        **keywords: Any,
    ) -> None:
        self.alpha = check_number("alpha", alpha, 0.0, 1.0)
        self.beta = parse_schedule(beta, "beta", "updates", highest=1.0)
        if self.beta.unit != "updates":
            raise ValueError(f"beta: got the unit {self.beta.unit!r}; expected 'updates'")
        self.priority_eps = check_number("priority_eps", priority_eps, 0.0, above=True)
        super().__init__(*arguments, **keywords)
        self._example["priorities"] = torch.empty((), dtype=torch.float64)
        self._forget()

    @property
    def priorities(self) -> Tensor:
        """The p of every transition that can be sampled, `[size(), N]` float64."""
        used: Tensor = self._fields["priorities"][: self.size()]
        return used

    def update_priorities(self, indices: Tensor, errors: Tensor) -> None:
        """Take over the errors `[B]` of a batch, at its `indices`. Never waits for the device."""
        errors = errors.detach().abs().nan_to_num(nan=_LARGEST_ERROR, posinf=_LARGEST_ERROR)
        priorities = (errors.double() + self.priority_eps) ** self.alpha
        self._fields["priorities"].view(-1)[indices] = priorities
        self._largest = torch.maximum(self._largest, priorities.max())

    def reset(self) -> None:
        """As in `TensorReplayBuffer`; the priorities are forgotten too."""
        super().reset()
        self._forget()

    def _put(self, slots: slice, given: Mapping[str, Any], steps: slice) -> None:
        super()._put(slots, given, steps)
        self._fields["priorities"][slots] = self._largest

    def _draw(self, batch_size: int) -> Tensor:
        part = torch.rand(batch_size, generator=self._random, dtype=torch.float64)
        part = (torch.arange(batch_size) + part) / batch_size
        sums = self.priorities.flatten().cumsum(dim=0)
        mass = part.to(self.device, non_blocking=True) * sums[-1]
        # Below the last sum, whatever the rounding, so that what is found has a share in it.
        mass = torch.minimum(mass, torch.nextafter(sums[-1], torch.zeros_like(sums[-1])))
        return torch.searchsorted(sums, mass, right=True)

    def _get_samples(  # type: ignore[override]
        self, batch_inds: Tensor, env: VecNormalize | None = None
    ) -> TensorReplayBufferSamples:
        share = self._take("priorities", batch_inds) / self.priorities.sum()
        weights = (self.num_transitions * share) ** -self.beta(max(self.num_batches_drawn - 1, 0))
        weights = (weights / weights.max()).float()
        return super()._get_samples(batch_inds, env)._replace(weights=weights, indices=batch_inds)

    def state_dict(self) -> StateDict:
        """As in `TensorReplayBuffer`, with the largest priority so far."""
        return super().state_dict() | {"largest_priority": self._largest}

    def load_state_dict(self, state: StateDict) -> None:
        """As in `TensorReplayBuffer`; the state of a buffer without priorities is an error too."""
        super().load_state_dict(state)
        self._largest = state["largest_priority"].to(self.device)

    def _forget(self) -> None:
        self._largest = torch.ones((), dtype=torch.float64, device=self.device)
