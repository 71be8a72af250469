"""The toy environment is what the tests that use it take it for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from tests.fakes import ToyEnv, ToyVectorEnv


@pytest.mark.parametrize("dict_obs", [False, True])
def test_single_toy_is_an_environment(dict_obs: bool) -> None:
    check_env(ToyEnv(dict_obs=dict_obs), skip_render_check=True)


def test_naming_legality_and_reward() -> None:
    env = ToyVectorEnv(500, dict_obs=True, num_actions=3)
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        legal, named = env.action_masks(), env.named_button()
        assert torch.equal(observation["legal"].bool(), legal)
        assert torch.equal(observation["target"].argmax(dim=1), named)
        action = torch.randint(3, (500,), generator=torch.Generator().manual_seed(1))
        pressed_legal = legal[torch.arange(500), action]
        observation, reward, *_ = env.step(action)
        assert (reward[action == named] == 1).all()
        assert (reward[(action != named) & pressed_legal] == 0).all()
        assert (reward[~pressed_legal] == -1).all()
    share = legal.float().mean().item()
    assert share == pytest.approx((1 + 2 * 0.5) / 3, abs=0.05)


def test_lengths_and_kinds_of_ends() -> None:
    env = ToyVectorEnv(400, horizon=4)
    env.reset(seed=0)
    lengths, kinds = [], [0, 0]
    for _ in range(20):
        *_, terminated, truncated, info = env.step(env.named_button())
        if info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
        kinds = [kinds[0] + int(terminated.sum()), kinds[1] + int(truncated.sum())]
        assert not (terminated & truncated).any()
    shares = np.bincount(lengths)[1:] / len(lengths)
    assert shares.max() < 1.6 * shares.min()
    assert len(shares) == 4
    assert abs(kinds[0] - kinds[1]) < 0.1 * sum(kinds)


def test_state_is_all_that_the_future_depends_on() -> None:
    one, other = ToyVectorEnv(5), ToyVectorEnv(5)
    one.reset(seed=3)
    other.reset(seed=9)
    one.step(one.named_button())
    other.load_state_dict(one.state_dict())
    for _ in range(10):
        left, right = one.step(one.named_button()), other.step(other.named_button())
        assert all(torch.equal(a, b) for a, b in zip(left[:4], right[:4], strict=True))


def test_illegal_press_can_be_an_error() -> None:
    env = ToyVectorEnv(20, illegal="error")
    env.reset(seed=0)
    env.step(env.named_button())
    with pytest.raises(ValueError, match="illegal press"):
        env.step((~env.action_masks()).int().argmax(dim=1))
