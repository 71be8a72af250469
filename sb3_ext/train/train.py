"""``python -m sb3_ext.train``: rl_zoo3's ``train`` (2.9.2), and runs that continue or start anew.

rl_zoo3 keeps its options and all that it does with them inside one function. A copy of that
function runs here, with our parser and our `Manager` in place of its own. Our algorithms are
entered into its tables, as it asks plugins to.
"""

from __future__ import annotations

import argparse
import os
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import gymnasium
import rl_zoo3.hyperparams_opt
import rl_zoo3.train

from resgym.files import remove_unfinished
from resgym.game.devices import resolve_device
from resgym.terminal.command import OneLineParser, told
from resgym.trust import add_trust, check_pickle, command_line, import_modules
from sb3_ext.callbacks.stopping import StopBy
from sb3_ext.config.checks import LARGEST_COUNT, errors_of, numeric_string_hint, unknown_word
from sb3_ext.config.sections import find_config, read_mapping, split_setting
from sb3_ext.ddqn.algorithms import ALGORITHMS, family
from sb3_ext.runs.command import SWITCHES, add_options, command, numerics
from sb3_ext.runs.files import RunFolder
from sb3_ext.runs.stopping import read_stop_rules
from sb3_ext.train.manager import Manager
from sb3_ext.train.quickstart import win

REFUSED = (AssertionError, FileNotFoundError, TypeError, ValueError)
"""What rl_zoo3, SB3 and this package raise for files and command lines that are not valid."""


@command("train", REFUSED)
def main(arguments: Sequence[str]) -> int:
    """Trains; returns the exit code, see `sb3_ext.runs.command.command`."""
    if arguments[:1] == ["win"]:
        return win(arguments[1:])
    train(arguments)
    return 0


