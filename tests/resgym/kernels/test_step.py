"""Whole steps by the compiled pass against the reference, bit for bit."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

import resgym
from resgym.game.rules import observe_points
from tests.resgym.kernels.steps import (
    actions_for,
    as_dict,
    assert_same,
    leaves,
    make,
    only_fused,  # noqa: F401
    play_both,
    play_overflows,
    play_smaller_starts,
    refuse_steps,
)

pytest.importorskip("numba")

IDS = ("resgym/Hironaka-v0", "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0")
MODES = tuple(AutoresetMode)
REWARDS = ("terminal", "step", "survival", "points")
AGENTS = ("random", "choose_first", "choose_last")
HOSTS = ("random", "random_pair", "all_coord", "zeillinger", "zeillinger_lex")


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("env_id", IDS)
def test_ids_modes_and_rewards(env_id: str, mode: AutoresetMode, reward: str) -> None:
    seen = play_both(env_id, reward=reward, autoreset_mode=mode, max_episode_steps=9)
    assert seen["terminated"] > 3
    assert seen["truncated"] > 3


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("invalid_action", ["noop", "penalty", "terminate"])
@pytest.mark.parametrize(("env_id", "mode"), list(itertools.product(IDS, MODES)))
def test_illegal_actions(env_id: str, mode: AutoresetMode, invalid_action: str) -> None:
    play_both(
        env_id,
        illegal=True,
        invalid_action=invalid_action,
        autoreset_mode=mode,
        max_episode_steps=12,
        reward="step",
    )


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("dimension", [2, 3, 6, 10])
@pytest.mark.parametrize("opponent", AGENTS)
def test_agents(opponent: str, dimension: int) -> None:
    play_both("resgym/HironakaHost-v0", opponent=opponent, dimension=dimension, max_num_points=9)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("dimension", [2, 3, 6, 10])
@pytest.mark.parametrize("opponent", HOSTS)
def test_hosts(opponent: str, dimension: int) -> None:
    play_both("resgym/HironakaAgent-v0", opponent=opponent, dimension=dimension, max_num_points=9)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize(
    "options",
    [
        {"max_num_points": 2, "max_value": 1},
        {"max_num_points": 50, "max_value": 2**31 - 2},
        {"dimension": 10, "max_num_points": 50},
        {"reposition": True, "scale_observation": False},
        {"max_episode_steps": None, "num_envs": 1},
        {"output": "numpy"},
    ],
    ids=str,
)
def test_sizes_and_options(env_id: str, options: dict[str, Any]) -> None:
    play_both(env_id, **options)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", MODES)
def test_overflow(env_id: str, mode: AutoresetMode) -> None:
    play_overflows(env_id, "numba", 12, autoreset_mode=mode)


@pytest.mark.usefixtures("only_fused")
def test_smaller_starts() -> None:
    play_smaller_starts("numba", 60)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("env_id", IDS)
def test_rows_do_not_depend_on_their_number_or_on_threads(
    env_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resgym.kernels.cpu.threads._LEAST_WORK", 3)
    threads = torch.get_num_threads()
    wide, narrow = make(env_id, "numba", num_envs=700), make(env_id, "numba", num_envs=3)
    try:
        wide.reset(seed=2)
        narrow.reset(seed=2)
        for step in range(40):
            random = np.random.default_rng(step)
            masks = np.asarray(wide.action_masks())
            weights = random.random(masks.shape[1])
            actions = (masks * weights).argmax(1)
            torch.set_num_threads(1 + step % 4)
            a, b = as_dict(wide.step(actions)), as_dict(narrow.step(actions[:3]))
            for name, array in leaves({k: a[k] for k in a if k != "info"}).items():
                other = leaves({k: b[k] for k in b if k != "info"})[name]
                assert np.array_equal(array[:3], other), f"step {step}: {name}"
            seen = a["observation"]
            seen = seen if isinstance(seen, torch.Tensor) else seen["points"]
            assert torch.equal(seen, observe_points(wide.unwrapped.games.position))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("env_id", IDS)
def test_refused_steps_change_nothing(env_id: str) -> None:
    refuse_steps(env_id, "numba")


def test_results_stay_as_they_are() -> None:
    """What a step returned, and the state it left, is not written to by later steps."""
    env = make("resgym/HironakaAgent-v0", "numba")
    env.reset(seed=3)
    held: list[tuple[Any, dict[str, np.ndarray]]] = []
    for step in range(30):
        result = as_dict(env.step(actions_for(env, step, illegal=False)))
        state = env.unwrapped.games.position
        tree = {**result, "state": {"points": state.points, "count": state.count}}
        held.append((tree, {name: array.copy() for name, array in leaves(tree).items()}))
    for tree, copy in held:
        assert all(np.array_equal(array, copy[name]) for name, array in leaves(tree).items())


class Mine(type(resgym.make_agent("choose_first"))):  # type: ignore[misc]
    """Says nothing about being compiled, and chooses something else."""

    def act(self, state: Any, coords: Any, rng: Any) -> torch.Tensor:
        return coords.shape[1] - 1 - coords.flip(1).to(torch.uint8).argmax(1)


@pytest.mark.parametrize(
    "options",
    [
        {"opponent": Mine()},
        {"opponent": resgym.make_agent("greedy_points")},
        {"opponent": ["random", "choose_first"] * 3},
        {"reward": lambda transition: transition.finished.to(torch.float32)},
        {"polytope": "newton"},
    ],
    ids=["subclass", "greedy_points", "mixed", "function", "newton"],
)
def test_what_is_not_compiled_is_the_same(options: dict[str, Any]) -> None:
    play_both("resgym/HironakaHost-v0", steps=15, **options)


def test_opponents_and_settings_may_change() -> None:
    envs = [make("resgym/HironakaHost-v0", name) for name in ("torch", "numba")]
    for env in envs:
        env.reset(seed=1)
    changes: list[Any] = [
        lambda env: env.set_opponent("choose_last"),
        lambda env: env.set_opponent(Mine()),
        lambda env: setattr(env, "reward", "step"),
        lambda env: env.set_opponent("random"),
        lambda env: setattr(env, "plan", replace(env.plan, max_episode_steps=3)),
    ]
    for step in range(50):
        if step % 10 == 0:
            for env in envs:
                changes[step // 10](env.unwrapped)
        actions = actions_for(envs[0], step, illegal=False)
        assert_same(as_dict(envs[0].step(actions)), as_dict(envs[1].step(actions)), f"{step} ")


def test_large_results_that_are_still_held_are_never_written_again():
    env = make(IDS[1], "numba", 3000, opponent="random")
    first, _ = env.reset(seed=0)
    actions = torch.zeros(3000, dtype=torch.int64)
    held, copies = [first, env.games.points], [first.clone(), env.games.points.clone()]
    for _ in range(12):
        observation, _, _, _, info = env.step(actions)
        row = observation[1]  # a view keeps the whole alive
        kept = [row, info.get("final_obs", row).numpy(), env.games.points]
        held += kept
        copies += [torch.as_tensor(value).clone() for value in kept]
    for value, copy in zip(held, copies, strict=True):
        assert torch.equal(torch.as_tensor(value), copy)
