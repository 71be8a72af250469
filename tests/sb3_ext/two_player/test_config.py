"""Configurations say everything, and errors are one line that names the field."""

from pathlib import Path

import pytest
import yaml

from sb3_ext.two_player import ConfigError, read_config, shipped_configs
from sb3_ext.two_player.config import smoke_version


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_configurations_are_valid_and_come_back_equal(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("host.zip").touch()  # a model that somebody saved; no key or name is its path
    config = read_config(name)
    assert config.name == name
    for each in (config, smoke_version(config)):
        assert read_config(each.to_dict()) == each
        assert read_config(yaml.safe_load(yaml.safe_dump(each.to_dict()))) == each


WINDOWS = "training.updates={{period: 4, host: {}, agent: {}}}"
SMALL = (
    ("roles.host.batch=1", "unknown key of roles.host 'batch'"),
    ("game.polytope=square", "game.polytope must be 'dominance' or 'newton', got 'square'"),
    ("training.players=[host, hosts]", "training.players[1] must be 'host' or 'agent'"),
    ("roles.agent={player: random}", "training.players: got ['host', 'agent']; expected"),
    (WINDOWS.format("[0, 1]", "[3, 5]"), "training.updates.agent: got [3, 5]; expected"),
    (WINDOWS.format("[2, 2]", "[0, 1]"), "training.updates.host: got [2, 2]; expected"),
    ("training.updates={period: 4, host: [0, 1]}", "training.updates.agent is missing"),
    (
        "shared_encoder=true; training.players=[host]; roles.agent={player: random}",
        "shared_encoder needs two roles that learn",
    ),
    ("roles.host.learning_rate=1e-4", "write 1.0e-4"),
    ("roles.host.exploration_rate=1.5", "roles.host.exploration_rate: "),
    (
        "roles.host.exploration_rate={schedule: linear, init: 1, final: 0, unit: progress}",
        "no end that progress could refer to",
    ),
    ("roles.host.algorithm_arguments={tau: 1.0}", "'tau' is decided by the trainer"),
    ("roles.host.optimizer.arguments={ep: 1}", "optimizer.arguments: unknown key 'ep'"),
    ("roles.host.policy_arguments={foo: 1}", "key of the policy's arguments 'foo'"),
    ("roles.host.net_arch=[64, x]", "roles.host.net_arch[1] must be a width"),
    ("roles.host.opponent=pool", "self_play: got None; expected it if"),
    ("evaluation.opponents={host: []}", "evaluation.opponents.agent is missing"),
    ("game={dimension: 4}", "--set game replaces all of it, --set game.KEY=VALUE one key"),
    ("roles.host.learning_rate={init: 0.1}", "--set roles.host.learning_rate replaces all of it"),
    ("roles.host.replay_buffer={size: 9}", "--set roles.host.replay_buffer.KEY=VALUE one key"),
)
SELF_PLAY = (
    ("roles={host: {player: random}}", "roles.agent is missing"),
    ("roles.guest={player: random}", "unknown key of roles 'guest'"),
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
    ("roles.host.callbacks=[{callback: timer}]", "did you mean 'timers'?"),
    ("roles.host.policy_arguments={extractor: any_size}", "extractor: got any_size for PPO; expe"),
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
    with pytest.raises(ConfigError) as caught:
        read_config(name, setting.split("; "))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
