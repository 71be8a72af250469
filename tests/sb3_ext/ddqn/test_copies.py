"""A copy of a model learns on as the original does, bit for bit."""

import copy
import pickle

import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.ddqn.collector import TensorCollector
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.schedules.schedules import Exponential, Linear
from tests.sb3_ext.ddqn.helpers import make_model, same, weights

WAYS = (copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)))


def doubled_rewards(model, batch):
    return batch._replace(rewards=2.0 * batch.rewards)


MODELS = {
    "schedules": lambda: make_model(
        learning_rate=Exponential(1e-2, 1e-4, 0.95),
        exploration_rate=Linear(1.0, 0.05, steps=600, unit="transitions"),
        n_steps=3,
    ),
    "bfloat16, table on the screen": lambda: make_model(autocast=True, verbose=1),
    "prioritised": lambda: make_model(
        replay_buffer_class=PrioritizedReplayBuffer,
        target_update_interval=30,
        policy_kwargs={"net_arch": [32, "b"], "learning_rate_factors": {"q_net.1": 0.1}},
    ),
    "changes of batches": lambda: make_model(target_update_interval=30),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_next_fifty_updates_are_equal(name):
    model = MODELS[name]()
    if name == "changes of batches":
        model.batch_changes.append(doubled_rewards)
    model.learn(160)
    copies = [way(model) for way in WAYS]
    before = weights(model)
    for other in copies:
        other.learn(400, reset_num_timesteps=False)
        assert same(before, weights(model))  # nothing is shared
    model.learn(400, reset_num_timesteps=False)
    for other in copies:
        assert same(weights(model), weights(other))
        assert model.num_updates == other.num_updates == 62
        assert model.exploration_rate == other.exploration_rate
        rates = (each.policy.optimizer.param_groups[0]["lr"] for each in (model, other))
        assert len({*rates}) == 1


class Played(TensorCollector):
    """A collector with a memory, which must not follow a copy."""

    def state_dict(self):
        return {"stood": self.version}


def test_a_copy_made_inside_of_learn_plays_by_itself(tmp_path):
    model, copies = make_model(verbose=1, tensorboard_log=str(tmp_path)), []
    player = model.explorer_elsewhere()
    collector = Played(model.env, player, model.legal_actions, torch.Generator())

    class Copy(BaseCallback):
        def _on_step(self):
            if self.n_calls == 10:  # after one update
                copies.extend(way(self.model) for way in WAYS)
            return True

    model.learn(160, Copy(), collector=collector)
    for each in copies:
        assert each._collector is None
        assert each.collector_state == {"stood": 1}
        each.learn(80, reset_num_timesteps=False)
        assert each.num_timesteps == 160
