"""Training 2N equals training N and N again in a model from a file or in a copy, bit for bit."""

import copy
import json
import pickle
import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import resgym
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import owned
from sb3_ext.callbacks import Checkpoints
from sb3_ext.callbacks.base import Every
from sb3_ext.checkpoints.models import model_state, save_player, training_state
from sb3_ext.checkpoints.policy_description import build_space, describe_space
from sb3_ext.checkpoints.resume import init_from, resume, save_run
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.runs.checkpoint import CheckpointError, save_checkpoint
from sb3_ext.runs.files import CheckpointWarning
from sb3_ext.schedules.schedules import Cosine, Exponential, Linear
from sb3_ext.train.loading import load_policy
from tests.fakes import MaskedToy, ToyVectorEnv
from tests.sb3_ext.helpers import equal, game_model, make_model, player_model, weights


def stock_model(algorithm):
    return algorithm(
        "MlpPolicy",
        TensorVecEnv(ToyVectorEnv(8)),
        buffer_size=280,
        learning_starts=50,
        batch_size=16,
        train_freq=2,
        target_update_interval=40,
        replay_buffer_class=TensorReplayBuffer,
        policy_kwargs={"net_arch": [16]},
        seed=0,
        device="cpu",
    )


def changing():
    model = make_model(target_update_interval=30)
    model.batch_changes.append(doubled_rewards)
    return model


def doubled_rewards(model, batch):
    return batch._replace(rewards=2.0 * batch.rewards)


MODELS = {
    "legal actions in the observation": lambda: make_model(TensorVecEnv(MaskedToy(8)), n_steps=3),
    "replay ratio, target by transitions": lambda: make_model(
        replay_ratio=1.3, target_update_unit="transitions", target_update_interval=50, tau=0.3
    ),
    "schedules of transitions": lambda: make_model(
        learning_rate=Cosine(1e-2, 1e-4, steps=350, unit="transitions"),
        exploration_rate=Linear(1.0, 0.05, steps=300, unit="transitions"),
    ),
    "batch norm and dropout of the global generator": lambda: make_model(
        policy_kwargs={"net_arch": [16, "b"], "activation_fn": NoisyActivation}
    ),
    "normalised": lambda: make_model(VecNormalize(TensorVecEnv(ToyVectorEnv(8)))),
    "host": lambda: game_model(policy_kwargs={"net_arch": [16], "optimizer_class": "muon"}),
    "agent": lambda: game_model("agent"),
    "prioritised replay, parts with rates of their own": lambda: make_model(
        TensorVecEnv(MaskedToy(8)),
        replay_buffer_class=PrioritizedReplayBuffer,
        replay_buffer_kwargs={"beta": "lin_0.4_1.0_60"},
        buffer_size=200,
        learning_rate=Exponential(1e-2, 1e-4, 0.9),
        policy_kwargs={"net_arch": [32], "learning_rate_factors": {"q_net.1": 0.1}},
    ),
    "drawn by value, some rows not exploring, a table on the screen": lambda: make_model(
        exploration_strategy="boltzmann",
        exploration_rate=Linear(5.0, 0.05, steps=40),
        evaluation_rows=3,
        stats_window_size=5,
        loss="mse",
        autocast=True,
        verbose=1,
    ),
    "changes of batches": changing,
    "stock DQN": lambda: stock_model(DQN),
    "stock QRDQN": lambda: stock_model(QRDQN),
    "stock PPO, normalised": lambda: PPO(
        "MlpPolicy",
        VecNormalize(TensorVecEnv(ToyVectorEnv(8))),
        n_steps=10,
        batch_size=40,
        seed=0,
        device="cpu",
    ),
}


