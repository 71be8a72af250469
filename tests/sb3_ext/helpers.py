"""Models, environments, callbacks and runs that tests share, and what counts as equal."""

from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from resgym.scoreboard import read_rows
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.buffers import TensorReplayBufferSamples
from sb3_ext.train import quickstart
from tests.fakes import ToyVectorEnv


def make_model(env=None, policy=None, **arguments):
    """A small, quick DDQN; `env` defaults to 8 rows of the toy."""
    env = TensorVecEnv(ToyVectorEnv(8)) if env is None else env
    is_dict = isinstance(env.observation_space, spaces.Dict)
    defaults = {
        "batch_size": 32,
        "buffer_size": 4_000,
        "learning_starts": 64,
        "seed": 0,
        "device": "cpu",
        "log_interval_seconds": None,
        "policy_kwargs": {"net_arch": [32]},
    }
    policy = policy or ("MultiInputPolicy" if is_dict else "MlpPolicy")
    return DDQN(policy, env, **{**defaults, **arguments})


def start_quickly(monkeypatch):
    """The quick start's model learns from its first games, in small batches."""
    make_model = quickstart.make_model

    def small(updates, seed, **preset):
        model = make_model(updates, seed, **preset)
        model.batch_size = 16
        model.learning_starts = 256
        return model

    monkeypatch.setattr(quickstart, "make_model", small)


def weights(model):
    """A copy of all weights, online and target."""
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


def equal(first, second):
    """Whether two states are equal bit for bit, types included."""
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(equal(first[k], second[k]) for k in first)
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)


class FixedBatches:
    """In place of a replay buffer: gives the same batches in the same order."""

    def __init__(self, batches):
        self.batches = list(batches)

    def sample(self, batch_size, env=None):
        return self.batches.pop(0)

    def check_finite(self, *fields):
        """They are."""


def random_batch(seed, size=16, inputs=9, actions=4, masked=False):
    source = torch.Generator().manual_seed(seed)
    legal = torch.rand((size, actions), generator=source) < 0.4
    legal[0] = False
    return TensorReplayBufferSamples(
        observations=torch.randn((size, inputs), generator=source),
        actions=torch.randint(actions, (size, 1), generator=source),
        next_observations=torch.randn((size, inputs), generator=source),
        dones=(torch.rand((size, 1), generator=source) < 0.3).float(),
        rewards=3.0 * torch.randn((size, 1), generator=source),
        discounts=None,
        next_legal=legal if masked else None,
    )


SIZES = {"dimension": 3, "max_num_points": 5, "max_value": 6}


def game_env(seat, num_envs=4, **games):
    """Small games, with these keyword arguments of `make_vec` besides."""
    env_id = f"resgym/Hironaka{seat.capitalize()}-v0"
    games = {"opponent": "random", **SIZES, **games}
    return TensorVecEnv(gymnasium.make_vec(env_id, num_envs, **games))


def game_model(seat="host", num_envs=8, **arguments):
    """A small DDQN on the game."""
    return make_model(game_env(seat, num_envs), f"{seat.capitalize()}Policy", **arguments)


def player_model(seat, **arguments):
    """With random weights, which play as well as any for tests of saved models."""
    network = {"policy_kwargs": {"net_arch": [16, "b", "r8"]}, "seed": 1}
    return game_model(seat, 4, **{**network, **arguments})


class KeptLogs(KVWriter):
    """Keeps everything that is logged, one dictionary a dump."""

    def __init__(self):
        self.dumps = []

    def write(self, key_values, key_excluded, step=0):
        self.dumps.append(dict(key_values))

    def close(self):
        pass

    def values(self, key):
        return [dump[key] for dump in self.dumps if key in dump]


def keep_logs(model):
    """Makes a model log into the result."""
    logs = KeptLogs()
    model.set_logger(Logger(folder=None, output_formats=[logs]))
    return logs


