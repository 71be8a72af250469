"""Steps by compiled passes around players that are asked, against the reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gymnasium.vector import AutoresetMode

import resgym
from resgym.game.rng import RowRandom
from tests.resgym.kernels.steps import play_both, refuse_steps

pytest.importorskip("numba")

SEATS = {"host": "resgym/HironakaHost-v0", "agent": "resgym/HironakaAgent-v0"}


def drawing_agent(state: Any, coords: Any, rng: RowRandom) -> torch.Tensor:
    """Looks at everything that it is handed."""
    weights = rng.uniform(coords.shape[1]) + 0.1 * (state.points.sum(1) % 3)
    return torch.where(coords, weights, -1.0).argmax(1)


def drawing_host(state: Any, coords: Any, rng: RowRandom) -> torch.Tensor:
    assert coords is None
    dimension = state.points.shape[2]
    return (rng.integers(2**dimension - dimension - 1) + state.count) % (
        2**dimension - dimension - 1
    )


OPPONENTS = {
    "host": [drawing_agent, resgym.make_agent("greedy_points"), ["random", drawing_agent] * 3],
    "agent": [drawing_host, ["random", drawing_host] * 3],
}
CASES = [(seat, opponent) for seat, those in OPPONENTS.items() for opponent in those]


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(("seat", "opponent"), CASES)
def test_opponents_and_modes(seat: str, opponent: Any, mode: AutoresetMode) -> None:
    seen = play_both(
        SEATS[seat],
        opponent=opponent,
        autoreset_mode=mode,
        max_episode_steps=4,
        max_num_points=4,
        max_value=6,
    )
    assert seen["terminated"] + seen["truncated"] > 20
    assert seen["truncated"] > 3


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("invalid_action", ["noop", "penalty", "terminate"])
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(("seat", "opponent"), CASES[::2])
def test_illegal_actions(
    seat: str, opponent: Any, mode: AutoresetMode, invalid_action: str
) -> None:
    play_both(
        SEATS[seat],
        illegal=True,
        opponent=opponent,
        invalid_action=invalid_action,
        autoreset_mode=mode,
        max_episode_steps=5,
    )


@pytest.mark.usefixtures("only_fused")
@pytest.mark.parametrize("reward", ["step", "survival", "points"])
@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("seat", SEATS)
def test_rewards_and_outputs(seat: str, reward: str, output: str) -> None:
    opponent = OPPONENTS[seat][0]
    play_both(SEATS[seat], opponent=opponent, reward=reward, output=output, dimension=4, num_envs=5)


@pytest.mark.parametrize("seat", SEATS)
def test_refused_steps_change_nothing(seat: str) -> None:
    refuse_steps(SEATS[seat], "numba", opponent=OPPONENTS[seat][0])
