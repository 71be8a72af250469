"""Random play into replay buffers, and comparisons of what they give, bit for bit."""

import numpy as np
import torch
from gymnasium import spaces

from sb3_ext.replay.buffers import TensorReplayBuffer

PAIR = spaces.Dict(points=spaces.Box(-1, 1, (3, 2), np.float32), coords=spaces.MultiBinary(4))


def drawn(space, rows, rng):
    """Observations of all rows, of few values, so that equal ones are common."""
    if isinstance(space, spaces.Dict):
        return {key: drawn(each, rows, rng) for key, each in space.items()}
    shape = (rows, *space.shape)
    values = rng.choice([-0.0, 0.0, 1.0, 2.0, np.nan], size=shape)
    if not np.issubdtype(space.dtype, np.floating):
        values = rng.integers(2, size=shape)
    return torch.from_numpy(values.astype(space.dtype))


def play(space, rows, steps, rng, ends=0.3):
    """Arguments of `add_batch`; masks last."""
    return [
        (
            drawn(space, rows, rng),
            drawn(space, rows, rng),
            torch.from_numpy(rng.integers(5, size=rows)),
            torch.from_numpy(rng.normal(size=rows).astype(np.float32)),
            *(torch.from_numpy(coin) for coin in rng.random((2, rows)) < ends),
            torch.from_numpy(rng.random((rows, 5)) < 0.5),
        )
        for _ in range(steps)
    ]


def add_steps(buffers, steps, rng, ends=0.3):
    """The same random play into all buffers."""
    space, rows = buffers[0].observation_space, buffers[0].n_envs
    for values in play(space, rows, steps, rng, ends):
        for buffer in buffers:
            buffer.add_batch(*values[: 6 + buffer.store_next_legal])


def stacked(steps):
    """Many steps as one block `[S, N, ...]`."""
    if isinstance(steps[0], dict):
        return {key: stacked([each[key] for each in steps]) for key in steps[0]}
    if isinstance(steps[0], tuple):
        return [stacked(list(column)) for column in zip(*steps, strict=True)]
    return torch.stack(steps)


def assert_same(left, right):
    """Bit for bit: -0.0 is not 0.0, and a NaN equals itself."""
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        left, right = left.values(), right.values()
    elif isinstance(left, torch.Tensor):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert left.contiguous().numpy().tobytes() == right.contiguous().numpy().tobytes()
        return
    elif not isinstance(left, tuple):
        assert left == right
        return
    for one, other in zip(left, right, strict=True):
        assert_same(one, other)


def make(kind=TensorReplayBuffer, rows=3, slots=5, **kwargs):
    return kind(slots * rows, PAIR, spaces.Discrete(5), device="cpu", n_envs=rows, **kwargs)


def filled(steps=7, **kwargs):
    """A buffer of so many random steps, the same ones every time."""
    buffer = make(**kwargs)
    add_steps((buffer,), steps, np.random.default_rng(3), ends=0.5)
    return buffer
