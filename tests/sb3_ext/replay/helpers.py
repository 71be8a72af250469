"""Random play into replay buffers, and comparisons of what they give, bit for bit."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from sb3_ext.replay.buffers import TensorReplayBuffer

PAIR = spaces.Dict(points=spaces.Box(-1, 1, (3, 2), np.float32), coords=spaces.MultiBinary(4))
SPACES = {
    "box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "double": spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    "half": spaces.Box(-np.inf, np.inf, (3,), np.float16),
    "discrete": spaces.Discrete(4),
    "dict": PAIR,
}


def pair(space: spaces.Space, slots: int, rows: int, share: float = 0.25, **kwargs: Any) -> Any:
    """A buffer that stores both observations, and one that stores them once."""
    arguments = (slots * rows, space, spaces.Discrete(5))
    kwargs = {"device": "cpu", "n_envs": rows, "store_next_legal": True, **kwargs}
    once = TensorReplayBuffer(*arguments, optimize_memory_usage=True, final_share=share, **kwargs)
    return TensorReplayBuffer(*arguments, **kwargs), once


def drawn(space: spaces.Space, rows: int, rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """Observations of all rows by entry, of few values, so that equal ones are common."""
    entries = space.items() if isinstance(space, spaces.Dict) else [("", space)]
    found = {}
    for key, each in entries:
        shape = (rows, *(each.shape or (1,)))
        values = rng.choice([-0.0, 0.0, 1.0, 2.0, np.nan], size=shape)
        if not np.issubdtype(each.dtype, np.floating):
            values = rng.integers(2, size=shape)
        found[key] = torch.from_numpy(values.astype(each.dtype))
    return found


def whole(entries: dict[str, torch.Tensor]) -> Any:
    return entries.get("", entries)


def add_steps(
    buffers: tuple[TensorReplayBuffer, ...],
    steps: int,
    rng: np.random.Generator,
    ends: float,
    outside: float = 0.1,
    start: dict[str, torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """Random play into all buffers alike: ends, truncations and resets from outside."""
    space, rows = buffers[0].observation_space, buffers[0].n_envs
    seen = drawn(space, rows, rng) if start is None else start
    for _ in range(steps):
        reached = drawn(space, rows, rng)
        terminated, truncated = (torch.from_numpy(coin) for coin in rng.random((2, rows)) < ends)
        actions = torch.from_numpy(rng.integers(5, size=rows))
        rewards = torch.from_numpy(rng.normal(size=rows).astype(np.float32))
        legal = torch.from_numpy(rng.random((rows, 5)) < 0.5)
        for buffer in buffers:
            masks = [legal] if buffer.store_next_legal else []
            buffer.add_batch(
                whole(seen), whole(reached), actions, rewards, terminated, truncated, *masks
            )
        fresh = drawn(space, rows, rng)
        away = terminated | truncated | torch.from_numpy(rng.random(rows) < outside)
        seen = {
            key: torch.where(away.view(-1, *[1] * (value.dim() - 1)), fresh[key], value)
            for key, value in reached.items()
        }
    return seen


def bits(value: torch.Tensor) -> bytes:
    return value.contiguous().numpy().tobytes()


def assert_same(left: Any, right: Any) -> None:
    """Bit for bit: -0.0 is not 0.0, and a NaN equals itself."""
    for one, other in zip(left, right, strict=True):
        entries = (one, other) if isinstance(one, dict) else ({"": one}, {"": other})
        for key, value in entries[0].items():
            if value is None:
                assert entries[1][key] is None
                continue
            assert value.dtype == entries[1][key].dtype
            assert value.shape == entries[1][key].shape
            assert bits(value) == bits(entries[1][key])


def assert_all_same(both: TensorReplayBuffer, once: TensorReplayBuffer) -> None:
    assert both.num_transitions == once.num_transitions
    index = torch.arange(both.num_transitions)
    assert_same(both._get_samples(index), once._get_samples(index))


def filled(rows: int = 3, slots: int = 5, steps: int = 7, **kwargs: Any) -> TensorReplayBuffer:
    """A buffer of so many random steps, the same ones every time."""
    arguments = (slots * rows, PAIR, spaces.Discrete(300))
    buffer = TensorReplayBuffer(*arguments, device="cpu", n_envs=rows, **kwargs)
    add_steps((buffer,), steps, np.random.default_rng(3), ends=0.5)
    return buffer


def restored(original: TensorReplayBuffer, way: str, other: TensorReplayBuffer) -> Any:
    """The same buffer again by a way of saving; a state is loaded into the other one."""
    if way == "pickle":
        return pickle.loads(pickle.dumps(original))
    if way == "deepcopy":
        return copy.deepcopy(original)
    tensors, counters = original.state_dict()
    assert all(tensor.is_contiguous() for tensor in tensors.values())
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    other.load_state_dict(tensors, json.loads(json.dumps(counters)))
    return other
