"""Environments go on exactly from a saved state or as a copy; stages make starts smaller."""

import copy
import pickle
from functools import partial

import gymnasium
import pytest
import torch

from tests.resgym.envs.helpers import IDS, MODES, make_vec, played, restart, same


def make(env_id, **keywords):
    return make_vec(env_id, **{"num_envs": 5, "max_num_points": 6, "max_value": 9, **keywords})


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
def test_another_environment_goes_on_exactly(env_id, mode):
    settings = {"autoreset_mode": mode, "max_episode_steps": 7}
    env = make(env_id, **settings)
    env.reset(seed=3)
    played(env, 9)
    state = env.state_dict()
    kept = {name: value.clone() for name, value in state["fields"].items()}
    expected = played(env, 25)
    assert env.games.episode.min() > 2
    assert same(kept, state["fields"])  # later steps do not reach into the state
    other = make(env_id, **settings)
    other.load_state_dict(state)
    assert played(other, 25) == expected
    assert same(other.state_dict(), env.state_dict())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dimension": 4}, "game: the saved games have .*'dimension': 3"),
        ({"num_envs": 4}, r"points must be .*4, 6, 3.*, got .*5, 6, 3"),
        ({"polytope": "newton"}, "game: the saved games have"),
    ],
)
def test_another_game_is_refused_and_nothing_changes(changed, message):
    env = make(IDS[0])
    other = make(IDS[0], **changed)
    env.reset(seed=1)
    other.reset(seed=2)
    before = other.state_dict()
    with pytest.raises(ValueError, match=message):
        other.load_state_dict(env.state_dict())
    assert same(before, other.state_dict())


NONE = [-1] * 3
# The fields of a row that no game can have; compiled code would read them as they are.
IMPOSSIBLE = {
    "more points than there is room": (IDS[0], {"counts": 10**6}),
    "a negative coordinate": (IDS[0], {"points": [[-3, 0, 0]] * 6}),
    "a large coordinate": (
        IDS[0],
        {"counts": 2, "points": [[2**60, 0, 0], [0, 1, 0], *[NONE] * 4]},
    ),
    "points out of order": (IDS[0], {"counts": 2, "points": [[0, 1, 0], [1, 0, 0], *[NONE] * 4]}),
    "a set of one axis": (IDS[2], {"coords": [0, 1, 0]}),
    "a set before the host has named it": (IDS[0], {"coords": [0, 1, 1]}),
    "no set to answer": (IDS[1], {"coords": [0, 0, 0]}),
    "a game that is over": (IDS[0], {"counts": 1, "points": [[2, 2, 2], *[NONE] * 5]}),
    "an end that restarts at once": (IDS[0], {"ended": True}),
    "negative length": (IDS[0], {"lengths": -1}),
    "negative seed": (IDS[0], {"seed": -1}),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_states_that_no_game_can_have(case):
    env_id, changes = IMPOSSIBLE[case]
    env = make(env_id)
    env.reset(seed=1)
    before = env.state_dict()
    state = env.state_dict()
    for name, value in changes.items():
        state["fields"][name][3] = torch.as_tensor(value)
    assert not same(before, state)
    with pytest.raises(ValueError, match=r"^fields: row 3 of the saved state[^\n]*$"):
        env.load_state_dict(state)
    del state["fields"]["seed"]
    for wrong in ({}, state, {**before, "fields": {**before["fields"], "seed": [1, 2, 3, 4, 5]}}):
        with pytest.raises((TypeError, ValueError), match=r"^(state must have|seed must be)"):
            env.load_state_dict(wrong)
    assert same(env.state_dict(), before)
    played(env, 5)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", MODES)
def test_every_state_on_the_way_can_be_loaded(env_id, mode):
    """Also after illegal actions, ends by the limit, and before the first reset."""
    settings = {"autoreset_mode": mode, "max_episode_steps": 5, "invalid_action": "noop"}
    settings |= {"polytope": "newton"} if mode == "NEXT_STEP" else {"reposition": mode == MODES[2]}
    env = make(env_id, **settings)
    other = make(env_id, **settings)
    for time in range(12):
        state = env.state_dict()
        other.load_state_dict(state)
        assert same(other.state_dict(), state)
        if not time:
            env.reset(seed=2)
        elif restart(env) is None:
            env.step(torch.arange(5) % 3 + time % 2)


@pytest.mark.parametrize("env_id", IDS)
def test_stage_limits_the_next_starts_and_survives(env_id):
    env = make(env_id, num_envs=200, max_episode_steps=3)
    env.reset(seed=0)
    assert int(env.games.counts.max()) > 3
    before = env.games.points.clone()
    env.set_stage(num_points=3, max_value=4)
    assert torch.equal(env.games.points, before)  # running games go on
    for look in (env.reset, lambda: played(env, 3)):
        look()
        points = env.games.points[env.games.half_moves <= 1]
        assert int((points[:, :, 0] >= 0).sum(1).max()) <= 3
        assert int(points.max()) <= 4
    other = make(env_id, num_envs=200, max_episode_steps=3)
    other.load_state_dict(env.state_dict())
    assert played(other, 8) == played(env, 8)
    env.set_stage()
    env.reset()
    assert int(env.games.points.max()) == 9


GAMES = {
    IDS[0]: {"opponent": "random", "rule": "polyhedra"},
    IDS[1]: {"opponent": "random"},
    IDS[2]: {},
}
COPY = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


def play(env, steps):
    """A vector environment restarts by itself."""
    for _ in range(steps):
        action = env.action_space.sample()
        result = env.step(action)
        yield action, result
        if isinstance(env, gymnasium.Env) and (result[2] or result[3]):
            yield env.reset()


def play_turns(env, steps):
    for _ in range(steps):
        if not env.agents:
            env.reset()
        observation, *ends, _ = env.last()
        seat = env.agent_selection
        action = None if ends[1] or ends[2] else env.action_space(seat).sample()
        yield seat, action, observation, ends
        env.step(action)


def play_parallel(env, steps):
    for _ in range(steps):
        if not env.agents:
            env.reset()
        actions = {seat: env.action_space(seat).sample() for seat in env.agents}
        yield actions, env.step(actions)


def turns(name):
    zoo = pytest.importorskip("resgym.hironaka_v0", exc_type=ImportError)
    return getattr(zoo, name)()


CASES = {name: (play_turns, partial(turns, name)) for name in ("env", "raw_env")}
CASES["parallel_env"] = play_parallel, partial(turns, "parallel_env")
for name, options in GAMES.items():
    CASES[f"single {name}"] = play, partial(gymnasium.make, name, **options)
    for output in ("torch", "numpy"):
        rows = partial(gymnasium.make_vec, name, num_envs=3, output=output, **options)
        CASES[f"rows {name} {output}"] = play, rows


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", COPY)
def test_a_copy_goes_on_as_the_original(case, how):
    run, made = CASES[case]
    env = made()
    env.reset(seed=3)
    if hasattr(env, "possible_agents"):
        for number, seat in enumerate(env.possible_agents):
            env.action_space(seat).seed(number)
    else:
        env.action_space.seed(4)
    assert list(run(env, 10))
    copied = COPY[how](env)
    assert same([*run(copied, 40)], [*run(env, 40)])