def train(arguments: Sequence[str]) -> None:
    """Does what a command line says.

    Raises:
        AssertionError, FileNotFoundError, TypeError, ValueError: it cannot be done.
    """
    args = _parsed(arguments)
    watching = [StopBy(read_stop_rules(args.stop), verbose=1)] if args.stop else []
    del args.stop, args.modules  # a resumed run does not keep these
    switches = {name: getattr(args, name) for name in SWITCHES}
    with numerics(**switches), command_line(args.trust, args.conf_file), ExitStack() as held:
        if args.resume is not None:
            held.enter_context(RunFolder(args.resume, "resume"))
            remove_unfinished(args.resume)
        if args.trained_agent:
            if not (args.trained_agent.endswith(".zip") and os.path.isfile(args.trained_agent)):
                raise ValueError(f"trained-agent: got {args.trained_agent!r}; expected a .zip file")
            check_pickle(args.trained_agent)
        parser = SimpleNamespace(add_argument=lambda *_, **__: None, parse_args=lambda: args)
        manager = partial(Manager, watching, held)
        _call_zoo(rl_zoo3.train.train, parser, ExperimentManager=manager)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line, checked, with what a resumed run keeps."""
    parser = make_parser()
    args = parser.parse_args(arguments)
    if args.resume is not None:
        parser.set_defaults(**saved_arguments(args.resume))
        args = parser.parse_args(arguments)
    check_effects(args, parser.get_default)
    with errors_of("gym-packages", ValueError):
        import_modules(args.gym_packages)
    args.algo = check_algorithm(args.algo)
    if args.env not in gymnasium.registry:
        raise ValueError(f"env: {unknown_word('environment', args.env, gymnasium.registry)}")
    return args


def _call_zoo(function: Any, parser: Any, **names: Any) -> None:
    """Calls a copy of a function of rl_zoo3 that makes a parser and works with its arguments.

    Args:
        function: the function.
        parser: replaces its parser.
        **names: replace other names of its module.
    """
    names["argparse"] = SimpleNamespace(ArgumentParser=lambda: parser)
    FunctionType(function.__code__, {**function.__globals__, **names})()


class StoreYaml(argparse.Action):
    """Reads ``key:value`` arguments, each value as YAML; rl_zoo3 evaluates them as Python."""

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


_SIZE = whole(1, 2**20)
CHANGED: Mapping[str, Mapping[str, Any]] = {
    **{
        key: {"type": whole(1, LARGEST_COUNT, -1)}
        for key in ("--eval-freq", "--n-timesteps", "--save-freq")
    },
    **{key: {"type": whole(1)} for key in ("--max-total-trials", "--n-evaluations", "--n-trials")},
    **{key: {"type": whole(0)} for key in ("--n-startup-trials", "--trial-id")},
    "--algo": {"choices": None, "help": "algorithm, a name or module:Class"},
    "--conf-file": {
        "type": told(lambda text: str(find_config(text, field="conf-file"))),
        "help": "hyperparameters: a .yml file or the name of a shipped one",
    },
    "--device": {"type": told(lambda text: text if text == "auto" else str(resolve_device(text)))},
    # The best model is that of the best evaluation: five episodes, as in rl_zoo3, choose by luck,
    # and in parallel many take no more time.
    "--eval-episodes": {"type": _SIZE, "default": 200},
    "--n-eval-envs": {"type": _SIZE, "default": 50},
    "--log-folder": {"type": Path, "default": Path("logs")},
    "--log-interval": {"type": whole(1, LARGEST_COUNT, -1, -2)},
    "--n-jobs": {"type": whole(1, 1024)},
    # One thread measures best on small machines.
    "--num-threads": {"type": whole(1, 1024, -1), "default": 1},
    "--seed": {"type": whole(0, 2**32 - 1, -1)},
    "--trained-agent": {"help": "continue training this .zip; needs --trust"},
    "--truncate-last-trajectory": {
        "type": lambda text: text.lower() not in ("", "0", "false", "no")
    },
    "--verbose": {"type": whole(0, 2)},
}
"""What differs in options of rl_zoo3, which takes any number."""


class _Complete(Exception):
    """A function of rl_zoo3 has named all its options."""


def add_flags(
    parser: argparse._ActionsContainer,
    function: Callable[[], None],
    changed: Mapping[str, Mapping[str, Any]] = CHANGED,
    without: Collection[str] = (),
) -> None:
    """Adds the options of a function of rl_zoo3 to a command line.

    Args:
        parser: of the command line, or a group of it.
        function: ``train`` or ``enjoy``.
        changed: keywords of `add_argument` in place of those of rl_zoo3, by option.
        without: options that are left out.
    """

    def add(*names: str, **keywords: Any) -> None:
        if names[-1] not in without:
            keywords |= changed.get(names[-1], {})
            keywords["help"] += " (default %(default)s)" if keywords.get("default") else ""
            parser.add_argument(*names, **keywords)

    def complete() -> None:
        raise _Complete

    with suppress(_Complete):
        theirs = SimpleNamespace(add_argument=add, parse_args=complete)
        _call_zoo(function, theirs, StoreDict=StoreYaml)


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
    add_flags(parser.add_argument_group("options of rl_zoo3"), rl_zoo3.train.train)
    return parser


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


def check_algorithm(name: str) -> str:
    """The name of an algorithm that is known.

    rl_zoo3's tables get our algorithms first, as it asks plugins to, and a class (module:Class).
    """
    with errors_of("algo", ValueError):
        classes = {name: ALGORITHMS.resolve(name)} if ":" in name else {}
        rl_zoo3.ALGOS.update(ours := {**ALGORITHMS, **classes})
        searched: Any = rl_zoo3.hyperparams_opt
        for table in (searched.HYPERPARAMS_SAMPLER, searched.HYPERPARAMS_CONVERTER):
            table |= {"ddqn": _for_ddqn(table["dqn"]), "ppo_mask": table["ppo"]}
            for each, kind in ours.items():  # those of others are searched as what they derive from
                if (near := family(kind)) in table:
                    table.setdefault(each, table[near])
        if name not in rl_zoo3.ALGOS:
            raise ValueError(unknown_word("algorithm", name, rl_zoo3.ALGOS))
    return name


def _for_ddqn(search: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """What rl_zoo3 searches for DQN, without a schedule of exploration."""
    return lambda *given: {**search(*given), "exploration_rate": None}
