"""rl_zoo3's ``plot_train`` (2.9.2), which is a script there."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.monitor import LoadMonitorResultsError, load_results

from resgym.cli import OneLineParser
from resgym.game.spec import check_integer
from sb3_ext.config.arguments import REFUSALS
from sb3_ext.runs.command import command
from sb3_ext.train.flags import REFUSED

X_AXES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "steps": ("Timesteps", lambda episodes: episodes.l.cumsum()),
    "episodes": ("Episodes", lambda episodes: range(len(episodes))),
    "time": ("Walltime (in hours)", lambda episodes: episodes.t / 3600),
}
COLUMNS = {
    "success": ("is_success", "Training Success Rate"),
    "reward": ("r", "Training Episodic Reward"),
    "length": ("l", "Training Episode Length"),
}


@command("plot_train", (*REFUSED, OSError))
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

    check_integer("episode-window", args.episode_window, 1)
    check_integer("fontsize", args.fontsize, 1, 1000)
    if not all(1 <= size <= 100 for size in args.figsize):
        raise ValueError(f"figsize must be 1 to 100 inches, got {args.figsize}")
    column, title = COLUMNS[args.y_axis]
    runs = Path(args.exp_folder, args.algo)
    if not runs.is_dir():
        raise ValueError(f"exp-folder: there is no folder {runs}")
    folders = sorted(runs.iterdir(), key=lambda each: each.stat().st_mtime)
    try:
        pyplot.style.use("ggplot")
        pyplot.figure(title, figsize=args.figsize)
        pyplot.title(title, fontsize=args.fontsize)
        pyplot.xlabel(X_AXES[args.x_axis][0], fontsize=args.fontsize)
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
        if args.max_timesteps is not None:
            episodes = episodes[episodes.l.cumsum() <= args.max_timesteps]
        if column not in episodes:
            print(f"No data available for {folder}")
            return
        x, first = X_AXES[args.x_axis][1](episodes), args.episode_window - 1
        mean = episodes[column].astype(float).rolling(args.episode_window).mean()
    except LoadMonitorResultsError:
        return
    except REFUSALS as error:
        raise ValueError(f"exp-folder: a monitor file of {folder} is damaged: {error!r}") from None
    if len(mean) > first:
        pyplot.plot(x[first:], mean[first:], linewidth=2, label=folder.name)


def _plot_parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext plot_train", description="Learning curves from monitor files."
    )
    add = parser.add_argument
    add("-a", "--algo", required=True, help="algorithm")
    add("-e", "--env", nargs="+", required=True, help="environments, or parts of their names")
    add("-f", "--exp-folder", default="logs", help="folder of the runs (default %(default)s)")
    add("--figsize", nargs=2, type=int, default=[6.4, 4.8], help="width and height in inches")
    add("--fontsize", type=int, default=14)
    add("-max", "--max-timesteps", type=int, help="leave out what came later")
    add("-x", "--x-axis", choices=list(X_AXES), default="steps", type=str)
    add("-y", "--y-axis", choices=list(COLUMNS), default="reward", type=str)
    add("-w", "--episode-window", type=int, default=100, help="episodes of the rolling mean")
    add("-o", "--output", type=Path, help="file to write instead of opening a window")
    return parser
