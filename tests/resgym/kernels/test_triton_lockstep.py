"""The Triton kernels against the torch reference, bit for bit: on CUDA, or in the interpreter.

Without a GPU these tests run in a process of their own that `test_triton_interpreted` starts.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import numpy as np
import pytest
import torch

from resgym.game import GameSpec, devices
from resgym.game.spec import MAX_COORDINATE
from resgym.testing import check_vector_env
from tests.resgym.kernels.operations import check_memory_and_no_games, check_starts, play_moves
from tests.resgym.kernels.steps import (
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

CUDA = torch.cuda.is_available()
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if importlib.util.find_spec("triton") is None or not (CUDA or INTERPRETED):
    pytest.skip("needs Triton, and CUDA or its interpreter", allow_module_level=True)

from resgym.kernels.cuda import grids as triton_launch  # noqa: E402

DEVICE = "cpu" if INTERPRETED else "cuda"
HOST, AGENT, BOTH = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0", "resgym/Hironaka-v0"
# The interpreter takes about as long for a program of many games as for one game.
STEPS, GAMES = (6, 21) if INTERPRETED else (60, 301)
SIZES = [(2, 1), (2, 5), (3, 20), (4, 7), (5, 33), (7, 4), (10, 6)]


@pytest.fixture(autouse=True)
def nothing_may_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference works as on an accelerator, whose infos have fields that are always there."""
    monkeypatch.setattr(devices, "is_host_memory", lambda device: False)
    if INTERPRETED:
        table = triton_launch.cut
        monkeypatch.setattr(triton_launch, "cut", lambda *sizes: table(*sizes)._replace(games=16))


def both(env_id: str, steps: int = STEPS, num_envs: int = GAMES, **options: Any) -> dict[str, int]:
    return play_both(env_id, steps, fast="triton", num_envs=num_envs, device=DEVICE, **options)


def play(spec: GameSpec, values: torch.Tensor) -> int:
    return play_moves("triton", spec, values, 3, 37, DEVICE)


@pytest.mark.parametrize(("dimension", "num_points"), SIZES)
def test_moves(dimension: int, num_points: int) -> None:
    reposition = num_points % 2 == 0
    play(GameSpec(dimension, num_points, reposition=reposition), torch.arange(21))


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_ties_and_equal_points(dimension: int) -> None:
    play(GameSpec(dimension, 30), torch.tensor([0, 1, 2]))


