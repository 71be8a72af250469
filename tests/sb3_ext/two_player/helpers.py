"""Small configurations for the tests of the two-player trainer."""

import yaml
from torch import nn

from sb3_ext.config.sections import apply_settings, find_config
from sb3_ext.two_player import HostAgentTrainer
from tests.sb3_ext.helpers import equal

_TINY = (
    *("game.max_num_points=5", "game.max_value=5", "game.max_episode_steps=20"),
    *("training.steps=6", "logging.every_steps=1000", "evaluation.every_steps=1000"),
    *("evaluation.games=20", "evaluation.max_moves=20", "evaluation.action_games=10"),
    "evaluation.opponents={host: [random], agent: [random]}",
)
_TINY_ROLE = (
    *("net_arch=[16]", "batch_size=8", "replay_buffer.size=1000"),
    *("learning_rate=1.0e-3", "exploration_rate=0.5", "target_update.every_updates=4"),
    *("rollout.initial_rollout_size=8", "rollout.rollout_size=4"),
    *("rollout.every_updates=2", "rollout.max_rollout_steps=3", "callbacks=[]"),
)


def plain(name):
    """A configuration of the package as plain data."""
    text = find_config(name, "two_player").read_text(encoding="utf-8")
    return apply_settings(yaml.safe_load(text), [])


def tiny(*settings, name="small", **sections):
    """A configuration that trains in milliseconds, with changes as on the command line.

    `sections` replaces whole sections; `host=None` style keys belong to `roles`.
    """
    data = plain(name)
    for role in ("host", "agent"):
        if role in sections:
            data["roles"][role] = sections.pop(role)
    own = [
        f"roles.{role}.{setting}"
        for role, each in data["roles"].items()
        for setting in (_TINY_ROLE if each["player"] == "trained" else ())
        if _has(each, setting.partition("=")[0].split("."))
    ]
    return apply_settings(data | sections, [*_TINY, *own, *settings])


def _has(section, keys):
    """Whether a role has a key: not all algorithms have the same."""
    first, *rest = keys
    return first in section and (not rest or _has(section[first], rest))


def trainer(*settings, **arguments):
    """A trainer of `tiny`."""
    return HostAgentTrainer(tiny(*settings), **arguments)


def written(path, *settings, **sections):
    """The name of a file with the configuration `tiny`."""
    path.write_text(yaml.safe_dump(tiny(*settings, **sections), sort_keys=False), encoding="utf-8")
    return str(path)


def difference(first, second):
    """The parts that two states differ in, but for what the trainer knows of times."""
    names = (first.keys() | second.keys()) - {"trainer"}
    return [name for name in names if not equal(first.get(name), second.get(name))]


def duel(*settings, **sections):
    """A PPO host against a DDQN agent."""
    ppo = ("roles.host.batch_size=6", "roles.host.n_epochs=2")
    return tiny(*ppo, *settings, name="ppo_host", **sections)


POOL = (
    *("self_play.save_steps=2", "self_play.swap_steps=1"),
    *("self_play.window=3", "self_play.rating_games=10"),
)


class HostNet(nn.Module):
    """From points [N, 5, 3] to four values."""

    def __init__(self, outputs=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(15, 8), nn.Linear(8, outputs))

    def forward(self, points):
        return self.layers(points)
