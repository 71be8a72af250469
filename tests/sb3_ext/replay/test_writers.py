"""One replay buffer filled by several writers, each with rows of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_ext.replay.buffers import TensorReplayBuffer

SPACE = spaces.Box(0.0, 1.0, (2,))


def make(rows: int, **options: Any) -> TensorReplayBuffer:
    return TensorReplayBuffer(
        6 * rows, SPACE, spaces.Discrete(3), device="cpu", n_envs=rows, gamma=0.9, **options
    )


def transitions(rows: int, steps: int, seed: int) -> list[tuple[torch.Tensor, ...]]:
    """Arguments of `add_batch`; most observations follow from the ones before."""
    source = torch.Generator().manual_seed(seed)
    found, reached = [], torch.rand(rows, 2, generator=source)
    for _ in range(steps):
        seen, reached = reached, torch.rand(rows, 2, generator=source)
        coins = torch.rand(4, rows, generator=source)
        seen = torch.where((coins[0] < 0.2)[:, None], torch.rand(rows, 2, generator=source), seen)
        actions = (coins[1] * 3).long()
        found.append((seen, reached, actions, coins[1], coins[2] < 0.2, coins[3] < 0.2))
    return found


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_writers_in_any_order_fill_what_one_would(data: st.DataObject) -> None:
    widths = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    options = {
        "n_steps": data.draw(st.integers(1, 3)),
        "optimize_memory_usage": data.draw(st.booleans()),
    }
    rows, steps = sum(widths), data.draw(st.integers(1, 9))
    batches = transitions(rows, steps, data.draw(st.integers(0, 99)))
    alone, together = make(rows, **options), make(rows, **options)
    for batch in batches:
        alone.add_batch(*batch)
    starts = [sum(widths[:number]) for number in range(len(widths))]
    turns = data.draw(st.permutations([w for w in range(len(widths)) for _ in range(steps)]))
    done = [0] * len(widths)
    for writer in turns:
        first, end = starts[writer], starts[writer] + widths[writer]
        given_rows = [value[first:end].clone() for value in batches[done[writer]]]
        together.add_batch(*given_rows, first_row=first)
        for value in given_rows:
            value.zero_()  # a writer may use its memory again
        done[writer] += 1
        # What can be sampled is what has come from everybody.
        assert together.num_transitions == min(*done, 6) * rows
    fields, counters = alone.state_dict()
    others, other_counters = together.state_dict()
    assert counters == other_counters
    for name, value in fields.items():
        assert torch.equal(value, others[name]), name
    for one, other in zip(alone.sample(32), together.sample(32), strict=True):
        assert one is other is None or torch.equal(one, other)


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_many_steps_at_once_are_as_many_calls(data: st.DataObject) -> None:
    """Around the ring, also more than once; with all rows, and by two writers."""
    options = {
        "n_steps": data.draw(st.sampled_from([1, 1, 3])),
        "optimize_memory_usage": data.draw(st.sampled_from([False, False, True])),
        "handle_timeout_termination": data.draw(st.booleans()),
    }
    writers, sizes = data.draw(st.integers(1, 2)), data.draw(st.lists(st.integers(1, 15)))
    batches = transitions(4, sum(sizes), data.draw(st.integers(0, 99)))
    by_call, at_once = make(4, **options), make(4, **options)
    for batch in batches:
        by_call.add_batch(*batch)
    for size in sizes:
        block = [torch.stack(values) for values in zip(*batches[:size], strict=True)]
        del batches[:size]
        for rows in torch.arange(4).chunk(writers):
            part = [value[:, rows] for value in block]
            at_once.add_batch(*part, first_row=int(rows[0]), steps=size)
            for value in part:
                value.zero_()
    fields, counters = by_call.state_dict()
    others, other_counters = at_once.state_dict()
    assert counters == other_counters
    for name, value in fields.items():
        assert torch.equal(value, others[name]), name


def test_a_block_of_another_shape_is_refused_and_nothing_is_stored() -> None:
    buffer = make(4)
    block = [torch.stack(values) for values in zip(*transitions(4, 3, seed=0), strict=True)]
    with pytest.raises(ValueError, match=r"^rewards: got shape \(3, 2\), need \(3, 4\)$"):
        buffer.add_batch(*block[:3], block[3][:, :2], *block[4:], steps=3)
    assert buffer.num_transitions == 0


def test_rows_belong_to_one_writer() -> None:
    buffer = make(6)
    (batch,) = transitions(6, 1, seed=0)

    def write(first: int, end: int) -> None:
        buffer.add_batch(*(value[first:end] for value in batch), first_row=first)

    write(0, 4)
    with pytest.raises(ValueError, match=r"^first_row: rows 3 to 5 belong in part .* rows 0 to 3"):
        write(3, 6)
    with pytest.raises(ValueError, match=r"^first_row: got 4 for 4 rows, the buffer has 6"):
        buffer.add_batch(*(value[:4] for value in batch), first_row=4)
    assert buffer.num_transitions == 0
    write(4, 6)
    assert buffer.num_transitions == 6
    write(0, 4)
    # Who writes all rows takes the place of the others, and what waited is gone.
    buffer.add_batch(*batch)
    assert buffer.num_transitions == 12
    write(0, 3)
    write(3, 6)
    assert buffer.num_transitions == 18
