"""Our clipping is PyTorch's."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from sb3_ext.networks.optimizers import clip_gradients


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
