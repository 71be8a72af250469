"""A target that takes no time: workers, storages and retries are tried with it.

The value is (x - 3)^2. As a program it is the command with this target, whose trials can be held:
each writes a file trial-<process>-<x> into the folder, and waits there until the file `go` exists.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sb3_ext.tuning import cli
from sb3_ext.tuning.targets import TARGETS, Report, Target

if "parabola" not in TARGETS:

    @TARGETS.register("parabola")
    class Parabola(Target):
        held: bool = False

        def read(self) -> dict[str, Any]:
            return {"x": 0.0, "kind": "plain"}

        def check(self, values: Mapping[str, Any]) -> None:
            if not values.keys() <= {"x", "kind"}:
                raise ValueError(f"unknown keys in {sorted(values)}")

        def train(
            self, values: Mapping[str, Any], report: Report, seed: int, folder: Path
        ) -> float:
            if values["kind"] == "broken":
                raise ValueError("kind: must be plain,\ngot broken")
            value = float((values["x"] - 3) ** 2)
            if self.held:
                (folder / f"trial-{os.getpid()}-{values['x']}").touch(exist_ok=False)
                report(0, value)
                while not (folder / "go").exists():
                    time.sleep(0.01)
            for step in range(1, 5):
                report(step, value)
            return value

        def command_line(self, path: Path) -> str:
            return f"cat {path}"


def study(**changes: Any) -> dict[str, Any]:
    """The data of a study file."""
    return {
        "config_version": 1,
        "name": "parabola",
        "target": {"command": "parabola", "config": "none"},
        "direction": "minimize",
        "search": {"x": {"low": -10.0, "high": 10.0}},
        "trials": 6,
        "sampler": {"name": "tpe", "n_startup_trials": 3},
        "pruner": {"name": "none"},
        "seed": 0,
        **changes,
    }


if __name__ == "__main__":
    raise SystemExit(cli.main(sys.argv[1:]))
