"""Environments with ``polytope="newton"``: no backend and no seat forgets the option."""

from __future__ import annotations

import gymnasium
import pytest
import torch

import resgym
from tests.reference.polyhedron import newton_vertices
from tests.resgym.backends import every_backend, get
from tests.resgym.envs.helpers import BOTH, IDS, make_vec

OPTIONS = {"polytope": "newton", "scale_observation": False, "max_episode_steps": 12}


def observed_sets(observation: object) -> list[list[tuple[int, ...]]]:
    points = observation["points"] if isinstance(observation, dict) else observation
    points = torch.as_tensor(points)
    points = points if points.ndim == 3 else points[None]
    return [
        [tuple(int(x) for x in row) for row in game if min(row) >= 0] for game in points.tolist()
    ]


def play(env: gymnasium.vector.VectorEnv, steps: int) -> list[list[list[tuple[int, ...]]]]:
    """What is seen on the way, always with the first legal action."""
    observation, _ = env.reset(seed=7)
    seen = [observed_sets(observation)]
    for _ in range(steps):
        actions = torch.as_tensor(env.unwrapped.action_masks()).to(torch.uint8).argmax(1)
        observation, *_ = env.step(actions)
        seen.append(observed_sets(observation))
    return seen


@every_backend
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("reposition", [False, True])
def test_batches_show_vertices_alone(env_id, reposition, backend):
    get(backend, resgym.GameSpec())  # or skips
    seats = {} if env_id == BOTH else {"opponent": "random"}
    arguments = {**OPTIONS, **seats, "reposition": reposition}
    env = make_vec(env_id, 12, output="torch", backend=backend, **arguments)
    seen = play(env, 8)
    for sets in seen:
        for points in sets:
            assert points == newton_vertices(points)
    other = make_vec(env_id, 12, output="torch", backend="torch", **arguments)
    assert play(other, 8) == seen
    # A control: under dominance there are points that are no vertices.
    superset = play(
        make_vec(env_id, 12, backend=backend, **{**arguments, "polytope": "dominance"}), 0
    )
    assert any(points != newton_vertices(points) for points in superset[0])
