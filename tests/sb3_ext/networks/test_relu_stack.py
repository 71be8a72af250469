"""Layers run and differentiated by hand against autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from sb3_ext.networks import linear, relu_stack
from sb3_ext.networks.mlp import build_mlp
from sb3_ext.networks.relu_stack import ReluStack, stacked_layers


def network(widths: list[int], inputs: int = 5, outputs: int = 3) -> nn.Module:
    torch.manual_seed(0)
    body = build_mlp(inputs, widths)
    return nn.Sequential(body, nn.Linear(body.output_dim, outputs))


def stack_of(module: nn.Module) -> ReluStack:
    layers = stacked_layers(module)
    assert layers is not None
    return ReluStack(layers)


@pytest.mark.parametrize("widths", [[], [7], [16, 9], [8, 8, 8], [256, 256]])
@pytest.mark.parametrize("rows", [1, 64])
def test_values_and_gradients_are_those_of_autograd(widths: list[int], rows: int) -> None:
    module = network(widths)
    stack = stack_of(module)
    for seed in range(3):  # the memory is used again
        source = torch.Generator().manual_seed(seed)
        x = torch.randn((rows, 5), generator=source)
        weights = torch.randn((rows, 3), generator=source)
        module.zero_grad()
        values = module(x)
        (values * weights).sum().backward()
        expected = [parameter.grad for parameter in module.parameters()]
        module.zero_grad()
        found = stack(x, keep=True)
        stack(-x)  # something else in between does not disturb what was kept
        vector = stack.backward(weights)
        assert torch.allclose(found, values, rtol=1e-6, atol=1e-6)
        assert not found.requires_grad
        for parameter, gradient in zip(module.parameters(), expected, strict=True):
            scale = float(gradient.abs().max())  # type: ignore[union-attr]
            assert torch.allclose(parameter.grad, gradient, rtol=1e-6, atol=1e-6 * scale)  # type: ignore[arg-type]
        together = torch.cat([p.grad.flatten() for p in module.parameters()])  # type: ignore[union-attr]
        assert torch.equal(vector, together)
        vector *= 0.5  # what is done to the vector is done to the gradients
        assert torch.equal(module.get_parameter("1.bias").grad, vector[-3:])  # type: ignore[arg-type]


def test_results_are_not_written_again() -> None:
    stack = stack_of(network([6]))
    first = stack(torch.ones(4, 5))
    copy = first.clone()
    stack(torch.zeros(4, 5))
    assert torch.equal(first, copy)


def test_new_weights_are_seen() -> None:
    module = network([6])
    stack = stack_of(module)
    stack(torch.ones(4, 5))
    with torch.no_grad():
        module.get_parameter("1.bias").fill_(9.0)
        module.get_parameter("1.weight").fill_(0.0)
    assert stack(torch.ones(4, 5)).tolist() == [[9.0] * 3] * 4


@pytest.mark.parametrize("widths", [[], [7], [16, 9], [256, 256]])
def test_bfloat16_is_what_autocast_gives(widths: list[int]) -> None:
    module = network(widths)
    stack = stack_of(module)
    for seed in range(3):
        x = torch.randn((64, 5), generator=torch.Generator().manual_seed(seed))
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            expected = module(x).float()
        found = stack.in_bfloat16(x)
        assert found.dtype == torch.float32
        assert torch.allclose(found, expected, rtol=1e-2, atol=1e-2)
        assert not torch.equal(found, stack(x))  # it does round
        with torch.no_grad():  # and sees new weights at the next call
            for parameter in module.parameters():
                parameter.mul_(1.5)


def test_without_the_operator_bfloat16_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = stack_of(network([256, 256]))
    x = torch.randn((64, 5), generator=torch.Generator().manual_seed(0))
    found = stack.in_bfloat16(x)
    monkeypatch.setattr(linear, "_OPERATOR_OF_BFLOAT16", None)
    assert torch.allclose(found, stack.in_bfloat16(x), rtol=1e-2, atol=1e-2)


def test_bfloat16_is_faster_for_many_rows_where_the_processor_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = stack_of(network([256, 256]))
    products = 5 * 256 + 256 * 256 + 256 * 3
    least = -(-relu_stack.FASTER_FROM // products)
    monkeypatch.setattr(relu_stack, "HAS_BFLOAT16", True)
    assert not stack.is_faster_in_bfloat16(least - 1)
    assert stack.is_faster_in_bfloat16(least)
    monkeypatch.setattr(relu_stack, "HAS_BFLOAT16", False)
    assert not stack.is_faster_in_bfloat16(least)


def _replaced(module: nn.Module) -> nn.Module:
    module.get_submodule("0.0").forward = lambda x: x  # type: ignore[method-assign]
    return module


def _hooked(path: str) -> Callable[[nn.Module], nn.Module]:
    def hook(module: nn.Module) -> nn.Module:
        module.get_submodule(path).register_forward_hook(lambda *_: None)
        return module

    return hook


def _with(path: str, change: Callable[[Any], Any]) -> Callable[[nn.Module], nn.Module]:
    def apply(module: nn.Module) -> nn.Module:
        change(module.get_submodule(path))
        return module

    return apply


@pytest.mark.parametrize(
    "change",
    [
        _replaced,
        _hooked("0"),
        _hooked("0.0"),
        _hooked("0.1"),
        _with("0.0", lambda layer: layer.weight.requires_grad_(False)),
        _with("0.0", lambda layer: layer.weight.register_hook(lambda gradient: gradient)),
        _with("0.0", lambda layer: layer.register_parameter("bias", None)),
        _with("0.0", lambda layer: layer.double()),
        _with("0.0", lambda layer: nn.utils.parametrizations.weight_norm(layer)),
        lambda module: nn.Sequential(module, nn.ReLU()),
        lambda module: nn.Sequential(module, nn.Linear(3, 3)),
        lambda module: nn.Sequential(nn.Dropout(), module),
        lambda module: build_mlp(5, [4, "b"], 3),
        lambda module: build_mlp(5, [4, "ln"], 3),
        lambda module: build_mlp(5, [4, "r4"], 3),
        lambda module: build_mlp(5, [4], 3, "tanh"),
        lambda module: nn.Sequential(),
    ],
)
def test_what_is_something_else_is_left_alone(change: Callable[[nn.Module], nn.Module]) -> None:
    assert stacked_layers(network([4])) is not None
    assert stacked_layers(change(network([4]))) is None
