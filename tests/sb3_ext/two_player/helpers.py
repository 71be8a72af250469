"""Small configurations, and a small symmetric game, for the tests of the two-player trainer."""

from __future__ import annotations

import copy
from typing import Any

import torch
import yaml
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from pydantic import Field
from torch import nn

from sb3_ext.config.reading import apply_settings, find_config
from sb3_ext.runs.checkpoint_format import split_state
from sb3_ext.two_player import GAMES, Game, GameSettings, HostAgentTrainer

_TINY = (
    "game.max_num_points=5",
    "game.max_value=5",
    "game.max_episode_steps=20",
    "training.steps=6",
    "evaluation.every_steps=1000",
    "evaluation.games=20",
    "evaluation.max_moves=20",
    "evaluation.action_games=10",
    "evaluation.opponents={host: [random], agent: [random]}",
    "logging.every_steps=1000",
)
_TINY_ROLE = (
    "net_arch=[16]",
    "batch_size=8",
    "replay_buffer.size=1000",
    "learning_rate=1.0e-3",
    "exploration_rate=0.5",
    "target_update.every_updates=4",
    "rollout.initial_rollout_size=8",
    "rollout.rollout_size=4",
    "rollout.every_updates=2",
    "rollout.max_rollout_steps=3",
)


def plain(name: str) -> dict[str, Any]:
    """A configuration of the package as plain data."""
    return apply_settings(
        yaml.safe_load(find_config(name, "two_player").read_text(encoding="utf-8")), []
    )


def tiny(*settings: str, name: str = "small", **sections: Any) -> dict[str, Any]:
    """A configuration that trains in milliseconds, with changes as on the command line.

    `sections` replaces whole sections; `host=None` style keys belong to `roles`.
    """
    data = copy.deepcopy(plain(name))
    for role in ("host", "agent"):
        if role in sections:
            data["roles"][role] = sections.pop(role)
    data |= sections
    roles = [role for role, each in data["roles"].items() if each["player"] == "trained"]
    own = [
        f"roles.{role}.{setting}"
        for role in roles
        for setting in _TINY_ROLE
        if _has(data["roles"][role], setting.partition("=")[0].split("."))
    ]
    shared = [each for each in _TINY if data["game"]["name"] == "hironaka" or each[:5] != "game."]
    return apply_settings(data, [*shared, *own, *settings])


def _has(section: dict[str, Any], keys: list[str]) -> bool:
    """Whether a role has a key: not all algorithms have the same."""
    first, *rest = keys
    return first in section and (not rest or _has(section[first], rest))


def trainer(*settings: str, **arguments: Any) -> HostAgentTrainer:
    """A trainer of `tiny`."""
    return HostAgentTrainer(tiny(*settings), **arguments)


def always_choose(learner: Any, action: int) -> None:
    """Has a role's network score this action 1, the others 0."""
    with torch.no_grad():
        for value in learner.policy.q_net.parameters():
            value.zero_()
        learner.policy.q_net.q_net[-1].bias[action] = 1.0


class RaceEnv(VectorEnv):
    """Both add 1 to 3 to a sum in turn; who reaches the goal wins. One seat; +1 won, -1 lost."""

    def __init__(self, num_envs: int, begins: bool, goal: int) -> None:
        self.num_envs, self.begins, self.goal = num_envs, begins, goal
        self.device = torch.device("cpu")
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = spaces.Box(0.0, 1.0, (goal,), "float32")
        self.single_action_space = spaces.Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.opponent = lambda observation: torch.zeros(num_envs, dtype=torch.int64)

    def set_opponent(self, player):
        self.opponent = player

    def _show(self):
        return torch.nn.functional.one_hot(self.sum.clamp(max=self.goal - 1), self.goal).float()

    def _start(self, rows):
        fresh = torch.zeros_like(self.sum)
        if not self.begins:
            fresh = fresh + 1 + self.opponent(torch.eye(self.goal)[fresh])
        self.sum = torch.where(rows, fresh, self.sum)

    def reset(self, *, seed=None, options=None):
        self.sum = torch.zeros(self.num_envs, dtype=torch.int64)
        self._start(torch.ones(self.num_envs, dtype=torch.bool))
        return self._show(), {}

    def step(self, actions):
        self.sum = self.sum + 1 + torch.as_tensor(actions)
        won = self.sum >= self.goal
        self.sum = torch.where(won, self.sum, self.sum + 1 + self.opponent(self._show()))
        ended, final = self.sum >= self.goal, self._show()
        reward = torch.where(won, 1.0, torch.where(ended, -1.0, 0.0))
        self._start(ended)
        info = {"final_obs": final, "_final_obs": ended}
        return self._show(), reward, ended, torch.zeros_like(ended), info


@GAMES.register("race")
class Race(Game):
    """The same trainer on a symmetric game of a few lines."""

    class Settings(GameSettings):
        goal: int = Field(description="sum that wins")

    roles = ("first", "second")

    def make_env(self, role, num_envs, reward=None, device="cpu"):
        return RaceEnv(num_envs, role == "first", self.settings.goal)

    def named_player(self, role, name):
        if name not in ("ones", "twos", "threes"):
            return super().named_player(role, name)
        action = ("ones", "twos", "threes").index(name)
        return lambda observation: torch.full((len(observation),), action)


def difference(first, second):
    """What two states differ in, without times."""
    names = []
    halves = []
    for state in (first, second):
        state = {key: copy.deepcopy(value) for key, value in state.items() if key != "trainer"}
        halves.append(split_state(state, "state"))
    (plain, tensors), (other, others) = halves
    names += sorted(tensors.keys() ^ others.keys())
    for name in tensors.keys() & others.keys():
        if tensors[name].shape != others[name].shape or not torch.equal(
            tensors[name], others[name]
        ):
            names.append(name)
    one, two = dict(plain["dict"]), dict(other["dict"])
    names += [key for key in one.keys() | two.keys() if one.get(key) != two.get(key)]
    return [name.removeprefix("state/") for name in names]


PPO = ("roles.host.batch_size=6", "roles.host.n_epochs=2")


def duel(*settings, **sections):
    """A PPO host against a DDQN agent."""
    return tiny(*PPO, *settings, name="ppo_host", **sections)


def actor(name, policy, **keys):
    """The role section of an on-policy algorithm."""
    role = {**plain("ppo_host")["roles"]["host"], "algorithm": name, "policy": policy, **keys}
    role["algorithm_arguments"] = {}
    if name == "a2c":
        for key in ("batch_size", "n_epochs", "clip_range"):
            del role[key]
    return role


POOL = (
    "self_play.save_steps=2",
    "self_play.swap_steps=1",
    "self_play.window=3",
    "self_play.rating_games=10",
)


class HostNet(nn.Module):
    """From points [N, 5, 3] to four values."""

    def __init__(self, outputs=4):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(15, 8), nn.ReLU(), nn.Linear(8, outputs)
        )

    def forward(self, points):
        return self.layers(points)


def league_data(*settings, **keys):
    """A league of two members and two rounds that takes seconds; changes as on the command line."""
    data = {
        **{"name": "tiny", "seed": 3, "members": 2, "rounds": 2, "steps_per_round": 4},
        **{"games": 4, "keep": 1, "power": 2.0, "draws": 2, "latest_share": 0.5},
        "two_player": tiny("evaluation.games=4", "evaluation.action_games=4"),
        "settings": [],
    }
    return apply_settings({**data, **keys}, settings)
