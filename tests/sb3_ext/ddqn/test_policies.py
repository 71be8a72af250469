"""Policies by name, their networks and their optimisers."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import resgym  # noqa: F401  (registers the environments)
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn.policies import OPTIMIZERS, DuelingHead
from tests.sb3_ext.ddqn.helpers import make_model


def game(role: str, rows: int = 16, **kwargs: Any) -> TensorVecEnv:
    kwargs.setdefault("opponent", "choose_first" if role == "Host" else "zeillinger")
    return TensorVecEnv(
        gymnasium.make_vec(f"resgym/Hironaka{role}-v0", num_envs=rows, reward="step", **kwargs)
    )


@pytest.mark.parametrize("extractor", ["flatten", "point_set"])
@pytest.mark.parametrize("role", ["Host", "Agent"])
@pytest.mark.parametrize("dueling", [False, True])
def test_policies_learn_on_the_game(role: str, extractor: str, dueling: bool) -> None:
    model = make_model(
        game(role),
        f"{role}Policy",
        dueling=dueling,
        policy_kwargs={"extractor": extractor, "net_arch": [32, "b", "r32"]},
    )
    model.learn(400)
    observation = model.env.reset()
    actions, _ = model.predict(observation)
    assert actions.shape == (16,)
    is_dict = isinstance(observation, dict)
    one = {k: v[0] for k, v in observation.items()} if is_dict else observation[0]
    single, _ = model.predict(one, deterministic=True)
    assert single.shape == ()
    assert single == model.predict(observation, deterministic=True)[0][0]


@pytest.mark.parametrize("warmup", ["policy", "uniform_legal"])
def test_agent_never_chooses_an_axis_outside_the_hosts_set(warmup: str) -> None:
    """The environment raises at an illegal axis."""
    env = game("Agent", invalid_action="error", opponent="random")
    model = make_model(env, "AgentPolicy", warmup=warmup, exploration_rate=0.8)
    assert model.legal_actions.source == "observation"
    model.learn(800)
    observation = env.reset()
    for deterministic in (True, False):
        actions, _ = model.predict(observation, deterministic=deterministic)
        assert observation["coords"][np.arange(16), actions].all()
    assert observation["coords"][np.arange(16), model.policy.predict(observation)[0]].all()


def test_dueling_head_by_hand() -> None:
    head = DuelingHead(1, 3)
    with torch.no_grad():
        head.value.weight.fill_(0.0)
        head.value.bias.fill_(5.0)
        head.advantage.weight.copy_(torch.tensor([[1.0], [2.0], [6.0]]))
        head.advantage.bias.fill_(0.0)
    assert head(torch.tensor([[2.0]])).tolist() == [[1.0, 3.0, 11.0]]


def test_target_and_online_networks_share_nothing() -> None:
    model = make_model(game("Host"), "HostPolicy", policy_kwargs={"extractor": "point_set"})
    online = {parameter.data_ptr() for parameter in model.q_net.parameters()}
    target = {parameter.data_ptr() for parameter in model.q_net_target.parameters()}
    assert not online & target
    optimised = {
        p.data_ptr() for group in model.policy.optimizer.param_groups for p in group["params"]
    }
    assert optimised == online


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop", "sgd"])
def test_optimisers_by_name_learn(name: str) -> None:
    assert list(OPTIMIZERS) == ["adam", "adamw", "rmsprop", "sgd"]
    model = make_model(policy_kwargs={"optimizer_class": name, "net_arch": [16]})
    assert isinstance(model.policy.optimizer, OPTIMIZERS.resolve(name))
    before = next(model.q_net.parameters()).clone()
    model.learn(120)
    assert not torch.equal(before, next(model.q_net.parameters()))
