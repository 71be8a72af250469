"""Learning from play and from files: a threshold, its baseline, and controls that must fail."""

import numpy as np
import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from tests.fakes import MaskedToy, ToyVectorEnv
from tests.sb3_ext.helpers import Diary, equal, keep_logs, make_model, weights

# Mean reward per step of greedy play; a perfect player has 1, random legal play 0.43. Trained as
# below, seeds 0 and 1 gave 1.0 in every variant, and 0.45 to 0.64 untrained.
THRESHOLD = 0.95


def score(model, environment=ToyVectorEnv):
    env = TensorVecEnv(environment(256, horizon=4))
    env.seed(1234)
    observation = env.reset()
    total = 0.0
    for _ in range(20):
        masks = env.action_masks() if env.has_attr("action_masks") else None
        actions, _ = model.predict(observation, deterministic=True, action_masks=masks)
        observation, rewards, _, _ = env.step(actions)
        total += float(rewards.mean())
    return total / 20


def untrained(environment=ToyVectorEnv, **arguments):
    settings = {"learning_rate": 4e-3, "gamma": 0.8, "batch_size": 64, "buffer_size": 20_000}
    settings |= {"target_update_interval": 25, **arguments}
    return make_model(TensorVecEnv(environment(32, horizon=4)), **settings)


def trained(**arguments):
    return untrained(**{"exploration_rate": "lin_1.0_0.1_100", **arguments}).learn(6_400)


@pytest.mark.learning
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"environment": MaskedToy},
        {"double_q": False, "dueling": True},
        {"n_steps": 3, "loss": "mse"},
        {"replay_ratio": 2.0, "autocast": True, "tau": 0.05, "target_update_interval": 1},
        {"exploration_strategy": "boltzmann", "exploration_rate": "lin_1.0_0.05_100"},
    ],
    ids=str,
)
def test_learns_the_toy(arguments):
    assert score(trained(**arguments), arguments.get("environment", ToyVectorEnv)) > THRESHOLD


@pytest.mark.learning
def test_control_that_cannot_learn_stays_below():
    assert score(trained(learning_rate=0.0)) < 0.75


def collected(folder, transitions=512, **arguments):
    """The file of a buffer that random play has filled, and a model that has seen nothing of it."""
    untrained(**arguments).save(folder / "model.zip")
    player = untrained(**arguments, learning_starts=1 << 40).learn(transitions)
    player.save_replay_buffer(folder / "buffer.pkl")
    return folder / "buffer.pkl"


def fresh(folder):
    model = DDQN.load(folder / "model.zip")
    assert model.env is None
    return model


@pytest.mark.learning
@pytest.mark.parametrize("kind", [None, PrioritizedReplayBuffer])
def test_learns_from_a_file_and_not_from_random_rewards(tmp_path, kind):
    """A perfect player scores 1; untrained ones 0.45 to 0.64."""
    file = collected(tmp_path, 6_400, replay_buffer_class=kind)
    assert score(fresh(tmp_path).fit(file, updates=250)) > THRESHOLD
    control = fresh(tmp_path)
    control.load_replay_buffer(file)
    rewards = control.replay_buffer.state_dict()["fields"]["rewards"]
    order = torch.randperm(rewards.numel(), generator=torch.Generator().manual_seed(0))
    rewards.copy_(rewards.flatten()[order].view_as(rewards))
    assert score(control.fit(updates=250)) < 0.75


def test_callbacks_see_updates_and_logs_count_them(tmp_path):
    """A schedule of the progress goes over the updates of the fit."""
    file = collected(tmp_path, learning_rate="lin_1e-2_1e-3")
    model = fresh(tmp_path)
    diary = Diary()
    kept = keep_logs(model)
    model.fit(file, updates=30, callback=diary, log_interval=10)
    assert (diary.n_calls, model.num_updates, model.num_timesteps) == (30, 30, 0)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(1e-2 - 9e-3 * 29 / 30)
    told = [line for line in diary.lines if line in ("before train", "after learn")]
    assert told == [*["before train"] * 30, "after learn"]
    assert kept.values("train/n_updates")[:3] == [10, 20, 30]
    assert np.isfinite(kept.values("train/loss")).all()
    model.fit(updates=30, callback=Diary(most=5))
    assert model.num_updates == 35


def test_fits_are_the_updates_of_learn(tmp_path):
    """The same weights as by `train`, and a second fit goes on; schedules advance."""
    file = collected(tmp_path, learning_rate="lin_1e-2_1e-3_20")
    once, twice, plain = (fresh(tmp_path) for _ in range(3))
    once.fit(file, updates=20)
    twice.fit(file, updates=8).fit(updates=12)
    assert equal(weights(once), weights(twice))
    assert once.policy.optimizer.param_groups[0]["lr"] == pytest.approx(1e-2 - 9e-3 * 19 / 20)
    plain.load_replay_buffer(file)
    plain.train(20, 64)
    assert equal(weights(once), weights(plain))
    assert not equal(weights(once), weights(fresh(tmp_path)))


def test_what_cannot_be_fitted_is_told_in_one_line(tmp_path):
    file = collected(tmp_path)
    other = TensorVecEnv(ToyVectorEnv(8, num_actions=5))
    make_model(mask_source="none").learn(80).save_replay_buffer(tmp_path / "without")
    masked = make_model(mask_source="environment")
    for model, given, message in (
        (masked, tmp_path / "without.pkl", "store_next_legal: False in this buffer"),
        (fresh(tmp_path), None, "the buffer is empty"),
        (make_model(other), file, "^buffer: Observation spaces do not match: "),
        (untrained(target_update_unit="transitions"), file, "must be 'updates' for fit"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(given, updates=1)
    masked.learn(80)
