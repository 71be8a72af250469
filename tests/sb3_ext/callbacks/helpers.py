"""What the tests of callbacks share."""

from functools import partial

import gymnasium
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from sb3_ext.adapter import TensorVecEnv
from tests.sb3_ext.ddqn.helpers import make_model

SIZES = {"dimension": 3, "max_num_points": 5, "max_value": 6}


def game_env(seat, num_envs=4, **games):
    """Small games, with these keyword arguments of `make_vec` besides."""
    env_id = f"resgym/Hironaka{seat.capitalize()}-v0"
    games = {"opponent": "random", **SIZES, **games}
    return TensorVecEnv(gymnasium.make_vec(env_id, num_envs, **games))


def game_model(seat="host", num_envs=8, **arguments):
    """A small DDQN on the game."""
    return make_model(game_env(seat, num_envs), f"{seat.capitalize()}Policy", **arguments)


def untrained_player(seat, **arguments):
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
