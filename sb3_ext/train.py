"""``python -m sb3_ext.train``: rl_zoo3's train with this project's algorithms and environments.

Example:
    python -m sb3_ext.train --algo ddqn --env resgym/HironakaHost-v0 --progress
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resgym.players.trust import add_trust
from sb3_ext.config.yaml_files import read_yaml
from sb3_ext.training.runs import RunOptions
from sb3_ext.training.zoo import run_zoo

__all__ = ["DEFAULTS", "main"]

# Before what was given, so that the same option given wins. One thread measures best on small
# machines. The best model is that of the best evaluation: five episodes, as in rl_zoo3, choose by
# luck, and in parallel many take no more time.
DEFAULTS = ("--num-threads", "1", "--eval-episodes", "200", "--n-eval-envs", "50")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_ext.train", add_help=False, allow_abbrev=False
    )
    group = parser.add_argument_group("this project's options (ddqn; beside those of rl_zoo3)")
    group.add_argument(
        "--resume",
        type=Path,
        metavar="RUN",
        help="go on with an interrupted run: its folder, as logs/ddqn/resgym-HironakaHost-v0_1",
    )
    group.add_argument(
        "--init-from",
        type=Path,
        metavar="RUN",
        help="start a new run from the networks of another: its folder or a checkpoint",
    )
    group.add_argument(
        "--checkpoint-updates",
        type=int,
        default=1000,
        metavar="N",
        help="updates between two checkpoints, 0 for none (default 1000)",
    )
    add_trust(group)
    return parser


def _word(value: Any) -> str:
    """A text from a file that cannot be taken for an option, nor for a module to be imported."""
    if not isinstance(value, str) or not re.fullmatch(r"\w[\w./-]*", value):
        raise ValueError(f"must be a name, got {value!r}")
    return value


def _arguments_of(run: Path) -> list[str]:
    """The command line that a run was started with, from the files in its folder."""
    found = sorted(run.glob("*/args.yml"))
    if not found:
        raise ValueError(f"resume: must be the folder of a run, but {run} has no */args.yml")
    try:
        saved: Any = read_yaml(found[0])
        arguments = [f"--algo={_word(saved['algo'])}", f"--env={_word(saved['env'])}"]
        arguments += [f"--seed={int(saved['seed'])}", f"-n={int(saved['n_timesteps'])}"]
        for name in ("env_kwargs", "eval_env_kwargs"):
            if saved.get(name):
                arguments.append(f"--{name.replace('_', '-')}")
                arguments += [
                    f"{_word(key)}:{json.dumps(value)}" for key, value in saved[name].items()
                ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"resume: {found[0]} is damaged: {' '.join(str(error).split())}"
        ) from error
    return arguments


def main(arguments: Sequence[str]) -> int:
    """Trains; returns the exit code (2 with one line on stderr for bad input)."""
    parser = _parser()
    mine, rest = parser.parse_known_args(arguments)
    if "-h" in rest or "--help" in rest:
        print(parser.format_help())
    try:
        options = RunOptions(mine.resume, mine.init_from, mine.checkpoint_updates)
        if mine.resume is not None:
            rest = [*_arguments_of(mine.resume), *rest]
    except ValueError as error:
        print(f"train: {error}", file=sys.stderr)
        return 2
    return run_zoo("train", [*DEFAULTS, *rest], options, trust=mine.trust)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
