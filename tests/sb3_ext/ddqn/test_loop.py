"""Collection, callbacks, logs, numbers about episodes, and failures of DDQN.learn."""

import math

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from tests.fakes import MaskedToy, ToyEnv, ToyVectorEnv
from tests.sb3_ext.adapter.test_numpy_environments import MAKE, Toy
from tests.sb3_ext.helpers import Diary, StepHook, equal, keep_logs, make_model, weights

ENVIRONMENTS = {
    "tensors": lambda: TensorVecEnv(ToyVectorEnv(8, illegal="error")),
    "tensors, mask observed": lambda: TensorVecEnv(MaskedToy(8, illegal="error")),
    "wrapped": lambda: VecMonitor(TensorVecEnv(ToyVectorEnv(8, illegal="error"))),
    "numpy": lambda: DummyVecEnv([lambda: Monitor(ToyEnv(illegal="error"))] * 8),
    "normalised": lambda: VecNormalize(ENVIRONMENTS["numpy"]()),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("warmup", ["uniform_legal", "policy"])
def test_b1_all_that_is_played_is_legal_stored_and_told(name, warmup):
    """Next observations of finished rows are final ones, and only terminations are `dones`."""
    model = make_model(ENVIRONMENTS[name](), warmup=warmup, exploration_final_eps=0.5)
    diary = Diary()
    model.learn(400, callback=diary)  # the environment raises at an illegal action
    assert model.replay_buffer.num_transitions == 400
    batch = model.replay_buffer.sample(2000)
    before = batch.observations
    after = batch.next_observations
    if isinstance(before, dict):
        before = before["progress"]
        after = after["progress"]
    # One step of eight is added in every row, also in one whose episode has ended.
    assert torch.allclose((after - before)[:, -1], torch.tensor(0.125))
    assert 0 < batch.dones.sum() < 2000
    assert diary.dones == len(diary.episodes) > 20
    assert all(1 <= episode["l"] <= 8 for episode in diary.episodes)


def test_control_without_masks_illegal_actions_are_played():
    env = TensorVecEnv(ToyVectorEnv(8, illegal="error"))
    with pytest.raises(ValueError, match="illegal press"):
        make_model(env, mask_source="none").learn(400)


def test_predict_explores_per_row_and_only_among_legal_actions():
    model = make_model().learn(80)
    model.exploration_rate = 0.5
    observation = np.zeros((64, 9), np.float32)
    greedy, _ = model.predict(observation, deterministic=True)
    assert len(set(greedy.tolist())) == 1
    mask = np.ones(4, bool)
    mask[(greedy[0] + 1) % 4] = False
    for _ in range(20):
        actions, _ = model.predict(observation, action_masks=np.tile(mask, (64, 1)))
        assert mask[actions].all()
        others = (actions != greedy).sum()  # half explore, two of three find another action
        assert abs(others - 64 / 3) < 5 * math.sqrt(64 * 2 / 9)


def test_tensor_and_numpy_loops_learn_the_same_by_one_seed_and_others_by_another():
    arrays = SyncVectorEnv([ToyEnv] * 8, autoreset_mode=AutoresetMode.SAME_STEP)
    rows = TensorVecEnv(ToyVectorEnv(8)), VecMonitor(TensorVecEnv(ToyVectorEnv(8)))
    rows += TensorVecEnv(arrays), TensorVecEnv(ToyVectorEnv(8))
    models = [
        make_model(env, seed=seed) for env, seed in zip(rows, (3, 3, np.int64(3), 4), strict=True)
    ]
    assert [model.collects_tensors for model in models] == [True, False, True, True]
    for model in models:
        torch.rand(model.seed)  # whatever happens to the global generator in between
        assert model.learn(480).num_updates > 50
    first, *others = map(weights, models)
    assert [equal(first, other) for other in others] == [True, True, False]
    returns = [[each["r"] for each in model.ep_info_buffer] for model in models]
    assert returns[0] == returns[1] == returns[2]


def test_b23_collecting_and_updating_leave_the_global_generators_alone():
    model = make_model().learn(100)
    torch_before = torch.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()
    model.learn(200, reset_num_timesteps=False)
    model.predict(np.zeros((3, 9), np.float32))
    assert torch.equal(torch_before, torch.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])


def test_callbacks_are_called_in_the_order_of_sb3_with_two_more_hooks():
    diary = Diary()
    make_model(learning_starts=8).learn(24, callback=CallbackList([CallbackList([diary])]))
    assert diary.lines == [
        "training start",
        *("rollout start", "step 8", "rollout end"),
        *("rollout start", "step 16", "rollout end", "before train", "after train"),
        *("rollout start", "step 24", "rollout end", "before train", "after train"),
        "training end",
        "after learn",
    ]


