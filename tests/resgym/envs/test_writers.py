"""Players and rewards that write to what they are handed: an error or no effect, never a crash."""

from contextlib import suppress

import pytest
import torch

from tests.resgym.envs.helpers import AGENT, HOST, asked, make_vec, played

# To which memory what is written.
WRITES = {
    "a huge count": lambda state: (state.count, 2**40),
    "a negative count": lambda state: (state.count, -(2**40)),
    "large coordinates": lambda state: (state.points, 2**62),
    "one huge count": lambda state: (state.count[-1:], 10**15),
}


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
@pytest.mark.parametrize("name", WRITES)
def test_a_player_that_writes_is_one_error(name, env_id, backend):
    def player(state, coords, rng):
        memory, value = WRITES[name](state)
        memory.fill_(value)
        return asked(state, coords, rng) % 2

    env = make_vec(env_id, 64, opponent=player, backend=backend)
    with pytest.raises(ValueError, match=r"^[^\n]*must not write to its arguments[^\n]*$"):
        played(env, 6, seed=0)


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("name", WRITES)
def test_a_reward_that_writes_crashes_nothing(name, backend):
    def reward(move):
        memory, value = WRITES[name](move.after)
        memory.numpy().fill(value)  # no one sees it
        return torch.zeros(len(move.axis))

    with suppress(RuntimeError):
        played(make_vec(HOST, 64, reward=reward, backend=backend), 20, seed=0)
