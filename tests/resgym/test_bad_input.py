"""Bad input: one line that names the field, what was given and what is allowed; nothing is lost.

Every case is tried in the middle of a run, which then goes on as if nothing had been asked.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from tests.resgym.envs import helpers
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, IDS, SHORT, act_random, make_vec, row_bytes


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code trusts what it is handed; `undisturbed` is played by the reference."""
    pytest.importorskip("numba")
    monkeypatch.setitem(helpers.DEFAULTS, "backend", "numba")


NUM_ENVS = 3
CUSP = [(2, 0, 0), (0, 3, 0)]


def step(actions: Any):
    return lambda env: env.step(actions)


def reset(**arguments: Any):
    return lambda env: env.reset(**arguments)


def points(value: Any):
    return lambda env: env.reset(options={"points": value})


def mask(value: Any):
    return lambda env: env.reset(options={"reset_mask": value})


# What is done, the error, its field, what was given, what is allowed.
CASES: dict[str, tuple[Any, type[Exception], str, str, str]] = {
    "actions: too few": (step([0, 0]), ValueError, "actions", "(2,)", "(3,)"),
    "actions: two axes": (step(np.zeros((3, 1), int)), ValueError, "actions", "(3, 1)", "(3,)"),
    "actions: nothing": (step(None), TypeError, "actions", "object", "integers"),
    "actions: floats": (step([0.0, 1.0, 0.0]), TypeError, "actions", "float64", "integers"),
    "actions: booleans": (step([True, False, True]), TypeError, "actions", "bool", "integers"),
    "action: past the last": (step([50] * 3), ValueError, "action of row 0", "got 50", "one of [0"),
    "action: negative": (step([-1] * 3), ValueError, "action of row 0", "got -1", "one of [0"),
    "seed: a string": (reset(seed="12"), TypeError, "seed", "'12'", "integer"),
    "seed: negative": (reset(seed=-1), ValueError, "seed", "-1", "between 0 and"),
    "seed: last row too large": (
        reset(seed=2**63 - 1), ValueError, "seed", str(2**63 - 1), "between 0 and",
    ),
    "seed: too few": (reset(seed=[1, 2]), ValueError, "seed", "got 2", "3 of them"),
    "seed: one is negative": (reset(seed=[1, -2, 3]), ValueError, "seed", "-2", "between 0"),
    "seed: float array": (reset(seed=np.ones(3)), TypeError, "seed", "1.0", "integer"),
    "options: a list": (reset(options=["points"]), TypeError, "options", "['points']", "a dict"),
    "options: unknown": (
        reset(options={"point": CUSP}), ValueError, "options", "['point']", "'points'",
    ),
    "points: none": (points([]), ValueError, "points", "empty", "at least one"),
    "points: an empty game of three": (
        points([CUSP, [], CUSP]), ValueError, "points[1]", "0 points", "1..6",
    ),
    "points: a number": (points(7), TypeError, "points", "7", "lists of integers"),
    "points: a string": (points("x^2+y^3"), TypeError, "points", "x^2+y^3", "lists of integers"),
    "points: one point, not a list of points": (
        points([1, 2, 3]), ValueError, "points[0]", "got 1", "3 coordinates",
    ),
    "points: ragged in a game": (
        points([CUSP, [(1, 2)], CUSP]), ValueError, "points[1][0]", "got 2", "3 coordinates",
    ),
    "points: too many coordinates": (
        points([(1, 2, 3, 4)]), ValueError, "points[0]", "got 4", "3 coordinates",
    ),
    "points: negative in an array": (
        points(np.array([(1, 2, 0), (0, -2, 0)])), ValueError, "points[1]", "-2", "0..2^59",
    ),
    "points: too large": (
        points([(2**59 + 1, 0, 0), (0, 1, 0)]), ValueError, "points[0]", str(2**59 + 1), "0..2^59",
    ),
    "points: a float": (points([(1.0, 0, 0)]), TypeError, "points[0]", "1.0 (float)", "integers"),
    "points: float tensor": (points(torch.ones(2, 3)), TypeError, "points", "float32", "integers"),
    "points: array of other dimension": (
        points(np.eye(4, dtype=int)), ValueError, "points[0]", "got 4", "3 coordinates",
    ),
    "points: more than fit": (
        points([(k, 9 - k, 0) for k in range(9)]), ValueError, "points", "9 points", "1..6",
    ),
    "points: games for other rows": (
        points([CUSP, CUSP]), ValueError, "points", "got 2", "one game or 3",
    ),
    "points: finished": (
        points([(1, 1, 1), (2, 2, 2)]), ValueError, "points", "(1, 1, 1)", "unfinished",
    ),
    "reset_mask: too short": (mask([True]), ValueError, "reset_mask", "(1,)", "(3,)"),
    "reset_mask: integers": (mask([1, 0, 1]), ValueError, "reset_mask", "int64", "bool"),
    "reset_mask: no row": (
        mask(torch.zeros(3, dtype=torch.bool)), ValueError, "reset_mask", "[False", "at least one",
    ),
}  # fmt: skip


def run(env: Any, disturb: Any = None) -> list[bytes]:
    """A run of 25 steps, with something tried before each of the first three."""
    observation, _ = env.reset(seed=11)
    seen = [row_bytes(observation, row) for row in range(env.num_envs)]
    for time in range(25):
        if disturb is not None and time < 3:
            disturb()
        observation, *rest, _ = env.step(act_random(env, time))
        seen += [row_bytes(observation, row) for row in range(env.num_envs)]
        seen += [tensor.numpy().tobytes() for tensor in rest]
    return seen


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, list[bytes]]:
    return {env_id: run(make_vec(env_id, NUM_ENVS, backend="torch", **SHORT)) for env_id in IDS}


