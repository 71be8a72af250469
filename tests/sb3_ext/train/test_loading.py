"""Saved models as players: checkpoints without pickle, and the files of stable-baselines3."""

import zipfile
from types import SimpleNamespace

import pytest
import torch
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO

from resgym.game.rng import RowRandom
from resgym.game.rules import observe_points
from resgym.game.spec import GameSpec
from resgym.measure.games import play_lengths
from resgym.measure.rho import rho, rho_starts
from resgym.players import resolve_player
from resgym.solver.responses import worst_cases
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.checkpoints.models import MODEL, model_state
from sb3_ext.checkpoints.resume import save_run
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from sb3_ext.train.loading import load_player, load_policy
from tests.sb3_ext.helpers import SIZES, equal, game_env, player_model


def scores(seat, player):
    pair = (player, "random") if seat == "host" else ("zeillinger", player)
    return rho(*pair, games=100, **SIZES).rho


@pytest.mark.parametrize("seat", ["host", "agent"])
@pytest.mark.parametrize(
    "network",
    [
        {"net_arch": [16, "b", "r8"]},
        {"extractor": "point_set", "net_arch": [{"repeat": 2, "net_arch": [8, "ln"]}]},
        {"dueling": True, "activation_fn": torch.nn.Tanh},
    ],
)
def test_checkpoint_plays_the_same(seat, network, tmp_path):
    model = player_model(seat, policy_kwargs=network)
    path = save_run(model, tmp_path / "run")
    expected = scores(seat, player_of(model))
    for where in (path, tmp_path / "run"):
        assert scores(seat, load_player(where, seat)) == expected
    policy = load_policy(path)
    assert equal(dict(policy.state_dict()), dict(model.policy.state_dict()))
    assert not policy.training


def test_two_players_in_one_checkpoint(tmp_path):
    models = {seat: player_model(seat) for seat in ("host", "agent")}
    state = {**model_state(models["host"], "host."), **model_state(models["agent"], "agent.")}
    save_checkpoint(tmp_path / "run" / "checkpoints" / "checkpoint-1", state)
    for seat, model in models.items():
        assert scores(seat, load_player(tmp_path / "run", seat)) == scores(seat, player_of(model))


@pytest.mark.parametrize(
    ("algorithm", "arguments", "seat"),
    [
        (DDQN, {"buffer_size": 50}, "host"),
        (DQN, {"buffer_size": 50, "replay_buffer_class": TensorReplayBuffer}, "agent"),
        (QRDQN, {"buffer_size": 50}, "host"),
        (PPO, {"n_steps": 8}, "agent"),
        (A2C, {}, "host"),
        (MaskablePPO, {"n_steps": 8}, "agent"),
    ],
)
def test_files_of_stable_baselines3(algorithm, arguments, seat, tmp_path):
    policy = "MlpPolicy" if seat == "host" else "MultiInputPolicy"
    model = algorithm(policy, game_env(seat), device="cpu", seed=1, **arguments)
    model.save(tmp_path / "model")
    player = resolve_player(str(tmp_path / "model"), seat)  # SB3 adds .zip, and so do we
    networks = {getattr(model, name, model) for name in ("policy", "q_net", "quantile_net")}
    assert all(scores(seat, player) == scores(seat, player_of(each)) for each in networks)


def test_the_other_seat_and_another_dimension(tmp_path):
    path = save_run(player_model("host"), tmp_path)
    with pytest.raises(ValueError, match="was trained as the host, need a player for the agent"):
        load_player(path, "agent")
    with pytest.raises(ValueError, match="games of dimension 3, got dimension 4"):
        rho(load_player(path, "host"), "random", games=5, dimension=4)
    with pytest.raises(ValueError, match="of at most 5 points, got more"):
        rho(load_player(path, "host"), "random", games=5, dimension=3, max_num_points=9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n: n["policy"].update({"class": "os.system"}), "unknown policy 'os.system'"),
        (lambda n: n["policy"].pop("arguments"), r"policy: need \['action_space', 'arguments'"),
        (
            lambda n: n["policy"]["arguments"].update(features_extractor_class="builtins.eval"),
            "unknown features extractor 'builtins.eval'",
        ),
        (lambda n: n["policy"]["arguments"].update(surprise=1), "policy arguments: .*surprise"),
        (lambda n: n["policy"]["arguments"].update(net_arch=[5]), "size mismatch"),
        (lambda n: n["policy"]["arguments"].update(n_quantiles=9**9), "net_arch must have at most"),
        (lambda n: n["policy"]["observation_space"].update(type="Text"), "'Text' is missing"),
        (lambda n: n["policy"]["observation_space"].update(dtype="object"), "dtype: got 'object'"),
        (lambda n: n["policy"]["observation_space"].pop("shape"), "space: 'shape' is missing"),
        (lambda n: n.pop("policy"), "the policy is not described: nothing there"),
    ],
)
def test_hostile_descriptions(change, message, tmp_path):
    path = save_run(player_model("host"), tmp_path)
    state = load_checkpoint(path)
    change(state["network"])
    save_checkpoint(path, state)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_player(path, "host")
    assert str(caught.value).startswith(f"{path}: network: ")
    assert "\n" not in str(caught.value)


