"""Linear layers on oneDNN equal PyTorch's own."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from sb3_ext.networks import linear as module
from sb3_ext.networks.linear import HAS_ONEDNN, MIN_PRODUCTS, Linear, linear

SHAPES = [(256, 60, 256), (512, 256, 256), (4, 3, 2), (0, 3, 2), (4096, 256, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_equal_the_plain_layer(shape, bias):
    rows, inputs, outputs = shape
    torch.manual_seed(0)
    ours = Linear(inputs, outputs, bias=bias)
    plain = nn.Linear(inputs, outputs, bias=bias)
    plain.load_state_dict(ours.state_dict())
    x = torch.randn(rows, inputs, requires_grad=True)
    x_plain = x.detach().clone().requires_grad_()
    weights = torch.randn(rows, outputs)
    (ours(x) * weights).sum().backward()
    (plain(x_plain) * weights).sum().backward()
    tolerance = {"rtol": 1e-4, "atol": 1e-3}
    with torch.no_grad():
        torch.testing.assert_close(ours(x), plain(x), **tolerance)
    torch.testing.assert_close(x.grad, x_plain.grad, **tolerance)
    for mine, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, **tolerance)


@pytest.mark.skipif(not HAS_ONEDNN, reason="this PyTorch has no oneDNN operator")
def test_large_products_use_onednn_and_small_ones_do_not(monkeypatch):
    calls = []
    operator = module._OPERATOR

    def counted(*arguments):
        calls.append(arguments[0].shape)
        return operator(*arguments)

    monkeypatch.setattr(module, "_OPERATOR", counted)
    large, small = torch.ones(MIN_PRODUCTS // 256, 16), torch.ones(2, 16)
    weight = torch.ones(16, 16, requires_grad=True)
    linear(small, weight).sum().backward()
    assert calls == []
    linear(large, weight).sum().backward()
    assert len(calls) == 2  # forward, and the gradient of the weight; x wants none
    linear(large.double(), weight.detach().double())
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(large, weight).dtype == torch.bfloat16
    assert len(calls) == 2


def test_without_the_operator_it_is_the_plain_layer(monkeypatch):
    monkeypatch.setattr(module, "_OPERATOR", None)
    layer = Linear(256, 256)
    x = torch.randn(256, 256)
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_gradients_of_gradients():
    x = torch.randn(MIN_PRODUCTS // 64, 8, requires_grad=True)
    layer = Linear(8, 8)
    (first,) = torch.autograd.grad(layer(x).pow(2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    expected = 2 * (layer.weight.t() @ layer.weight).sum(0).expand_as(second)
    torch.testing.assert_close(second, expected, rtol=1e-4, atol=1e-4)


def test_frozen_weights_and_inputs_get_no_gradient():
    layer = Linear(256, 256).requires_grad_(False)
    x = torch.randn(256, 256)
    assert not layer(x).requires_grad
    x.requires_grad_()
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None


def test_copies_and_states_are_those_of_the_plain_layer():
    layer = Linear(3, 2)
    assert copy.deepcopy(layer).state_dict().keys() == nn.Linear(3, 2).state_dict().keys()
