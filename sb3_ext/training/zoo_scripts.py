"""The commands of rl_zoo3 (2.9.2) that are scripts: ``record_video`` and ``plot_train``.

Their code cannot be called as `run_zoo` calls ``train`` and ``enjoy``, so the scripts themselves
run, with these names replaced meanwhile besides those of `sb3_ext.training.zoo`:

    utils.create_test_env   one batched environment where there is one, with the ``env_kwargs`` of
                            the run's file (the script forgets them, other than ``enjoy``)
    utils.StoreDict         key:value pairs are read as YAML, not evaluated as code
    yaml.UnsafeLoader       the safe loader, unless ``--trust`` is given
    seaborn                 if it is not installed: the script wants it for its colours alone
"""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import rl_zoo3
import rl_zoo3.utils
import yaml
from stable_baselines3.common.vec_env import VecEnv

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.training.zoo import _has_tensor_env, _replaced_names, take_trust

__all__ = ["plot_train", "record_video"]


def record_video(arguments: Sequence[str]) -> int:
    """Runs rl_zoo3's ``record_video``: films a trained model.

    Args:
        arguments: its command line.

    Returns:
        The exit code: 2 with one line on stderr for bad input.
    """
    if importlib.util.find_spec("moviepy") is None:
        return _refuse("record_video", "videos need moviepy, which is not installed: resgym[train]")
    make = rl_zoo3.utils.create_test_env

    def create_test_env(env_id: str, **kwargs: Any) -> VecEnv:
        of_file = kwargs["hyperparams"].pop("env_kwargs", None) or {}
        kwargs["env_kwargs"] = {**of_file, **kwargs["env_kwargs"]}
        if _has_tensor_env(env_id):
            kwargs["vec_env_cls"] = TensorVecEnv
        return make(env_id, **kwargs)

    trust, rest = take_trust("record_video", arguments)
    with ExitStack() as replaced:
        replaced.enter_context(_replaced_names(rl_zoo3.utils, None, trust))
        replaced.enter_context(patch.object(rl_zoo3.utils, "create_test_env", create_test_env))
        if not trust:
            replaced.enter_context(patch.object(yaml, "UnsafeLoader", yaml.SafeLoader))
        return _run(
            "record_video",
            rest,
            lambda: runpy.run_module("rl_zoo3.record_video", run_name="__main__"),
        )


def plot_train(arguments: Sequence[str]) -> int:
    """Runs rl_zoo3's ``plot_train``: learning curves from the runs' monitor files.

    Args:
        arguments: its command line, and ``-o FILE`` to write the picture to a file (its ending
            says the form) instead of opening a window. Without a display that is the way.

    Returns:
        The exit code: 2 with one line on stderr for bad input.
    """
    for name in ("matplotlib", "pandas"):
        if importlib.util.find_spec(name) is None:
            extra = "plots" if name == "matplotlib" else "train"
            return _refuse("plot_train", f"needs {name}, which is not installed: resgym[{extra}]")
    output, rest = _output_of(arguments)
    import matplotlib

    if output is not None:
        matplotlib.use("Agg")
    from matplotlib import pyplot

    show = pyplot.show

    def finish(*_: Any, **__: Any) -> None:
        _finish_plot(pyplot, output, show)

    # The file itself: its package imports what other plots need and nobody here has.
    script = Path(rl_zoo3.__file__).parent / "plots" / "plot_train.py"
    with ExitStack() as replaced:
        if importlib.util.find_spec("seaborn") is None:
            stand_in: Any = types.ModuleType("seaborn")
            stand_in.set = lambda: pyplot.style.use("ggplot")
            replaced.enter_context(patch.dict(sys.modules, {"seaborn": stand_in}))
        replaced.enter_context(patch.object(pyplot, "show", finish))
        replaced.callback(pyplot.close, "all")
        return _run("plot_train", rest, lambda: runpy.run_path(str(script), run_name="__main__"))


def _output_of(arguments: Sequence[str]) -> tuple[Path | None, list[str]]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output", type=Path)
    known, rest = parser.parse_known_args(list(arguments))
    return known.output, rest


def _finish_plot(pyplot: Any, output: Path | None, show: Callable[[], Any]) -> None:
    if not pyplot.gca().lines:
        raise ValueError(
            "nothing to plot: no run has as many finished episodes as -w (the window, 100) says"
        )
    if output is not None:
        pyplot.savefig(output)
        print(f"Wrote {output}")
    elif pyplot.get_backend().lower() == "agg":
        raise ValueError("there is no display: give -o FILE to write the picture to a file")
    else:
        show()


def _run(command: str, arguments: Sequence[str], run: Callable[[], Any]) -> int:
    with patch.object(sys, "argv", [f"python -m sb3_ext.{command}", "-f", "logs", *arguments]):
        try:
            run()
        except (AssertionError, ValueError, TypeError, OSError, yaml.YAMLError) as error:
            return _refuse(command, " ".join(str(error).split()))
    return 0


def _refuse(command: str, message: str) -> int:
    print(f"{command}: {message}", file=sys.stderr)
    return 2