@pytest.mark.parametrize("env_id", [HOST, BOTH])
@pytest.mark.parametrize("case", CASES)
def test_one_line_and_the_run_goes_on(case, env_id, undisturbed):
    call, kind, field, given, allowed = CASES[case]
    env = make_vec(env_id, NUM_ENVS, **SHORT)

    def disturb():
        with pytest.raises(kind) as caught:
            call(env)
        message = str(caught.value)
        assert type(caught.value) is kind
        assert message.startswith(field)
        assert given in message
        assert allowed in message
        assert "\n" not in message

    assert run(env, disturb) == undisturbed[env_id]


def test_illegal_axes_of_the_agent(undisturbed):
    env = make_vec(AGENT, NUM_ENVS, **SHORT)

    def disturb():
        masks = env.action_masks()
        for row, legal in enumerate(masks):
            actions = masks.to(torch.uint8).argmax(1)
            allowed = legal.nonzero()[:, 0].tolist()
            for axis in (~legal).nonzero()[:, 0].tolist():
                actions[row] = axis
                with pytest.raises(ValueError, match=f"^action of row {row} ") as caught:
                    env.step(actions)
                assert str(caught.value).endswith(f"must be one of {allowed}, got {axis}")

    assert run(env, disturb) == undisturbed[AGENT]


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize(
    ("action", "kind", "message"),
    [
        (99, ValueError, r"^action of row 0 must be one of \[.*\], got 99$"),
        (0.0, TypeError, "^actions must be integers, got dtype float64$"),
        (None, TypeError, "^actions must be integers, got dtype object$"),
        ([0, 1], ValueError, r"^action must be one integer, got shape \(2,\)$"),
    ],
)
def test_actions_of_single_environments(env_id, action, kind, message):
    env, other = (gymnasium.make(env_id, **SHORT).unwrapped for _ in range(2))
    env.reset(seed=3)
    other.reset(seed=3)
    with pytest.raises(kind, match=message):
        env.step(action)
    legal = int(np.flatnonzero(other.action_masks())[0])
    first, *rest, _ = env.step(legal)
    second, *expected, _ = other.step(legal)
    assert rest == expected
    assert repr(first) == repr(second)


# The argument, its value, the error, and all that it says.
MAKING: list[tuple[str, Any, type[Exception], str]] = [
    ("dimension", 1, ValueError, "^dimension must be between 2 and 10, got 1$"),
    ("dimension", 11, ValueError, "^dimension must be between 2 and 10, got 11$"),
    ("max_num_points", 0, ValueError, "^max_num_points must be between 1 .*, got 0$"),
    ("max_num_points", 1, ValueError, "^max_num_points .* 2 for random starts, got 1$"),
    ("max_value", 0, ValueError, "^max_value must be between 1 and .*, got 0$"),
    ("max_value", 2**40, ValueError, "^max_value must be between 1 and .*, got"),
    ("polytope", "hull", ValueError, r"^polytope must be one of \[.*\], got 'hull'$"),
    ("reposition", 1, TypeError, "^reposition must be True or False, got 1$"),
    ("scale_observation", "no", TypeError, "^scale_observation must be True or False, got"),
    ("reward", "win", ValueError, r"^reward must be one of \[.*\].*, got 'win'$"),
    ("reward", 1, TypeError, "^reward must be a name or a callable, got 1$"),
    ("opponent", "nobody", ValueError, r"^opponent .*must be one of \[.*, got 'nobody'"),
    ("opponent", 3, TypeError, "^opponent must be a name, .*, got 3$"),
    ("opponent", "a/b.zip", ValueError, "^opponent: there is no saved model at"),
    ("max_episode_steps", 0, ValueError, "^max_episode_steps must be at least 1, got 0$"),
    ("invalid_action", "skip", ValueError, r"^invalid_action .*\], got 'skip'$"),
    ("autoreset_mode", "LATER", ValueError, r"^autoreset_mode .*\], got 'LATER'$"),
    ("observation", "rgb", ValueError, r"^observation must be one of \[.*\], got 'rgb'$"),
    ("episode_statistics", 0, TypeError, "^episode_statistics must be True or False, got 0$"),
    ("full_info", "no", TypeError, "^full_info must be True or False, got 'no'$"),
    ("output", "jax", ValueError, r"^output must be one of \[.*\], got 'jax'$"),
    ("backend", "abacus", ValueError, r"^backend must be one of \[.*\], got 'abacus'$"),
    ("render_mode", "4d", ValueError, r"^render_mode .*\], got '4d'$"),
    ("device", "cuda:55", ValueError, r"^device must be one of \[.*, got 'cuda:55'$"),
    ("device", "toaster", ValueError, r"^device must be one of .*, got 'toaster'$"),
    ("num_envs", 0, ValueError, "^num_envs must be between 1 and 4611686018427387904, got 0$"),
    ("num_envs", 10**12, ValueError, "^num_envs: 10{12} games need .* at most .* fit$"),
    ("dimensions", 3, TypeError, "dimensions"),
]


@pytest.mark.parametrize("env_id", [HOST])
@pytest.mark.parametrize(("name", "value", "kind", "message"), MAKING)
def test_making(name, value, kind, message, env_id):
    with pytest.raises(kind, match=message) as caught:
        make_vec(env_id, **{"num_envs": 3, name: value})
    assert "\n" not in str(caught.value)
