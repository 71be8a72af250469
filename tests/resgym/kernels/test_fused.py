"""The fused backends against the torch reference, bit for bit: moves, and whole steps.

Numba plays everywhere. The Triton kernels play on CUDA, or in the interpreter, in a process of its
own that `test_triton_interpreted` starts: there it is them alone, in some of the cases.
"""

import importlib.util
import itertools
import os

import numpy as np
import pytest
import torch

from resgym.functional import starts
from resgym.game import devices
from resgym.game.rules import move, observe_points
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.kernels.dispatch import resolve_backend
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, IDS, MODES, array, row_bytes, same
from tests.resgym.kernels.steps import pair, play_both, play_overflows, refuse_steps

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CUDA = torch.cuda.is_available() and not INTERPRETED
# The interpreter takes about as long for a program of many games as for one game.
STEPS, FEW = (6, 4) if INTERPRETED else (40, 20)
HAS_TRITON = importlib.util.find_spec("triton") is not None and (CUDA or INTERPRETED)
BACKENDS = ["numba"] * (not INTERPRETED) + ["triton"] * HAS_TRITON
REWARDS = ("terminal", "step", "survival", "points")


def some(cases, stride):
    """All cases, or in the interpreter one in so many."""
    return list(cases)[:: stride if INTERPRETED else 1]


@pytest.fixture(params=BACKENDS, autouse=True)
def fast(request, monkeypatch):
    """A backend; beside Triton the reference works as on an accelerator, and looks at nothing."""
    pytest.importorskip(request.param)
    if request.param == "triton":
        from resgym.cuda import backend as grids

        monkeypatch.setattr(devices, "is_host_memory", lambda device: False)
        if INTERPRETED:
            table = grids.sizes
            monkeypatch.setattr(grids, "sizes", lambda *shape: table(*shape) | {"G": 16})
    return request.param


def on(fast):
    """Where a backend plays, and how many games."""
    if fast == "numba":
        return {"num_envs": 6}
    return {"num_envs": 301, "device": "cuda"} if CUDA else {"num_envs": 21}


def both(fast, env_id, steps=FEW, **options):
    return play_both(env_id, steps, fast=fast, **{**on(fast), **options})


only_numba = pytest.mark.skipif(INTERPRETED, reason="Triton has steps and starts alone")
only_triton = pytest.mark.parametrize("fast", ["triton"] * HAS_TRITON, indirect=True)
only_cuda = pytest.mark.skipif(not CUDA, reason="no CUDA device")


@only_numba
def test_moves_in_any_memory_of_no_games_and_of_axes_outside():
    spec = GameSpec(3, 6)
    numba = resolve_backend("numba", torch.device("cpu"), spec)
    state = starts(spec, 16, seed=7)
    expanded = GameState(state.points[:1].expand(16, -1, -1), state.count[:1].expand(16))
    strided = GameState(state.points.mT.contiguous().mT, state.count.repeat(2, 1).t()[:, 0])
    coords = torch.ones(3, 16, dtype=torch.bool).t()
    axis = torch.tensor([[0, 9], [1, 9]]).repeat(8, 1)[:, 0]
    for each in (strided, expanded):
        (expected, _), (found, _) = (play(each, coords, axis, spec) for play in (move, numba.move))
        assert torch.equal(expected.points, found.points)
        assert torch.equal(expected.count, found.count)
    after, overflow = numba.move(state.select(slice(0, 0)), coords[:0], axis[:0], spec)
    assert (*after.points.shape, *overflow.shape) == (0, 6, 3, 0)
    for outside in (-1, 3):
        axis[1] = outside
        with pytest.raises(IndexError, match=rf"axis must be in 0\.\.2, got {outside}"):
            numba.move(state, coords, axis, spec)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(
    ("env_id", "mode", "reward"), some(itertools.product(IDS, MODES, REWARDS), 5)
)
def test_ids_modes_and_rewards(fast, env_id, mode, reward):
    seen = both(
        fast, env_id, STEPS, reward=reward, autoreset_mode=mode, max_num_points=6, max_value=4,
        max_episode_steps=3 if env_id != BOTH else 5,
    )  # fmt: skip
    assert seen["terminated"] > 3
    assert seen["truncated"] > 3


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(
    ("env_id", "mode", "invalid_action"),
    some(itertools.product(IDS, MODES, ["noop", "terminate"]), 3),
)
def test_illegal_actions(fast, env_id, mode, invalid_action):
    both(
        fast, env_id, STEPS, illegal=True, invalid_action=invalid_action, autoreset_mode=mode,
        max_num_points=5 if INTERPRETED else 20, max_episode_steps=6, reward="step",
    )  # fmt: skip


OPPONENTS = [
    *itertools.product([HOST], ["random", "choose_first", "choose_last"]),
    *itertools.product([AGENT], ["random", "random_pair", "all_coord"]),
    *itertools.product([AGENT], ["zeillinger", "zeillinger_lex"]),
]


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("dimension", [2, 3, 10])
@pytest.mark.parametrize(("env_id", "opponent"), OPPONENTS)
def test_opponents(fast, env_id, opponent, dimension):
    if fast == "triton" and opponent.startswith("zeillinger"):
        pytest.skip("no kernel plays it")
    num_points = 5 if INTERPRETED else 9
    both(fast, env_id, opponent=opponent, dimension=dimension, max_num_points=num_points)