class NoisyActivation(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(torch.relu(x), 0.1, self.training)


# Not copied exactly: stock models, normalised environments, the global generator.
INEXACT = ("global", "normal", "stock")
COPIED = [name for name in MODELS if not any(word in name for word in INEXACT)]


@pytest.mark.parametrize("name", MODELS)
def test_twice_n_equals_n_saved_and_resumed_or_copied(name, tmp_path):
    make = MODELS[name]
    whole = make()
    whole.learn(320)
    first = make()
    first.learn(160)
    path = save_run(first, tmp_path)
    torch.manual_seed(99)  # what happens between the two processes must not matter
    others = [copy.deepcopy(first), pickle.loads(pickle.dumps(first))] if name in COPIED else []
    first.learn(80, reset_num_timesteps=False)  # nothing is shared
    others.append(make())
    assert resume(others[-1], tmp_path) == path
    before = weights(first)
    theirs = model_state(whole)
    for other in others:
        other.learn(320 - other.num_timesteps, reset_num_timesteps=False)
        assert other.num_timesteps == whole.num_timesteps == 320
        ours = model_state(other)
        assert [part for part in theirs if not equal(ours[part], theirs[part])] == []
    assert equal(weights(first), before)


def toy(**arguments):
    return TensorVecEnv(ToyVectorEnv(8, **arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"env": toy(num_actions=5)}, r"model/observation_space: .* has .*\[9\].* model .*\[11\]"),
        ({"env": TensorVecEnv(ToyVectorEnv(4))}, "model/n_envs: .* 8, the model 4"),
        ({"policy_kwargs": {"net_arch": [33]}}, r"policy: .*q_net\.0\.0\.weight: .*\[32, 9\].*33"),
        (
            {"policy_kwargs": {"net_arch": [32], "optimizer_class": "sgd"}},
            "optimizer: param_gr.*: got",
        ),
        ({"buffer_size": 800}, "buffer: replay buffer: got 500 slots"),
        ({}, "model/algorithm: the checkpoint has 'DDQN', .* 'DQN'"),
    ],
)
def test_another_model_is_refused_with_file_and_field(arguments, message, tmp_path):
    model = make_model()
    model.learn(320)
    path = save_run(model, tmp_path)
    with pytest.raises(CheckpointError, match=message) as caught:
        resume(make_model(**arguments) if arguments else stock_model(DQN), tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: state.pop("model"), "parts: .*model"),
        (lambda state: state["training"].pop("_n_updates"), "training: "),
        (lambda state: state["training"]["random"].pop("explore"), "training: "),
        (lambda state: state["optimizer"]["param_groups"].pop(), "optimizer: .* number of param"),
        (lambda state: state["optimizer"]["state"][0].pop("exp_avg_sq"), "optimizer: .*exp_avg_sq"),
        (lambda state: state["optimizer"]["state"][0].update(exp_avg=torch.ones(3)), "optimizer: "),
        (lambda state: state["optimizer"]["param_groups"][0].update(eps="x"), "optimizer: "),
        (lambda state: state["buffer"]["fields"].pop("rewards"), "buffer: "),
        (lambda state: state["environment"].pop("venv"), "environment: "),
    ],
)
def test_missing_and_malformed_parts_are_named(spoil, message, tmp_path):
    model = make_model()
    model.learn(160)
    state = model_state(model)
    spoil(state)
    save_checkpoint(tmp_path / "checkpoint-1", state)
    with pytest.raises(CheckpointError, match=f"checkpoint-1: {message}"):
        resume(make_model(), tmp_path)


