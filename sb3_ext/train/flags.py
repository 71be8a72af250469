"""The command line of `train`: the flags of rl_zoo3's own (2.9.2), and ours; the algorithms.

rl_zoo3 keeps its parser inside a function, so its flags stand here once more; a test compares them
with its source. Its tables of algorithms take ours, as it asks plugins to.
"""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import rl_zoo3
import rl_zoo3.hyperparams_opt

from resgym.game.devices import resolve_device
from resgym.terminal.command import OneLineParser, told
from resgym.trust import add_trust
from sb3_ext.config.checks import LARGEST_COUNT, errors_of, numeric_string_hint, unknown_word
from sb3_ext.config.sections import find_config, read_mapping, split_setting
from sb3_ext.ddqn.algorithms import ALGORITHMS, family
from sb3_ext.runs.command import SWITCHES, add_options

REFUSED = (AssertionError, FileNotFoundError, TypeError, ValueError)
"""What rl_zoo3, SB3 and this package raise for files and command lines that are not valid."""


class StoreYaml(argparse.Action):
    """Reads ``key:value`` arguments, each value as YAML."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        """Stores a dict."""
        stored = {}
        for pair in values:
            key, value = split_setting(pair, ":", str(option_string))
            # YAML 1.1 takes 1e-3 for text, which is never meant on a command line.
            exponent = numeric_string_hint(value) and value == pair.partition(":")[2]
            stored[key] = float(value) if exponent else value
        setattr(namespace, self.dest, stored)


def whole(low: int, high: int = LARGEST_COUNT, *besides: int) -> Callable[[str], int]:
    """A type of argparse: whole numbers in a range, and those of rl_zoo3 that mean none."""

    def read(text: str) -> int:
        with suppress(ValueError):
            number = int(text)
            if low <= number <= high or number in besides:
                return number
        raise ArgumentTypeError(f"must be a whole number between {low} and {high}, got {text}")

    return read


device_name = told(lambda text: text if text == "auto" else str(resolve_device(text)))
_config = told(lambda text: str(find_config(text, field="conf-file")))


def _truth(text: str) -> bool:
    return text.lower() not in ("", "0", "false", "no")


_SIZE = whole(1, 2**20)
_FLAGS: tuple[tuple[str, Any, Any, str], ...] = (
    ("--algo", str, "ppo", "algorithm, a name or module:Class"),
    ("--env", str, "CartPole-v1", "id of the environment"),
    ("-tb --tensorboard-log", str, "", "folder for TensorBoard"),
    ("-i --trained-agent", str, "", "continue training this .zip; needs --trust"),
    (
        "--truncate-last-trajectory",
        _truth,
        True,
        "truncate the last trajectory of a loaded HER buffer",
    ),
    ("-n --n-timesteps", whole(1, LARGEST_COUNT, -1), -1, "transitions (-1: as in the file)"),
    # One thread measures best on small machines.
    ("--num-threads", whole(1, 1024, -1), 1, "threads of PyTorch (-1: its own choice)"),
    (
        "--log-interval",
        whole(1, LARGEST_COUNT, -1, -2),
        -1,
        "log interval; -1: the algorithm's own, -2: none",
    ),
    ("--eval-freq", whole(1, LARGEST_COUNT, -1), 25000, "steps between evaluations, -1: none"),
    ("--optimization-log-path", str, None, "folder for the trials of a search"),
    # The best model is that of the best evaluation: five episodes, as in rl_zoo3, choose by luck,
    # and in parallel many take no more time.
    ("--eval-episodes", _SIZE, 200, "episodes per evaluation"),
    ("--n-eval-envs", _SIZE, 50, "parallel environments of an evaluation"),
    ("--save-freq", whole(1, LARGEST_COUNT, -1), -1, "steps between rl_model_*.zip, -1: none"),
    ("-f --log-folder", Path, Path("logs"), "folder of the runs"),
    ("--seed", whole(0, 2**32 - 1, -1), -1, "seed of the run (-1: random)"),
    ("--device", device_name, "auto", "device: cpu, cuda, ..."),
    ("--n-trials", whole(1), 500, "trials of a search per process"),
    ("--max-total-trials", whole(1), None, "trials of a search in all processes"),
    ("--n-jobs", whole(1, 1024), 1, "threads of a search"),
    ("--n-startup-trials", whole(0), 10, "trials before the sampler is used"),
    ("--n-evaluations", whole(1), None, "evaluations of a trial"),
    ("--storage", str, None, "database of a search, shared by processes"),
    ("--study-name", str, None, "name of the search in the database"),
    ("--trial-id", whole(0), None, "train with the hyperparameters of this trial"),
    ("--verbose", whole(0, 2), 1, "verbosity; 0: quiet"),
    (
        "-conf --conf-file",
        _config,
        None,
        "hyperparameters: a .yml file or the name of a shipped one",
    ),
    ("--wandb-project-name", str, "sb3", "project of Weights & Biases, with --track"),
    ("--wandb-entity", str, None, "its entity, with --track"),
    ("--wandb-group", str, None, "its group, with --track"),
)
_CHOICES = {
    "--vec-env": ("class of single environments", "dummy", "subproc"),
    "--sampler": ("sampler of a search", "tpe", "random", "auto"),
    "--pruner": ("pruner of a search", "median", "halving", "none"),
}
_YAML = {"action": StoreYaml}
_LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "--gym-packages": ("modules that register environments, imported first", {"default": []}),
    "-tags --wandb-tags": ("tags of the run, with --track", {"default": []}),
    "--env-kwargs": ("arguments of the environment as key:value", _YAML),
    "--eval-env-kwargs": ("the same for evaluations", _YAML),
    "-params --hyperparams": ("hyperparameters in place of the file's, as key:value", _YAML),
}
_ON_OFF = {
    "--save-replay-buffer": "keep the replay buffer",
    "-optimize --optimize-hyperparameters": "search for hyperparameters instead of training",
    "--no-optim-plots": "make no plots of a search",
    "-uuid --uuid": "give the run's folder a unique name",
    "--track": "track the run with Weights & Biases",
    "-P --progress": "show a progress bar",
}


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``python -m sb3_ext.train``."""
    parser = OneLineParser(
        prog="python -m sb3_ext.train",
        description="Train one player, with the options of rl_zoo3.",
        allow_abbrev=False,
    )
    ours = parser.add_argument_group("this project's options (beside those of rl_zoo3)")
    earlier, add = ours.add_mutually_exclusive_group(), ours.add_argument
    text = "ddqn: resume an interrupted run, such as logs/ddqn/resgym-HironakaHost-v0_1"
    earlier.add_argument("--resume", type=Path, metavar="RUN", help=text)
    text = "ddqn: start with the networks of another run: its folder or a checkpoint"
    earlier.add_argument("--init-from", type=Path, metavar="RUN", help=text)
    text = "ddqn: updates between two checkpoints, 0 for none (default 1000)"
    add("--checkpoint-updates", type=whole(0), metavar="N", help=text)
    text = "ddqn: collect with this many actor processes (docs/cluster.md)"
    add("--actors", type=whole(0, 2**20), metavar="N", help=text)
    add_options(ours, "--starts", "--stop")
    for name, text in SWITCHES.items():
        add(f"--{name.replace('_', '-')}", action="store_true", help=text.replace("%", "%%"))
    add_trust(ours)
    add_flags(parser.add_argument_group("options of rl_zoo3"))
    return parser


