"""Copies of environments: their next steps are those of the original, actions drawn included."""

import copy
import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest

import resgym  # noqa: F401  registers the environments

GAMES = {
    "resgym/HironakaHost-v0": {"opponent": "random", "rule": "polyhedra"},
    "resgym/HironakaAgent-v0": {"opponent": "random"},
    "resgym/Hironaka-v0": {},
}
COPY = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


def plain(result):
    if isinstance(result, dict):
        return {key: plain(value) for key, value in result.items()}
    return [*map(plain, result)] if isinstance(result, tuple) else np.array(result).tolist()


def play(env, steps):
    """A vector environment restarts by itself."""
    for _ in range(steps):
        action = env.action_space.sample()
        result = env.step(action)
        yield plain((action, result))
        if isinstance(env, gymnasium.Env) and (result[2] or result[3]):
            yield plain(env.reset())


def play_turns(env, steps):
    for _ in range(steps):
        if not env.agents:
            env.reset()
        observation, *ends, _ = env.last()
        seat = env.agent_selection
        action = None if ends[1] or ends[2] else env.action_space(seat).sample()
        yield seat, action, plain(observation), ends
        env.step(action)


def play_parallel(env, steps):
    for _ in range(steps):
        if not env.agents:
            env.reset()
        actions = {seat: env.action_space(seat).sample() for seat in env.agents}
        yield plain((actions, env.step(actions)))


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
    run, make = CASES[case]
    env = make()
    env.reset(seed=3)
    if hasattr(env, "possible_agents"):
        for number, seat in enumerate(env.possible_agents):
            env.action_space(seat).seed(number)
    else:
        env.action_space.seed(4)
    assert list(run(env, 10))
    copied = COPY[how](env)
    assert list(run(copied, 40)) == list(run(env, 40))
