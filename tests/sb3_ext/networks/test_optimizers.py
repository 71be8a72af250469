"""Moments that are all but zero."""

import torch

from sb3_ext.ddqn.policies import forget_tiny_moments

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


def test_no_square_becomes_subnormal_and_no_weight_changes():
    """Squares shrink more slowly than means: here they begin where 70,000 updates bring them."""
    found = []
    for forget in (True, False):
        weights = torch.nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))
        optimizer = torch.optim.Adam([weights], lr=1e-3)
        weights.grad = torch.tensor([0.5, 0.0, 0.0])
        optimizer.step()
        state = optimizer.state[weights]
        state["exp_avg_sq"][1:] = 1.5e-37
        for step in range(1, 3001):
            # The third unit comes back to life in the end.
            weights.grad = torch.tensor([0.5, 0.0, 1e-3 if step > 2990 else 0.0])
            optimizer.step()
            if forget and step % 100 == 0:
                forget_tiny_moments(optimizer)
            smallest = float(state["exp_avg_sq"][1])
            assert not forget or smallest == 0 or smallest >= SMALLEST_NORMAL
        found.append(weights.detach().clone())
        if not forget:
            assert 0 < smallest < SMALLEST_NORMAL  # what would be there otherwise
    assert torch.equal(*found)