@pytest.mark.parametrize(("dimension", "num_points"), [(2, 6), (3, 9), (5, 40), (10, 5)])
def test_values_around_the_width_of_a_word(dimension: int, num_points: int) -> None:
    """Coordinates that fit into a packed word, do not, or cease to by a move."""
    width = 63 // triton_launch.cut(num_points, dimension).axes - 1
    edge = 2**width
    values = torch.tensor([0, 1, edge // 4, edge // 2, edge - 2, edge - 1])
    play(GameSpec(dimension, num_points), values)
    play(GameSpec(dimension, num_points), torch.tensor([1, edge - 1, edge, edge + 1]))


@pytest.mark.parametrize("reposition", [False, True])
@pytest.mark.parametrize(("dimension", "num_points"), [(3, 8), (10, 4)])
def test_values_near_the_bound(dimension: int, num_points: int, reposition: bool) -> None:
    top = MAX_COORDINATE
    values = torch.tensor([2**31, 2**53 + 1, top // 2, top // 2 + 1, top - 1, top])
    assert play(GameSpec(dimension, num_points, reposition=reposition), values) > 0


@pytest.mark.parametrize("polytope", ["dominance", "newton"])
@pytest.mark.parametrize(("dimension", "num_points"), SIZES[1:])
def test_starts(dimension: int, num_points: int, polytope: Any) -> None:
    if polytope == "newton" and dimension > 3:
        pytest.skip("the reference finds vertices slowly")
    for max_value in (1, 20, 2**31 - 2):
        check_starts("triton", GameSpec(dimension, num_points, max_value, polytope), 19, DEVICE)


def test_the_newton_polytope() -> None:
    play(GameSpec(3, 7, polytope="newton"), torch.arange(12))


def test_memory_and_no_games() -> None:
    check_memory_and_no_games("triton", DEVICE)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(
    ("env_id", "mode", "reward"),
    [
        (HOST, "SAME_STEP", "terminal"),
        (AGENT, "SAME_STEP", "points"),
        (BOTH, "SAME_STEP", "terminal"),
        (HOST, "NEXT_STEP", "step"),
        (AGENT, "NEXT_STEP", "terminal"),
        (BOTH, "NEXT_STEP", "survival"),
        (HOST, "DISABLED", "survival"),
        (AGENT, "DISABLED", "step"),
        (BOTH, "DISABLED", "points"),
    ],
)
def test_ids_modes_and_rewards(env_id: str, mode: str, reward: str) -> None:
    seen = both(
        env_id, reward=reward, autoreset_mode=mode, max_num_points=6, max_value=5,
        max_episode_steps=3 if env_id != BOTH else 5,
    )  # fmt: skip
    assert seen["terminated"] > 3
    assert seen["truncated"] > 3


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(
    ("env_id", "mode", "invalid_action"),
    [
        (HOST, "SAME_STEP", "terminate"),
        (AGENT, "SAME_STEP", "penalty"),
        (BOTH, "SAME_STEP", "terminate"),
        (HOST, "NEXT_STEP", "penalty"),
        (AGENT, "NEXT_STEP", "terminate"),
        (BOTH, "DISABLED", "noop"),
    ],
)
def test_illegal_actions(env_id: str, mode: str, invalid_action: str) -> None:
    both(
        env_id, illegal=True, invalid_action=invalid_action, autoreset_mode=mode,
        max_num_points=5, max_episode_steps=6, reward="step",
    )  # fmt: skip


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("dimension", [2, 3, 5, 10])
@pytest.mark.parametrize("opponent", ["random", "choose_first", "choose_last"])
def test_agents(opponent: str, dimension: int) -> None:
    both(HOST, 4, opponent=opponent, dimension=dimension, max_num_points=5)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("dimension", [2, 4, 10])
@pytest.mark.parametrize("opponent", ["random", "random_pair", "all_coord"])
def test_hosts(opponent: str, dimension: int) -> None:
    both(AGENT, 4, opponent=opponent, dimension=dimension, max_num_points=5)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        (HOST, {"max_num_points": 2, "max_value": 1}),
        (BOTH, {"max_num_points": 40, "max_value": 2**31 - 2}),
        (AGENT, {"reposition": True, "scale_observation": False}),
        (HOST, {"max_episode_steps": None, "num_envs": 1}),
        (BOTH, {"output": "numpy", "max_num_points": 5}),
        (HOST, {"max_num_points": 64, "num_envs": 3}),
    ],
    ids=str,
)
def test_sizes_and_options(env_id: str, options: dict[str, Any]) -> None:
    both(env_id, 4, **options)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("env_id", [HOST, AGENT, BOTH])
def test_overflow(env_id: str) -> None:
    play_overflows(env_id, "triton", 2, num_envs=19, device=DEVICE)


@pytest.mark.usefixtures("only_fused")
def test_smaller_starts() -> None:
    play_smaller_starts("triton", 4, device=DEVICE, max_episode_steps=2)


@pytest.mark.usefixtures("only_fused")
def test_rows_do_not_depend_on_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the games of a program that the table names."""
    options: dict[str, Any] = {"device": DEVICE, "max_num_points": 6}
    wide = make(HOST, "triton", num_envs=35, **options)
    wide.reset(seed=2)
    monkeypatch.undo()
    narrow = make(HOST, "triton", num_envs=3, **options)
    narrow.reset(seed=2)
    for step in range(4):
        actions = np.random.default_rng(step).integers(4, size=35)
        a, b = as_dict(wide.step(actions)), as_dict(narrow.step(actions[:3]))
        for name, found in leaves({k: a[k] for k in a if k != "info"}).items():
            other = leaves({k: b[k] for k in b if k != "info"})[name]
            assert np.array_equal(found[:3], other), f"step {step}: {name}"


def test_refused_steps_change_nothing() -> None:
    refuse_steps(AGENT, "triton", device=DEVICE)


def test_results_stay_as_they_are() -> None:
    """What a step returned is not written to by later steps, nor may its owner change the games."""
    env = make(HOST, "triton", device=DEVICE, max_num_points=6)
    env.reset(seed=0)
    first = as_dict(env.step(np.zeros(6, np.int64)))
    kept = leaves(first)
    kept = {name: values.copy() for name, values in kept.items()}
    env.step(np.ones(6, np.int64))
    assert all(np.array_equal(kept[name], now) for name, now in leaves(first).items())
    state = {k: v.copy() for k, v in leaves(env.unwrapped.state_dict()).items()}
    last = as_dict(env.step(np.ones(6, np.int64)))
    env.unwrapped.load_state_dict(env.unwrapped.state_dict())
    now = leaves(env.unwrapped.state_dict())
    for tensor in (last["observation"], last["reward"], last["info"]["final_obs"]):
        tensor.fill_(7)
    assert state.keys() == now.keys()
    assert all(np.array_equal(now[k], v) for k, v in leaves(env.unwrapped.state_dict()).items())


@pytest.mark.parametrize(
    "options",
    [{"opponent": "zeillinger"}, {"opponent": ["random", "choose_last"] * 3}],
    ids=["zeillinger", "mixed"],
)
def test_what_no_kernel_plays_is_the_same(options: dict[str, Any]) -> None:
    env_id = AGENT if options["opponent"] == "zeillinger" else HOST
    both(env_id, 4, num_envs=6, max_num_points=6, **options)


@pytest.mark.skipif(not CUDA, reason="no CUDA device")
@pytest.mark.parametrize("env_id", [HOST, AGENT, BOTH])
def test_a_step_never_waits_for_the_device(env_id: str) -> None:
    env = make(env_id, "triton", device="cuda", invalid_action="noop", num_envs=64)
    env.reset(seed=0)
    actions = torch.zeros(64, dtype=torch.int64, device="cuda")
    env.step(actions)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            env.step(actions)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.skipif(not CUDA, reason="no CUDA device")
def test_a_step_can_be_captured() -> None:
    """A captured step that is replayed gives what the same step gives without capture."""
    env = make(HOST, "triton", device="cuda", invalid_action="noop", num_envs=64)
    env.reset(seed=0)
    state = env.unwrapped.state_dict()
    actions = torch.zeros(64, dtype=torch.int64, device="cuda")
    wanted = as_dict(env.step(actions))
    env.unwrapped.load_state_dict(state)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = as_dict(env.step(actions))
    graph.replay()
    assert_same(wanted, found, "replay ")


@pytest.mark.skipif(not CUDA, reason="no CUDA device")
@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
@pytest.mark.parametrize("env_id", [HOST, AGENT, BOTH])
def test_the_contract(env_id: str, mode: str) -> None:
    check_vector_env(
        lambda n: make(env_id, "triton", n, autoreset_mode=mode, device="cuda"), steps=20
    )


@pytest.mark.long
@pytest.mark.skipif(not CUDA, reason="no CUDA device")
@pytest.mark.parametrize(("dimension", "num_points"), [(3, 20), (10, 50)])
def test_a_million_moves(dimension: int, num_points: int) -> None:
    both(HOST, 50, num_envs=20_000, dimension=dimension, max_num_points=num_points)


def test_the_cut_of_a_program() -> None:
    for num_points in (1, 2, 5, 20, 33, 64):
        for dimension in range(2, 11):
            how = triton_launch.cut(num_points, dimension)
            assert how.rows >= num_points
            assert how.rows & (how.rows - 1) == 0
            assert how.games & (how.games - 1) == 0
            assert how.axes * (63 // how.axes) <= 63
