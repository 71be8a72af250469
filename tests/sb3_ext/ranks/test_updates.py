"""Updates of several ranks against those of one process with the whole batch."""

import pytest

from sb3_ext.replay.buffers import TensorReplayBufferSamples
from tests.sb3_ext.ddqn.helpers import FixedBatches, make_model, random_batch, weights
from tests.sb3_ext.ranks.processes import on_ranks

UPDATES, BATCH = 20, 32


def part_of(batch, rank, size):
    rows = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    return TensorReplayBufferSamples(*[None if each is None else each[rows] for each in batch])


def learner(optimizer, clip, seed=0):
    return make_model(
        policy_kwargs={"net_arch": [32, 16], "optimizer_class": optimizer},
        learning_rate=1e-3 if optimizer == "adam" else 0.1,
        max_grad_norm=clip,
        target_update_interval=5,
        seed=seed,
    )


def trajectory(model, rank=0, size=1):
    """The weights after each update on a part of the same batches."""
    batches = [part_of(random_batch(n, BATCH, masked=True), rank, size) for n in range(UPDATES)]
    model.replay_buffer = FixedBatches(batches)
    result = []
    for _ in range(UPDATES):
        model.train(1, BATCH)
        result.append(weights(model))
    return result


def largest_difference(first, second):
    return max(
        float((one[name] - other[name]).abs().max())
        for one, other in zip(first, second, strict=True)
        for name in one
    )


@pytest.mark.parametrize(
    ("optimizer", "size", "clip"), [("adam", 2, 1000.0), ("adam", 4, 0.05), ("sgd", 2, 0.05)]
)
def test_ranks_with_parts_of_a_batch_equal_one_process_with_all_of_it(optimizer, size, clip):
    """To 1e-6 for every weight after each of 20 updates; and among them to the bit."""

    def work(ranks):
        model = learner(optimizer, clip, seed=ranks.rank)  # other weights in each rank
        model.join(ranks)
        return trajectory(model, ranks.rank, size)

    whole = trajectory(learner(optimizer, clip))
    first, *others = on_ranks(work, size)
    assert largest_difference(whole, first) <= 1e-6
    assert all(largest_difference(first, other) == 0.0 for other in others)
