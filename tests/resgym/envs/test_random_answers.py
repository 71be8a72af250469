"""Random answers of players: refused in one line with nothing changed, or legal and played."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from resgym.game.actions import action_axes
from tests.resgym.envs.answers import (
    DIMENSION,
    INTEGERS,
    NUM_ENVS,
    SEATS,
    SIZE,
    Spoiled,
    error_of,
    make,
    one_line,
    same,
)
from tests.resgym.envs.helpers import AGENT, act_random

dtypes = st.sampled_from([
    *(getattr(torch, name) for name in INTEGERS if hasattr(torch, name)),
    torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
])  # fmt: skip
shapes = st.one_of(
    st.just((NUM_ENVS,)),
    st.lists(st.integers(0, 2 * NUM_ENVS), max_size=3).map(tuple),
)
values = st.one_of(
    st.integers(-2, 8), st.integers(-(2**63), 2**63 - 1), st.sampled_from([57, 10**7, 2**31, -1])
)


@st.composite
def answers(draw: st.DrawFn) -> Any:
    """Anything that a player might return, legal answers rarely among it."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(
            st.one_of(
                st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
                st.lists(st.integers(0, 2), min_size=NUM_ENVS, max_size=NUM_ENVS),
                st.just(np.zeros(NUM_ENVS, np.int64)), st.just({}), st.just(object()),
            )
        )  # fmt: skip
    shape = draw(shapes)
    size = int(np.prod(shape))
    entries = draw(st.lists(values, min_size=size, max_size=size))
    tensor = torch.tensor(entries, dtype=torch.int64).reshape(shape).to(draw(dtypes))
    if kind == 1 and tensor.ndim:
        return tensor.to_sparse() if tensor.dtype.is_signed else tensor.to("meta")
    if kind == 2:
        return tensor[..., None].expand(*shape, 3).select(-1, 1)
    return tensor


def is_legal(answer: Any, env_id: str, actions: Tensor) -> bool:
    """The rule in plain words, one row after the other."""
    if not isinstance(answer, Tensor) or answer.layout != torch.strided or answer.is_meta:
        return False
    if answer.dtype not in {getattr(torch, name, None) for name in INTEGERS}:
        return False
    if answer.ndim != 1 or len(answer) != NUM_ENVS:
        return False
    chosen = [int(value) for value in answer.numpy()]
    if env_id == AGENT:
        return all(0 <= value < SIZE["host"] for value in chosen)
    sets = action_axes(DIMENSION)
    pairs = zip(actions.tolist(), chosen, strict=True)
    return all(value in sets[action] for action, value in pairs)


@pytest.mark.usefixtures("on_every_backend")
@pytest.mark.parametrize("env_id", SEATS)
@settings(
    max_examples=150, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(data=st.data())
def test_random_answers(env_id: str, data: st.DataObject) -> None:
    """Refused in one line with nothing changed, or legal and played."""
    player = Spoiled(SEATS[env_id])
    env = make(env_id, player, max_num_points=20, max_episode_steps=None)
    env.reset(seed=data.draw(st.integers(0, 99)))
    for _ in range(4):
        answer = data.draw(answers())
        before = env.state_dict()
        actions = torch.from_numpy(act_random(env, 7))
        player.spoil = lambda a, c: answer  # noqa: B023
        legal = is_legal(answer, env_id, actions)
        refusal = error_of(lambda: env.step(actions))  # noqa: B023
        assert (refusal is None) == legal
        if refusal is not None:
            assert one_line(refusal).startswith(f"{SEATS[env_id]} spoiled ")
            assert same(env.state_dict(), before)