@pytest.mark.parametrize(
    ("intervals", "updates"),
    [
        ({"log_interval_updates": 10}, [10, 20, 30, 35]),
        # SB3 counts episodes between logs: hundreds of logs a step with many rows.
        ({"log_interval_seconds": 1000.0}, [35]),
        ({"log_interval_seconds": 0.0}, [*[0] * 8, *range(1, 36), 35]),
    ],
)
def test_logs_come_every_so_many_updates_or_seconds_and_at_the_end(intervals, updates):
    model = make_model(**intervals)
    kept = keep_logs(model)
    model.learn(64 + 8 * 35)
    assert kept.values("train/n_updates") == updates
    assert all(math.isfinite(value) for value in kept.dumps[-1].values())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_stops_training_and_saving_with_the_updates_named(bad, tmp_path):
    model = make_model(log_interval_updates=10).learn(64 + 8 * 20)
    assert model.num_updates == 20
    model.save(tmp_path / "good.zip")
    with torch.no_grad():
        next(model.q_net.parameters()).fill_(bad)
    model.train(1, 32)
    before = (tmp_path / "good.zip").read_bytes()
    with pytest.raises(FloatingPointError, match="in updates 21 to 21"):
        model.save(tmp_path / "good.zip")
    assert (tmp_path / "good.zip").read_bytes() == before
    with pytest.raises(FloatingPointError, match="NaN or infinite in updates 21 to 30"):
        model.learn(8 * 100, reset_num_timesteps=False)


def test_set_env_finds_out_again_who_knows_the_legal_actions(tmp_path):
    make_model().save(tmp_path / "model.zip")
    model = DDQN.load(tmp_path / "model.zip", device="cpu")
    model.set_env(TensorVecEnv(ToyVectorEnv(8, illegal="error")))
    model.learn(400)
    assert model.legal_actions.source == "environment"
    for _ in range(9):
        model.env.reset_tensors()  # somebody else plays
        model.learn(8, reset_num_timesteps=False)


class Telling(VectorWrapper):
    """Says whether an episode was long, and NaN in rows that go on."""

    def step(self, actions):
        *results, info = self.env.step(actions)
        if "episode" in info:
            info["is_success"] = info["episode"]["l"] > 4
            going_on = torch.full_like(info["episode"]["r"], torch.nan)
            info["episode"]["r"] = torch.where(info["_episode"], info["episode"]["r"], going_on)
        return *results, info


TELLING = {
    "tensors": lambda: TensorVecEnv(Telling(ToyVectorEnv(4))),
    "arrays": lambda: DummyVecEnv([lambda: Monitor(Toy())] * 4),
    "a batch of arrays": lambda: TensorVecEnv(MAKE["sync"]([Toy] * 4)),
}


@pytest.mark.parametrize("kind", TELLING)
def test_windows_tables_and_successes(kind):
    model = make_model(TELLING[kind](), stats_window_size=7)
    kept = keep_logs(model)
    seen = []

    def look(callback):
        infos = callback.locals["infos"]
        if kind != "tensors":
            assert [each["pressed"] for each in infos] == callback.locals["actions"].tolist()
        seen.extend((each["episode"], each["is_success"]) for each in infos if "episode" in each)

    model.learn(400, StepHook(look), log_interval=10)
    last = seen[-7:]
    found = model.ep_info_buffer
    expected = [each for each, _ in last]
    assert all([each[key] for each in found] == [each[key] for each in expected] for key in "rl")
    assert list(model.ep_success_buffer) == [success for _, success in last]
    # Four rows end at once at most, so no two tables fall into one step.
    assert [log["rollout/episodes"] // 10 for log in kept.dumps] == [*range(1, len(seen) // 10 + 1)]
    for log in kept.dumps:
        window = seen[: log["rollout/episodes"]][-7:]
        assert log["rollout/ep_rew_mean"] == pytest.approx(np.mean([e["r"] for e, _ in window]))
        assert log["rollout/success_rate"] == pytest.approx(np.mean([s for _, s in window]))
    # A second run counts anew, one that goes on does not.
    for reset in (False, True):
        model.learn(4, log_interval=1, reset_num_timesteps=reset)
        assert (len(model.ep_info_buffer) == 7) is not reset


def test_rows_that_say_nothing_of_success_do_not_count():
    rows = [lambda: Toy(horizon=1), lambda: ToyEnv(horizon=1)]
    model = make_model(TensorVecEnv(MAKE["sync"](rows))).learn(80)
    assert len(model.ep_info_buffer) == 80 == 2 * len(model.ep_success_buffer)


def test_callbacks_see_what_those_of_sb3_see():
    """But the arrays cannot be written to, as the step has been stored before."""
    seen = []

    def look(callback):
        given = callback.locals
        names = ("actions", "buffer_actions", "dones", "new_obs", "rewards")
        arrays = [given[name] for name in names]
        told = [given.get(name) for name in ("log_interval", "train_freq")]
        keys = [sorted(each) for each in given["infos"]]
        seen.append(([(type(each), each.shape, each.dtype) for each in arrays], told, keys))
        return False

    for algorithm in (DQN, DDQN):
        env = DummyVecEnv([lambda: Monitor(ToyEnv())] * 2)
        algorithm("MlpPolicy", env, train_freq=1).learn(9, StepHook(look), log_interval=3)
    assert seen[0] == seen[1]
    with pytest.raises(ValueError, match="read-only"):
        make_model().learn(8, StepHook(lambda each: each.locals["rewards"].fill(0)))
