"""One update against an implementation written out in numpy."""

import numpy as np
import pytest
import torch

from sb3_ext.checkpoints.models import training_state
from sb3_ext.networks.mlp import in_mode
from tests.sb3_ext.helpers import FixedBatches, make_model, random_batch


def layers_of(network):
    return [p.detach().double().numpy().copy() for p in network.parameters()]


def forward(layers, x):
    """Hidden layer after its ReLU and output of a network with one hidden layer."""
    hidden = np.maximum(x @ layers[0].T + layers[1], 0.0)
    return hidden, hidden @ layers[2].T + layers[3]


def reference_update(online, target, batch, gamma, clip, rate, double_q):
    """One step of gradient descent on the clipped Huber loss, derivatives by hand."""
    x, y = (value.double().numpy() for value in (batch.observations, batch.next_observations))
    rows = np.arange(len(x))
    _, next_target = forward(target, y)
    _, next_online = forward(online, y)
    chooser = (next_online if double_q else next_target).copy()
    value = np.zeros(len(x))
    for row in rows:
        allowed = np.arange(chooser.shape[1])
        if batch.next_legal is not None:
            allowed = allowed[batch.next_legal[row].numpy()]
        if len(allowed):
            value[row] = next_target[row, max(allowed, key=lambda action: chooser[row, action])]
    reward = batch.rewards[:, 0].double().numpy()
    done = batch.dones[:, 0].double().numpy()
    goal = reward + (1.0 - done) * gamma * value
    hidden, output = forward(online, x)
    action = batch.actions[:, 0].numpy()
    error = output[rows, action] - goal
    loss = np.where(np.abs(error) < 1, 0.5 * error**2, np.abs(error) - 0.5).mean()
    slope = np.zeros_like(output)
    slope[rows, action] = np.clip(error, -1, 1) / len(x)
    into_hidden = slope @ online[2] * (hidden > 0)
    gradient = [into_hidden.T @ x, into_hidden.sum(0), slope.T @ hidden, slope.sum(0)]
    norm = np.sqrt(sum((part**2).sum() for part in gradient))
    factor = min(1.0, clip / (norm + 1e-6))
    updated = [w - rate * factor * part for w, part in zip(online, gradient, strict=True)]
    return updated, float(loss)


