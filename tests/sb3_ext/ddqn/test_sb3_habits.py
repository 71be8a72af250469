"""What users of SB3's DQN do: its buffers, its policies for images, its idioms, its messages."""

import copy
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO, HerReplayBuffer
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv, FakeImageEnv, SimpleMultiObsEnv
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.dqn import policies

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.schedules.schedules import Linear
from tests.fakes import ToyEnv
from tests.sb3_ext.helpers import equal, make_model, weights


@pytest.mark.parametrize("kind", [ReplayBuffer, NStepReplayBuffer])
def test_sb3s_buffers_get_the_same_transitions(kind):
    models = []
    for each in (None, kind):
        env = DummyVecEnv([ToyEnv] * 8)
        env.seed(3)
        models.append(make_model(env, mask_source="none", replay_buffer_class=each).learn(160))
    assert models[1].num_updates == 12
    ours, theirs = (model.replay_buffer for model in models)
    assert isinstance(theirs, kind)
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        found, expected = (np.asarray(getattr(each, name))[:20] for each in (ours, theirs))
        assert found.shape == expected.shape == (20, 8, *found.shape[2:])
        # 64 at random; the updates, of other batches, begin after them.
        assert np.array_equal(found[:9], expected[:9]), name
    assert ours.dones[:9].sum() > ours.timeouts[:9].sum() > 0


def test_hindsight_relabels_goals_in_a_copy_too():
    env = DummyVecEnv([lambda: BitFlippingEnv(n_bits=4, continuous=False)] * 2)
    more = {"replay_buffer_class": HerReplayBuffer, "buffer_size": 1000, "learning_starts": 20}
    model = DDQN("MultiInputPolicy", env, device="cpu", seed=0, **more).learn(200)
    batch = model.replay_buffer.sample(256)
    reached = batch.next_observations["achieved_goal"] == batch.next_observations["desired_goal"]
    wins = torch.where(reached.all(dim=1), 0.0, -1.0)
    assert torch.equal(batch.rewards[:, 0], wins)
    assert 0 < -wins.sum() < 256
    other = copy.deepcopy(model)  # it relabels in its own environment
    assert other.replay_buffer.env is other.env is not model.env
    assert other.learn(40).num_updates > model.num_updates


images = partial(SimpleMultiObsEnv, random_start=False)  # beside numbers
POLICIES = {
    "CnnPolicy": ("CnnPolicy", lambda: FakeImageEnv(36, 36, discrete=True), 1),
    "class CnnPolicy": (policies.CnnPolicy, lambda: FakeImageEnv(36, 36, discrete=True), 1),
    "dictionary with an image": ("MultiInputPolicy", images, 1),
    "class MultiInputPolicy": (policies.MultiInputPolicy, images, 1),
    "a flat image": ("MlpPolicy", lambda: FakeImageEnv(36, 36, discrete=True), 0),
    "no image": ("MlpPolicy", lambda: gymnasium.make("CartPole-v1"), 0),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_have_the_layers_of_dqn(name, tmp_path):
    policy, env, images = POLICIES[name]
    made = env()
    arguments = {"buffer_size": 50, "learning_starts": 5, "batch_size": 4, "device": "cpu"}
    ours, theirs = (kind(policy, made, seed=0, **arguments) for kind in (DDQN, DQN))

    def layers(model):
        kept = (torch.nn.Conv2d, torch.nn.Linear)
        return [tuple(each.weight.shape) for each in model.q_net.modules() if type(each) in kept]

    assert layers(ours) == layers(theirs)
    assert sum(len(shape) == 4 for shape in layers(ours)) == 3 * images
    ours.learn(20)
    ours.save(tmp_path / "model")
    assert equal(weights(ours), weights(DDQN.load(tmp_path / "model", made, device="cpu")))


def rate(model):
    return model.policy.optimizer.param_groups[0]["lr"]


@pytest.mark.parametrize("given", [1e-3, "lin_1e-2_1e-4_50", lambda progress: 0.1 * progress])
def test_the_learning_rate_stays_what_was_given_and_can_be_replaced(given, tmp_path):
    model = make_model(learning_rate=given).learn(160)
    assert model.learning_rate is given
    model.learning_rate = 0.25  # SB3's idiom
    model._setup_lr_schedule()
    model.learn(80, reset_num_timesteps=False)
    assert rate(model) == 0.25
    model.learning_rate = "lin_0.5_0_1000"
    model._setup_lr_schedule()
    model.save(tmp_path / "model")
    for each in (model, DDQN.load(tmp_path / "model", model.get_env(), device="cpu")):
        each.learn(80, reset_num_timesteps=False)
        assert rate(each) == pytest.approx(0.5 * (1 - (each.num_updates - 1) / 1000))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"exploration_fraction": 0.0, "exploration_final_eps": 0.5}, [0.5, 0.5]),
        ({"exploration_rate": lambda progress: 0.5 * progress}, [0.5, 0.25]),
        ({"exploration_fraction": 1.0}, [1.0, 0.525]),
    ],
)
def test_exploration_rates_of_the_progress(arguments, expected, tmp_path):
    made = make_model(**arguments)
    make_model().save(tmp_path / "a")
    loaded = DDQN.load(tmp_path / "a", made.get_env(), device="cpu", **arguments)
    for model in (made, loaded):
        for progress, value in zip((1.0, 0.5), expected, strict=True):
            model._current_progress_remaining = progress
            model.explorer()
            assert model.exploration_rate == pytest.approx(value)
        assert model.learn(160).num_updates > 0