def test_other_files(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / MODEL).write_bytes(b"\x80\x04.")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as file:
        file.writestr("data", "[]")
    for name, message in (
        ("notes.txt", "is not a checkpoint directory, .* or a .zip"),
        ("empty", "no checkpoint here"),
        ("card", "is missing or damaged"),
        ("archive.zip", "is not a model of stable-baselines3"),
        ("nothing", "there is no such file"),
    ):
        with pytest.raises(ValueError, match=message):
            load_player(tmp_path / name, "host")


def test_networks_without_numbers(tmp_path):
    model = player_model("host")  # checkpoints refuse them when they are written
    with torch.no_grad():
        next(model.policy.parameters()).view(-1)[0] = torch.nan
    model.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=r"model\.zip: its network holds NaN or infinite weights"):
        load_player(tmp_path / "model.zip", "host")


def recurrent_model(seat):
    """A network whose answers depend on the moves before, if untrained."""
    policy = "MlpLstmPolicy" if seat == "host" else "MultiInputLstmPolicy"
    arguments = {"lstm_hidden_size": 8, "net_arch": [8], "enable_critic_lstm": True}
    model = RecurrentPPO(
        policy, game_env(seat), n_steps=8, seed=3, device="cpu", policy_kwargs=arguments
    )
    with torch.no_grad():
        for name, values in model.policy.named_parameters():
            if "lstm_actor" in name or "action_net" in name:
                values.mul_(8.0 if "lstm" in name else 100.0)
    return model


def alone(model, seat, remembers=True):
    """One game of a recurrent model, played by SB3's own policy."""
    memory = nothing = (torch.zeros(model.policy.lstm_hidden_state_shape),) * 2

    def act(state, coords, rng):
        nonlocal memory
        points = observe_points(state)
        observation = points if coords is None else {"points": points, "coords": coords}
        past = memory if remembers else nothing
        found, memory = model.policy.get_distribution(observation, past, torch.zeros(1))
        logits = found.distribution.logits
        return (logits if coords is None else torch.where(coords, logits, -torch.inf)).argmax(1)

    return SimpleNamespace(role=seat, act=act)


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_a_recurrent_player_remembers_its_own_game(seat, tmp_path):
    """Games side by side, of which ever fewer are left, and each of them alone."""
    model = recurrent_model(seat)
    model.save(tmp_path / "model.zip")
    spec = GameSpec(3, 5, 6)
    starts = rho_starts(spec, 24)
    others = {"host": "random", "agent": "choose_last"}
    rng = RowRandom.for_episode(torch.arange(24), torch.zeros(24, dtype=torch.int64))

    def lengths(player, rows=slice(None)):
        players = {role: resolve_player(name, role, spec) for role, name in others.items()}
        players[seat] = player
        index = torch.arange(24)[rows]
        games = play_lengths(*players.values(), starts.select(index), spec, rng.select(index), 30)
        return games.moves.tolist()

    player = load_player(tmp_path / "model.zip", seat)
    together = lengths(player)
    assert together == lengths(player)  # nothing of the first games is left in the second
    for remembers in (True, False):
        rows = [slice(row, row + 1) for row in range(24)]
        found = [lengths(alone(model, seat, remembers), row)[0] for row in rows]
        assert (together == found) == remembers
    with pytest.raises(ValueError, match=r"must be deterministic and without memory, .* remembers"):
        worst_cases(player, starts, spec, 5, 100)
