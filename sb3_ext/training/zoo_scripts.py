"""The commands of rl_zoo3 (2.9.2) that are scripts: ``record_video`` and ``plot_train``."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import rl_zoo3
import rl_zoo3.utils
import yaml
from stable_baselines3.common.vec_env import VecEnv

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.runs.command import command
from sb3_ext.training.zoo import _has_tensor_env, _register, _replaced_names, own_options
from sb3_ext.training.zoo_trust import replaced

__all__ = ["plot_train", "record_video"]

REFUSED = (AssertionError, ValueError, TypeError, OSError, yaml.YAMLError)


@command("record_video", REFUSED)
def record_video(arguments: Sequence[str]) -> int:
    """Films a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    if importlib.util.find_spec("moviepy") is None:
        raise ValueError("videos need moviepy, which is not installed: resgym[train]")
    make = rl_zoo3.utils.create_test_env

    def create_test_env(env_id: str, **kwargs: Any) -> VecEnv:
        # The script forgets the file's env_kwargs, other than enjoy.
        of_file = kwargs["hyperparams"].pop("env_kwargs", None) or {}
        kwargs["env_kwargs"] = {**of_file, **kwargs["env_kwargs"]}
        if _has_tensor_env(env_id):
            kwargs["vec_env_cls"] = TensorVecEnv
        return make(env_id, **kwargs)

    mine, rest = own_options("record_video", arguments)
    _register()
    with ExitStack() as stack:
        names = {"create_test_env": create_test_env}
        stack.enter_context(_replaced_names(rl_zoo3.utils, mine.trust, **names))
        if not mine.trust:
            stack.enter_context(replaced(yaml, "UnsafeLoader", yaml.SafeLoader))
        stack.enter_context(replaced(sys, "argv", ["python -m sb3_ext.record_video", *rest]))
        runpy.run_module("rl_zoo3.record_video", run_name="__main__")
    return 0


@command("plot_train", REFUSED)
def plot_train(arguments: Sequence[str]) -> int:
    """Learning curves from the runs' monitor files, by rl_zoo3's ``plot_train``.

    ``-o FILE`` writes the picture to a file (its ending says the form) instead of opening a window.
    """
    for name in ("matplotlib", "pandas"):
        if importlib.util.find_spec(name) is None:
            extra = "plots" if name == "matplotlib" else "train"
            raise ValueError(f"needs {name}, which is not installed: resgym[{extra}]")

    def add_output(group: Any) -> None:
        group.add_argument("-o", "--output", help="file to write instead of opening a window")

    mine, rest = own_options("plot_train", arguments, add_output)
    import matplotlib

    if mine.output is not None:
        matplotlib.use("Agg")
    from matplotlib import pyplot

    make_legend, open_window = pyplot.legend, pyplot.show

    def legend() -> None:
        if not pyplot.gca().lines:
            raise ValueError("nothing to plot: no run has as many finished episodes as -w says")
        make_legend()

    def show() -> None:
        if mine.output is not None:
            pyplot.savefig(mine.output)
            print(f"Wrote {mine.output}")
        elif pyplot.get_backend().lower() == "agg":
            raise ValueError("there is no display: give -o FILE to write the picture to a file")
        else:
            open_window()

    # The script takes its colours from seaborn, which is not among our requirements.
    colours = SimpleNamespace(set=lambda: pyplot.style.use("ggplot"))
    with ExitStack() as stack:
        stack.callback(pyplot.close, "all")
        if sys.modules.setdefault("seaborn", colours) is colours:  # type: ignore[arg-type]
            stack.callback(sys.modules.pop, "seaborn")
        stack.enter_context(replaced(pyplot, "legend", legend))
        stack.enter_context(replaced(pyplot, "show", show))
        stack.enter_context(replaced(sys, "argv", ["plot_train", *rest]))
        script = Path(rl_zoo3.__file__).with_name("plots") / "plot_train.py"
        runpy.run_path(str(script), run_name="__main__")
    return 0
