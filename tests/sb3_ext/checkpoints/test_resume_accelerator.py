"""Checkpoints of models on an accelerator, resumed there and on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.checkpoints.resume import resume, save_run
from sb3_ext.ddqn import DDQN
from sb3_ext.training.loading import load_policy
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import make_model

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def make(device: str, **arguments: Any) -> DDQN:
    return make_model(TensorVecEnv(ToyVectorEnv(8, device=device)), device=device, **arguments)


def on_cpu(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: on_cpu(value) for key, value in state.items()}
    return state.cpu() if isinstance(state, torch.Tensor) else state


@needs_cuda
@pytest.mark.parametrize(("source", "target"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_everything_moves_between_devices(source: str, target: str, tmp_path: Path) -> None:
    model = make(source)
    model.learn(320)
    path = save_run(model, tmp_path)
    other = make(target)
    resume(other, tmp_path)
    for one, two in (
        (model.policy.state_dict(), other.policy.state_dict()),
        (model.replay_buffer.state_dict()[0], other.replay_buffer.state_dict()[0]),
        (model.env.state_dict(), other.env.state_dict()),
    ):
        assert equal(on_cpu(dict(one)), on_cpu(dict(two)))
    assert {value.device.type for value in other.policy.state_dict().values()} == {target}
    other.learn(160, reset_num_timesteps=False)
    assert other.num_timesteps == 480
    assert load_policy(path).device.type == "cpu"


@needs_cuda
def test_resume_on_the_same_accelerator_repeats_exploration(tmp_path: Path) -> None:
    """Arithmetic need not repeat itself there, but what is drawn does."""
    whole, first, second = (make("cuda", gradient_steps=0) for _ in range(3))
    whole.learn(640)
    first.learn(320)
    save_run(first, tmp_path)
    resume(second, tmp_path)
    second.learn(320, reset_num_timesteps=False)
    ours, theirs = (on_cpu(each.replay_buffer.state_dict()[0]) for each in (second, whole))
    assert equal(ours, theirs)