def test_other_buffers_are_refused(tmp_path):
    model = DQN("MlpPolicy", toy(), buffer_size=100, device="cpu")
    with pytest.raises(ValueError, match="replay_buffer_class: ReplayBuffer cannot be saved"):
        save_run(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_init_from_takes_weights_only(tmp_path):
    model = make_model()
    model.learn(320)
    path = save_run(model, tmp_path)
    other = make_model()
    assert init_from(other, tmp_path) == path
    assert equal(weights(model), weights(other))
    assert other.num_timesteps == other._n_updates == 0
    assert other.policy.optimizer.state_dict()["state"] == {}
    assert other.replay_buffer.size() == 0
    assert equal(training_state(other)["random"], training_state(make_model())["random"])
    wide = make_model(TensorVecEnv(ToyVectorEnv(3)))  # another number of rows is no obstacle
    init_from(wide, path)
    assert equal(weights(model), weights(wide))


def on_device(device, games):
    return make_model(TensorVecEnv(ToyVectorEnv(8, device=games)), device=device)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("source", "target"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_everything_moves_between_devices(source, target, tmp_path):
    model = on_device(source, source if target == "cpu" else "cpu")
    model.learn(320)
    path = save_run(model, tmp_path)
    other = on_device(target, target)
    resume(other, tmp_path)
    for one, two in (
        (model.policy.state_dict(), other.policy.state_dict()),
        (model.replay_buffer.state_dict()["fields"], other.replay_buffer.state_dict()["fields"]),
        (model.env.state_dict(), other.env.state_dict()),
    ):
        assert equal(owned(one, "cpu"), owned(two, "cpu"))
    assert {value.device.type for value in other.policy.state_dict().values()} == {target}
    other.learn(160, reset_num_timesteps=False)
    assert other.num_timesteps == 480
    assert load_policy(path).device.type == "cpu"


@pytest.mark.parametrize("name", ["schedules of transitions", "stock DQN"])
def test_a_second_learn_continues_the_names(name, tmp_path):
    """Its states are the newest, and a new model in an old folder is not pruned either."""
    make = MODELS[name]
    saving = Checkpoints(tmp_path, Every(updates=10))
    model = make()
    updates = []
    before = 0
    for steps in (320, 240, 160):
        model.learn(steps, saving)
        found = make()
        newest = resume(found, tmp_path)
        updates.append(found._n_updates)
        assert found._n_updates == model._n_updates
        number = int(newest.name.removeprefix("checkpoint-"))
        assert number > before
        before = number
    if hasattr(model, "num_transitions"):
        assert number == model.num_transitions == 720
    assert updates == sorted({*updates})
    other = make()
    other.learn(160, Checkpoints(tmp_path, Every(updates=10)))
    found = make()
    resume(found, tmp_path)
    assert found._n_updates == other._n_updates < updates[-1]


def test_an_environment_that_cannot_be_saved_starts_anew_and_says_so(tmp_path):
    """The action space of a single one is one of the game's own, which is a `Discrete`."""
    env = gymnasium.make("resgym/HironakaAgent-v0", opponent="random")
    model, other = (make_model(DummyVecEnv([lambda: env])) for _ in "ab")
    model.learn(80)
    save_run(model, tmp_path)
    with pytest.warns(CheckpointWarning, match="environment: it was not saved"):
        resume(other, tmp_path)
    assert equal(weights(model), weights(other))
    other.learn(80, reset_num_timesteps=False)
    assert other.num_timesteps == 160
    save_player(tmp_path / "player", model, {}, archive=False)
    policy = load_policy(tmp_path / "player")
    assert equal(dict(policy.state_dict()), dict(model.policy.state_dict()))


class Unknown(FlattenExtractor):
    """Without a name in the table of extractors."""


def test_a_player_that_cannot_be_loaded_is_said_to_be_so(tmp_path):
    model = make_model(policy_kwargs={"features_extractor_class": Unknown})
    with pytest.warns(CheckpointWarning, match="cannot play later: .*Unknown"):
        save_player(tmp_path / "player", model, {}, archive=False)


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 0], [0, -2]]),
        spaces.Discrete(3, start=1),
        spaces.MultiBinary((2, 3)),
        spaces.Dict(
            a=spaces.MultiDiscrete([2], dtype=np.int32), b=spaces.Box(0, 255, (2,), np.uint8)
        ),
    ],
)
def test_spaces_are_built_from_their_descriptions(space):
    built = build_space(json.loads(json.dumps(describe_space(space))))
    assert (built, type(built)) == (space, type(space))
    assert built.contains(space.sample())


def test_the_programs_of_the_page(tmp_path, monkeypatch):
    """Training that a second call continues; saved players as opponents."""
    page = Path(__file__).parents[3] / "docs" / "checkpoints.md"
    training, opponents = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for total in (240, 480):
        names = {"make_model": make_model, "total": total}
        exec(training, names)
        assert names["model"].num_timesteps == total
    assert equal(weights(names["model"]), weights(make_model().learn(480)))
    for seat in ("host", "agent"):
        save_run(player_model(seat), Path("runs") / seat)
    sizes = {"dimension": 3, "max_num_points": 5, "max_value": 6}
    opponents = opponents.replace("num_envs=64", f"num_envs=4, **{sizes}")
    names = {"gymnasium": gymnasium, "resgym": resgym}
    exec(opponents.replace('"choose_first")', f'"choose_first", games=20, **{sizes})'), names)
    names["env"].reset(seed=0)
