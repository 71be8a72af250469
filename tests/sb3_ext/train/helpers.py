"""Shared by the tests of training."""

from __future__ import annotations

from typing import Any

import gymnasium

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN

SIZES = {"dimension": 3, "max_num_points": 5, "max_value": 6}


def make_env(seat, **keywords):
    env_id = f"resgym/Hironaka{seat.capitalize()}-v0"
    return TensorVecEnv(gymnasium.make_vec(env_id, num_envs=4, **{**SIZES, **keywords}))


def make_model(seat, **keywords):
    """With random weights, which play as well as any for these tests."""
    policy = f"{seat.capitalize()}Policy"
    arguments: dict[str, Any] = {"policy_kwargs": {"net_arch": [16, "b", "r8"]}, "seed": 1}
    env = make_env(seat)
    return DDQN(policy, env, buffer_size=100, device="cpu", **{**arguments, **keywords})
