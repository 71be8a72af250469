"""``python -m sb3_ext.train``: rl_zoo3's ``train``, and runs that continue or start from others."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import gymnasium
import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import set_random_seed

from resgym.files import remove_unfinished
from resgym.trust import check_pickle, command_line, import_modules
from sb3_ext.callbacks.stopping import StopBy
from sb3_ext.config.checks import errors_of, unknown_word
from sb3_ext.runs.command import SWITCHES, command, numerics
from sb3_ext.runs.files import RunFolder
from sb3_ext.runs.stopping import read_stop_rules
from sb3_ext.train.flags import (
    REFUSED,
    check_algorithm,
    check_effects,
    make_parser,
    saved_arguments,
)
from sb3_ext.train.manager import Manager


@command("train", REFUSED)
def main(arguments: Sequence[str]) -> int:
    """Trains; returns the exit code, see `sb3_ext.runs.command.command`."""
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
    with (
        numerics(**switches),
        RunFolder(args.resume, "resume") if args.resume is not None else nullcontext(),
        command_line(args.trust, args.conf_file),
    ):
        if args.resume is not None:
            remove_unfinished(args.resume)
        if args.trained_agent:
            if not (args.trained_agent.endswith(".zip") and os.path.isfile(args.trained_agent)):
                raise ValueError(f"trained-agent: got {args.trained_agent!r}; expected a .zip file")
            check_pickle(args.trained_agent)
        _run(args, watching)


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
    if args.seed < 0:
        args.seed = int.from_bytes(os.urandom(4), "little")
    return args


def _run(args: argparse.Namespace, watching: Sequence[BaseCallback]) -> None:
    if args.num_threads > 0:
        torch.set_num_threads(args.num_threads)
    set_random_seed(args.seed)
    print("=" * 10, args.env, "=" * 10)
    print(f"Seed: {args.seed}")
    tracked = _track(args) if args.track else None
    manager = Manager(args, watching, f"_{uuid4()}" if args.uuid else "")
    model = None
    with manager.held:
        try:
            made = manager.setup_experiment()
            if made is None:
                manager.hyperparameters_optimization()
                return
            model, args.saved_hyperparams = made
            if tracked is not None:
                tracked.config.setdefaults(vars(args))
            manager.learn(model)
            manager.save_trained_model(model)
        except BaseException:
            # What is refused, or ends before anything was played, leaves nothing.
            if manager.folder is not None and not getattr(model, "num_timesteps", 0):
                manager.folder.discard()
            raise


def _track(args: argparse.Namespace) -> Any:
    """A run of Weights & Biases, as rl_zoo3 begins it."""
    from wandb import init  # type: ignore[import-not-found, unused-ignore]

    args.command = " ".join(sys.orig_argv)
    name = f"{args.env}__{args.algo}__{args.seed}__{int(time.time())}"
    args.tensorboard_log = f"runs/{name}"
    return init(
        name=name,
        project=args.wandb_project_name,
        entity=args.wandb_entity,
        group=args.wandb_group,
        tags=[*args.wandb_tags, f"v{stable_baselines3.__version__}"],
        config=vars(args),
        sync_tensorboard=True,
        monitor_gym=True,
        save_code=True,
    )
