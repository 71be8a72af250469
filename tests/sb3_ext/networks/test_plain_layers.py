"""Layers as one operation, with either product, beside the same modules called one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sb3_ext.networks import plain_layers
from sb3_ext.networks.mlp import build_mlp
from sb3_ext.networks.plain_layers import PlainLayers

WIDE = 512  # with so many rows, products of 64 and more units are oneDNN's where it is used


def in_float64(x: Tensor, weight: Tensor, bias: Tensor | None, post: str, *_: object) -> Tensor:
    """What oneDNN's operator gives, for machines where it is not used."""
    result = x.double() @ weight.double().t()
    result = result if bias is None else result + bias.double()
    return (result.relu() if post == "relu" else result).float()


@pytest.fixture(params=["here", "operator", "without"], autouse=True)
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "here":
        found = {"operator": in_float64, "without": None}[request.param]
        monkeypatch.setattr(plain_layers, "_onednn", lambda: found)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of every product that is not a module's."""
    seen: list[int] = []
    linear = plain_layers._linear

    def counted(x: Tensor, *rest: object, **named: object) -> Tensor:
        seen.append(len(x))
        return linear(x, *rest, **named)

    monkeypatch.setattr(plain_layers, "_linear", counted)
    return seen


def networks() -> dict[str, Callable[[], PlainLayers]]:
    return {
        "usual": lambda: PlainLayers(build_mlp(60, [64, 64]), nn.Linear(64, 4)),
        "one layer": lambda: PlainLayers(nn.Linear(60, 5)),
        "begins active": lambda: PlainLayers(
            nn.Sequential(nn.ReLU(), nn.Linear(60, 64), nn.ReLU(), nn.Linear(64, 128)),
            nn.Linear(128, 4),
        ),
        "ends active": lambda: PlainLayers(nn.Linear(60, 80), nn.ReLU()),
        "nothing": lambda: PlainLayers(build_mlp(60, [])),
    }


def one_by_one(network: nn.Sequential, x: Tensor) -> Tensor:
    return nn.Sequential.forward(network, x)


@pytest.mark.parametrize("name", [*networks()])
@pytest.mark.parametrize("rows", [1, 7, WIDE])
def test_values_and_gradients_are_those_of_the_modules(
    name: str, rows: int, calls: list[int]
) -> None:
    torch.manual_seed(rows)
    network = networks()[name]()
    x = torch.randn(rows, 60, requires_grad=True)
    found = network(x)
    assert bool(calls) == (name != "nothing")
    weight_of_rows = torch.randn_like(found)
    inputs = [x, *network.parameters()]
    gradients = torch.autograd.grad((found * weight_of_rows).sum(), inputs)
    expected = one_by_one(network, x)
    wanted = torch.autograd.grad((expected * weight_of_rows).sum(), inputs)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for mine, theirs in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-4)


def test_many_rows_go_through_in_blocks_and_come_back_in_order(calls: list[int]) -> None:
    network = networks()["usual"]()
    x = torch.randn(2 * plain_layers._BLOCK + 3, 60)
    with torch.no_grad():
        torch.testing.assert_close(network(x), one_by_one(network, x), rtol=1e-4, atol=1e-4)
        assert sorted(set(calls)) == [3, plain_layers._BLOCK]
        assert network(x[:0]).shape == (0, 4)


def test_frozen_weights_get_no_gradient() -> None:
    network = networks()["usual"]()
    network[0][0].weight.requires_grad_(False)
    x = torch.randn(WIDE, 60)
    network(x).sum().backward()
    assert network[0][0].weight.grad is None
    other = networks()["usual"]()
    other.load_state_dict(network.state_dict())
    one_by_one(other, x).sum().backward()
    torch.testing.assert_close(network[0][0].bias.grad, other[0][0].bias.grad, rtol=1e-3, atol=1e-3)


def with_hook(network: PlainLayers) -> PlainLayers:
    network[0][1].register_forward_hook(lambda module, given, result: result * 0.0)
    return network


def replaced(network: PlainLayers) -> PlainLayers:
    network[0][2].forward = lambda x: x * 0.0  # type: ignore[method-assign]
    return network


@pytest.mark.parametrize(
    "changed",
    [
        with_hook,
        replaced,
        lambda network: network.double(),
        lambda network: network.to(torch.bfloat16),
        lambda network: network.append(nn.Tanh()),
        lambda network: network.append(nn.Linear(4, 4, bias=False)),
        lambda network: PlainLayers(build_mlp(60, [64, "b"]), nn.Linear(64, 4)),
    ],
)
def test_what_is_not_plain_is_left_to_the_modules(
    changed: Callable[[PlainLayers], PlainLayers], calls: list[int]
) -> None:
    network = changed(networks()["usual"]())
    x = torch.randn(WIDE, 60, dtype=next(network.parameters()).dtype)
    assert torch.equal(network(x), one_by_one(network, x))
    assert not calls


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_autocast_tracing_and_other_shapes_are_left_to_the_modules(calls: list[int]) -> None:
    network, x = networks()["usual"](), torch.randn(WIDE, 60)
    with torch.autocast("cpu", torch.bfloat16):
        assert network(x).dtype is torch.bfloat16
    assert network(x[None]).shape == (1, WIDE, 4)
    assert not calls
    traced = torch.jit.trace(network, x)
    torch.testing.assert_close(traced(x[:5]), one_by_one(network, x[:5]))
