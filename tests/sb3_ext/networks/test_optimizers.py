"""Moments that are all but zero."""

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from sb3_ext.ddqn.policies import FusedAdam, clip_gradients, forget_tiny_moments

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


@pytest.mark.parametrize("max_norm", [0.1, torch.inf])
def test_clip_and_step_give_the_bits_of_pytorch(max_norm):
    networks = []
    for kind, clip in (
        (FusedAdam, clip_gradients),
        (torch.optim.Adam, torch.nn.utils.clip_grad_norm_),
    ):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Linear(32, 4))
        optimizer = kind(network.parameters(), lr=0.01, fused=True, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            network(torch.randn(16, 8)).square().mean().backward()
            clip([*network.parameters()], max_norm)
            optimizer.step()
        networks.append(network.state_dict())
    assert all(torch.equal(networks[0][name], networks[1][name]) for name in networks[0])


def test_hooks_around_steps_run_and_change_no_bit():
    """Those of one optimiser, and those of all."""
    seen, found = [], []
    for hooked in (False, True):
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = FusedAdam([weight], lr=0.1, fused=True)
        handles = []
        if hooked:
            handles = [
                optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
                optimizer.register_step_post_hook(lambda *_: seen.append("after")),
                register_optimizer_step_post_hook(lambda *_: seen.append("after any")),
            ]
        for _ in range(2):
            weight.grad = torch.tensor([1.0, -2.0, 0.5])
            optimizer.step()
        for handle in handles:
            handle.remove()
        optimizer.step()
        found.append(weight.detach().clone())
    assert torch.equal(*found)
    assert sorted(seen) == ["after"] * 2 + ["after any"] * 2 + ["before"] * 2
