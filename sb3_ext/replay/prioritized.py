"""Prioritised experience replay (Schaul et al. 2016, proportional) on tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from sb3_ext.config.checks import check_number
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.samples import TensorReplayBufferSamples
from sb3_ext.replay.sum_tree import SumTree
from sb3_ext.replay.transition_store import check_fields
from sb3_ext.schedules.binding import parse_within

_LARGEST_ERROR = 1e38  # what is infinite or NaN counts as this: sums have to stay finite


class PrioritizedReplayBuffer(TensorReplayBuffer):
    """Draws a transition with probability P(i) = p_i / sum of p, where p = (|error| + eps)^alpha.

    A batch is drawn stratified: one transition from each of B equal parts of the sum. Its losses
    are to be weighted by w_i = (n P(i))^-beta, n transitions being there, over the largest w of the
    batch, and its errors handed to `update_priorities`: `DDQN` does both, SB3's own algorithms do
    neither. A new transition gets the largest priority that any had so far, at first 1.

    Args:
        *arguments: Those of `TensorReplayBuffer`, keywords too.
        alpha: How much errors count, in [0, 1]; 0 draws uniformly.
        beta: How far weights make up for it, in [0, 1]: a number, or a schedule whose count is the
            number of batches drawn, that is of updates, such as ``"lin_0.4_1.0_100000"``.
        priority_eps: Added to every error, > 0, so that each transition may be drawn.

    Raises:
        ValueError, TypeError: An argument is out of its range or of another type.
    """

    _tree: SumTree | None
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
        self.beta = parse_within("beta", beta, 1.0, "updates")
        if self.beta.unit != "updates":
            raise ValueError(
                f"beta: must be a schedule of updates, which are batches drawn, got unit"
                f" {self.beta.unit!r}"
            )
        self.priority_eps = check_number("priority_eps", priority_eps, 0.0, above=True)
        super().__init__(*arguments, **keywords)

    @property
    def bytes_per_transition(self) -> int:
        """Memory of one transition and its priority."""
        return super().bytes_per_transition + 8

    def memory_bytes(self) -> int:
        """Memory of the full buffer, whether allocated yet or not."""
        return super().memory_bytes() + SumTree.num_bytes(self._store.capacity)

    @property
    def priorities(self) -> Tensor:
        """The p of every transition that can be sampled, `[size(), N]` float64."""
        return self._sums.values.view(self.buffer_size, self.n_envs)[: self.size()]

    @property
    def _sums(self) -> SumTree:
        if self._tree is None:
            self._tree = SumTree(self._store.capacity, self.device)
        return self._tree

    def update_priorities(self, indices: Tensor, errors: Tensor) -> None:
        """Take over the errors `[B]` of a batch, at its `indices`. Never waits for the device."""
        errors = errors.detach().abs().nan_to_num(nan=_LARGEST_ERROR, posinf=_LARGEST_ERROR)
        priorities = (errors.double() + self.priority_eps) ** self.alpha
        self._sums.put(indices, priorities)
        self._largest = torch.maximum(self._largest, priorities.max())

    def reset(self) -> None:
        """As in `TensorReplayBuffer`; the priorities are forgotten too."""
        super().reset()
        self._forget()

    def _draw(self, batch_size: int, generator: torch.Generator) -> Tensor:
        number = torch.arange(batch_size, device=self.device)
        inside = torch.rand(
            batch_size, generator=generator, device=self.device, dtype=torch.float64
        )
        return self._sums.find((number + inside) / batch_size * self._sums.total)

    def _get_samples(  # type: ignore[override]
        self, batch_inds: Tensor, env: VecNormalize | None = None
    ) -> TensorReplayBufferSamples:
        share = self._sums.values[batch_inds] / self._sums.total
        beta = self.beta(max(self.num_batches_drawn - 1, 0))
        weights = (self.num_transitions * share) ** -beta
        return (
            super()
            ._get_samples(batch_inds, env)
            ._replace(weights=(weights / weights.max()).float(), indices=batch_inds)
        )

    def _make_store(self) -> None:
        super()._make_store()
        self._forget()

    def _forget(self) -> None:
        self._tree = None
        self._largest = torch.ones((), dtype=torch.float64, device=self.device)

    def _move(self) -> None:
        super()._move()
        self._largest = self._largest.to(self.device)
        if self._tree is not None:
            self._tree.move(self.device)

    def _put(self, entries: Mapping[str, Tensor]) -> None:
        super()._put(entries)
        first = self.pos * self.n_envs
        self._sums.put_range(first, first + self.n_envs, self._largest)

    def _put_steps(self, entries: Mapping[str, Tensor], steps: int) -> None:
        super()._put_steps(entries, steps)
        beyond = self.pos + steps - self.buffer_size  # slots that go round the ring
        parts = [(self.pos, min(self.pos + steps, self.buffer_size))]
        if beyond > 0:
            parts.append((0, min(beyond, self.buffer_size)))
        for first, end in parts:
            self._sums.put_range(first * self.n_envs, end * self.n_envs, self._largest)

    def _filled(self) -> dict[str, Tensor]:
        tensors = super()._filled()
        if tensors:
            tensors |= {"priorities": self.priorities, "largest_priority": self._largest}
        return tensors

    def _fill(self, tensors: Mapping[str, Tensor], num_slots: int, newest: int) -> None:
        if num_slots:
            number = torch.float64
            need = {
                "priorities": ((num_slots, self.n_envs), number),
                "largest_priority": ((), number),
            }
            own = {name: tensors[name] for name in need.keys() & tensors.keys()}
            check_fields(own, need)
            tensors = {name: value for name, value in tensors.items() if name not in need}
        super()._fill(tensors, num_slots, newest)
        self._forget()
        if num_slots:
            self._largest = own["largest_priority"].to(self.device, copy=True)
            values = own["priorities"].to(self.device).flatten()
            self._sums.put_range(0, num_slots * self.n_envs, values)
