"""Schedules attached to stock SB3 algorithms."""

import gymnasium
import pytest
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.schedules.schedules import Exponential, Linear, bind_schedules, of_progress

LEARNING_RATE = Exponential(1e-2, 1e-4, 0.97)
EXPLORATION = Linear(1.0, 0.1, 400, unit="transitions")
SMALL = {"device": "cpu", "seed": 0, "buffer_size": 2000}


def make_dqn(algorithm=DQN, **overrides):
    arguments = {"learning_starts": 20, "batch_size": 8, "train_freq": 4, **SMALL, **overrides}
    kwargs = {"net_arch": [8]}
    return algorithm("MlpPolicy", gymnasium.make("CartPole-v1"), policy_kwargs=kwargs, **arguments)


class RecordSteps(BaseCallback):
    """Learning rates that each optimiser step used, and exploration rates of each action."""

    def __init__(self):
        super().__init__()
        self.rates, self.exploration = [], []

    def _on_training_start(self):
        self.handle = self.model.policy.optimizer.register_step_post_hook(
            lambda used, *_: self.rates.append(used.param_groups[0]["lr"])
        )

    def _on_step(self):
        self.exploration.append(self.model.exploration_rate)
        return True

    def _on_training_end(self):
        self.handle.remove()


@pytest.mark.parametrize(("algorithm", "gradient_steps"), [(DQN, 1), (QRDQN, 3)])
def test_rates_advance_at_every_update_and_transition(algorithm, gradient_steps, tmp_path):
    """In a second `learn` and in a loaded model too; SB3's own schedules jump back there."""
    model = make_dqn(algorithm, gradient_steps=gradient_steps)
    bind_schedules(model, learning_rate=LEARNING_RATE, exploration_rate=EXPLORATION)
    record = RecordSteps()
    model.learn(100, callback=record)
    model.learn(50, callback=record, reset_num_timesteps=False)
    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip", env=gymnasium.make("CartPole-v1"), device="cpu")
    assert loaded.exploration_rate == model.exploration_rate
    bind_schedules(loaded, learning_rate=LEARNING_RATE, exploration_rate=EXPLORATION)
    loaded.learn(50, callback=record, reset_num_timesteps=False)

    assert len(record.rates) == loaded._n_updates >= 43 * gradient_steps
    assert record.rates == [LEARNING_RATE(update) for update in range(len(record.rates))]
    # The callback of step n sees the rate that chose the action of step n.
    assert record.exploration == [EXPLORATION(count) for count in range(len(record.exploration))]
    assert loaded.exploration_rate == EXPLORATION(loaded.num_timesteps)


def test_a_schedule_of_the_progress():
    model = make_dqn()
    bind_schedules(model, exploration_rate="lin_1.0")
    model.learn(100)
    assert model.exploration_rate == pytest.approx(0.0)
    rate = of_progress(Linear(1e-3, 0.0, unit="progress"))
    assert rate(0.25) == pytest.approx(2.5e-4)
    on_policy = PPO("MlpPolicy", "CartPole-v1", learning_rate=rate, n_steps=32, batch_size=32)
    on_policy.learn(64)
    assert on_policy.policy.optimizer.param_groups[0]["lr"] == 0.0


@pytest.mark.parametrize(
    ("make", "rates", "field"),
    [
        (make_dqn, {"learning_rate": "lin_1e-3_-1e-3"}, "learning_rate"),
        (
            lambda: SAC("MlpPolicy", gymnasium.make("Pendulum-v1"), **SMALL),
            {"exploration_rate": 0.1},
            "exploration_rate",
        ),
        (lambda: PPO("MlpPolicy", "CartPole-v1"), {"learning_rate": 0.1}, "model"),
    ],
)
def test_what_cannot_be_bound_is_named(make, rates, field):
    with pytest.raises((TypeError, ValueError), match=f"^{field}") as error:
        bind_schedules(make(), **rates)
    assert "\n" not in str(error.value)
