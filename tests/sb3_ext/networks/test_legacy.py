"""The layout of the first trainer's networks, against its formula in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import ConstantSchedule

from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.ddqn.policies import AgentPolicy, HostPolicy
from sb3_ext.networks.legacy import build_legacy_mlp
from sb3_ext.networks.mlp import build_mlp

POINTS = spaces.Box(-1.0, 1.0, (5, 3), np.float32)
HOST = POINTS
AGENT = spaces.Dict(points=POINTS, coords=spaces.Box(0.0, 1.0, (3,), np.float32))


def linear(x, weights):
    weight, bias = weights.pop(0), weights.pop(0)
    return x @ weight.T + bias


def norm(x, weights):
    scale, shift, mean, variance, _ = (weights.pop(0) for _ in range(5))
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def relu(x):
    return np.maximum(x, 0)


def scores(x, layers, weights):
    """Layers written out: 'lin', 'norm', 'relu', 'block' and 'wide block', then the output."""
    for layer in layers:
        if layer == "lin":
            x = linear(x, weights)
        elif layer == "norm":
            x = norm(x, weights)
        elif layer == "relu":
            x = relu(x)
        else:
            inside = norm(linear(relu(norm(linear(x, weights), weights)), weights), weights)
            x = inside + (norm(linear(x, weights), weights) if layer == "wide block" else x)
    x = linear(x, weights)
    assert not weights
    return x


def observations(rng, rows=6):
    """Sets of which the last rows are absent, and coordinates of the host."""
    points = rng.random((rows, 5, 3), dtype=np.float32)
    points[:, 3:] = -1.0
    coords = (rng.random((rows, 3)) < 0.6).astype(np.float32)
    return points, coords


@pytest.mark.parametrize(
    ("net_arch", "layers"),
    [
        ([], []),
        ([7, 6], ["relu", "lin", "relu", "lin"]),
        (["b", 7], ["norm", "relu", "lin"]),
        ([7, "b", "b", 6, "b"], ["relu", "lin", "norm", "relu", "lin", "norm"]),
        (
            [{"repeat": 2, "net_arch": ["r8"]}, "b", 6],
            ["relu", "wide block", "relu", "block", "norm", "relu", "lin"],
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("seat", ["host", "agent"])
def test_same_weights_give_the_same_scores(net_arch, layers, seat):
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    kind, space, actions = (HostPolicy, HOST, 4) if seat == "host" else (AgentPolicy, AGENT, 3)
    arguments = {"net_arch": net_arch, "legacy_layout": True}
    policy = kind(space, spaces.Discrete(actions), ConstantSchedule(1e-3), **arguments)
    for name, value in policy.q_net.state_dict().items():
        if not name.endswith("num_batches_tracked"):  # statistics of BatchNorm too, variances > 0
            value.copy_(
                torch.from_numpy(rng.uniform(0.2, 1.0, value.shape) - 0.1 * ("bias" in name))
            )
    points, coords = observations(rng)
    rows, shown = points.reshape(len(points), -1), torch.from_numpy(points)
    if seat == "agent":
        rows = np.concatenate([rows, coords], 1)
        shown = {"coords": torch.from_numpy(coords), "points": shown}
    weights = [value.numpy().astype(np.float64) for value in policy.q_net.state_dict().values()]
    expected = scores(rows.astype(np.float64), layers, weights)
    policy.set_training_mode(False)
    np.testing.assert_allclose(policy.q_net(shown).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    copy = build_policy(describe_policy(policy))
    copy.load_state_dict(policy.state_dict())
    assert torch.equal(copy.q_net(shown), policy.q_net(shown))


def test_an_absent_point_is_the_origin_there_and_not_here():
    rows = torch.rand(4, 6)
    absent, origin = rows.clone(), rows.clone()
    absent[:, 3:], origin[:, 3:] = -1.0, 0.0
    legacy, ours = build_legacy_mlp(6, [8]), build_mlp(6, [8])
    assert torch.equal(legacy(absent), legacy(origin))
    assert not torch.equal(ours(absent), ours(origin))
    assert bool((absent[:, 3:] == -1.0).all())  # nothing is changed in place


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"net_arch": [8, "ln"]}, r"net_arch\[1\]: legacy_layout knows widths, 'b' and 'rK'"),
        ({"net_arch": [8], "dueling": True}, "dueling: must be false with legacy_layout"),
    ],
)
def test_what_that_layout_did_not_have_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        HostPolicy(
            HOST, spaces.Discrete(4), ConstantSchedule(1e-3), legacy_layout=True, **arguments
        )
