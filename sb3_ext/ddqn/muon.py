"""An optimiser that learns matrices in far fewer updates than Adam."""

from __future__ import annotations

import torch
from torch import Tensor, optim

MOMENTUM = 0.95
"""Part of the mean gradient that is kept."""
ADAM = 0.2
"""Root mean square of a step of Adam, in learning rates."""


def orthogonal(matrix: Tensor) -> Tensor:
    """Bring all singular values of a float [M, N] near 1, by Newton and Schulz."""
    result = matrix / (matrix.norm() + 1e-7)
    for _ in range(5):
        square = result @ result.T
        result = 3.4445 * result + (2.0315 * square @ square - 4.775 * square) @ result
    return result


class Muon(optim.Adam):
    """Muon for matrices, Adam for biases, for matrices of one row, and for all else.

    A matrix moves along its mean gradient (Nesterov's) with equal singular values, so what few
    samples show is learnt as fast as what all of them show (Jordan and others 2024, with their
    coefficients). A step is as long as one of Adam, so both have the same learning rate (Liu and
    others 2025).

    Args:
        params, lr, **adam: as in `torch.optim.Adam`; the others are for what takes Adam.
    """

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One step of all that has a gradient; the gradients of matrices are gone then."""
        for group in self.param_groups:
            for each in group["params"]:
                if each.grad is None or each.ndim != 2 or len(each) == 1:
                    continue
                state = self.state[each]
                state.setdefault("step", torch.zeros(()))  # Adam loads no state without it
                mean = state.setdefault("exp_avg", torch.zeros_like(each))
                mean.lerp_(each.grad, 1 - MOMENTUM)
                step = orthogonal(each.grad.lerp(mean, MOMENTUM))
                each.add_(step, alpha=-group["lr"] * ADAM * max(each.shape) ** 0.5)
                each.grad = None
        super().step()
