"""The road of a step, as CONTRIBUTING.md draws it: which of our modules it enters, and in turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import resgym
from tests.resgym.backends import every_backend
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, asked, make_vec

PACKAGE = Path(resgym.__file__).parent


def modules_entered(env: Any, actions: Any) -> list[str]:
    """The modules of resgym whose Python functions a step calls, in the order of the first call.

    A compiled pass is entered through its module's name alone: it is no Python function.
    """
    found: dict[str, None] = {}

    def look(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            found.setdefault(path.relative_to(PACKAGE).as_posix())

    sys.setprofile(look)
    try:
        env.step(actions)
    finally:
        sys.setprofile(None)
    return list(found)


def legal(observation: Any) -> torch.Tensor:
    """Legal actions, without a look at the games."""
    if isinstance(observation, dict):
        return observation["coords"].argmax(1)
    return torch.zeros(4, dtype=torch.int64)


def road(env_id: str, **options: Any) -> list[str]:
    env = make_vec(env_id, 4, max_episode_steps=None, **options).unwrapped
    observation, _ = env.reset(seed=0)
    # What a plan comes to is worked out once.
    observation, *_ = env.step(legal(observation))
    return modules_entered(env, legal(observation))


@pytest.mark.parametrize(
    ("env_id", "options"),
    [(HOST, {"opponent": "choose_first"}), (AGENT, {"opponent": "zeillinger"}), (BOTH, {})],
)
def test_a_compiled_step_with_a_scripted_opponent(env_id: str, options: dict[str, Any]) -> None:
    pytest.importorskip("numba")
    entered = road(env_id, backend="numba", **options)
    assert entered[:2] == ["envs/base.py", "envs/arguments.py"]
    # Whether a compiled function is seen depends on how it was compiled.
    assert {*entered, "kernels/cpu/step.py"} == {
        "envs/base.py", "envs/arguments.py", "envs/results.py", "game/state.py",
        "kernels/backend.py", "kernels/cpu/backend.py", "kernels/cpu/threads.py",
        "kernels/cpu/step.py",
    }  # fmt: skip


@every_backend
@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_an_opponent_that_is_asked_is_met_on_the_same_road(env_id: str, backend: str) -> None:
    entered = road(env_id, backend=backend, opponent=asked)
    assert entered[:2] == ["envs/base.py", "envs/arguments.py"]
    order = [entered.index(f"{name}.py") for name in ("game/episode", "players/mixture")]
    assert order == sorted(order)
    assert entered.index("players/mixture.py") < entered.index("players/asking.py")
