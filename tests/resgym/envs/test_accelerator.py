"""The way of working that accelerators need: no look at the data, every row handled by masks.

It is played on the CPU, on "meta" tensors, whose data nobody can look at, and with CUDA there too.
"""

import pytest
import torch

from resgym.game import devices
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, IDS, MODES, SHORT, make_vec, parts, played

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
OPPONENTS = {
    HOST: ["random", ["random", "choose_first", "choose_last", "random"]],
    AGENT: ["random", ["random", "zeillinger", "all_coord", "zeillinger"]],
    BOTH: [None],
}
CASES = [(env_id, opponent) for env_id in IDS for opponent in OPPONENTS[env_id]]


@pytest.fixture(autouse=True)
def nothing_may_be_looked_at(monkeypatch):
    monkeypatch.setattr(devices, "is_host_memory", lambda device: False)


def build(env_id, opponent, num_envs=4, **arguments):
    options = {} if opponent is None else {"opponent": opponent}
    return make_vec(env_id, num_envs, backend="torch", **options, **SHORT, **arguments)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("env_id", "opponent"), CASES)
def test_the_same_run_bit_for_bit(env_id, opponent, mode, device, monkeypatch):
    there = played(build(env_id, opponent, autoreset_mode=mode, device=device), 12, seed=13)
    monkeypatch.undo()
    assert devices.is_host_memory(torch.device("cpu"))
    assert played(build(env_id, opponent, autoreset_mode=mode), 12, seed=13) == there


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
@pytest.mark.parametrize(("env_id", "opponent"), CASES)
def test_a_step_never_waits_for_the_device(env_id, opponent, mode, monkeypatch):
    """On "meta" every look at a value raises, and so does a shape that depends on one."""
    monkeypatch.setattr(devices, "resolve_device", torch.device)
    env = build(env_id, opponent, device="meta", autoreset_mode=mode, invalid_action="penalty")
    observation, _ = env.reset(seed=0)
    for _ in range(2):
        observation, *rest, info = env.step(torch.zeros(4, dtype=torch.int64, device="meta"))
    flat = [*parts(observation), *rest]
    assert all(tensor.device.type == "meta" and len(tensor) == 4 for tensor in flat)
    assert info["overflow"].device.type == "meta"
    assert env.action_masks().device.type == "meta"
