"""Environments go on exactly where their state was taken, and stages make starts smaller."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import pytest
import torch

import resgym  # noqa: F401  (registers the environments)

IDS = ("resgym/HironakaHost-v0", "resgym/HironakaAgent-v0", "resgym/Hironaka-v0")


def make(env_id: str, **keywords: Any) -> Any:
    return gymnasium.make_vec(
        env_id, **{"num_envs": 5, "dimension": 3, "max_num_points": 6, "max_value": 9, **keywords}
    )


def play(env: Any, steps: int) -> list[Any]:
    """Observations, rewards and ends of steps with the last legal action of every row."""
    seen = []
    for _ in range(steps):
        masks = env.action_masks().to(torch.int64)
        actions = masks.shape[1] - 1 - masks.flip(1).argmax(1)
        *result, _ = env.step(actions)
        seen.append(result)
    return seen


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
def test_another_environment_goes_on_exactly(env_id: str, mode: str) -> None:
    settings = {"autoreset_mode": mode, "max_episode_steps": 7}
    env = make(env_id, **settings)
    env.reset(seed=3)
    play(env, 9)
    state = env.state_dict()
    kept = {name: value.clone() for name, value in state["table"]["fields"].items()}
    expected = play(env, 25)
    assert any(bool((step[2] | step[3]).any()) for step in expected)
    assert same(kept, state["table"]["fields"])  # later steps do not reach into the state
    other = make(env_id, **settings)
    other.load_state_dict(state)
    assert same(play(other, 25), expected)
    assert same(other.state_dict(), env.state_dict())


def test_state_without_its_tensors_is_json() -> None:
    env = make(IDS[0])
    env.reset(seed=0)

    def plain(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: plain(value) for key, value in tree.items()}
        return tree.tolist() if isinstance(tree, torch.Tensor) else tree

    assert json.loads(json.dumps(plain(env.state_dict()))) == plain(env.state_dict())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dimension": 4}, "dimension: the saved games have 3, this environment has 4"),
        ({"num_envs": 4}, r"ended: got \(5,\) torch.bool, need \(4,\) torch.bool"),
        ({"max_num_points": 7}, "max_num_points: the saved games have 6"),
        ({"polytope": "newton"}, "polytope: the saved games have 'dominance'"),
    ],
)
def test_another_game_is_refused_and_nothing_changes(changed: Any, message: str) -> None:
    env, other = make(IDS[0]), make(IDS[0], **changed)
    env.reset(seed=1)
    other.reset(seed=2)
    before = other.state_dict()
    with pytest.raises(ValueError, match=message):
        other.load_state_dict(env.state_dict())
    assert same(before, other.state_dict())


def test_malformed_states() -> None:
    env = make(IDS[0])
    env.reset(seed=1)
    with pytest.raises(ValueError, match="state must have table, episodes and started, got"):
        env.load_state_dict({})
    state = env.state_dict()
    del state["table"]["fields"]["seed"]
    with pytest.raises(ValueError, match="fields must be"):
        env.load_state_dict(state)
    state = env.state_dict()
    state["table"]["fields"]["seed"] = [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="seed: got list"):
        env.load_state_dict(state)


@pytest.mark.parametrize("env_id", IDS)
def test_stage_limits_the_next_starts_and_survives(env_id: str) -> None:
    env = make(env_id, num_envs=200, max_episode_steps=3)
    env.reset(seed=0)
    assert int(env.table.state.count.max()) > 3
    before = env.table.state.points.clone()
    env.set_stage(num_points=3, max_value=4)
    assert torch.equal(env.table.state.points, before)  # running games go on
    for look in (lambda: env.reset(), lambda: play(env, 3)):
        look()
        fresh = env.table.half_moves <= 1
        points = env.table.state.points[fresh]
        assert points.shape[1:] == (6, 3)
        assert int((points[:, :, 0] >= 0).sum(1).max()) <= 3
        assert int(points.max()) <= 4
    other = make(env_id, num_envs=200, max_episode_steps=3)
    other.load_state_dict(env.state_dict())
    assert same(play(other, 8), play(env, 8))
    env.set_stage()
    env.reset()
    assert int(env.table.state.points.max()) == 9


def test_a_stage_of_full_size_changes_no_start() -> None:
    env, other = make(IDS[0]), make(IDS[0])
    other.set_stage(num_points=6, max_value=9)
    assert torch.equal(env.reset(seed=4)[0], other.reset(seed=4)[0])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"num_points": 1}, "num_points must be between 2 and 6, got 1"),
        ({"num_points": 7}, "num_points must be between 2 and 6, got 7"),
        ({"max_value": 10}, "max_value must be between 1 and 9, got 10"),
        ({"num_points": 3, "max_value": 0}, "max_value must be between 1 and 9, got 0"),
    ],
)
def test_stages_out_of_range(sizes: Any, message: str) -> None:
    env = make(IDS[0])
    with pytest.raises(ValueError, match=message):
        env.set_stage(**sizes)
    assert env.table.start_spec == env.table.spec
