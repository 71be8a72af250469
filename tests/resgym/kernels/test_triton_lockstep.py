"""What is said of the Triton kernels alone; the rest is in `test_fused`, and runs as that does."""

import pytest
import torch

from tests.resgym.envs.helpers import AGENT, HOST, IDS, MODES, same
from tests.resgym.kernels.steps import pair
from tests.resgym.kernels.test_fused import CUDA, HAS_TRITON, both, fast  # noqa: F401

if not HAS_TRITON:
    pytest.skip("needs Triton, and CUDA or its interpreter", allow_module_level=True)


pytestmark = pytest.mark.parametrize("fast", ["triton"], indirect=True)


@pytest.mark.parametrize(("dimension", "num_points"), [(2, 6), (3, 9), (5, 40), (10, 5)])
def test_large_values(dimension, num_points):
    sizes = {"dimension": dimension, "max_num_points": num_points, "max_value": 2**31 - 2}
    both("triton", HOST, 3, num_envs=9, **sizes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opponent", ["zeillinger", ["choose_last", "random"]], ids=str)
def test_opponents_asked(opponent, mode):
    env_id = AGENT if opponent == "zeillinger" else HOST
    more = {"max_num_points": 4, "max_episode_steps": 3, "autoreset_mode": mode}
    both("triton", env_id, 4, num_envs=6, opponent=opponent, **more)


@pytest.mark.skipif(not CUDA, reason="no CUDA device")
@pytest.mark.parametrize("env_id", IDS)
def test_a_step_never_waits_for_the_device(env_id):
    _, env = pair(env_id, "triton", device="cuda", invalid_action="noop", num_envs=64)
    env.reset(seed=0)
    actions = torch.zeros(64, dtype=torch.int64, device="cuda")
    env.step(actions)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            env.step(actions)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.skipif(not CUDA, reason="no CUDA device")
def test_a_step_can_be_captured():
    """A captured step that is replayed gives what the same step gives without capture."""
    _, env = pair(HOST, "triton", device="cuda", invalid_action="noop", num_envs=64)
    env.reset(seed=0)
    state = env.state_dict()
    actions = torch.zeros(64, dtype=torch.int64, device="cuda")
    wanted = env.step(actions)
    env.load_state_dict(state)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = env.step(actions)
    graph.replay()
    assert same(wanted, found)
