"""Random play into replay buffers, and comparisons of what they give, bit for bit."""

import numpy as np
import torch
from gymnasium import spaces

from sb3_ext.replay.buffers import TensorReplayBuffer

NUMBER = spaces.Box(-np.inf, np.inf, (1,), np.float32)
PAIR = spaces.Dict(points=spaces.Box(-1, 1, (3, 2), np.float32), coords=spaces.MultiBinary(4))


def seen(rows, rng):
    """Observations of all rows, of few values, so that equal ones are common."""
    points = rng.choice([-0.0, 0.0, 1.0, 2.0, np.nan], size=(rows, 3, 2)).astype(np.float32)
    coords = rng.integers(2, size=(rows, 4)).astype(np.int8)
    return {"coords": torch.from_numpy(coords), "points": torch.from_numpy(points)}


def play(rows, steps, rng):
    """Arguments of `add_batch` for every step."""
    return [
        (
            seen(rows, rng),
            seen(rows, rng),
            torch.from_numpy(rng.integers(5, size=rows)),
            torch.from_numpy(rng.normal(size=rows).astype(np.float32)),
            *(torch.from_numpy(coin) for coin in rng.random((2, rows)) < 0.3),
        )
        for _ in range(steps)
    ]


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


def make(kind=TensorReplayBuffer, rows=3, slots=5, space=PAIR, **kwargs):
    return kind(slots * rows, space, spaces.Discrete(5), device="cpu", n_envs=rows, **kwargs)


def add_numbers(buffer, obs, next_obs, rewards, terminated=None, truncated=None, *masks):
    never = [False] * len(obs)
    buffer.add_batch(
        torch.tensor(obs)[:, None],
        torch.tensor(next_obs)[:, None],
        torch.arange(len(obs)) % 5,
        torch.tensor(rewards),
        torch.tensor(terminated or never),
        torch.tensor(truncated or never),
        *masks,
    )
