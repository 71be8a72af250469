"""The public contract check on our own environments, and the checkers of Gymnasium and SB3."""

import warnings

import gymnasium
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common import env_checker

from resgym.testing import check_vector_env
from tests.resgym.backends import every_backend
from tests.resgym.envs.helpers import IDS, MODES, SHORT, make_vec, parts

SIZES = {
    "short": SHORT,
    "plane": {"dimension": 2, "max_num_points": 3, "max_value": 9, "max_episode_steps": 4},
    "five axes": {"dimension": 5, "max_num_points": 9, "reposition": True, "reward": "points",
                  "scale_observation": False, "max_episode_steps": 9},
}  # fmt: skip


@every_backend
@pytest.mark.parametrize(
    ("mode", "output", "size"), [*zip(MODES, ["torch", "numpy", "torch"], SIZES, strict=True)]
)
@pytest.mark.parametrize("env_id", IDS)
def test_vector_contract(env_id, mode, output, size, backend):
    options = {"autoreset_mode": mode, "output": output, "backend": backend, **SIZES[size]}
    check_vector_env(lambda n: make_vec(env_id, n, **options), num_envs=7, steps=24, seed=5)
    assert make_vec(env_id, 2, **options).unwrapped.final_obs_of_all_rows


@pytest.mark.parametrize("size", [{}, *SIZES.values()], ids=["default", *SIZES])
@pytest.mark.parametrize("env_id", IDS)
def test_single_environments_pass_the_checkers(env_id, size):
    # By default an illegal action is an error, and Gymnasium's checker plays one action in two
    # positions; that it is legal in both is certain for the default sizes only.
    env = gymnasium.make(env_id, **({"invalid_action": "noop", **size} if size else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Stated by us: an unscaled observation is unbounded, and the checker says so.
        warnings.filterwarnings("ignore", message=".*maximum value is infinity")
        # SB3 advises against two-dimensional boxes; its own algorithms flatten them.
        warnings.filterwarnings("ignore", message=".*unconventional shape")
        for _ in range(5):  # the checkers draw actions at random
            check_env(env.unwrapped, skip_render_check=True)
            # This one closes the environment after a frame, then resets it.
            env_checker.check_env(env.unwrapped, skip_render_check=False)


@every_backend
@pytest.mark.parametrize("env_id", IDS)
def test_results_have_their_types_whatever_the_default_is(env_id, backend):
    def types():
        env = make_vec(env_id, 3, backend=backend, max_episode_steps=1)
        results = [*env.reset(seed=0), *env.step(torch.zeros(3, dtype=torch.int64))]
        return [part.dtype for each in results for part in parts(each)]

    usual = types()
    torch.set_default_dtype(torch.float64)
    try:
        assert types() == usual
    finally:
        torch.set_default_dtype(torch.float32)
