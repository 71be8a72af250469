"""Whole steps of a backend beside the same steps of the reference."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from resgym.game.spec import MAX_COORDINATE
from tests.resgym.envs.helpers import array


def make(env_id: str, backend: str, num_envs: int = 6, **kwargs: Any) -> Any:
    return gymnasium.make_vec(env_id, num_envs=num_envs, backend=backend, **kwargs)


def leaves(tree: Any, name: str = "") -> dict[str, np.ndarray]:
    """Everything in nested dicts, floats as integers: 0 and -0 differ, NaN equals itself."""
    if isinstance(tree, tuple):
        tree = dict(enumerate(tree))
    if isinstance(tree, dict):
        return {k: v for key in tree for k, v in leaves(tree[key], f"{name}/{key}").items()}
    values = array(tree)
    if values.dtype == np.float32:
        values = values.view(np.int32)
        name = f"{name} (float32)"
    return {name: values}


def assert_same(expected: Any, found: Any, where: str) -> None:
    a, b = leaves(expected), leaves(found)
    assert list(a) == list(b), where
    for name in a:
        assert a[name].dtype == b[name].dtype, f"{where}{name}"
        assert a[name].shape == b[name].shape, f"{where}{name}"
        assert np.array_equal(a[name], b[name]), f"{where}{name}"


def as_dict(result: tuple[Any, ...]) -> dict[str, Any]:
    names = ("observation", "reward", "terminated", "truncated", "info")
    return dict(zip(names, result, strict=True))


def actions_for(env: Any, step: int, illegal: bool) -> np.ndarray:
    """Legal actions, or in some rows others, the same for the same masks."""
    random = np.random.default_rng(step)
    masks = array(env.action_masks())
    chosen = np.array([random.choice(np.flatnonzero(m)) if m.any() else 0 for m in masks])
    if illegal:
        wild = random.integers(-3, masks.shape[1] + 3, len(chosen))
        chosen = np.where(random.random(len(chosen)) < 0.3, wild, chosen)
    return chosen.astype(np.int64)


def play_both(
    env_id: str,
    steps: int = 60,
    illegal: bool = False,
    seed: int = 5,
    fast: str = "numba",
    **kwargs: Any,
) -> dict[str, int]:
    """Steps a backend and the reference side by side; returns how often what happened."""
    torch_env, fast_env = make(env_id, "torch", **kwargs), make(env_id, fast, **kwargs)
    seen = {"terminated": 0, "truncated": 0, "overflow": 0}
    assert_same(torch_env.reset(seed=seed), fast_env.reset(seed=seed), "reset")
    for step in range(steps):
        ended = array(torch_env.unwrapped.games.ended)
        if torch_env.unwrapped.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            options = {"reset_mask": ended}
            assert_same(
                torch_env.reset(options=options), fast_env.reset(options=options), f"{step} "
            )
        actions = actions_for(torch_env, step, illegal)
        expected, found = as_dict(torch_env.step(actions)), as_dict(fast_env.step(actions))
        assert_same(expected, found, f"step {step}: ")
        assert_same(
            torch_env.unwrapped.state_dict(), fast_env.unwrapped.state_dict(), f"after {step}: "
        )
        for name in ("terminated", "truncated"):
            seen[name] += int(expected[name].sum())
        seen["overflow"] += int(expected["info"]["overflow"].sum())
    return seen


def play_overflows(env_id: str, fast: str, rounds: int, **kwargs: Any) -> None:
    """Games from the edge of the range, over and over, on a backend and the reference."""
    top = MAX_COORDINATE
    points = [[top, top - 1, 0], [top - 1, top, 1], [0, 1, top], [1, 0, top - 1]]
    a, b = (make(env_id, name, max_num_points=4, **kwargs) for name in ("torch", fast))
    overflows = 0
    for round_ in range(rounds):
        results = [env.reset(seed=round_, options={"points": points}) for env in (a, b)]
        assert_same(*results, "reset")
        for step in range(2):
            ended = bool(a.unwrapped.games.ended.any())
            if ended and a.unwrapped.autoreset_mode == AutoresetMode.DISABLED:
                break
            actions = actions_for(a, 10 * round_ + step, illegal=False)
            expected, found = as_dict(a.step(actions)), as_dict(b.step(actions))
            assert_same(expected, found, f"round {round_}: ")
            overflows += int(expected["info"]["overflow"].sum())
            assert bool((expected["truncated"] >= expected["info"]["overflow"]).all())
    assert overflows > 5


def play_smaller_starts(fast: str, steps: int, **kwargs: Any) -> None:
    envs = [make("resgym/HironakaHost-v0", name, **kwargs) for name in ("torch", fast)]
    for env in envs:
        env.reset(seed=1)
        env.unwrapped.set_stage(num_points=4, max_value=3)
    for step in range(steps):
        actions = actions_for(envs[0], step, illegal=False)
        assert_same(as_dict(envs[0].step(actions)), as_dict(envs[1].step(actions)), f"{step} ")
    assert envs[1].unwrapped.games.counts.max() <= 4


def refuse_steps(env_id: str, fast: str, **kwargs: Any) -> None:
    """An illegal action, and an ended row in DISABLED, are named and change nothing."""
    env = make(env_id, fast, autoreset_mode="DISABLED", max_episode_steps=1, **kwargs)
    env.reset(seed=3)
    good = actions_for(env, 0, illegal=False)
    before = leaves(env.unwrapped.state_dict())
    for wrong in (99, -1):
        actions = good.copy()
        actions[4] = wrong
        with pytest.raises(ValueError, match=rf"action of row 4 must be one of .*, got {wrong}"):
            env.step(actions)
    after = leaves(env.unwrapped.state_dict())
    assert all(np.array_equal(before[name], after[name]) for name in before)
    env.step(good)
    with pytest.raises(ValueError, match=r"rows \[0, 1, 2, 3, 4, 5\] have ended"):
        env.step(good)
