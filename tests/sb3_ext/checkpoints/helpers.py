"""Shared by the tests of checkpoints."""

import json

import numpy as np
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.files import file_digest
from tests.fakes import ToyVectorEnv


def equal(first, second):
    """Whether two states are equal bit for bit, types included."""
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(equal(first[k], second[k]) for k in first)
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)


def rewrite_manifest(path):
    """The manifest that a hostile writer would make for the files as they are."""
    manifest = json.loads((path / "manifest.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = file_digest(path / name)
    (path / "manifest.json").write_text(json.dumps(manifest))


def stock_model(algorithm, policy="MlpPolicy"):
    return algorithm(
        policy,
        TensorVecEnv(ToyVectorEnv(8)),
        buffer_size=600,
        learning_starts=100,
        batch_size=16,
        train_freq=2,
        target_update_interval=40,
        replay_buffer_class=TensorReplayBuffer,
        policy_kwargs={"net_arch": [16]},
        seed=0,
        device="cpu",
    )
