"""Prioritised replay: the sum tree against plain Python, weights by hand, saving, learning."""

from __future__ import annotations

import bisect
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from sb3_ext.replay import sum_tree
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.replay.sum_tree import SumTree
from tests.fakes import forbid_waiting
from tests.sb3_ext.ddqn.helpers import make_model
from tests.sb3_ext.ddqn.test_learning import THRESHOLD, score, trained
from tests.sb3_ext.replay.helpers import PAIR, add_steps, assert_same, restored

CPU = torch.device("cpu")
NUMBER = spaces.Box(-np.inf, np.inf, (1,), np.float32)


def numbers(slots: int, rows: int, **arguments: Any) -> PrioritizedReplayBuffer:
    """A buffer of `rows` that is filled with a slot for each of `slots`; more keep it so."""
    buffer = PrioritizedReplayBuffer(
        slots * rows, NUMBER, spaces.Discrete(5), device="cpu", n_envs=rows, **arguments
    )
    for slot in range(slots):
        add_number(buffer, float(slot))
    return buffer


def add_number(
    buffer: PrioritizedReplayBuffer, number: float, first_row: int = 0, rows: int = 0
) -> None:
    rows = rows or buffer.n_envs
    never = torch.zeros(rows, dtype=torch.bool)
    shown = torch.full((rows, 1), number)
    actions, rewards = torch.zeros(rows, dtype=torch.int64), torch.full((rows,), number)
    buffer.add_batch(shown, shown + 1, actions, rewards, never, never, first_row=first_row)


# ------------------------------------------------------------------ the tree


@st.composite
def changes(draw: st.DrawFn) -> tuple[int, list[tuple[int, list[int]]]]:
    size = draw(st.integers(1, 200))
    starts = st.integers(0, size - 1)
    values = st.lists(st.integers(0, 5), min_size=1, max_size=size)
    return size, draw(st.lists(st.tuples(starts, values), max_size=8))


@given(given=changes(), shape=st.sampled_from([(2, 1), (3, 4), (4, 16), (32, 2**14)]))
def test_the_tree_is_a_plain_list(
    given: tuple[int, list[tuple[int, list[int]]]], shape: tuple[int, int]
) -> None:
    """Whole numbers, whose sums are exact in every order."""
    size, batches = given
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sum_tree, "WIDTH", shape[0])
        patch.setattr(sum_tree, "TOP", shape[1])
        tree, plain = SumTree(size, CPU), [0] * size
        for number, (start, values) in enumerate(batches):
            places = [(start + i) % size for i in range(len(values))]
            for place, value in zip(places, values, strict=True):
                plain[place] = value
            new = torch.tensor(values, dtype=torch.float64)
            if number % 2 and start + len(values) <= size:
                tree.put_range(start, start + len(values), new)
            else:
                tree.put(torch.tensor(places), new)
        sums = list(itertools.accumulate(plain))
        assert tree.values.tolist() == plain
        assert float(tree.total) == sums[-1]
        if sums[-1]:
            masses = [mass + part for mass in range(sums[-1]) for part in (0.0, 0.75)]
            expected = [bisect.bisect_right(sums, mass) for mass in masses]
            found = tree.find(torch.tensor([*masses, 2.0 * sums[-1]], dtype=torch.float64))
            last = max(place for place, value in enumerate(plain) if value)
            assert found.tolist() == [*expected, last]


def test_no_rounding_leads_to_a_place_of_probability_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sum_tree, "TOP", 8)
    tree, rng = SumTree(5_000, CPU), np.random.default_rng(0)
    values = np.where(rng.random(5_000) < 0.5, 0.0, 10.0 ** rng.uniform(-12, 12, 5_000))
    tree.put(torch.arange(5_000), torch.from_numpy(values))
    parts = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    assert (tree.values[tree.find(parts * tree.total)] > 0).all()


# ------------------------------------------------------------------ by hand


def test_draws_and_weights_by_hand() -> None:
    """Errors 1, 2, 3, 4: of a batch of ten, one from each tenth, so many are of each."""
    buffer = numbers(2, 2, alpha=1.0, beta="lin_0.0_1.0_2", priority_eps=1e-9)
    assert buffer.sample(4).weights.tolist() == [1.0] * 4
    assert sorted(buffer.sample(4).indices.tolist()) == [0, 1, 2, 3]
    buffer.update_priorities(torch.tensor([3, 0, 1, 2]), torch.tensor([-4.0, 1.0, 2.0, 3.0]))
    drawn = buffer.sample(10)  # the third batch: beta 1
    assert drawn.indices.tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert drawn.rewards[:, 0].tolist() == [0.0, 0.0, 0.0, *[1.0] * 7]
    # (4 P)^-1 with P = 0.1, 0.2, 0.3, 0.4, over that of 0.1.
    torch.testing.assert_close(drawn.weights[[0, 1, 3, 6]], torch.tensor([1, 1 / 2, 1 / 3, 1 / 4]))
    buffer.set_seed(0)
    buffer.sample(1)
    half = buffer.sample(10)  # beta 1/2
    torch.testing.assert_close(half.weights[[0, 6]], torch.tensor([1.0, 0.5]))


