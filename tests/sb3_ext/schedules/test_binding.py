"""Schedules attached to stock SB3 algorithms."""

from __future__ import annotations

import copy
import pickle

import gymnasium
import pytest
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import LinearSchedule

from sb3_ext.schedules.binding import BoundSchedule, bind_schedules, rebind_schedules
from sb3_ext.schedules.schedules import Constant, Exponential, Inverse, Linear

LEARNING_RATE = Exponential(1e-2, 1e-4, 0.97)
EXPLORATION = Linear(1.0, 0.1, 400, unit="transitions")


def small():
    # A new dict each time: SAC writes into the policy_kwargs that it is given.
    return {"policy_kwargs": {"net_arch": [8]}, "device": "cpu", "seed": 0, "buffer_size": 2000}


def make_dqn(algorithm=DQN, **overrides):
    arguments = {"learning_starts": 20, "batch_size": 8, "train_freq": 4, **small(), **overrides}
    return algorithm("MlpPolicy", gymnasium.make("CartPole-v1"), **arguments)


def optimizer_rate(model):
    return model.policy.optimizer.param_groups[0]["lr"]


class RecordSteps(BaseCallback):
    """Learning rates that each optimiser step used, and exploration rates of each action."""

    def __init__(self, optimizer=None):
        super().__init__()
        self.rates, self.exploration, self.chosen = [], [], optimizer

    def _on_training_start(self):
        optimizer = self.chosen or self.model.policy.optimizer
        self.handle = optimizer.register_step_post_hook(
            lambda used, *_: self.rates.append(used.param_groups[0]["lr"])
        )

    def _on_step(self):
        self.exploration.append(getattr(self.model, "exploration_rate", None))
        return True

    def _on_training_end(self):
        self.handle.remove()


@pytest.mark.parametrize("algorithm", [DQN, QRDQN])
@pytest.mark.parametrize("gradient_steps", [1, 3])
def test_rates_advance_at_every_update_and_transition(algorithm, gradient_steps):
    model = make_dqn(algorithm, gradient_steps=gradient_steps)
    bind_schedules(model, learning_rate=LEARNING_RATE, exploration_rate=EXPLORATION)
    record = RecordSteps()
    model.learn(200, callback=record)

    assert len(record.rates) == model._n_updates == 45 * gradient_steps
    assert record.rates == [LEARNING_RATE(update) for update in range(len(record.rates))]
    # The callback of step n sees the rate that chose the action of step n.
    assert record.exploration == [EXPLORATION(count) for count in range(200)]
    assert model.exploration_rate == EXPLORATION(200)


@pytest.mark.parametrize("reset", [True, False])
def test_rates_go_on_in_a_second_learn(reset):
    """SB3's own schedules jump back here; so does its count of transitions when it is reset."""
    model = make_dqn()
    bind_schedules(model, learning_rate=LEARNING_RATE, exploration_rate=EXPLORATION)
    model.learn(200)
    updates = model._n_updates
    record = RecordSteps()
    model.learn(200, callback=record, reset_num_timesteps=reset)

    assert model.num_timesteps == (200 if reset else 400)
    assert record.rates == [LEARNING_RATE(updates + step) for step in range(len(record.rates))]
    assert record.exploration == [EXPLORATION(200 + count) for count in range(200)]
    assert model.exploration_rate == pytest.approx(0.1)


def test_learning_rate_by_transitions_goes_on_after_a_reset_before_training_starts():
    schedule = Linear(1e-2, 1e-3, 400, unit="transitions")
    model = make_dqn()
    bind_schedules(model, learning_rate=schedule)
    model.learn(100)
    # The counter has passed its old value when the learning rate is asked for again.
    model.learning_starts = 150
    record = RecordSteps()
    model.learn(200, callback=record)
    assert record.rates[0] == schedule(100 + 152)
    assert record.rates[-1] == schedule(100 + 200)


def test_a_stock_model_does_jump_back():
    """The control: without bound schedules the second learn starts the exploration again."""
    model = make_dqn(exploration_fraction=1.0)
    model.learn(200)
    assert model.exploration_rate == pytest.approx(0.05)
    record = RecordSteps()
    model.learn(100, callback=record)
    assert record.exploration[1] > 0.9


