"""Configurations say everything, and errors are one line that names the field."""

from __future__ import annotations

import copy
from functools import reduce
from operator import getitem

import pytest
import yaml

from sb3_ext.two_player import ConfigError, read_config, shipped_configs
from sb3_ext.two_player.config import smoke_version
from tests.sb3_ext.two_player.helpers import plain, tiny


def leaves(data, path=()):
    """Every key of a configuration that the trainer itself reads, as a path."""
    free = ("arguments", "algorithm_arguments", "policy_arguments", "updates")
    for key, value in data.items():
        yield (*path, key)
        inner = isinstance(value, dict) and "schedule" not in value
        if inner and key not in free:
            yield from leaves(value, (*path, key))


ALL = sorted(path for path in leaves(plain("self_play")) if path[-1] != "callbacks")
PPO = sorted(
    ("roles", "host", *path)
    for path in leaves(plain("ppo_host")["roles"]["host"])
    if path != ("callbacks",)
)


def without(data, path):
    data = copy.deepcopy(data)
    *parents, last = path
    del reduce(getitem, parents, data)[last]
    return data


def message(source, settings=()):
    with pytest.raises(ConfigError) as caught:
        read_config(source, settings)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_configurations_are_valid_and_come_back_equal(name):
    config = read_config(name)
    assert config.name == name
    for each in (config, smoke_version(config)):
        assert read_config(each.to_dict()) == each
        assert read_config(yaml.safe_load(yaml.safe_dump(each.to_dict()))) == each


def test_published_settings():
    roles = plain("published")["roles"]
    for role in roles.values():
        assert role["net_arch"] == [128, "b", {"repeat": 20, "net_arch": [256, "b"]}, 128, "b"]
        assert (role["batch_size"], role["gamma"], role["max_grad_norm"]) == (256, 0.99, 10.0)
        assert role["target_update"] == {"every_updates": 100, "tau": 0.9}
        rollout = role["rollout"]
        assert (rollout["initial_rollout_size"], rollout["rollout_size"]) == (100, 20)
        assert (rollout["every_updates"], rollout["max_rollout_steps"]) == (10, 10)
        assert role["learning_rate"]["init"] == 1e-3
        assert role["learning_rate"]["final"] == 1e-8
        assert role["exploration_rate"]["final"] == 0.2


@pytest.mark.parametrize(
    ("name", "path"),
    [("self_play", each) for each in ALL] + [("ppo_host", each) for each in PPO],
    ids=lambda value: value if isinstance(value, str) else ".".join(value),
)
def test_every_key_must_be_present(name, path):
    text = message(without(plain(name), path))
    dotted = ".".join(path)
    assert f"{dotted} is missing" in text


WINDOWS = "training.updates={{period: 4, host: {}, agent: {}}}"
SMALL = (
    ("roles.host.batch=1", "unknown key of roles.host 'batch'"),
    ("game.polytope=square", "game.polytope must be 'dominance' or 'newton', got 'square'"),
    ("training.players=[host, hosts]", "training.players[1] must be 'host' or 'agent'"),
    ("training.players=[host, host]", "training.players: got ['host', 'host']; expected"),
    ("roles.agent={player: random}", "training.players: got ['host', 'agent']; expected"),
    (WINDOWS.format("[0, 1]", "[3, 5]"), "training.updates.agent: got [3, 5]; expected"),
    (WINDOWS.format("[2, 2]", "[0, 1]"), "training.updates.host: got [2, 2]; expected"),
    (WINDOWS.format("[1]", "[0, 1]"), "training.updates.host must be at least 2 long"),
    ("training.updates={period: 4, host: [0, 1]}", "training.updates.agent is missing"),
    ("training.updates=interleaved", "training.updates must be a mapping"),
    (
        "shared_encoder=true; training.players=[host]; roles.agent={player: random}",
        "shared_encoder needs two roles that learn",
    ),
    ("roles.host.learning_rate=1e-4", "write 1.0e-4"),
    ("roles.host.gamma=1.5", "roles.host.gamma must be at most 1, got 1.5"),
    ("roles.host.learning_rate=expo_1_2", "roles.host.learning_rate: unknown schedule 'expo'"),
    ("roles.host.exploration_rate=1.5", "roles.host.exploration_rate: "),
    (
        "roles.host.exploration_rate={schedule: linear, init: 1, final: 0, unit: progress}",
        "no end that progress could refer to",
    ),
    ("roles.host.algorithm_arguments={tau: 1.0}", "'tau' is decided by the trainer"),
    ("roles.host.optimizer.arguments={ep: 1}", "optimizer.arguments: unknown key 'ep'"),
    ("roles.host.policy=Foo", "roles.host.policy: unknown policy 'Foo'"),
    ("roles.host.policy_arguments={foo: 1}", "key of the policy's arguments 'foo'"),
    ("roles.host.replay_buffer.name=list", "unknown replay buffer 'list'"),
    ("roles.host.net_arch=[64, x]", "roles.host.net_arch[1] must be a width"),
    ("roles.host.opponent=pool", "self_play: got None; expected it if"),
    ("roles.host=5", "roles.host must be a mapping, got 5"),
    ("evaluation.opponents={host: []}", "evaluation.opponents.agent is missing"),
)
SELF_PLAY = (
    ("roles={host: {player: random}}", "roles.agent is missing"),
    ("roles.guest={player: random}", "unknown key of roles 'guest'"),
    ("self_play.play_against_latest_model_ratio=2.0", "_ratio must be at most 1, got 2.0"),
    (
        "roles.host.opponent=latest; roles.agent.opponent=latest",
        "expected it if a role has the opponent pool",
    ),
    (
        f"self_play.team_change=10; {WINDOWS.format([0, 2], [2, 4])}",
        "team_change: got 10; expected 0",
    ),
)
PPO_HOST = (
    ("roles.host.algorithm=a2c", "unknown key of roles.host 'batch_size'"),
    ("roles.host.net_arch=[64, b]", "roles.host.net_arch"),
    ("roles.host.algorithm_arguments={n_steps: 5}", "'n_steps' is decided by the trainer"),
    ("roles.host.callbacks=[{callback: timer}]", "did you mean 'timers'?"),
    ("roles.host.callbacks=[{callback: stop_conditions, max_updates: 0}]", "max_updates"),
)


@pytest.mark.parametrize(
    ("name", "setting", "expected"),
    [
        (name, *row)
        for name, rows in (("small", SMALL), ("self_play", SELF_PLAY), ("ppo_host", PPO_HOST))
        for row in rows
    ],
)
def test_a_wrong_value_names_the_field(name, setting, expected):
    assert expected in message(name, setting.split("; "))


def test_the_callers_dictionary_is_not_changed_and_changing_it_later_has_no_effect():
    data = tiny()
    before = copy.deepcopy(data)
    config = read_config(data)
    config.to_dict()["roles"]["host"]["net_arch"].append(1)
    assert data == before
    data["roles"]["host"]["net_arch"].append(7)
    assert config.roles.host.net_arch == before["roles"]["host"]["net_arch"]