def drawing_agent(state, coords, rng):
    """Looks at everything that it is handed."""
    weights = rng.uniform(coords.shape[1]) + 0.1 * (state.points.sum(1) % 3)
    return torch.where(coords, weights, -1.0).argmax(1)


def drawing_host(state, coords, rng):
    assert coords is None
    return (rng.integers(4) + state.count) % 4


@only_numba
@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(
    ("mode", "invalid_action"), [*zip(MODES, ["noop", "penalty", "terminate"], strict=True)]
)
@pytest.mark.parametrize(
    ("env_id", "opponent"),
    [(HOST, drawing_agent), (HOST, ["random", drawing_agent] * 3), (AGENT, drawing_host)],
    ids=["agent", "agents", "host"],
)
def test_opponents_that_are_asked(fast, env_id, opponent, mode, invalid_action):
    options = {"opponent": opponent, "autoreset_mode": mode, "max_num_points": 4, "max_value": 6}
    seen = both(fast, env_id, 40, max_episode_steps=4, num_envs=6, **options)
    assert seen["terminated"] + seen["truncated"] > 20
    options |= {"illegal": True, "invalid_action": invalid_action, "max_episode_steps": 5}
    both(fast, env_id, 25, num_envs=6, **options)


OPTIONS = [
    {"max_num_points": 2, "max_value": 1},
    {"max_num_points": 50, "max_value": 2**31 - 2},
    {"dimension": 10, "max_num_points": 50, "max_value": 2**31 - 2},
    {"reposition": True, "scale_observation": False},
    {"max_episode_steps": None, "num_envs": 1},
    {"output": "numpy", "max_num_points": 5},
    {"max_num_points": 64, "num_envs": 3},
    {"stage": {"num_points": 4, "max_value": 3}, "max_episode_steps": 2},
]


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(("env_id", "options"), some(itertools.product(IDS, OPTIONS), 5), ids=str)
def test_sizes_and_options(fast, env_id, options):
    both(fast, env_id, **options)


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize(("env_id", "mode"), some(itertools.product(IDS, MODES), 4))
def test_overflow(fast, env_id, mode):
    play_overflows(env_id, fast, 2 if INTERPRETED else 12, autoreset_mode=mode, **on(fast))


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("env_id", some(IDS, 3))
def test_rows_do_not_depend_on_their_number_or_on_threads(fast, env_id, monkeypatch):
    """Also with the games of a program that the table names."""
    options = {**on(fast), "max_num_points": 6 if INTERPRETED else 20}
    _, wide = pair(env_id, fast, **{**options, "num_envs": 35 if INTERPRETED else 700})
    wide.reset(seed=2)
    if fast == "triton":
        monkeypatch.undo()
    else:
        monkeypatch.setattr("resgym.kernels.cpu.backend._LEAST_WORK", 3)
    _, narrow = pair(env_id, fast, **{**options, "num_envs": 3})
    narrow.reset(seed=2)
    threads = torch.get_num_threads()
    try:
        for step in range(FEW):
            masks = array(wide.action_masks())
            actions = (masks * np.random.default_rng(step).random(masks.shape[1])).argmax(1)
            torch.set_num_threads(1 + step % 4)
            many = wide.step(actions)[:4]
            few = narrow.step(actions[:3])[:4]
            for row in range(3):
                assert [row_bytes(a, row) for a in many] == [row_bytes(b, row) for b in few]
            seen = many[0] if env_id == HOST else many[0]["points"]
            assert torch.equal(seen, observe_points(wide.games.position))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("env_id", some(IDS, 2))
def test_refused_steps_change_nothing(fast, env_id):
    refuse_steps(env_id, fast, **{**on(fast), "num_envs": 6})


@only_triton
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opponent", ["zeillinger", ["choose_last", "random"]], ids=str)
def test_opponents_asked(fast, opponent, mode):
    env_id = AGENT if opponent == "zeillinger" else HOST
    more = {"max_num_points": 4, "max_episode_steps": 3, "autoreset_mode": mode}
    both(fast, env_id, 4, num_envs=6, opponent=opponent, **more)


@only_triton
@only_cuda
@pytest.mark.parametrize("env_id", IDS)
def test_a_step_never_waits_and_can_be_captured(fast, env_id):
    """A captured step that is replayed gives what the same step gives without capture."""
    _, env = pair(env_id, fast, device="cuda", invalid_action="noop", num_envs=64)
    env.reset(seed=0)
    state = env.state_dict()
    actions = torch.zeros(64, dtype=torch.int64, device="cuda")
    wanted = env.step(actions)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            env.step(actions)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    env.load_state_dict(state)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = env.step(actions)
    graph.replay()
    assert same(wanted, found)