def test_alpha_and_the_first_priority() -> None:
    buffer = numbers(3, 1, alpha=0.5, priority_eps=1e-9)
    buffer.update_priorities(torch.tensor([0, 1]), torch.tensor([9.0, 0.0]))
    assert buffer.priorities[:, 0].tolist() == pytest.approx([3.0, 1e-9**0.5, 1.0])
    add_number(buffer, 7.0)  # in the place of the oldest, with the largest priority so far
    add_number(buffer, 8.0)
    assert buffer.priorities[:, 0].tolist() == pytest.approx([3.0, 3.0, 1.0])
    buffer.reset()
    add_number(buffer, 7.0)
    assert buffer.priorities.tolist() == [[1.0]]


def test_errors_that_are_no_numbers_leave_the_sums_finite() -> None:
    buffer = numbers(3, 1)
    errors = torch.tensor([torch.nan, torch.inf, 3e38])
    buffer.update_priorities(torch.tensor([0, 1, 2]), errors)
    assert buffer.priorities.isfinite().all()
    assert buffer.sample(64).weights.isfinite().all()


def test_rows_of_several_writers_count_when_their_slot_is_whole() -> None:
    """As actors insert them."""
    buffer = numbers(4, 3)
    buffer.update_priorities(torch.arange(12), torch.zeros(12))
    largest = buffer.priorities.max()
    add_number(buffer, 5.0, first_row=1, rows=2)
    assert float(buffer.priorities.max()) == float(largest) < 1.0
    add_number(buffer, 5.0, first_row=0, rows=1)
    assert buffer.priorities[0].tolist() == [1.0] * 3
    assert float(buffer.priorities[1:].max()) == float(largest)


