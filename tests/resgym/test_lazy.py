"""Packages open at once: what they gather comes when it is asked for, and nothing gets lost."""

import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["resgym", "resgym.players", "sb3_ext"])
def test_every_name_is_found_where_it_is_at_home(name):
    package = import_module(name)
    for public in package.__all__:
        found = getattr(package, public)
        home = sys.modules.get(getattr(found, "__module__", ""), package)
        assert getattr(home, public, found) is found
    assert dir(package) == sorted(package.__all__)  # what a shell's tab key shows
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        getattr(package, "nothing")  # noqa: B009


MADE = """
import sys, gymnasium
assert "resgym/HironakaHost-v0" not in gymnasium.registry
env = gymnasium.make("resgym:resgym/HironakaHost-v0")
env.reset(seed=0)
env.step(0)
gymnasium.make_vec("resgym:resgym/HironakaAgent-v0", num_envs=2).reset(seed=0)
gymnasium.spec("resgym/Worst20-v0")
read = [name for name in sys.modules if name.startswith("resgym.benchmark")]
assert not read, "positions are read before a task asks for them"
"""
# What is registered before the kernels are imported is not taken for theirs.
REGISTERED = """
import sys, sb3_ext
assert not {"torch", "stable_baselines3"} & {*sys.modules}, "sb3_ext loads what is heavy"
import resgym

@resgym.register_reward("half")
def half(move):
    return 0.5 * move.finished.float()

import gymnasium

env = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=64, opponent="random", reward="half")
env.reset(seed=0)
env.action_space.seed(0)
paid = {float(each) for _ in range(20) for each in env.step(env.action_space.sample())[1]}
assert paid == {0.0, 0.5}, paid
"""


@pytest.mark.parametrize("program", [MADE, REGISTERED], ids=["made", "registered"])
def test_in_a_process_of_its_own(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
