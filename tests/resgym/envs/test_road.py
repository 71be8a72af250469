"""The road of a compiled step, as CONTRIBUTING.md draws it: which of our modules it enters."""

import sys
from pathlib import Path

import pytest

import resgym
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, make_vec

PACKAGE = Path(resgym.__file__).parent


@pytest.mark.parametrize(
    ("env_id", "options"),
    [(HOST, {"opponent": "choose_first"}), (AGENT, {"opponent": "zeillinger"}), (BOTH, {})],
)
def test_a_compiled_step_with_a_scripted_opponent(env_id, options):
    pytest.importorskip("numba")
    options = {"backend": "numba", "max_episode_steps": None, "invalid_action": "noop", **options}
    env, actions, entered = make_vec(env_id, 4, **options), [0] * 4, {}
    env.reset(seed=0)
    env.step(actions)  # what a plan comes to is worked out once

    def look(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            entered.setdefault(path.relative_to(PACKAGE).as_posix())

    sys.setprofile(look)
    try:
        env.step(actions)
    finally:
        sys.setprofile(None)
    assert list(entered)[:2] == ["envs/base.py", "envs/forms.py"]
    # Whether a compiled function is seen depends on how it was compiled.
    assert {*entered, "kernels/cpu/step.py"} == {
        "envs/base.py", "envs/forms.py", "game/state.py",
        "kernels/backend.py", "kernels/cpu/backend.py", "kernels/cpu/step.py",
    }  # fmt: skip
