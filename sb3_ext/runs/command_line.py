"""What command lines share: options, threads, and how PyTorch calculates while a run lasts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch

_OPTIONS: dict[str, dict[str, Any]] = {
    "--actors": {
        "type": int,
        "default": 0,
        "help": "processes on a Ray cluster that share the work, one thread each (default 0: none)",
    },
    "--no-progress": {"action": "store_true", "help": "do not print progress"},
    "--set": {
        "action": "append",
        "default": [],
        "dest": "settings",
        "metavar": "KEY=VALUE",
        "help": "change a setting, such as a.b=1; may be repeated",
    },
    "--starts": {
        "metavar": "FILE",
        "help": "draw the starts of all games from this file, one position a line",
    },
    "--stop": {
        "action": "append",
        "default": [],
        "metavar": "RULE=VALUE",
        "help": "stop early and save when a rule is met: max_seconds, max_updates, ..., or "
        "until={condition: bound, field: METRIC, lower: 0.2}; may be repeated, see "
        "docs/configuration.md",
    },
    "--threads": {
        "type": int,
        "default": 1,
        "help": "threads of PyTorch (default 1; more are slower for small networks)",
    },
}


def add_options(parser: argparse._ActionsContainer, *names: str) -> None:
    """Adds options that several commands have, by their names, such as ``--threads``."""
    for name in names:
        parser.add_argument(name, **_OPTIONS[name])


Report = Callable[[str], None]
"""Called with one line of progress for every step."""


def reporter(shown: bool) -> Report:
    """Return a function that prints lines to stderr at once, or nothing."""
    return partial(print, file=sys.stderr, flush=True) if shown else lambda line: None


def starts_setting(starts: str | None) -> list[str]:
    """The option ``--starts``, if it was given, as a change of a configuration."""
    return [] if starts is None else [f"game.starts={json.dumps(starts)}"]


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """This many threads of torch in the block, 1 to 1024; None: as many as before."""
    if number is not None and not 1 <= number <= 1024:
        raise ValueError(f"threads must be between 1 and 1024, got {number}")
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


SWITCHES = {
    "deterministic": "use deterministic operations where PyTorch has them, and warn where it has "
    "none; needed on CUDA only",
    "tf32": "allow TF32 matrix multiplication: faster on recent NVIDIA GPUs, lower precision",
    "detect_anomaly": "find the operation that makes a NaN in a gradient; updates take several "
    "times as long",
}
"""What each switch does, for people."""


@contextmanager
def numerics(
    deterministic: bool = False, tf32: bool = False, detect_anomaly: bool = False
) -> Iterator[None]:
    """The switches that are True are on in the block, see `SWITCHES`; others stay as they are."""
    with ExitStack() as after:
        if deterministic:
            warn = torch.is_deterministic_algorithms_warn_only_enabled()
            before = torch.are_deterministic_algorithms_enabled()
            after.callback(torch.use_deterministic_algorithms, before, warn_only=warn)
            # Read when CUDA begins to multiply matrices; without it cuBLAS is refused.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)
        if tf32:
            precision = torch.get_float32_matmul_precision()
            after.callback(torch.set_float32_matmul_precision, precision)
            torch.set_float32_matmul_precision("high")
        if detect_anomaly:
            after.enter_context(torch.autograd.set_detect_anomaly(True))
        yield