def test_rates_go_on_after_save_and_load(tmp_path):
    path = tmp_path / "model.zip"
    model = make_dqn()
    bind_schedules(model, learning_rate=LEARNING_RATE, exploration_rate=EXPLORATION)
    model.learn(200)
    model.save(path)

    loaded = DQN.load(path, env=gymnasium.make("CartPole-v1"), device="cpu")
    updates = loaded._n_updates
    assert updates == model._n_updates > 0
    rebind_schedules(loaded)
    assert optimizer_rate(loaded) == LEARNING_RATE(updates)
    assert loaded.exploration_rate == model.exploration_rate == EXPLORATION(200)
    record = RecordSteps()
    loaded.learn(100, callback=record)
    assert record.rates == [LEARNING_RATE(updates + step) for step in range(len(record.rates))]
    assert record.exploration == [EXPLORATION(200 + count) for count in range(100)]
    # The loaded model's schedules are its own.
    assert model.exploration_rate == EXPLORATION(200)


@pytest.mark.parametrize("only", ["learning_rate", "exploration_rate"])
def test_training_a_loaded_model_without_binding_raises(tmp_path, only):
    path = tmp_path / "model.zip"
    model = make_dqn()
    bind_schedules(model, **{only: Constant(0.01)})
    model.learn(50)
    model.save(path)
    loaded = DQN.load(path, env=gymnasium.make("CartPole-v1"), device="cpu")
    loaded.predict(loaded.env.reset())
    with pytest.raises(RuntimeError, match="rebind_schedules"):
        loaded.learn(50)


def test_a_copied_schedule_does_not_follow_the_first_model():
    model = make_dqn()
    bind_schedules(model, learning_rate=LEARNING_RATE)
    copied = copy.deepcopy(model.bound_schedules["learning_rate"])
    with pytest.raises(RuntimeError, match="rebind_schedules"):
        copied(0.5)


def test_every_optimizer_of_sac_follows():
    model = SAC(
        "MlpPolicy", gymnasium.make("Pendulum-v1"), learning_starts=5, batch_size=4, **small()
    )
    bind_schedules(model, learning_rate=LEARNING_RATE)
    for optimizer in (model.actor.optimizer, model.critic.optimizer, model.ent_coef_optimizer):
        before = model._n_updates
        record = RecordSteps(optimizer)
        model.learn(20, callback=record, reset_num_timesteps=False)
        assert record.rates == [LEARNING_RATE(before + i) for i in range(len(record.rates))]
        assert len(record.rates) >= 15


def test_delayed_actor_of_td3_has_the_critics_clock():
    model = TD3(
        "MlpPolicy",
        gymnasium.make("Pendulum-v1"),
        learning_starts=4,
        batch_size=4,
        train_freq=4,
        gradient_steps=4,
        policy_delay=2,
        **small(),
    )
    bind_schedules(model, learning_rate=LEARNING_RATE)
    record = RecordSteps(model.critic.optimizer)
    model.learn(20, callback=record)
    assert record.rates == [LEARNING_RATE(update) for update in range(16)]
    record = RecordSteps(model.actor.optimizer)
    model.learn(8, callback=record)
    assert record.rates == [LEARNING_RATE(update) for update in (17, 19)]


def test_progress_follows_sb3_or_a_fixed_length():
    fixed = make_dqn()
    bind_schedules(fixed, exploration_rate=Linear(1.0, 0.0, unit="progress"), total_timesteps=400)
    own = make_dqn()
    bind_schedules(own, exploration_rate=Linear(1.0, 0.0, unit="progress"))
    for model in (fixed, own):
        model.learn(100)
    assert fixed.exploration_rate == pytest.approx(0.75)
    assert own.exploration_rate == pytest.approx(0.0)
    fixed.learn(100)
    assert fixed.exploration_rate == pytest.approx(0.5)
    fixed.learn(400)
    assert fixed.exploration_rate == 0.0


