"""The optimiser Muon beside PyTorch's own, which takes matrices alone, and Adam."""

import torch
from torch import nn, optim

from sb3_ext.ddqn.muon import Muon

RATE = 0.01


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 1))


def test_matrices_move_as_in_pytorchs_muon_and_the_rest_as_in_adam():
    ours, theirs = network(), network()
    matrices = [theirs[0].weight, theirs[2].weight]
    rest = [each for each in theirs.parameters() if all(each is not m for m in matrices)]
    optimizers = [
        Muon(ours.parameters(), lr=RATE),
        optim.Muon(matrices, lr=RATE, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
        optim.Adam(rest, lr=RATE),
    ]
    for step in range(6):
        inputs = torch.randn(32, 7, generator=torch.Generator().manual_seed(step))
        for model in (ours, theirs):
            model.zero_grad()
            (model(inputs) - inputs.sum(1, keepdim=True).sin()).square().mean().backward()
        for each in optimizers:
            each.step()
    before = [*network().parameters()]
    moved, expected = (
        [a - b for a, b in zip(each.parameters(), before, strict=True)] for each in (ours, theirs)
    )
    for found, right in zip(moved, expected, strict=True):  # theirs rounds to bfloat16
        assert (found - right).norm() < 0.03 * right.norm()
