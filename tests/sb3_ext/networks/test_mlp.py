"""The net_arch language, and the registry of activations."""

import pytest
import torch
from torch import nn

from sb3_ext.networks.mlp import ACTIVATIONS, ResidualBlock, build_mlp


@pytest.mark.parametrize(
    ("net_arch", "names"),
    [
        ([], []),
        ([8, "b"], ["Linear", "BatchNorm1d", "ReLU"]),
        (["r8", 4], ["ResidualBlock", "Linear", "ReLU"]),
        (
            [{"repeat": 2, "net_arch": [{"repeat": 2, "net_arch": [8]}, "ln"]}, 4],
            [*(2 * ["Linear", "ReLU", "Linear", "LayerNorm", "ReLU"]), "Linear", "ReLU"],
        ),
    ],
    ids=str,
)
def test_layers_in_their_order(net_arch, names):
    body = build_mlp(5, net_arch)
    assert [type(layer).__name__ for layer in body] == names
    assert body(torch.randn(7, 5)).shape == (7, body.output_dim)


def test_residual_block_by_its_formula():
    block = ResidualBlock(3, 5, nn.ReLU).eval()
    x = torch.randn(4, 3)
    assert torch.allclose(block(x), (block.skip(x) + block.body(x)).relu())
    assert isinstance(block.skip, nn.Linear)
    names = [type(layer).__name__ for layer in block.body]
    assert names == ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d"]
    same = ResidualBlock(5, 5, nn.ReLU).eval()
    assert isinstance(same.skip, nn.Identity)
    with torch.no_grad():
        for parameter in same.body.parameters():
            parameter.zero_()
    x = torch.rand(4, 5)
    assert torch.equal(same(x), x)


def test_activations_by_name_or_class():
    for name in ACTIVATIONS:
        kind = ACTIVATIONS.resolve(name)
        for activation in (name, kind):
            assert type(build_mlp(2, [3], activation=activation)[1]) is kind
    assert isinstance(build_mlp(2, ["r3"], activation="tanh")[0].activation, nn.Tanh)
    with pytest.raises(ValueError, match=r"'rely'.*'relu'"):
        build_mlp(3, [3], "rely")


@pytest.mark.parametrize(
    ("net_arch", "named"),
    [
        ("256", "net_arch"),
        ([8, "x"], r"net_arch\[1\] .*'x'"),
        (["b"], r"net_arch\[0\].*'b'"),
        ([8, "b", "ln"], r"net_arch\[2\].*'ln'"),
        ([4, {"repeat": 2, "net_arch": [4, "y"]}], r"net_arch\[1\]\.net_arch\[1\]"),
        ([{"repeat": 0, "net_arch": [4]}], r"net_arch\[0\]\.repeat"),
        ([{"repaet": 2, "net_arch": [4]}], r"net_arch\[0\] .*'repaet'"),
        ([1] * 20_000, "at most 1000 layers"),
        ([{"repeat": 10**18, "net_arch": [{"repeat": 10**18, "net_arch": []}]}, 0], r"\[1\]"),
        ([2**20, 2**20], "weights"),
    ],
    ids=lambda value: str(value)[:80],
)
def test_bad_items_are_named_with_their_position(net_arch, named):
    with pytest.raises((TypeError, ValueError), match=named) as error:
        build_mlp(3, net_arch)
    assert "\n" not in str(error.value)
