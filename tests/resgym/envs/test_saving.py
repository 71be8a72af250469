"""Environments go on exactly where their state was taken, and stages make starts smaller."""

import pytest
import torch

from tests.resgym.envs.helpers import IDS, MODES, make_vec, played, same


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
        ({"num_envs": 4}, r"points: got .*5, 6, 3.*, need .*4, 6, 3"),
        ({"max_num_points": 7}, "game: the saved games have"),
        ({"polytope": "newton"}, "game: the saved games have"),
    ],
)
def test_another_game_is_refused_and_nothing_changes(changed, message):
    env, other = make(IDS[0]), make(IDS[0], **changed)
    env.reset(seed=1)
    other.reset(seed=2)
    before = other.state_dict()
    with pytest.raises(ValueError, match=message):
        other.load_state_dict(env.state_dict())
    assert same(before, other.state_dict())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: state.clear(), "state must have game, stage, fields, started"),
        (lambda state: state["fields"].pop("seed"), "state must have"),
        (lambda state: state["fields"].update(seed=[1, 2, 3, 4, 5]), "seed: got"),
    ],
)
def test_malformed_states(spoil, message):
    env = make(IDS[0])
    env.reset(seed=1)
    spoil(state := env.state_dict())
    with pytest.raises(ValueError, match=message):
        env.load_state_dict(state)


def _with(name, row, value):
    """A change of one row of a saved field."""

    def change(state):
        fields = state["fields"]
        fields[name][row] = torch.as_tensor(value, dtype=fields[name].dtype)

    return change


def _swap(state):
    points = state["fields"]["points"]
    points[0, [0, 1]] = points[0, [1, 0]]


def _both(first, second):
    return lambda state: (first(state), second(state))


NONE = [-1] * 3
ONE_POINT = _both(_with("counts", 3, 1), _with("points", 3, [[2, 2, 2], *[NONE] * 5]))

IMPOSSIBLE = {
    "more points than there is room": (IDS[0], _with("counts", 2, 10**6)),
    "a negative coordinate": (
        IDS[0], _with("points", 1, [[-3, 0, 0]] * 6),
    ),
    "a large coordinate": (
        IDS[0],
        _both(_with("counts", 0, 2), _with("points", 0, [[2**60, 0, 0], [0, 1, 0], *[NONE] * 4])),
    ),
    "points out of order": (IDS[0], _swap),
    "a set of one axis": (IDS[2], _with("coords", 1, [0, 1, 0])),
    "a set before the host has named it": (IDS[0], _with("coords", 1, [0, 1, 1])),
    "no set to answer": (IDS[1], _with("coords", 3, [0, 0, 0])),
    "a game that is over": (IDS[0], ONE_POINT),
    "an end that restarts at once": (IDS[0], _with("ended", 0, True)),
    "negative length": (IDS[0], _with("lengths", 0, -1)),
    "negative seed": (IDS[0], _with("seed", 0, -1)),
}  # fmt: skip


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_values_that_no_game_can_have(case):
    """They would be read as they are by compiled code."""
    env_id, change = IMPOSSIBLE[case]
    env = make(env_id)
    env.reset(seed=1)
    before, state = env.state_dict(), env.state_dict()
    change(state)
    assert not same(before, state)
    with pytest.raises(ValueError, match=r"^fields: row \d of the saved state") as caught:
        env.load_state_dict(state)
    assert "\n" not in str(caught.value)
    assert same(env.state_dict(), before)
    played(env, 5)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", MODES)
def test_every_state_on_the_way_can_be_loaded(env_id, mode):
    """Also after illegal actions, ends by the limit, and before the first reset."""
    settings = {"autoreset_mode": mode, "max_episode_steps": 5, "invalid_action": "noop"}
    settings |= {"polytope": "newton"} if mode == "NEXT_STEP" else {"reposition": mode == MODES[2]}
    env, other = make(env_id, **settings), make(env_id, **settings)
    for time in range(12):
        state = env.state_dict()
        other.load_state_dict(state)
        assert same(other.state_dict(), state)
        if not time:
            env.reset(seed=2)
        elif mode == "DISABLED" and bool(env.games.ended.any()):
            env.reset(options={"reset_mask": env.games.ended})
        else:
            env.step(torch.arange(5) % 3 + time % 2)


@pytest.mark.parametrize("env_id", IDS)
def test_stage_limits_the_next_starts_and_survives(env_id):
    env = make(env_id, num_envs=200, max_episode_steps=3)
    env.reset(seed=0)
    assert int(env.games.counts.max()) > 3
    before = env.games.points.clone()
    env.set_stage(num_points=3, max_value=4)
    assert torch.equal(env.games.points, before)  # running games go on
    for look in (lambda: env.reset(), lambda: played(env, 3)):
        look()
        fresh = env.games.half_moves <= 1
        points = env.games.points[fresh]
        assert points.shape[1:] == (6, 3)
        assert int((points[:, :, 0] >= 0).sum(1).max()) <= 3
        assert int(points.max()) <= 4
    other = make(env_id, num_envs=200, max_episode_steps=3)
    other.load_state_dict(env.state_dict())
    assert played(other, 8) == played(env, 8)
    env.set_stage()
    env.reset()
    assert int(env.games.points.max()) == 9
