"""A copy of a model inside of `learn`, and SB3's files of models."""

import copy
import json
import pickle
import zipfile

import pytest
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.collector import TensorCollector
from sb3_ext.schedules.schedules import Exponential, Linear
from tests.fakes import MaskedToy, ToyVectorEnv
from tests.sb3_ext.helpers import StepHook, equal, make_model, weights

WAYS = (copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)))


class Played(TensorCollector):
    """A collector with a memory, which must not follow a copy."""

    def state_dict(self):
        return {"stood": self.version}


def test_a_copy_made_inside_of_learn_plays_by_itself(tmp_path):
    model = make_model(verbose=1, tensorboard_log=str(tmp_path))
    copies = []
    player = model.explorer_elsewhere()
    collector = Played(model.env, player, model.legal_actions, torch.Generator())

    def copy_once(callback):
        if callback.n_calls == 10:  # after one update
            copies.extend(way(callback.model) for way in WAYS)

    model.learn(160, StepHook(copy_once), collector=collector)
    for each in copies:
        assert each._collector is None
        assert each.collector_state == {"stood": 1}
        each.learn(80, reset_num_timesteps=False)
        assert each.num_timesteps == 160


ENVIRONMENTS = {"box": ToyVectorEnv, "dictionary": MaskedToy}
RATE = Exponential(1e-2, 1e-4, 0.95)
EXPLORATION = Linear(1.0, 0.05, steps=60)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_b15_saved_model_predicts_the_same_and_keeps_optimiser_and_target(name, tmp_path):
    """Schedules go on, too; a learning rate that is given to `load` replaces the saved one."""
    model = make_model(
        TensorVecEnv(ENVIRONMENTS[name](8)),
        learning_rate=RATE,
        exploration_rate=EXPLORATION,
        dueling=True,
        policy_kwargs={"net_arch": [{"repeat": 2, "net_arch": [16]}, 8]},
        tau=0.5,
        target_update_interval=7,
    )
    model.learn(400)
    model.save(tmp_path / "model.zip")
    for given in ({}, {"learning_rate": 0.25}):
        env = TensorVecEnv(ENVIRONMENTS[name](8))
        loaded = DDQN.load(tmp_path / "model.zip", env, device="cpu", **given)
        assert equal(weights(model), weights(loaded))
        online, target = (next(n.parameters()) for n in (loaded.q_net, loaded.q_net_target))
        assert not torch.equal(online, target)
        ours, theirs = (m.policy.optimizer.state_dict()["state"] for m in (model, loaded))
        assert ours.keys() == theirs.keys() != set()
        assert all(torch.equal(ours[k]["exp_avg"], theirs[k]["exp_avg"]) for k in ours)
        assert loaded.num_updates == model.num_updates > 0
        loaded.learn(80, reset_num_timesteps=False)
        asked_last = loaded.num_updates - 1
        rate = given.get("learning_rate", RATE(asked_last))
        assert loaded.policy.optimizer.param_groups[0]["lr"] == pytest.approx(rate)
        assert loaded.exploration_rate == pytest.approx(EXPLORATION(asked_last))


def test_nothing_in_the_zip_needs_the_device_it_was_trained_on(tmp_path):
    """Device tensors among the pickled attributes could not be loaded without that device."""
    model = make_model().learn(100)
    model.replay_buffer = None  # as some do before they save
    model.save(tmp_path / "model.zip")
    data = json.loads(zipfile.ZipFile(tmp_path / "model.zip").read("data"))
    types = [
        entry[":type:"] for entry in data.values() if isinstance(entry, dict) and ":type:" in entry
    ]
    assert not any("torch" in kind for kind in types if "torch.optim" not in kind)
