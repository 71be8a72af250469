"""Every line of the table in resgym.game.episode.Backend.step: one situation, one outcome."""

import numpy as np
import pytest
import torch

from tests.resgym.envs.helpers import AGENT, BOTH, HOST, IDS, MODES, make_vec

pytestmark = pytest.mark.usefixtures("on_every_backend")

# x^2 + y^3: the set {x, y} is the only one at d = 2. Answered by x the game is over, answered by
# y it goes on.
CUSP = [(2, 0), (0, 3)]
PLANE = {"dimension": 2, "max_num_points": 4}


def cusp_env(env_id, num_envs=3, **arguments):
    env = make_vec(env_id, num_envs, **{**PLANE, **arguments})
    env.reset(seed=0, options={"points": CUSP})
    return env


@pytest.mark.parametrize("reward", ["terminal", "points"])
@pytest.mark.parametrize("env_id", [AGENT, HOST])
@pytest.mark.parametrize(
    ("invalid_action", "expected"), [("noop", 0.0), ("penalty", -1.0), ("terminate", -1.0)]
)
def test_illegal_without_error(invalid_action, expected, env_id, reward):
    opponent = "all_coord" if env_id == AGENT else "choose_last"
    options = {"invalid_action": invalid_action, "reward": reward, "opponent": opponent}
    env = cusp_env(env_id, autoreset_mode="DISABLED", max_episode_steps=3, **options)
    before = env.state_dict()["fields"]
    _, paid, terminated, truncated, info = env.step([-3, 0, 99])
    after = env.state_dict()["fields"]
    # Rows 0 and 2 keep position and named set; row 1 has moved.
    for name in ("points", "counts", "coords"):
        assert torch.equal(after[name][::2], before[name][::2])
    assert not torch.equal(after["points"][1], before["points"][1])
    assert paid[::2].tolist() == [expected, expected]
    steps = 1 if invalid_action == "terminate" else 3
    assert terminated[::2].tolist() == [steps == 1] * 2
    assert not bool((truncated | info["overflow"]).any())
    if steps == 1:
        # The host {x, y}, answered by x, has ended row 1 of the agent's environment as well.
        assert info["_episode"].tolist() == [True, env_id == AGENT, True]
    else:
        # The step counts: two more and the limit is met.
        env.reset(options={"points": CUSP, "reset_mask": np.array([False, True, False])})
        env.step([-1, 0 if env_id == HOST else 1, -1])
        *_, truncated, info = env.step([-1, 0 if env_id == HOST else 1, -1])
        assert truncated[::2].tolist() == [True, True]
    assert info["episode"]["r"][0] == steps * expected
    assert info["episode"]["l"][0] == steps


@pytest.mark.parametrize("mode", MODES)
def test_a_game_that_ends_at_the_limit_is_terminated_only(mode):
    env = cusp_env(AGENT, max_episode_steps=2, autoreset_mode=mode)
    env.step([1, 1, 1])
    # Answered by y twice the cusp is over; x first would not be.
    _, _, terminated, truncated, _ = env.step([1, 0, 1])
    assert terminated.tolist() == [True, False, True]
    assert truncated.tolist() == [False, True, False]


def test_a_half_move_limit_counts_half_moves():
    env = cusp_env(BOTH, max_episode_steps=3)
    env.step([0, 0, 0])
    _, _, terminated, truncated, _ = env.step([1, 1, 0])
    assert terminated.tolist() == [False, False, True]
    assert truncated.tolist() == [False, False, False]
    _, _, terminated, truncated, _ = env.step([0, 0, 0])
    # Row 2 is in its second episode.
    assert truncated.tolist() == [True, True, False]


@pytest.mark.parametrize("env_id", IDS)
def test_overflow_truncates_and_keeps_the_position(env_id):
    top = 2**59
    points = [(top, 1, 0), (top - 1, 0, 5)]
    first = {"opponent": lambda s, c, r: s.count * 0} if env_id != BOTH else {}
    env = make_vec(env_id, 2, scale_observation=False, autoreset_mode="DISABLED", **first)
    env.reset(seed=0, options={"points": [points, [(1, 1, 0), (0, 0, 5)]]})
    if env_id == BOTH:
        env.step([0, 0])
    _, reward, terminated, truncated, info = env.step([0, 0])
    assert terminated.tolist() == [False, False]
    assert truncated.tolist() == info["overflow"].tolist() == [True, False]
    assert reward.tolist() == [0.0, 0.0]
    assert env.games.point_lists()[0] == points
    assert info["_episode"].tolist() == [True, False]


@pytest.mark.parametrize("invalid_action", ["error", "penalty"])
def test_next_step_ignores_the_action_of_an_ended_row(invalid_action):
    options = {"scale_observation": False, "reward": "step", "invalid_action": invalid_action}
    env = cusp_env(AGENT, autoreset_mode="NEXT_STEP", **options)
    observation, reward, terminated, _, info = env.step([0, 1, 1])
    assert terminated.tolist() == [True, False, False]
    assert "final_obs" not in info
    assert observation["points"][0, :2].tolist() == [[2, 0], [-1, -1]]
    assert info["_episode"].tolist() == [True, False, False]
    # 77 would be an error in a row that plays.
    observation, reward, terminated, truncated, info = env.step([77, 0, 0])
    assert reward.tolist() == [0.0, 1.0, 1.0]
    assert not bool((terminated | truncated)[0])
    assert int((observation["points"][0, :, 0] >= 0).sum()) > 1
    assert observation["coords"][0].tolist() == [1, 1]
    assert env.games.lengths.tolist()[0] == 0
    if invalid_action == "penalty":
        assert env.step([77, 0, 0])[1][0] == -1.0
    else:
        with pytest.raises(ValueError, match="action of row 0 must be one of"):
            env.step([77, 0, 0])
