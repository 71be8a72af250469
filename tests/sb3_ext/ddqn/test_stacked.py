"""Updates without autograd against those with it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.learning import QLearning
from sb3_ext.ddqn.stacked import stacked_network
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model, weights

SEATS = {"HostPolicy": "resgym/HironakaHost-v0", "AgentPolicy": "resgym/HironakaAgent-v0"}


def model_of(policy: str, **arguments: Any) -> DDQN:
    env = TensorVecEnv(gymnasium.make_vec(SEATS[policy], num_envs=8, max_num_points=5))
    arguments = {"policy_kwargs": {"net_arch": [32, 16]}, "learning_starts": 8, **arguments}
    return make_model(env, policy, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"double_q": False},
        {"n_steps": 3, "gamma": 0.9},
        {"max_grad_norm": 0.01, "target_update_interval": 7, "tau": 0.5},
        {"max_grad_norm": None, "policy_kwargs": {"net_arch": []}},
        {"policy_kwargs": {"net_arch": [16], "optimizer_class": "sgd"}, "learning_rate": 0.05},
    ],
    ids=str,
)
@pytest.mark.parametrize("policy", SEATS)
def test_updates_are_those_of_autograd(
    policy: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, expected = model_of(policy, **arguments), model_of(policy, **arguments)
    calls = []
    inner = QLearning._update_stacked

    def counting(self: Any, *given: Any) -> torch.Tensor:
        calls.append(self)
        return inner(self, *given)

    monkeypatch.setattr(QLearning, "_update_stacked", counting)
    monkeypatch.setattr(expected, "_stacked_networks", lambda: None)
    for model in (found, expected):
        # Rewards beyond the threshold of the loss too.
        model.env.venv.unwrapped.reward = lambda made: 3.0 * made.finished.float() - 0.1  # type: ignore[union-attr]
        model.exploration_rate = 1.0
        model.learning_starts = 10**9
        model.learn(400)
        model.train(20, batch_size=32)
    assert calls == [found] * 20
    first, second = weights(found), weights(expected)
    for name, value in second.items():
        assert torch.allclose(first[name], value, rtol=1e-5, atol=1e-6), name
    measured, wanted = found.update_sums.read(), expected.update_sums.read()
    assert measured == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    assert measured["td_max"] > 1
    changed = weights(model_of(policy, **arguments))
    assert not all(torch.allclose(changed[n], second[n], atol=1e-4) for n in second)


class OtherLoss(DDQN):
    def _compute_loss(self, batch: Any) -> Any:
        terms = super()._compute_loss(batch)
        return terms._replace(loss=0.0 * terms.loss)


class OtherMeasure(DDQN):
    def _measure(self, terms: Any, norm: torch.Tensor) -> torch.Tensor:
        return super()._measure(terms, norm)


@pytest.mark.parametrize("kind", [OtherLoss, OtherMeasure])
def test_a_subclass_is_asked(kind: type[DDQN]) -> None:
    model = kind("MlpPolicy", TensorVecEnv(ToyVectorEnv(8)), learning_starts=8, device="cpu")
    assert model._stacked_networks() is None
    plain = DDQN("MlpPolicy", TensorVecEnv(ToyVectorEnv(8)), learning_starts=8, device="cpu")
    assert plain._stacked_networks() is not None


def test_a_hook_that_comes_later_is_called() -> None:
    model = model_of("HostPolicy")
    model.learn(80)
    assert model._stacks[0] is not None
    seen = []
    model.q_net.q_net[0][0].register_forward_hook(lambda *_: seen.append(1))  # type: ignore[index]
    model.train(1, batch_size=8)
    assert seen


def test_the_same_memory_is_used_until_a_network_is_another() -> None:
    model = model_of("HostPolicy")
    first = model._stacked_networks()
    assert first is not None
    assert model._stacked_networks() == first
    head = model.q_net.q_net[1]
    model.q_net.q_net[1] = torch.nn.Linear(head.in_features, head.out_features)  # type: ignore[arg-type]
    second = model._stacked_networks()
    assert second is not None
    assert second[0] is not first[0]
    assert second[1] is first[1]


@pytest.mark.parametrize(
    "policy_kwargs",
    [
        {"net_arch": [8], "dueling": True},
        {"net_arch": [8, "b"]},
        {"net_arch": [8], "extractor": "point_set"},
        {"net_arch": [8], "activation_fn": torch.nn.Tanh},
        {"net_arch": [8], "features_extractor_kwargs": {"net_arch": [8]}},
    ],
    ids=str,
)
def test_other_networks_use_autograd(policy_kwargs: dict[str, Any]) -> None:
    model = model_of("HostPolicy", policy_kwargs=policy_kwargs)
    assert stacked_network(model.q_net) is None
    model.learn(80)


@pytest.mark.parametrize(
    ("space", "plain"),
    [
        (spaces.Box(-1, 1, (4,), np.float32), True),
        (spaces.Box(-1, 1, (4,), np.float64), False),
        (spaces.Box(0, 255, (3, 36, 36), np.uint8), False),
        (spaces.Discrete(4), False),
        (spaces.Dict(a=spaces.MultiBinary(3), b=spaces.Box(-1, 1, (2,), np.float32)), True),
        (spaces.Dict(a=spaces.MultiBinary(3), b=spaces.Discrete(2)), False),
    ],
    ids=str,
)
def test_values_are_those_of_the_network(space: spaces.Space, plain: bool) -> None:
    from sb3_ext.ddqn.policies import QPolicy

    network = QPolicy(space, spaces.Discrete(3), lambda _: 1e-3, net_arch=[8]).q_net
    stack = stacked_network(network)
    assert (stack is not None) == plain
    if stack is not None:
        space.seed(0)
        drawn = [space.sample() for _ in range(5)]
        if isinstance(space, spaces.Dict):
            batch: Any = {
                key: torch.as_tensor(np.stack([each[key] for each in drawn])) for key in space
            }
        else:
            batch = torch.as_tensor(np.stack(drawn))
        assert torch.allclose(stack(batch), network(batch), rtol=1e-6, atol=1e-6)