def test_predict_of_a_tuple_is_refused_in_sb3s_words():
    with pytest.raises(ValueError, match="You have passed a tuple to the predict"):
        make_model().predict((np.zeros(9), {}))


def test_methods_that_are_never_called_are_refused():
    for name in ("_on_step", "_sample_action", "_store_transition"):
        with pytest.raises(TypeError, match=f"{name}: Mine has one, but DDQN never calls it"):
            type("Mine", (DDQN,), {name: None})


def test_a_tau_of_0_leaves_the_target_network():
    model = make_model(tau=0.0, target_update_interval=1)
    before = [each.clone() for each in model.q_net_target.parameters()]
    assert model.learn(100).num_target_updates > 0
    assert all(map(torch.equal, before, model.q_net_target.parameters()))


def test_a_loaded_model_goes_on_in_the_game_where_it_was(tmp_path):
    model = make_model().learn(80)
    model.save(tmp_path / "model")
    env = model.get_env()
    shown = model._last_obs.clone()
    resets = len(env.venv.reset_calls)
    going_on = DDQN.load(tmp_path / "model", env, force_reset=False, device="cpu")
    assert np.array_equal(going_on._last_obs, shown)
    going_on.learn(8, reset_num_timesteps=False)
    assert len(env.venv.reset_calls) == resets
    assert torch.equal(torch.as_tensor(going_on.replay_buffer.observations[0]), shown)
    DDQN.load(tmp_path / "model", env, device="cpu").learn(8, reset_num_timesteps=False)
    assert len(env.venv.reset_calls) == resets + 1
    going_on.learn(8, reset_num_timesteps=False)  # not in the games of the other one
    assert len(env.venv.reset_calls) == resets + 2
    assert going_on.replay_buffer.timeouts[0].all()


def test_the_windows_of_a_buffer_also_from_a_file_are_those_of_the_model(tmp_path):
    make_model(n_steps=3).learn(400).save_replay_buffer(tmp_path / "buffer")
    for n_steps, gamma in ((3, 0.5), (1, 0.5), (5, 0.99)):
        loaded, played = (make_model(n_steps=n_steps, gamma=gamma) for _ in "ab")
        loaded.fit(tmp_path / "buffer.pkl", updates=2)
        played.learn(400)
        for model in (loaded, played) if n_steps > 1 else (loaded,):
            found = model.replay_buffer.sample(512).discounts.unique().tolist()
            assert found == pytest.approx([gamma**n for n in range(n_steps, 0, -1)])


def test_a_buffer_without_windows_says_so(tmp_path):
    DQN("MlpPolicy", "CartPole-v1", buffer_size=8).save_replay_buffer(tmp_path / "buffer")
    with pytest.warns(UserWarning, match="n_steps=3 is ignored: a ReplayBuffer has none"):
        DDQN("MlpPolicy", "CartPole-v1", n_steps=3).load_replay_buffer(tmp_path / "buffer")


def test_schedules_of_transitions_go_on_in_a_second_learn():
    schedule = Linear(1.0, 0.0, steps=800, unit="transitions")
    model = make_model(learning_rate=schedule, exploration_rate=schedule)
    for total in (160, 320, 480):
        model.learn(160)
        assert (model.num_timesteps, model.num_transitions) == (160, total)
        assert rate(model) == pytest.approx(1 - total / 800)
        assert model.exploration_rate == pytest.approx(1 - (total - 8) / 800)


def test_a_file_of_another_algorithm_is_refused_in_words(tmp_path):
    PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, device="cpu").save(tmp_path / "ppo")
    with pytest.raises(ValueError, match="policy: got ActorCriticPolicy; expected a DQNPolicy"):
        DDQN.load(tmp_path / "ppo")
    model = DQN("MlpPolicy", "CartPole-v1", buffer_size=8, device="cpu")
    model.save(tmp_path / "dqn")
    with pytest.raises(ValueError, match="gamma must be at most 1, got 3"):
        DDQN.load(tmp_path / "dqn", gamma=3)
    assert equal(weights(model), weights(DDQN.load(tmp_path / "dqn", device="cpu")))


def test_lists_of_actions():
    env = make_vec_env("resgym/HironakaHost-v0", 2, vec_env_cls=TensorVecEnv)
    env.reset()
    assert env.step([np.array(0), np.array(1)])[1].shape == (2,)