def add_flags(parser: argparse._ActionsContainer, *only: str) -> None:
    """Adds the flags of rl_zoo3, or only some of them, to a command line."""

    def add(names: str, text: str, **keywords: Any) -> None:
        if not only or {*names.split()} & {*only}:
            parser.add_argument(*names.split(), help=text, **keywords)

    usual = " (default %(default)s)"
    for names, read, default, text in _FLAGS:
        text += "" if default in (None, "") else usual
        add(names, text, type=read, default=default)
    for names, (text, *choices) in _CHOICES.items():
        add(names, text + usual, choices=choices, default=choices[0])
    for names, (text, more) in _LISTS.items():
        add(names, text, nargs="+", **more)
    for names, text in _ON_OFF.items():
        add(names, text, action="store_true")


ONLY_WITH = {
    **dict.fromkeys(
        (
            *("max_total_trials", "n_evaluations", "n_jobs", "n_startup_trials", "n_trials"),
            *("no_optim_plots", "optimization_log_path", "pruner", "sampler"),
        ),
        "optimize_hyperparameters",
    ),
    **dict.fromkeys(("trial_id", "study_name"), "storage"),
    **dict.fromkeys(("wandb_entity", "wandb_group", "wandb_project_name", "wandb_tags"), "track"),
}
"""Options, and those without which they would do nothing."""
NOT_SEARCHING = ("actors", "init_from", "resume", "stop", "track", "trained_agent")
"""Options of a training, which a search would leave out."""
NOT_RESUMING = ("conf_file", "log_folder", "starts", "trained_agent", "uuid")
"""What a resumed run has already."""


