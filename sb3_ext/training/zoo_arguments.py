"""The command lines of rl_zoo3: what it was given is checked, and options of this project added."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from resgym.cli import OneLineParser
from resgym.game.devices import resolve_device
from resgym.game.spec import check_integer
from resgym.trust import add_trust
from sb3_ext.config.checks import LARGEST_COUNT, numeric_string_hint
from sb3_ext.config.reading import find_config, split_setting

RANGES = {"n_timesteps": (1, LARGEST_COUNT), "num_threads": (1, 1024), "seed": (0, 2**32 - 1)}
"""Numbers that rl_zoo3 takes for something else when they are out of range."""
RANGES |= {"log_interval": (1, LARGEST_COUNT)}
RANGES |= dict.fromkeys(("eval_episodes", "n_envs", "n_eval_envs"), (1, 2**20))
PATHS = ("conf_file", "folder", "log_folder", "output_folder")

_parse = argparse.ArgumentParser.parse_args


class StoreYaml(argparse.Action):
    """Reads ``key:value`` arguments, each value as YAML."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        """Stores a dict."""
        stored = {}
        for pair in values:
            key, value = split_setting(pair, ":", str(option_string))
            # YAML 1.1 takes 1e-3 for text, which nobody means on a command line.
            exponent = numeric_string_hint(value) and value == pair.partition(":")[2]
            stored[key] = float(value) if exponent else value
        setattr(namespace, self.dest, stored)


def parse_args(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """What rl_zoo3's command was given, in `sys.argv`, checked."""
    return checked(parser)


def checked(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """What a command was given, in the ranges of rl_zoo3's options; -1 too, where it is default."""
    args = _parse(parser, arguments)
    for name, value in vars(args).items():
        option = name.replace("_", "-")
        if name in RANGES and value != parser.get_default(name):
            check_integer(option, value, *RANGES[name])
        if name in PATHS and value == "":
            raise ValueError(f"{option} must be a path, got ''")
        if name == "conf_file" and value:
            args.conf_file = str(find_config(value, field=option))
        if name == "device" and value != "auto":
            resolve_device(value)
    return args


def own_options(
    name: str, arguments: Sequence[str], add: Callable[[Any], object] = add_trust
) -> tuple[argparse.Namespace, list[str]]:
    """Our options, which ``add`` adds, and what is left for rl_zoo3; help tells of ours first."""
    parser = OneLineParser(prog=f"python -m sb3_ext {name}", add_help=False, allow_abbrev=False)
    add(parser.add_argument_group("this project's options (beside those of rl_zoo3)"))
    mine, rest = parser.parse_known_args(arguments)
    if "-h" in rest or "--help" in rest:
        print(parser.format_help())
    return mine, rest