@pytest.mark.parametrize("double_q", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("clip", [0.05, 10.0])
def test_updates_equal_numpy_ones(double_q, masked, clip):
    """Targets, masks, Huber, clipping, the step and polyak, over five updates."""
    model = make_model(
        learning_rate=0.05,
        gamma=0.9,
        tau=0.9,
        target_update_interval=2,
        max_grad_norm=clip,
        double_q=double_q,
        mask_source="environment" if masked else "none",
        policy_kwargs={"net_arch": [32], "optimizer_class": "sgd"},
    )
    batches = [random_batch(seed, masked=masked) for seed in range(5)]
    online = layers_of(model.q_net)
    target = layers_of(model.q_net_target)
    model.replay_buffer = FixedBatches(batches)
    total = 0.0
    for number, batch in enumerate(batches, start=1):
        model.train(1, 16)
        sums = training_state(model)["_sums"]
        online, loss = reference_update(online, target, batch, 0.9, clip, 0.05, double_q)
        if number % 2 == 0:
            target = [0.1 * old + 0.9 * new for old, new in zip(target, online, strict=True)]
        assert sums[0].item() == pytest.approx(total + loss, abs=1e-5)
        total += loss
        for ours, theirs in zip(layers_of(model.q_net), online, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
        for ours, theirs in zip(layers_of(model.q_net_target), target, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_discounts_of_the_buffer_replace_gamma():
    """Nothing that the network says of a terminal observation reaches the target."""
    model = make_model(gamma=0.9)
    batch = random_batch(0)
    batch.next_observations[batch.dones[:, 0] == 1] = torch.nan
    near = torch.full((16, 1), 0.9)
    far = torch.full((16, 1), 0.9**3)
    by_gamma = model.compute_target(batch)
    assert torch.allclose(model.compute_target(batch._replace(discounts=near)), by_gamma)
    by_three = model.compute_target(batch._replace(discounts=far))
    going_on = batch.dones[:, 0] == 0
    ratio = (by_three - batch.rewards[:, 0]) / (by_gamma - batch.rewards[:, 0])
    assert torch.allclose(ratio[going_on], torch.tensor(0.81), atol=1e-4)
    assert torch.equal(by_three[~going_on], batch.rewards[~going_on, 0])


@pytest.mark.parametrize(
    ("unit", "interval", "expected"),
    [("updates", 10, 4), ("transitions", 100, 3), ("transitions", 1, 48)],
)
def test_target_updates_are_counted_in_the_unit_asked_for(unit, interval, expected):
    # 48 parallel steps of 8 rows: 384 transitions; updates after all but the first 8: 40.
    model = make_model(target_update_unit=unit, target_update_interval=interval).learn(384)
    assert model.num_updates == 40
    assert model.num_target_updates == expected


def test_b9_batch_norm_target_and_next_observations_leave_statistics_alone():
    """Targets use running statistics, and only sampled observations move those of the online net.

    One more thing that the original got wrong at the same place: B13, rollouts in training mode.
    """
    model = make_model(policy_kwargs={"net_arch": [16, "b"]}, target_update_interval=10**6)
    statistics = model.batch_norm_stats[0]
    model.learn(64)  # the warm-up, collection only
    assert torch.equal(statistics, torch.zeros_like(statistics))
    batch = random_batch(0)
    with in_mode(model.policy, training=True):
        target = model.compute_target(batch)
        assert torch.equal(statistics, torch.zeros_like(statistics))
        again = model.compute_target(batch._replace(next_observations=batch.next_observations[:1]))
        assert torch.allclose(again[0], target[0])
    model.learn(80, reset_num_timesteps=False)
    assert not torch.equal(statistics, torch.zeros_like(statistics))
    assert torch.equal(model.batch_norm_stats_target[0], torch.zeros_like(statistics))
    assert not model.q_net_target.training
    model.tau = 0.9  # the same weight moves statistics
    expected = 0.9 * statistics
    model.update_target()
    assert torch.allclose(model.batch_norm_stats_target[0], expected)


@pytest.mark.parametrize("mode", [True, False])
def test_b20_b21_modes_are_restored_even_after_an_error(mode):
    model = make_model(policy_kwargs={"net_arch": [32, "b"]}).learn(100)
    model.policy.set_training_mode(mode)

    def fail(batch):
        assert model.q_net.training
        raise RuntimeError("in the middle of an update")

    model.compute_loss = fail
    with pytest.raises(RuntimeError, match="in the middle"):
        model.train(1, 8)
    assert model.policy.training is model.q_net.training is mode

    def fail_too(*_):
        assert not model.q_net.training
        raise RuntimeError("in the middle of a rollout")

    model.explorer = fail_too
    with pytest.raises(RuntimeError, match="rollout"):
        model.learn(8, reset_num_timesteps=False)
    assert model.q_net.training is mode
    model.predict(np.zeros((1, 9), np.float32), deterministic=True)
    assert model.q_net.training is mode


# After the warm-up of 64: 320 transitions * 1.5 / 32 = 15 updates; one update a transition.
@pytest.mark.parametrize(
    ("arguments", "calls", "updates"),
    [
        ({"replay_ratio": 1.5}, [64 + 160, 160], 15),
        ({"gradient_steps": -1, "train_freq": 2}, [64 + 32], 32),
    ],
)
def test_replay_ratio_counts_samples_per_transition(arguments, calls, updates):
    model = make_model(**arguments)
    for transitions in calls:
        model.learn(transitions, reset_num_timesteps=False)
    assert model.num_updates == updates