def check_effects(args: argparse.Namespace, usual: Callable[[str], Any]) -> None:
    """A ValueError if an option would have no effect beside the others.

    Args:
        args: the command line.
        usual: the default of an option.
    """
    for name, needed in ONLY_WITH.items():
        if getattr(args, name) != usual(name) and not getattr(args, needed):
            raise ValueError(f"{name.replace('_', '-')}: needs --{needed.replace('_', '-')}")
    names, reason = tuple[str, ...](), ""
    if args.optimize_hyperparameters:
        names, reason = NOT_SEARCHING, "works without --optimize-hyperparameters"
    elif args.resume:
        names, reason = NOT_RESUMING, "a resumed run keeps its own; leave the option out"
    for name in names:
        if getattr(args, name) != usual(name):
            raise ValueError(f"{name.replace('_', '-')}: {reason}")


KEPT = (
    *("algo", "checkpoint_updates", "device", "env", "env_kwargs", "eval_env_kwargs"),
    *("eval_episodes", "eval_freq", "log_interval", "n_eval_envs", "n_timesteps", "num_threads"),
    *("save_freq", "save_replay_buffer", "seed", "tensorboard_log", "verbose", *SWITCHES),
)
"""What a resumed run keeps of its command line, unless the new one differs."""


def arguments_of(run: Path) -> Path:
    """The file of arguments in the folder of a run; a ValueError if it is none."""
    found = sorted(run.glob("*/args.yml"))
    if len(found) != 1:
        raise ValueError(
            f"{run} is not the folder of a run: it has no */args.yml; expected one such as"
            " logs/ddqn/resgym-HironakaHost-v0_1"
        )
    return found[0]


def saved_arguments(run: Path) -> dict[str, Any]:
    """What a run was started with, for `ArgumentParser.set_defaults`.

    Raises:
        ValueError: there is no file of arguments, or it holds what no command line has.
    """
    with errors_of("resume", ValueError):
        saved = read_mapping(arguments_of(run))
        if missing := {"algo", "env"} - saved.keys():
            raise ValueError(f"{run}: {min(missing)}: is missing in args.yml")
    return {  # texts are read as if they stood on the command line
        name: saved[name] if isinstance(saved[name], (bool, Mapping)) else str(saved[name])
        for name in KEPT
        if saved.get(name) is not None
    }


def known_algorithms(*classes: str) -> dict[str, Any]:
    """rl_zoo3's table with ours and classes (module:Class) in it, as it asks plugins to."""
    ours = {**ALGORITHMS, **{path: ALGORITHMS.resolve(path) for path in classes}}
    samplers: Any = rl_zoo3.hyperparams_opt.HYPERPARAMS_SAMPLER
    converters: Any = rl_zoo3.hyperparams_opt.HYPERPARAMS_CONVERTER
    samplers["ddqn"] = lambda *given: _for_ddqn(samplers["dqn"](*given))
    converters["ddqn"] = lambda given: _for_ddqn(converters["dqn"](given))
    samplers["ppo_mask"], converters["ppo_mask"] = samplers["ppo"], converters["ppo"]
    rl_zoo3.ALGOS.update(ours)
    for name in ours:  # those of others are searched as what they derive from
        for table in (samplers, converters):
            if (near := family(ours[name])) in table:
                table.setdefault(name, table[near])
    return rl_zoo3.ALGOS


def _for_ddqn(values: dict[str, Any]) -> dict[str, Any]:
    """What rl_zoo3 searches for DQN, without a schedule of exploration."""
    return {**values, "exploration_rate": None}


def check_algorithm(name: str) -> str:
    """The name of an algorithm that is known; a class (module:Class) is entered first."""
    with errors_of("algo", ValueError):
        known = known_algorithms(*([name] if ":" in name else []))
        if name not in known:
            raise ValueError(unknown_word("algorithm", name, known))
    return name
