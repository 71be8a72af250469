"""Packages open at once: what they gather comes when it is asked for, and nothing gets lost."""

import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["resgym", "resgym.players"])
def test_every_name_is_found_where_it_is_at_home(name):
    package = import_module(name)
    for public in package.__all__:
        found = getattr(package, public)
        home = sys.modules.get(getattr(found, "__module__", ""), package)
        assert getattr(home, public, found) is found
    assert dir(package) == sorted(package.__all__)  # what a shell's tab key shows
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        getattr(package, "nothing")  # noqa: B009


REGISTERED = """
import resgym

@resgym.register_reward("half")
def half(move):
    return 0.5 * move.finished.float()

import gymnasium

env = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=64, opponent="random", reward="half")
env.reset(seed=0)
env.action_space.seed(0)
print(*sorted({float(each) for _ in range(20) for each in env.step(env.action_space.sample())[1]}))
"""


def test_what_is_registered_before_the_kernels_are_imported_is_not_taken_for_theirs():
    done = subprocess.run([sys.executable, "-c", REGISTERED], capture_output=True, text=True)
    assert done.stdout.split() == ["0.0", "0.5"], done.stderr