class StepHook(BaseCallback):
    """Calls a function with the callback at every step; stops where it returns False."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def _on_step(self):
        return self.function(self) is not False


class Diary(BaseCallback):
    """Writes down what it is told, in order; of its steps ends and episodes too; stops at one."""

    def __init__(self, most=1 << 40):
        super().__init__()
        self.most, self.lines, self.dones, self.episodes = most, [], 0, []
        for hook in ("training_start", "rollout_start", "rollout_end", "training_end"):
            setattr(self, f"_on_{hook}", partial(self._note, hook.replace("_", " ")))
        for hook in ("before_train", "after_train", "after_learn"):
            setattr(self, hook, partial(self._note, hook.replace("_", " ")))

    def _note(self, line):
        self.lines.append(line)

    def _on_step(self):
        self._note(f"step {self.num_timesteps}")
        self.dones += int(sum(self.locals.get("dones", ())))
        told = self.locals.get("infos", ())
        self.episodes += [info["episode"] for info in told if "episode" in info]
        return self.n_calls < self.most


GAME = "resgym/HironakaHost-v0"
SMALL_RUN = (
    *("--algo", "ddqn", "--env", GAME, "-n", "640", "--seed", "3", "--verbose", "0"),
    *("--eval-freq", "48", "--eval-episodes", "20", "--n-eval-envs", "4", "--log-interval", "7"),
    *("--checkpoint-updates", "10", "--save-freq", "104"),
    *("-params", "n_envs:8", "learning_starts:64", "batch_size:16"),
    *("buffer_size:1000", "policy_kwargs:{net_arch: [16]}", "learning_rate:0.01"),
    "env_kwargs:{opponent: choose_first, reward: step, max_num_points: 5, max_episode_steps: 20}",
)
"""Arguments of a short run of `train`, without its folder."""


def recorded(name, task):
    """A player's result in the scoreboard of this project."""
    rows = read_rows(Path(__file__).parents[2] / "docs" / "scoreboard.json")
    return next(row for row in rows if (row.name, row.task) == (name, task))


def bytes_of(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def run_of(folder, algorithm="ddqn", env_id=GAME):
    return folder / algorithm / f"{env_id.replace('/', '-')}_1"


# Of an attack: small budgets, and the same as options of the command line.
SMALL_ATTACK = [
    *("name=small", "game.max_num_points=3", "game.max_value=6", "game.max_moves=40"),
    *("seeds=[0]", "updates=4", "every=2", "learner.n_envs=16", "learner.learning_starts=64"),
    *("learner.batch_size=16", "learner.buffer_size=2000", "learner.policy_kwargs.net_arch=[16]"),
    *("lookahead=0", "validation.games=40", "test.games=100", "exact.starts=10"),
    *("agents=[choose_first, random]", "hosts=[random, zeillinger]"),
]
LESS = [part for setting in SMALL_ATTACK for part in ("--set", setting)]

NETWORK = """
default:
  policy: {seat}Policy
  n_timesteps: 1000
  gamma: 0.97
  env_kwargs: {{reward: step}}
  policy_kwargs:
    extractor: point_pairs
    features_extractor_kwargs:
      {{point_net: [16], pair_net: [16], context_net: [32], head_net: [32]}}
    net_arch: [32]
    dueling: true
"""


def teach_config(folder, seat="host"):
    """Few positions, a small network, a few updates of each of two rounds."""
    file = folder / f"{seat}.yml"
    file.write_text(NETWORK.format(seat=seat.title()))
    start = {"points": [2, 4], "max_value": [3], "positions": 60}
    met = {"positions": 20, "points": [4, 4], "max_value": [4]}
    game = {"hosts": ["student"], "moves": [0, 6]}
    if seat == "agent":
        game = {"hosts": ["zeillinger", "random"], "agents": ["student"], "moves": [0, 6]}
    return {
        "seat": seat,
        "dimension": 3,
        "budget": 2000,
        "rounds": [[start], [{**met, **game}]],
        "algorithm": str(file),
        "updates": 20,
        "batch_size": 32,
        "learning_rate": "cos_5e-3_1e-4",
        "temperature": 0.1,
        "value_weight": 0.3,
        "max_grad_norm": 10.0,
        "every": 10,
        "seed": 0,
    }