def test_only_exploration_keeps_the_models_learning_rate():
    model = make_dqn(learning_rate=LinearSchedule(1e-2, 1e-3, 1.0))
    bind_schedules(model, exploration_rate=0.3)
    model.learn(100)
    assert optimizer_rate(model) == pytest.approx(1e-3)
    assert model.exploration_rate == 0.3
    model = make_dqn(learning_rate=5e-3)
    bind_schedules(model, exploration_rate=0.3)
    model.learn(100)
    assert optimizer_rate(model) == 5e-3


def test_a_second_call_replaces_one_and_keeps_the_other():
    model = make_dqn()
    bind_schedules(model, learning_rate=LEARNING_RATE, exploration_rate=0.2)
    bind_schedules(model, learning_rate=Inverse(1e-2, 1.0))
    assert optimizer_rate(model) == 1e-2
    assert model.exploration_rate == 0.2
    record = RecordSteps()
    model.learn(60, callback=record)
    assert record.rates == [Inverse(1e-2, 1.0)(update) for update in range(len(record.rates))]


def test_a_schedule_given_to_the_constructor_is_attached():
    model = make_dqn(learning_rate=LEARNING_RATE)
    bind_schedules(model, exploration_rate=0.2)
    record = RecordSteps()
    model.learn(60, callback=record)
    assert record.rates == [LEARNING_RATE(update) for update in range(len(record.rates))]


def test_a_learning_rate_that_is_a_tensor_is_written_in_place():
    """A captured CUDA graph reads the rate from one address."""
    model = make_dqn()
    rate = torch.tensor(0.5)
    model.policy.optimizer.param_groups[0]["lr"] = rate
    bind_schedules(model, learning_rate=0.25)
    assert optimizer_rate(model) is rate
    assert rate.item() == 0.25


def test_state_dict_carries_the_clock():
    model = make_dqn()
    bind_schedules(model, exploration_rate=EXPLORATION)
    model.learn(100)
    model.learn(100)
    state = model.bound_schedules["exploration_rate"].state_dict()
    other = make_dqn()
    bind_schedules(other, exploration_rate=EXPLORATION)
    other.bound_schedules["exploration_rate"].load_state_dict(state)
    other.learn(100)
    assert other.exploration_rate == EXPLORATION(300)
    clock = other.bound_schedules["exploration_rate"]
    for wrong in ({}, {**state, "more": 1}):
        with pytest.raises(ValueError, match="state needs the key clock alone"):
            clock.load_state_dict(wrong)


def test_unbound_progress_schedule_works_in_an_on_policy_algorithm():
    schedule = BoundSchedule(Linear(1e-3, 0.0, unit="progress"))
    assert pickle.loads(pickle.dumps(schedule))(0.25) == pytest.approx(2.5e-4)
    model = PPO("MlpPolicy", "CartPole-v1", learning_rate=schedule, n_steps=32, batch_size=32)
    model.learn(64)
    assert optimizer_rate(model) == 0.0
    with pytest.raises(RuntimeError, match="bind_schedules"):
        BoundSchedule(LEARNING_RATE)(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs learning_rate, exploration_rate or both"),
        ({"exploration_rate": 1.5}, r"exploration_rate: values must lie in \[0, 1\]"),
        ({"learning_rate": "lin_1e-3_-1e-3"}, r"learning_rate: values must lie in \[0, inf\)"),
        ({"learning_rate": "1e-4"}, r"learning_rate: .*write 1\.0e-4"),
        ({"learning_rate": 0.1, "total_timesteps": 0}, "total_timesteps"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        bind_schedules(make_dqn(), **arguments)


def test_models_that_cannot_follow_are_refused():
    pendulum = gymnasium.make("Pendulum-v1")
    with pytest.raises(ValueError, match="SAC has no exploration rate"):
        bind_schedules(SAC("MlpPolicy", pendulum, **small()), exploration_rate=0.1)
    with pytest.raises(TypeError, match="off-policy algorithm, got PPO"):
        bind_schedules(PPO("MlpPolicy", "CartPole-v1"), learning_rate=0.1)
