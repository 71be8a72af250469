"""Prioritised replay: draws against plain Python, weights by hand, saving, learning."""

import copy

import numpy as np
import pytest
import torch

from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from tests.fakes import forbid_waiting
from tests.sb3_ext.helpers import make_model
from tests.sb3_ext.replay.helpers import NUMBER, add_numbers, assert_same, make, play


def numbers(slots, rows, **arguments):
    """A buffer of `rows` that is filled with a slot for each of `slots`; more keep it so."""
    buffer = make(PrioritizedReplayBuffer, rows, slots, NUMBER, **arguments)
    for slot in range(slots):
        add_number(buffer, float(slot))
    return buffer


def add_number(buffer, number):
    seen = [number] * buffer.n_envs
    add_numbers(buffer, seen, seen, seen)


def test_draws_are_those_of_a_plain_list():
    """Whole numbers, whose sums are exact in every order, with zeros."""
    rng = np.random.default_rng(0)
    for size in (1, 63, 64, 65, 300):
        buffer = numbers(size, 1, alpha=1.0, priority_eps=1e-300)
        plain = rng.integers(0, 4, size)
        plain[rng.integers(size)] = 5
        places = torch.from_numpy(rng.permutation(size))
        for part in places.chunk(3):
            buffer.update_priorities(part, torch.from_numpy(plain)[part])
        sums = plain.cumsum()
        buffer.set_seed(size)
        source = torch.Generator().manual_seed(size)
        coins = torch.rand(500, generator=source, dtype=torch.float64).numpy()
        masses = (np.arange(500) + coins) / 500 * sums[-1]
        expected = np.searchsorted(sums, masses, side="right")
        assert buffer.sample(500).indices.tolist() == expected.tolist()


def test_no_rounding_leads_to_a_place_of_probability_0():
    size, rng = 5_000, np.random.default_rng(0)
    buffer = numbers(size, 1, alpha=1.0, priority_eps=1e-300)
    values = np.where(rng.random(size) < 0.5, 0.0, 10.0 ** rng.uniform(-12, 12, size))
    buffer.update_priorities(torch.arange(size), torch.from_numpy(values))
    drawn = buffer.sample(50_000)
    assert (buffer.priorities.flatten()[drawn.indices] > 1e-300).all()


def test_draws_and_weights_by_hand():
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


def test_alpha_and_the_first_priority():
    buffer = numbers(3, 1, alpha=0.5, priority_eps=1e-9)
    buffer.update_priorities(torch.tensor([0, 1]), torch.tensor([9.0, 0.0]))
    assert buffer.priorities[:, 0].tolist() == pytest.approx([3.0, 1e-9**0.5, 1.0])
    add_number(buffer, 7.0)  # in the place of the oldest, with the largest priority so far
    add_number(buffer, 8.0)
    assert buffer.priorities[:, 0].tolist() == pytest.approx([3.0, 3.0, 1.0])
    buffer.reset()
    add_number(buffer, 7.0)
    assert buffer.priorities.tolist() == [[1.0]]


def test_errors_that_are_no_numbers_leave_the_sums_finite():
    buffer = numbers(3, 1)
    buffer.update_priorities(torch.tensor([0, 1, 2]), torch.tensor([torch.nan, torch.inf, 3e38]))
    assert buffer.priorities.isfinite().all()
    assert buffer.sample(64).weights.isfinite().all()


def stacked(column):
    """What many steps have of one kind as one block `[S, N, ...]`."""
    if isinstance(column[0], dict):
        return {key: stacked([each[key] for each in column]) for key in column[0]}
    return torch.stack(list(column))


@pytest.mark.parametrize(("before", "steps"), [(0, 1), (0, 12), (3, 2), (3, 5), (8, 12)])
def test_many_steps_at_once_are_so_many_single_ones(before, steps):
    """In a ring of five slots: up to its end, around it, and several times around."""
    buffers = [make(PrioritizedReplayBuffer, rows=30) for _ in "ab"]
    played = play(30, before + steps, np.random.default_rng(steps))
    for buffer in buffers:
        for step in played[:before]:
            buffer.add_batch(*step)
        if before:
            buffer.update_priorities(torch.arange(9), torch.arange(1.0, 10.0))
    for step in played[before:]:
        buffers[0].add_batch(*step)
    buffers[1].add_batch(*map(stacked, zip(*played[before:], strict=True)), steps=steps)
    assert_same(buffers[0].state_dict(), buffers[1].state_dict())
    newest = [(before + step) % 5 for step in range(steps)]
    largest = 9.0**0.6 if before else 1.0
    assert buffers[1].priorities[newest].numpy() == pytest.approx(largest)
    for _ in range(3):
        drawn = buffers[0].sample(16)
        assert_same(drawn, buffers[1].sample(16))
        for buffer in buffers:
            buffer.update_priorities(drawn.indices, drawn.rewards[:, 0])


def test_an_update_hands_over_the_errors():
    model = make_model(replay_buffer_class=PrioritizedReplayBuffer).learn(64)
    buffer = model.replay_buffer
    buffer.update_priorities(torch.arange(64), torch.arange(64.0))
    model.policy.set_training_mode(False)
    before = copy.deepcopy(buffer.state_dict())
    drawn = buffer.sample(32)
    terms = model.compute_loss(drawn)
    buffer.load_state_dict(before)  # the same batch again
    model.train(1, 32)
    errors = (terms.predicted - terms.target).abs().detach().double()
    torch.testing.assert_close(buffer.priorities.flatten()[drawn.indices], (errors + 1e-6) ** 0.6)


def test_nothing_waits_for_the_device(monkeypatch):
    buffer = numbers(8, 4)
    forbid_waiting(monkeypatch)
    drawn = buffer.sample(16)
    buffer.update_priorities(drawn.indices, drawn.rewards[:, 0])
    add_number(buffer, 3.0)
