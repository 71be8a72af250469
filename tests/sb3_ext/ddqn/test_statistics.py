"""Numbers about episodes have SB3's meaning, from tensors and from arrays."""

import numpy as np
import pytest
import torch
from gymnasium.vector import VectorWrapper
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.checkpoints.models import load_training_state, training_state
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.adapter.test_numpy_environments import Toy
from tests.sb3_ext.callbacks.helpers import StepHook, keep_logs
from tests.sb3_ext.ddqn.helpers import make_model


class Telling(VectorWrapper):
    """Says whether an episode was long, and NaN in rows that go on."""

    def step(self, actions):
        *results, info = self.env.step(actions)
        if "episode" in info:
            length = info["episode"]["l"]
            info["is_success"] = length > 4
            going_on = torch.full_like(info["episode"]["r"], torch.nan)
            info["episode"]["r"] = torch.where(info["_episode"], info["episode"]["r"], going_on)
        return *results, info


ENVIRONMENTS = {
    "tensors": lambda: TensorVecEnv(Telling(ToyVectorEnv(4))),
    "arrays": lambda: DummyVecEnv([lambda: Monitor(Toy())] * 4),
}


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_windows_tables_and_successes(kind):
    model = make_model(ENVIRONMENTS[kind](), stats_window_size=7)
    kept, seen = keep_logs(model), []

    def look(callback):
        infos = callback.locals["infos"]
        seen.extend((each["episode"], each["is_success"]) for each in infos if "episode" in each)

    model.learn(400, StepHook(look), log_interval=10)
    last = seen[-7:]
    assert [each["r"] for each in model.ep_info_buffer] == [each["r"] for each, _ in last]
    assert [each["l"] for each in model.ep_info_buffer] == [each["l"] for each, _ in last]
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


def test_windows_go_on_after_a_checkpoint():
    first, second = (make_model(stats_window_size=5, evaluation_rows=2) for _ in range(2))
    first.learn(200)
    load_training_state(second, training_state(first))
    for name in ("ep_info_buffer", "ep_success_buffer", "evaluation_buffer"):
        assert getattr(second, name) == getattr(first, name)
        assert getattr(second, name).maxlen == 5
    assert len(second.ep_info_buffer) == 5
