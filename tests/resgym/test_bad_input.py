"""Bad input: one line that names the field, what was given and what is allowed; nothing is lost.

Every case is tried in the middle of a run, which then goes on as if nothing had been asked.
"""

from functools import cache

import gymnasium
import numpy as np
import pytest
import torch

from tests.resgym.envs import helpers
from tests.resgym.envs.helpers import BOTH, HOST, IDS, SHORT, act_random, make_vec, played


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Compiled code trusts what it is handed; `undisturbed` is played by the reference."""
    pytest.importorskip("numba")
    monkeypatch.setitem(helpers.DEFAULTS, "backend", "numba")


NUM_ENVS = 3
CUSP = [(2, 0, 0), (0, 3, 0)]


def attempt(env, field, value):
    if field in ("actions", "action"):
        env.step(value)
    elif field in ("points", "reset_mask"):
        env.reset(options={field: value})
    else:
        env.reset(**{field: value})


# The value of the field, the error, and what it says: the field, what was given, what is allowed.
CASES = {
    "actions: too few": ([0, 0], ValueError, r"actions .*\(3,\).*\(2,\)"),
    "actions: nothing": (None, TypeError, "actions must be integers.*object"),
    "actions: ragged": ([[0], 0, 0], ValueError, "^actions: .*sequence"),
    "actions: floats": ([0.0, 1.0, 0.0], TypeError, "actions must be integers.*float64"),
    "actions: booleans": ([True, False, True], TypeError, "actions must be integers.*bool"),
    "action: past the last": ([50] * 3, ValueError, r"action of row 0 .*\[0.*got 50"),
    "action: negative": ([-1] * 3, ValueError, r"action of row 0 .*\[0.*got -1"),
    "seed: a string": ("12", TypeError, "seed .*integer.*'12'"),
    "seed: last row too large": (2**63 - 1, ValueError, "seed .*between 0 and"),
    "seed: too few": ([1, 2], ValueError, "seed .*3 of them.*got 2"),
    "seed: one is negative": ([1, -2, 3], ValueError, "seed.*between 0.*-2"),
    "options: a list": (["points"], TypeError, "options .*a dict"),
    "options: unknown": ({"point": CUSP}, ValueError, "options.*'points'.*'point'"),
    "points: none": ([], ValueError, "points.*at least one.*empty"),
    "points: an empty game": ([CUSP, [], CUSP], ValueError, r"points\[1\].*1\.\.6"),
    "points: a string": ("x^2+y^3", TypeError, "points.*lists of integers"),
    "points: one point": ([1, 2, 3], ValueError, r"points\[0\].*3 coordinates.*got 1"),
    "points: ragged": ([CUSP, [(1, 2)], CUSP], ValueError, r"points\[1\]\[0\].*got 2"),
    "points: negative": (np.array([(1, 2, 0), (0, -2, 0)]), ValueError, "0..2.59.*-2"),
    "points: too large": ([(2**59 + 1, 0, 0)], ValueError, "0..2.59"),
    "points: a float": ([(1.0, 0, 0)], TypeError, r"points\[0\].*integers.*1.0 \(float\)"),
    "points: float tensor": (torch.ones(2, 3), TypeError, "points.*integers.*float32"),
    "points: too many": ([(k, 9 - k, 0) for k in range(9)], ValueError, "9 points.*1..6"),
    "points: games for other rows": ([CUSP, CUSP], ValueError, "points.*one game or 3"),
    "points: finished": ([(1, 1, 1)], ValueError, "points.*unfinished"),
    "reset_mask: too short": ([True], ValueError, r"reset_mask.*\(3,\).*\(1,\)"),
    "reset_mask: integers": ([1, 0, 1], ValueError, "reset_mask.*bool.*int64"),
    "reset_mask: a string": ("rows", ValueError, r"reset_mask.*bool \(3,\), got <U4"),
    "reset_mask: no row": ([False] * 3, ValueError, "reset_mask.*at least one"),
}


def run(env, disturb=lambda: None):
    """A run of 25 steps, with something tried before each of the first three."""

    def act(env, time):
        if time < 3:
            disturb()
        return act_random(env, time)

    return played(env, 25, 11, act)


@cache
def undisturbed(env_id):
    return run(make_vec(env_id, NUM_ENVS, backend="torch", **SHORT))


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_the_run_goes_on(case):
    value, kind, message = CASES[case]
    field = case.partition(":")[0]
    env = make_vec(BOTH, NUM_ENVS, **SHORT)

    def disturb():
        with pytest.raises(kind, match=rf"^[^\n]*{message}[^\n]*$") as caught:
            attempt(env, field, value)
        assert type(caught.value) is kind
        assert str(caught.value).startswith(field)

    assert run(env, disturb) == undisturbed(BOTH)


@pytest.mark.parametrize("env_id", IDS)
def test_actions_of_single_environments(env_id):
    env, other = (gymnasium.make(env_id, **SHORT).unwrapped for _ in range(2))
    env.reset(seed=3)
    other.reset(seed=3)
    for action, kind, message in (
        (99, ValueError, r"^action must be one of \[.*\], got 99$"),
        (0.0, TypeError, "^actions must be integers, got dtype float64$"),
        ([0, 1], ValueError, r"^action must be one integer, got shape \(2,\)$"),
    ):
        with pytest.raises(kind, match=message):
            env.step(action)
    legal = int(np.flatnonzero(other.action_masks())[0])
    first, *rest, _ = env.step(legal)
    second, *expected, _ = other.step(legal)
    assert rest == expected
    assert repr(first) == repr(second)


# The argument, its value, the error, and what it says after the argument's name.
MAKING = [
    ("max_num_points", 1, ValueError, ".* 2 for random starts, got 1$"),
    ("scale_observation", "no", TypeError, "must be True or False, got"),
    ("reward", 1, TypeError, "must be a name or a function .transition., got 1$"),
    ("opponent", "nobody", ValueError, r".*must be one of \[.*, got 'nobody'"),
    ("opponent", 3, TypeError, "must be a name, .*, got 3$"),
    ("opponent", "a/b.zip", ValueError, ".*there is no saved model at"),
    ("max_episode_steps", 0, ValueError, "must be at least 1, got 0$"),
    ("invalid_action", "skip", ValueError, r".*\], got 'skip'$"),
    ("autoreset_mode", "LATER", ValueError, r".*\], got 'LATER'$"),
    ("observation", "rgb", ValueError, r"must be one of \[.*\], got 'rgb'$"),
    ("episode_statistics", 0, TypeError, "must be True or False, got 0$"),
    ("full_info", "no", TypeError, "must be True or False, got 'no'$"),
    ("output", "jax", ValueError, r"must be one of \[.*\], got 'jax'$"),
    ("backend", "abacus", ValueError, r"must be one of \[.*\], got 'abacus'$"),
    ("device", "cuda:55", ValueError, r"must be one of \[.*, got 'cuda:55'$"),
    ("num_envs", 0, ValueError, "must be between 1 and 4611686018427387904, got 0$"),
    ("num_envs", 10**12, ValueError, " ?10{12} games need .* at most .* fit$"),
]


@pytest.mark.parametrize(("name", "value", "kind", "message"), MAKING)
def test_making(name, value, kind, message):
    with pytest.raises(kind, match=f"^{name}[: ]*{message}") as caught:
        make_vec(HOST, **{"num_envs": 3, name: value})
    assert "\n" not in str(caught.value)
