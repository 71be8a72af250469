"""rl_zoo3's ``train`` with this project's algorithms, and runs that go on or start from others."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from resgym.trust import add_trust
from sb3_ext.callbacks.stopping import StopBy
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.config.checks import check_count
from sb3_ext.config.reading import read_mapping
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import add_options
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.numerics import SWITCHES, numerics
from sb3_ext.runs.ranks import Ranks, torchrun
from sb3_ext.runs.stopping import read_stop_rules
from sb3_ext.training.on_ranks import RankManager
from sb3_ext.training.runs import CHECKPOINT_UPDATES, RunOptions
from sb3_ext.training.zoo import REFUSED, Manager, run_train
from sb3_ext.training.zoo_arguments import own_options

# Before what was given, so that the same option given wins. One thread measures best on small
# machines. The best model is that of the best evaluation: five episodes, as in rl_zoo3, choose by
# luck, and in parallel many take no more time.
DEFAULTS = ("--num-threads", "1", "--eval-episodes", "200", "--n-eval-envs", "50")

# What a run that goes on keeps, beside its game, algorithm and networks.
NUMBERS = (
    *("eval_episodes", "eval_freq", "log_interval", "n_eval_envs", "n_timesteps", "num_threads"),
    *("save_freq", "seed", "verbose"),
)


def _add_options(group: Any) -> None:
    add = group.add_argument
    text = "ddqn: go on with an interrupted run, as logs/ddqn/resgym-HironakaHost-v0_1"
    add("--resume", type=Path, metavar="RUN", help=text)
    text = "ddqn: start a new run from the networks of another: its folder or a checkpoint"
    add("--init-from", type=Path, metavar="RUN", help=text)
    text = "ddqn: updates between two checkpoints, 0 for none (default 1000, or as before)"
    add("--checkpoint-updates", type=int, metavar="N", help=text)
    text = "ddqn: collect with so many actors in processes of their own (docs/cluster.md)"
    add("--actors", type=int, metavar="N", help=text)
    add_options(group, "--starts", "--stop")
    for name, text in SWITCHES.items():
        add(f"--{name.replace('_', '-')}", action="store_true", help=text.replace("%", "%%"))
    add_trust(group)


def _word(value: Any, more: str = "") -> str:
    """A text from a file that cannot be taken for an option, nor for a module to be imported."""
    if not isinstance(value, str) or not re.fullmatch(rf"\w[\w./{more}-]*", value):
        raise ValueError(f"must be a name, got {value!r}")
    return value


def _saved_arguments(run: Path) -> tuple[list[str], int, list[str]]:
    """What a run was started with: rl_zoo3's options, updates per checkpoint, switches."""
    found = sorted(run.glob("*/args.yml"))
    if not found:
        raise ValueError(f"resume: must be the folder of a run, but {run} has no */args.yml")
    with errors_named(f"resume: {found[0]} is damaged", ValueError):
        saved: Any = read_mapping(found[0])
        every = saved.get("checkpoint_updates", CHECKPOINT_UPDATES)
        # A class of a module that this command imports too, see `run_zoo`.
        kept: dict[str, Any] = {"algo": _word(saved["algo"], ":"), "env": _word(saved["env"])}
        kept |= {name: int(saved[name]) for name in NUMBERS if name in saved}
        kept |= {name: saved[name] for name in ("device", "tensorboard_log") if saved.get(name)}
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in kept.items()]
        if saved.get("save_replay_buffer"):
            arguments.append("--save-replay-buffer")
        for name in ("env_kwargs", "eval_env_kwargs"):
            if saved.get(name):
                arguments.append(f"--{name.replace('_', '-')}")
                arguments += [f"{_word(k)}:{json.dumps(value)}" for k, value in saved[name].items()]
        switches = [name for name in SWITCHES if saved.get(name) is True]
    return arguments, check_count("checkpoint_updates", every, low=0), switches


@command("train", REFUSED)
def main(arguments: Sequence[str]) -> int:
    """Trains; returns the exit code, see `sb3_ext.runs.command.command`."""
    with torchrun() as ranks:
        return _train(arguments, ranks)


def _train(arguments: Sequence[str], ranks: Ranks) -> int:
    mine, rest = own_options("train", arguments, _add_options)
    if mine.starts is not None and mine.resume is not None:
        raise ValueError("starts: a run that goes on keeps its own, leave the option out")
    RunOptions(mine.resume, mine.init_from)  # folders that are not there are named first
    fresh: tuple[list[str], int, list[str]] = ([], CHECKPOINT_UPDATES, [])
    saved, every, switches = _saved_arguments(mine.resume) if mine.resume else fresh
    if mine.checkpoint_updates is not None:
        every = mine.checkpoint_updates
    rules = read_stop_rules(mine.stop)
    callbacks = () if rules is None else (StopBy(rules, verbose=ranks.rank == 0),)
    switched = {name: getattr(mine, name) or name in switches for name in SWITCHES}
    options = RunOptions(
        *(mine.resume, mine.init_from, every, mine.actors, ranks, switched),
        callbacks=callbacks,
        starts=mine.starts,
    )
    manager = Manager if ranks.size == 1 else RankManager
    alone = mine.resume is not None and ranks.rank == 0
    with numerics(**switched), RunFolder(mine.resume, "resume") if alone else nullcontext():
        return run_train([*DEFAULTS, *saved, *rest], options, mine.trust, manager)
