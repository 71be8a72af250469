"""Fitting a model to a replay buffer, without an environment."""

import numpy as np
import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.callbacks.helpers import Diary, keep_logs
from tests.sb3_ext.ddqn.helpers import make_model, same, weights
from tests.sb3_ext.ddqn.test_learning import THRESHOLD, score


def collected(folder, transitions=512, horizon=4, **arguments):
    """The file of a buffer that random play has filled, and a model that has seen nothing of it."""
    env = TensorVecEnv(ToyVectorEnv(32, horizon=horizon))
    settings = {"learning_rate": 4e-3, "gamma": 0.8, "batch_size": 64}
    settings |= {"target_update_interval": 25, "buffer_size": 20_000, **arguments}
    make_model(env, **settings).save(folder / "model.zip")
    player = make_model(env, **{**settings, "learning_starts": 1 << 40}).learn(transitions)
    player.save_replay_buffer(folder / "buffer.pkl")
    return folder / "buffer.pkl"


def fresh(folder):
    model = DDQN.load(folder / "model.zip")
    assert model.env is None
    return model


@pytest.mark.learning
@pytest.mark.parametrize("kind", [None, PrioritizedReplayBuffer])
def test_learns_from_a_file_and_not_from_random_rewards(tmp_path, kind):
    """A perfect player scores 1; untrained ones 0.45 to 0.64 (`test_learning`)."""
    file = collected(tmp_path, 6_400, replay_buffer_class=kind)
    assert score(fresh(tmp_path).fit(file, updates=250)) > THRESHOLD
    control = fresh(tmp_path)
    control.load_replay_buffer(file)
    buffer = control.replay_buffer
    rewards = buffer.state_dict()["fields"]["rewards"]
    order = torch.randperm(rewards.numel(), generator=torch.Generator().manual_seed(0))
    rewards.copy_(rewards.flatten()[order].view_as(rewards))
    assert score(control.fit(updates=250)) < 0.75


def test_callbacks_see_updates_and_logs_count_them(tmp_path):
    file = collected(tmp_path)
    model, diary = fresh(tmp_path), Diary()
    kept = keep_logs(model)
    model.fit(file, updates=30, callback=diary, log_interval=10)
    assert (diary.n_calls, model.num_updates, model.num_timesteps) == (30, 30, 0)
    assert [line for line in diary.lines if line in ("before train", "after learn")] == [
        *(["before train"] * 30),
        "after learn",
    ]
    assert len(kept.dumps) >= 3
    assert kept.dumps[0]["train/n_updates"] == 10
    assert np.isfinite(kept.dumps[0]["train/loss"])
    model.fit(updates=30, callback=Diary(most=5))
    assert model.num_updates == 35


def test_fits_are_the_updates_of_learn(tmp_path):
    """The same weights as by `train`, and a second fit goes on; schedules advance."""
    file = collected(tmp_path, learning_rate="lin_1e-2_1e-3_20")
    once, twice, plain = (fresh(tmp_path) for _ in range(3))
    once.fit(file, updates=20)
    twice.fit(file, updates=8).fit(updates=12)
    assert same(weights(once), weights(twice))
    assert once.policy.optimizer.param_groups[0]["lr"] == pytest.approx(1e-2 - 9e-3 * 19 / 20)
    plain.load_replay_buffer(file)
    plain.train(20, 64)
    assert same(weights(once), weights(plain))
    assert not same(weights(once), weights(fresh(tmp_path)))


def test_what_cannot_be_fitted_is_told_in_one_line(tmp_path):
    file = collected(tmp_path)
    model = fresh(tmp_path)
    with pytest.raises(ValueError, match="the buffer is empty"):
        model.fit(updates=1)
    other = make_model(TensorVecEnv(ToyVectorEnv(8, num_actions=5)))
    with pytest.raises(ValueError, match=r"^buffer: has another observation_space"):
        other.fit(file, updates=1)
    unit = make_model(target_update_unit="transitions")
    with pytest.raises(ValueError, match=r"^target_update_unit: must be 'updates' for fit"):
        unit.fit(file, updates=1)
