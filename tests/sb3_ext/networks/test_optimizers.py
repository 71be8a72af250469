"""Moments that are all but zero, and clipping, which is PyTorch's."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from sb3_ext.networks.optimizers import (
    OPTIMIZERS,
    clip_gradients,
    forget_tiny_moments,
    make_step,
)

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


def run(forget: bool, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and their mean gradients: one entry has a gradient always, one only at first."""
    weights = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
    optimizer = torch.optim.Adam([weights], lr=1e-3)
    for step in range(1, steps + 1):
        weights.grad = torch.tensor([0.5, 1e-3 if step < 10 else 0.0])
        optimizer.step()
        if forget and step % 100 == 0:
            forget_tiny_moments(optimizer)
    return weights.detach(), optimizer.state[weights]["exp_avg"]


def test_no_mean_becomes_subnormal_and_no_weight_changes() -> None:
    for steps in (700, 790, 800, 850, 900):
        weights, mean = run(forget=True, steps=steps)
        plain, plain_mean = run(forget=False, steps=steps)
        assert torch.equal(weights, plain)
        assert mean[0] == plain_mean[0]
        assert mean[1] == 0 or mean[1] >= SMALLEST_NORMAL
    assert 0 < plain_mean[1] < SMALLEST_NORMAL  # what would be there otherwise


def test_no_square_becomes_subnormal_and_no_weight_changes() -> None:
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


@pytest.mark.parametrize("name", ["adamw", "rmsprop", "sgd"])
def test_every_optimizer_may_be_asked(name: str) -> None:
    weights = torch.nn.Parameter(torch.ones(2))
    optimizer = OPTIMIZERS.resolve(name)([weights], lr=0.1)
    forget_tiny_moments(optimizer)
    weights.grad = torch.ones(2)
    optimizer.step()
    forget_tiny_moments(optimizer)
    assert bool((weights < 1).all())


@pytest.mark.parametrize("max_norm", [0.01, 1.0, 1e6, float("inf")])
def test_clipping_is_that_of_pytorch(max_norm):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
    network(torch.randn(4, 5)).pow(2).sum().backward()
    network[0].bias.grad = None  # a parameter that was not used
    other = copy.deepcopy(network)
    for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
        theirs.grad = None if mine.grad is None else mine.grad.clone()
    norm = clip_gradients(list(network.parameters()), max_norm)
    assert torch.equal(norm, nn.utils.clip_grad_norm_(other.parameters(), max_norm))
    for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None)
        assert mine.grad is None or torch.equal(mine.grad, theirs.grad)


def test_a_gradient_that_is_not_finite_stays_visible():
    layer = nn.Linear(2, 2)
    layer.weight.grad = torch.full((2, 2), torch.nan)
    assert clip_gradients([layer.weight], 1.0).isnan()
    assert layer.weight.grad.isnan().all()


def weights_after(kind, steps, **options):
    """Of a small network after steps by `make_step`, and by the optimiser's own."""
    found = []
    for by in (make_step, lambda optimizer: optimizer.step()):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2))
        optimizer = kind(network.parameters(), **options)
        for number in range(steps):
            optimizer.zero_grad()
            network(torch.randn(9, 5)).square().sum().backward()
            if number == 3:
                network[0].bias.grad = None
            by(optimizer)
        found.append(torch.cat([each.detach().flatten() for each in network.parameters()]))
    return found


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.01, "fused": True},
        {"lr": 0.1, "fused": True, "weight_decay": 0.1, "betas": (0.5, 0.7), "eps": 0.01},
        {"lr": 0.01, "fused": True, "maximize": True},
        {"lr": 0.01, "fused": True, "amsgrad": True},
        {"lr": 0.01, "foreach": True},
        {"lr": torch.tensor(0.01), "fused": True},
    ],
    ids=str,
)
def test_a_step_has_the_bits_of_the_optimisers_own(kind, options):
    mine, own = weights_after(kind, 6, **options)
    assert torch.equal(mine, own)


def test_a_step_of_another_optimiser():
    mine, own = weights_after(torch.optim.SGD, 6, lr=0.1, momentum=0.9)
    assert torch.equal(mine, own)


def test_whoever_listens_to_steps_is_told():
    parameter = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([parameter], lr=0.1, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    told = []
    optimizer.register_step_pre_hook(lambda *_: told.append("before"))
    optimizer.register_step_post_hook(lambda *_: told.append("after"))
    for _ in range(3):
        parameter.grad = torch.ones(3)
        make_step(optimizer)
        scheduler.step()
    assert told == 3 * ["before", "after"]
    assert optimizer.param_groups[0]["lr"] == 0.0125
