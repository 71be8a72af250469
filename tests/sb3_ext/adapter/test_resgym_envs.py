"""TensorVecEnv on the one-seat environments of the game."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_maskable
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from sb3_ext.adapter import TensorVecEnv

resgym = pytest.importorskip("resgym")

HOST, AGENT = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0"
SMALL = {"max_num_points": 6, "max_value": 6, "reward": "step"}


@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_every_row_is_the_single_environment(env_id: str) -> None:
    """Against Gymnasium's own SyncVectorEnv, with ends of both kinds."""
    num_envs = 6
    kwargs: dict[str, Any] = {**SMALL, "opponent": "random", "max_episode_steps": 4}
    adapted = TensorVecEnv(gymnasium.make_vec(env_id, num_envs=num_envs, **kwargs))
    singles = SyncVectorEnv(
        [lambda: Monitor(gymnasium.make(env_id, **kwargs))] * num_envs,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    adapted.seed(5)
    observation, (expected, _) = adapted.reset(), singles.reset(seed=5)
    generator = np.random.default_rng(0)
    ends = {True: 0, False: 0}
    for _ in range(40):
        assert_same(observation, expected)
        masks = adapted.action_masks()
        np.testing.assert_array_equal(masks, np.stack(singles.call("action_masks")))
        np.testing.assert_array_equal(masks, get_action_masks(adapted))
        if env_id == AGENT:
            np.testing.assert_array_equal(masks, observation["coords"].astype(bool))
        actions = (generator.random(masks.shape) * masks).argmax(axis=1)
        observation, rewards, dones, infos = adapted.step(actions)
        expected, reward, terminated, truncated, info = singles.step(actions)
        np.testing.assert_array_equal(rewards, reward)
        np.testing.assert_array_equal(dones, terminated | truncated)
        for row in np.flatnonzero(dones):
            final = info["final_obs"][row]
            assert_same(infos[row]["terminal_observation"], final)
            assert infos[row]["TimeLimit.truncated"] == (truncated[row] and not terminated[row])
            episode = info["final_info"]["episode"]
            assert infos[row]["episode"]["r"] == episode["r"][row]
            assert infos[row]["episode"]["l"] == episode["l"][row]
            assert infos[row]["overflow"] is False
            ends[infos[row]["TimeLimit.truncated"]] += 1
    assert min(ends.values()) > 5


def test_made_by_sb3_from_the_id(tmp_path: Any) -> None:
    env = make_vec_env(
        AGENT,
        n_envs=3,
        seed=0,
        env_kwargs={"opponent": "zeillinger", "dimension": 4, "render_mode": None},
        monitor_dir=str(tmp_path),
        vec_env_cls=TensorVecEnv,
    )
    assert env.reset()["coords"].shape == (3, 4)
    assert [player.role for player in env.get_attr("opponents", 0)[0]] == ["host"]
    env.set_options({"points": [[0, 0, 0, 1], [1, 0, 0, 0]]})
    points = env.reset()["points"]
    np.testing.assert_array_equal(points[:, :2, 0], [[1, 0]] * 3)
    env.close()


def assert_same(left: Any, right: Any) -> None:
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            np.testing.assert_array_equal(left[key], right[key])
    else:
        np.testing.assert_array_equal(left, right)


# Learning. Small games, reward -1 (host) or +1 (agent) per move, cut at 20 moves; mean return of
# 256 games. Baseline, uniformly random actions (illegal ones cost 1): host -7.3 against
# choose_first, agent +3.0 against random. Untrained networks play one action for ever and are
# below that (MaskablePPO's agent: 6 to 8.5). Reached with these settings and seeds 1 to 3: host -3
# to -6, agent 7.7 to 12.9.
THRESHOLD = {HOST: -6.3, AGENT: 6.0}
OPPONENT = {HOST: "choose_first", AGENT: "random"}
Q_LEARNING = {
    "learning_rate": 2e-3,
    "learning_starts": 256,
    "buffer_size": 20_000,
    "batch_size": 128,
    "train_freq": 1,
    "gradient_steps": 4,
    "target_update_interval": 256,
    "gamma": 0.9,
    "exploration_fraction": 0.5,
}
PROXIMAL = {"learning_rate": 3e-3, "n_steps": 16, "batch_size": 256, "n_epochs": 4, "gamma": 0.9}
LSTM = {"lstm_hidden_size": 16, "enable_critic_lstm": False, "shared_lstm": True}
CASES: dict[str, tuple[Any, dict[str, Any], int]] = {
    "DQN": (DQN, Q_LEARNING, 7_000),
    "QRDQN": (QRDQN, Q_LEARNING | {"policy_kwargs": {"n_quantiles": 10}}, 7_000),
    "PPO": (PPO, PROXIMAL, 10_000),
    "A2C": (A2C, {"learning_rate": 3e-3, "n_steps": 4, "gamma": 0.9}, 24_000),
    "MaskablePPO": (MaskablePPO, PROXIMAL, 10_000),
    "RecurrentPPO": (
        RecurrentPPO,
        PROXIMAL | {"learning_rate": 5e-3, "n_steps": 8, "policy_kwargs": LSTM},
        8_000,
    ),
}


@pytest.mark.learning
@pytest.mark.parametrize("env_id", [HOST, AGENT])
@pytest.mark.parametrize("name", list(CASES))
def test_stock_algorithm_learns(name: str, env_id: str) -> None:
    """The untrained model is the control: it must not reach the threshold."""
    algorithm, arguments, transitions = CASES[name]
    masked = name == "MaskablePPO"

    def environment() -> TensorVecEnv:
        # Only the algorithm that knows the masks can keep to the legal actions.
        invalid_action = "error" if masked else "penalty"
        kwargs = {**SMALL, "max_episode_steps": 20, "invalid_action": invalid_action}
        return TensorVecEnv(
            gymnasium.make_vec(env_id, num_envs=64, opponent=OPPONENT[env_id], **kwargs)
        )

    def score(model: Any) -> float:
        env = environment()
        env.seed(99)
        evaluate = evaluate_maskable if masked else evaluate_policy
        return float(evaluate(model, env, 256)[0])

    arguments = {**arguments, "seed": 1}
    arguments["policy_kwargs"] = {"net_arch": [64], **arguments.get("policy_kwargs", {})}
    policy = "MultiInput" if env_id == AGENT else "Mlp"
    policy += "LstmPolicy" if name == "RecurrentPPO" else "Policy"
    model = algorithm(policy, environment(), **arguments)
    before = score(model)
    threshold = 9.5 if masked and env_id == AGENT else THRESHOLD[env_id]
    assert before < threshold
    model.learn(transitions)
    assert score(model) > threshold


def test_a_resumed_monitor_file_lists_no_episode_twice(tmp_path: Path) -> None:
    def games(override: bool = True) -> TensorVecEnv:
        return make_vec_env(
            "resgym/HironakaHost-v0",
            n_envs=8,
            monitor_dir=str(tmp_path / "run"),
            monitor_kwargs={"override_existing": override},
            vec_env_cls=TensorVecEnv,
        )

    def play(env: TensorVecEnv, steps: int) -> None:
        for _ in range(steps):
            env.step_tensors(torch.full((8,), 3))  # all axes
        env.state_dict()  # writes what is gathered

    def lines() -> list[str]:
        (file,) = (tmp_path / "run").iterdir()
        _, _, *rows = file.read_text().splitlines()
        return [row.rsplit(",", 1)[0] for row in rows]  # without the time

    env = games()
    env.seed(0)
    env.reset_tensors()
    play(env, 20)
    state = env.state_dict()
    early = lines()
    play(env, 30)
    whole = lines()
    assert len(whole) > len(early) > 0
    env.close()

    again = games(override=False)
    again.load_state_dict(state)
    assert lines() == early
    play(again, 30)
    assert lines() == whole
    again.close()

    (file,) = (tmp_path / "run").iterdir()
    file.write_text("r,l,t\n" + "1,1,1\n" * 1000)  # another file of the same name stays
    other = games(override=False)
    other.load_state_dict(state)
    assert len(file.read_text().splitlines()) == 1001
    other.close()


@pytest.mark.parametrize("env_id", ["resgym/HironakaHost-v0", "resgym/HironakaAgent-v0"])
def test_make_vec_env_does_without_pictures_of_four_axes(env_id: str) -> None:
    for kwargs in ({}, {"vec_env_cls": TensorVecEnv}):
        env = make_vec_env(env_id, n_envs=2, env_kwargs={"dimension": 4}, **kwargs)
        env.reset()
        env.close()
    with pytest.raises(ValueError, match="pictures need 2 or 3"):
        gymnasium.make(env_id, dimension=4, render_mode="rgb_array")