@pytest.mark.parametrize("before", [0, 3, 8])
@pytest.mark.parametrize("steps", [1, 2, 5, 6, 12])
def test_many_steps_at_once_are_so_many_single_ones(
    before: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a ring of five slots: up to its end, around it, and several times around."""
    monkeypatch.setattr(sum_tree, "WIDTH", 2)
    monkeypatch.setattr(sum_tree, "TOP", 3)
    arguments: Any = {"device": "cpu", "n_envs": 3, "store_next_legal": True}
    buffers = [PrioritizedReplayBuffer(15, PAIR, spaces.Discrete(5), **arguments) for _ in "ab"]
    rng = np.random.default_rng(steps)
    if before:
        add_steps(tuple(buffers), before, rng, ends=0.3)
    for buffer in buffers:
        if before:
            buffer.update_priorities(torch.arange(9), torch.arange(1.0, 10.0))
    singles: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers[0], "add_batch", lambda *values: singles.append(values))
        add_steps((buffers[0],), steps, rng, ends=0.3)
    for values in singles:
        buffers[0].add_batch(*values)
    block = [
        {key: torch.stack([each[key] for each in column]) for key in column[0]}
        if isinstance(column[0], dict)
        else torch.stack(column)
        for column in zip(*singles, strict=True)
    ]
    buffers[1].add_batch(*block, steps=steps)  # type: ignore[arg-type]
    assert buffers[0].num_transitions == buffers[1].num_transitions
    assert torch.equal(buffers[0].priorities, buffers[1].priorities)
    largest = 9.0**0.6 if before else 1.0
    newest = [(before + step) % 5 for step in range(steps)]
    assert buffers[1].priorities[newest].numpy() == pytest.approx(largest)
    for _ in range(3):
        drawn = buffers[0].sample(16)
        assert_same(drawn, buffers[1].sample(16))
        for buffer in buffers:
            buffer.update_priorities(drawn.indices, drawn.rewards[:, 0])


@pytest.mark.parametrize("shared", [False, True])
def test_transitions_are_those_of_the_uniform_buffer(shared: bool) -> None:
    """n-step returns, ends and masks: the same numbers at the same indices."""
    arguments: Any = {"device": "cpu", "n_envs": 3, "n_steps": 3, "gamma": 0.9}
    arguments |= {"optimize_memory_usage": shared, "store_next_legal": True}
    buffers = [
        kind(15, PAIR, spaces.Discrete(5), **arguments)
        for kind in (TensorReplayBuffer, PrioritizedReplayBuffer)
    ]
    add_steps(tuple(buffers), 8, np.random.default_rng(0), ends=0.3)
    drawn = buffers[1].sample(20)
    again = buffers[0]._get_samples(drawn.indices)
    assert_same(drawn._replace(weights=None, indices=None), again)
    assert buffers[1].memory_bytes() == buffers[0].memory_bytes() + SumTree.num_bytes(15)


# ------------------------------------------------------------------ saving


@pytest.mark.parametrize("steps", [0, 3, 7])
@pytest.mark.parametrize("way", ["state_dict", "pickle", "deepcopy"])
def test_a_restored_buffer_goes_on_the_same(way: str, steps: int) -> None:
    def make() -> PrioritizedReplayBuffer:
        return PrioritizedReplayBuffer(
            15, PAIR, spaces.Discrete(5), "cpu", n_envs=3, beta="lin_0.2_1.0_9", seed=11
        )

    buffer, other, rng = make(), make(), np.random.default_rng(steps)
    add_steps((other,), 4, rng, ends=0.5)
    seen = add_steps((buffer,), steps, rng, ends=0.5) if steps else None
    if steps:
        buffer.update_priorities(buffer.sample(8).indices, torch.linspace(-3, 9, 8))
    again = restored(buffer, way, other)
    assert again.num_transitions == buffer.num_transitions
    for _ in range(3):
        seen = add_steps((buffer, again), 1, rng, ends=0.5, start=seen)
        drawn = buffer.sample(8)
        assert_same(drawn, again.sample(8))
        for each in (buffer, again):
            each.update_priorities(drawn.indices, drawn.rewards[:, 0])
        assert torch.equal(buffer.priorities, again.priorities)


def test_the_state_of_a_uniform_buffer_is_refused() -> None:
    buffer = PrioritizedReplayBuffer(15, PAIR, spaces.Discrete(5), "cpu", n_envs=3)
    uniform = TensorReplayBuffer(15, PAIR, spaces.Discrete(5), "cpu", n_envs=3)
    add_steps((buffer, uniform), 2, np.random.default_rng(0), ends=0.5)
    with pytest.raises(ValueError, match=r"^replay buffer: got \[\], need .*'priorities'"):
        buffer.load_state_dict(*uniform.state_dict())
    with pytest.raises(ValueError, match=r"^replay buffer: got .*'priorities'"):
        uniform.load_state_dict(*buffer.state_dict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 1.5}, r"alpha must lie in \[0, 1\]"),
        ({"beta": 2.0}, r"beta: values must lie in \[0, 1\]"),
        ({"beta": "lin_0.4_1"}, "beta: steps is missing: the number of updates"),
        (
            {"beta": {"schedule": "linear", "init": 0.4, "final": 1.0, "unit": "progress"}},
            "beta: must be a schedule of updates",
        ),
        ({"priority_eps": 0.0}, r"priority_eps must lie in \(0"),
    ],
)
def test_bad_arguments(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        numbers(2, 2, **arguments)
    assert "\n" not in str(error.value)


# ------------------------------------------------------------------ in a model


def test_an_update_weighs_the_losses_and_hands_over_the_errors() -> None:
    model = make_model(replay_buffer_class=PrioritizedReplayBuffer).learn(64)
    buffer: Any = model.replay_buffer
    buffer.update_priorities(torch.arange(64), torch.arange(64.0))
    model.policy.set_training_mode(False)
    drawn = buffer.sample(32)
    terms = model._compute_loss(drawn)
    errors = (terms.predicted - terms.target).abs()
    huber = torch.where(errors < 1, errors**2 / 2, errors - 0.5)
    assert not torch.allclose(drawn.weights, torch.ones(()))
    torch.testing.assert_close(terms.loss, (drawn.weights * huber).mean())
    buffer.num_batches_drawn -= 1  # the same batch again
    model.train(1, 32)
    torch.testing.assert_close(
        buffer.priorities.flatten()[drawn.indices],
        ((errors.detach().double() + 1e-6) ** 0.6),
    )


def test_nothing_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = numbers(8, 4)
    forbid_waiting(monkeypatch)
    drawn = buffer.sample(16)
    buffer.update_priorities(drawn.indices, drawn.rewards[:, 0])
    add_number(buffer, 3.0)


@pytest.mark.learning
def test_learns_the_toy() -> None:
    assert score(trained(replay_buffer_class=PrioritizedReplayBuffer)) > THRESHOLD
