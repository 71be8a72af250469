"""The commands of rl_zoo3 (2.9.2) that are scripts: ``record_video`` and ``plot_train``."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import rl_zoo3
import yaml

from sb3_ext.runs.command import command
from sb3_ext.training.zoo import own_options, run_zoo

REFUSED = (ValueError, TypeError, OSError, yaml.YAMLError)


@command("record_video", REFUSED)
def record_video(arguments: Sequence[str]) -> int:
    """Films a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    if importlib.util.find_spec("moviepy") is None:
        raise ValueError("videos need moviepy, which is not installed: resgym[train]")
    mine, rest = own_options("record_video", arguments)
    return run_zoo("record_video", rest, trust=mine.trust)


def _add_output(group: Any) -> None:
    help_text = "file to write instead of opening a window; its ending says the form"
    group.add_argument("-o", "--output", type=Path, help=help_text)


@command("plot_train", REFUSED)
def plot_train(arguments: Sequence[str]) -> int:
    """Learning curves from the runs' monitor files: rl_zoo3's ``plot_train``, and ``-o FILE``.

    Returns the exit code, see `sb3_ext.runs.command.command`.
    """
    for name in ("matplotlib", "pandas"):
        if importlib.util.find_spec(name) is None:
            extra = "plots" if name == "matplotlib" else "train"
            raise ValueError(f"needs {name}, which is not installed: resgym[{extra}]")
    mine, rest = own_options("plot_train", arguments, _add_output)
    import matplotlib

    if mine.output is not None:
        matplotlib.use("Agg")
    from matplotlib import pyplot

    open_window = pyplot.show

    def show() -> None:
        if not pyplot.gca().lines:
            raise ValueError(
                "nothing to plot: no run has as many finished episodes as -w (the window) says"
            )
        if mine.output is not None:
            pyplot.savefig(mine.output)
            print(f"Wrote {mine.output}")
        elif pyplot.get_backend().lower() == "agg":
            raise ValueError("there is no display: give -o FILE to write the picture to a file")
        else:
            open_window()

    # The script takes its colours from a package that is not among our requirements.
    colours: Any = SimpleNamespace(set=lambda: pyplot.style.use("ggplot"))
    script = Path(str(rl_zoo3.__file__)).with_name("plots") / "plot_train.py"
    with ExitStack() as held:
        held.callback(pyplot.close, "all")
        held.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "No artists with labels")  # `show` says it
        held.callback(sys.modules.pop, "seaborn")
        sys.modules["seaborn"] = colours
        held.enter_context(patch.object(sys, "argv", ["python -m sb3_ext.plot_train", *rest]))
        held.enter_context(patch.object(pyplot, "show", show))
        runpy.run_path(str(script), run_name="__main__")
    return 0
