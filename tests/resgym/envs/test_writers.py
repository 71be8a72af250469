"""Players and rewards that write to what they are handed: an error or no effect, never a crash."""

from contextlib import suppress

import gymnasium
import pytest
import torch

import resgym  # noqa: F401  registers the environments
from resgym.players import CallablePlayer

# What is written, and to which memory; through NumPy no one sees it.
WRITES = {
    "a huge count": lambda state: (state.count, 2**40),
    "a negative count": lambda state: (state.count, -(2**40)),
    "large coordinates": lambda state: (state.points, 2**62),
    "one huge count": lambda state: (state.count[-1:], 10**15),
}


def write(name, state, unseen=False):
    memory, value = WRITES[name](state)
    memory.numpy().fill(value) if unseen else memory.fill_(value)


def player_that(name, role):
    def act(state, coords, rng):
        answer = torch.zeros(state.num_games, dtype=torch.int64)
        if coords is not None:
            answer = coords.to(torch.uint8).argmax(1)
        write(name, state)
        return answer

    return CallablePlayer(act, role)


def steps(env, number=6):
    env.reset(seed=0)
    for _ in range(number):
        mask = torch.as_tensor(env.unwrapped.action_masks())
        env.step(mask.to(torch.uint8).argmax(1))


def games(seat, **keywords):
    return gymnasium.make_vec(f"resgym/Hironaka{seat}-v0", num_envs=64, **keywords)


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("seat", ["Host", "Agent"])
@pytest.mark.parametrize("name", WRITES)
def test_a_player_that_writes_is_one_error(name, seat, backend):
    player = player_that(name, "agent" if seat == "Host" else "host")
    env = games(seat, opponent=player, backend=backend)
    with pytest.raises(ValueError, match="must not write to its arguments") as error:
        steps(env)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("name", WRITES)
def test_a_reward_that_writes_crashes_nothing(name, backend):
    def reward(move):
        write(name, move.after, unseen=True)
        return torch.zeros(len(move.axis))

    with suppress(RuntimeError):
        steps(games("Host", reward=reward, backend=backend), 20)
