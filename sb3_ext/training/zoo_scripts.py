"""The commands of rl_zoo3 (2.9.2) that are scripts: ``record_video`` and ``plot_train``."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from stable_baselines3.common.monitor import LoadMonitorResultsError, load_results
from stable_baselines3.common.results_plotter import (
    X_EPISODES,
    X_TIMESTEPS,
    X_WALLTIME,
    ts2xy,
    window_func,
)

from sb3_ext.runs.command import command
from sb3_ext.training.zoo import own_options, run_zoo

REFUSED = (ValueError, TypeError, OSError, yaml.YAMLError)
X_AXES = {"steps": X_TIMESTEPS, "episodes": X_EPISODES, "time": X_WALLTIME}
COLUMNS = {
    "success": ("is_success", "Training Success Rate"),
    "reward": ("r", "Training Episodic Reward"),
    "length": ("l", "Training Episode Length"),
}


@command("record_video", REFUSED)
def record_video(arguments: Sequence[str]) -> int:
    """Films a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    if importlib.util.find_spec("moviepy") is None:
        raise ValueError("videos need moviepy, which is not installed: resgym[train]")
    mine, rest = own_options("record_video", arguments)
    return run_zoo("record_video", rest, trust=mine.trust)


@command("plot_train", REFUSED)
def plot_train(arguments: Sequence[str]) -> int:
    """Learning curves from the runs' monitor files, with the options of rl_zoo3's ``plot_train``.

    rl_zoo3's own script cannot be imported without a package that only gives it colours.
    ``-o FILE`` writes the picture to a file (its ending says the form) and opens no window.
    """
    for name in ("matplotlib", "pandas"):
        if importlib.util.find_spec(name) is None:
            extra = "plots" if name == "matplotlib" else "train"
            raise ValueError(f"needs {name}, which is not installed: resgym[{extra}]")
    args = _plot_parser().parse_args(arguments)
    import matplotlib

    if args.output is not None:
        matplotlib.use("Agg")
    from matplotlib import pyplot

    column, title = COLUMNS[args.y_axis]
    folders = sorted(
        Path(args.exp_folder, args.algo).iterdir(), key=lambda each: each.stat().st_mtime
    )
    try:
        pyplot.style.use("ggplot")
        pyplot.figure(title, figsize=args.figsize)
        pyplot.title(title, fontsize=args.fontsize)
        pyplot.xlabel(X_AXES[args.x_axis].title(), fontsize=args.fontsize)
        pyplot.ylabel(title, fontsize=args.fontsize)
        for folder in (each for env in args.env for each in folders if env in each.name):
            if folder.is_dir():
                _plot_run(pyplot, folder, column, args)
        if not pyplot.gca().lines:
            raise ValueError(
                "nothing to plot: no run has as many finished episodes as -w (the window, "
                f"{args.episode_window}) says"
            )
        pyplot.legend()
        pyplot.tight_layout()
        if args.output is not None:
            pyplot.savefig(args.output)
            print(f"Wrote {args.output}")
        elif pyplot.get_backend().lower() == "agg":
            raise ValueError("there is no display: give -o FILE to write the picture to a file")
        else:
            pyplot.show()
    finally:
        pyplot.close("all")
    return 0


def _plot_run(pyplot: Any, folder: Path, column: str, args: argparse.Namespace) -> None:
    try:
        episodes = load_results(str(folder))
    except LoadMonitorResultsError:
        return
    if args.max_timesteps is not None:
        episodes = episodes[episodes.l.cumsum() <= args.max_timesteps]
    if column not in episodes:
        print(f"No data available for {folder}")
        return
    x, _ = ts2xy(episodes, X_AXES[args.x_axis])
    if len(x) >= args.episode_window:
        x, mean = window_func(x, np.array(episodes[column]), args.episode_window, np.mean)
        pyplot.plot(x, mean, linewidth=2, label=folder.name)


def _plot_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_ext.plot_train", description="Learning curves from monitor files."
    )
    add = parser.add_argument
    add("-a", "--algo", required=True, help="algorithm")
    add("-e", "--env", nargs="+", required=True, help="environments, or parts of their names")
    add("-f", "--exp-folder", required=True, help="folder of the runs, such as logs")
    add("--figsize", nargs=2, type=int, default=[6.4, 4.8], help="width and height in inches")
    add("--fontsize", type=int, default=14)
    add("-max", "--max-timesteps", type=int, help="leave out what came later")
    add("-x", "--x-axis", choices=list(X_AXES), default="steps", type=str)
    add("-y", "--y-axis", choices=list(COLUMNS), default="reward", type=str)
    add("-w", "--episode-window", type=int, default=100, help="episodes of the rolling mean")
    add("-o", "--output", type=Path, help="file to write instead of opening a window")
    return parser
