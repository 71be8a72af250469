"""A command that takes no time: workers, storages and retries are tried with it.

The value is (x - 3)^2. As a program it is the command tune, whose trials can be held: each writes a
file trial-<process>-<x> into the folder, and waits there until the file `go` exists.
"""

import os
import sys
import time
from functools import partial

from sb3_ext.__main__ import COMMANDS
from sb3_ext.config.sections import ConfigFile
from sb3_ext.runs.driver import Job, Used, beat, drive
from sb3_ext.tune import tune

COMMANDS["parabola"] = ("tests.sb3_ext.tune.parabola", "main", "")


class ParabolaConfig(ConfigFile):
    x: float = 0.0
    mode: str = "plain"
    held: bool = False


class Parabola(Job[ParabolaConfig]):
    name = "parabola"
    about = "(x - 3)^2"
    Config = ParabolaConfig

    @classmethod
    def read(cls, given):
        return ParabolaConfig.read({"x": 0.0, "mode": "plain"}, given.settings)

    def run(self, pulse):
        x, folder = self.config.x, self.run_of.common
        if self.config.mode == "broken":
            raise ValueError("mode: must be plain,\ngot broken")
        value = (x - 3) ** 2
        if self.config.held:
            assert folder
            (folder / f"trial-{os.getpid()}-{x}").touch(exist_ok=False)
            going_on = pulse(Used(0), value=value)
            while going_on and not (folder / "go").exists():
                going_on = pulse(Used(0))
                time.sleep(0.01)
        if self.config.mode == "ends":
            for step in range(1, 5):
                beat(pulse, Used(step), value=value)
            return
        for step in range(1, 5):
            if not pulse(Used(step), **({} if self.config.mode == "silent" else {"value": value})):
                return

    def report(self):
        return ""


main = partial(drive, Parabola)


def study(**changes):
    """The data of a study file."""
    return {
        "name": "parabola",
        "target": {"command": "parabola", "config": "none"},
        "value": ["value"],
        "direction": "minimize",
        "search": {"x": {"low": -10.0, "high": 10.0}},
        "trials": 6,
        "sampler": {"name": "tpe", "n_startup_trials": 3},
        "pruner": {"name": "none"},
        "seed": 0,
        **changes,
    }


if __name__ == "__main__":
    raise SystemExit(tune.main(sys.argv[1:]))
