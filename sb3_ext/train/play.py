"""Play with trained models: ``enjoy`` and ``record_video``, with rl_zoo3's options."""

from __future__ import annotations

import argparse
import glob
import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import rl_zoo3.enjoy
import torch
from rl_zoo3.utils import get_latest_run_id, get_model_path
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecVideoRecorder, unwrap_vec_normalize
from tqdm import tqdm

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line, import_modules
from sb3_ext.ddqn.legality import with_masks
from sb3_ext.runs.command import command
from sb3_ext.train.loading import SavedRun
from sb3_ext.train.train import CHANGED, REFUSED, add_flags, check_algorithm, whole

_CHANGED: Mapping[str, Mapping[str, Any]] = {
    **CHANGED,
    "--deterministic": {"help": "take the best action (the default)"},
    "--exp-id": {"type": whole(0), "help": "number of the run (default: the newest)"},
    "--folder": {"type": Path, "default": Path("logs")},
    "--load-checkpoint": {"type": whole(1), "metavar": "STEPS"},
    "--n-envs": {"type": whole(1, 2**20)},
    "--n-timesteps": {"type": whole(1)},
    "--num-threads": {"type": whole(1, 1024, -1)},
    "--reward-log": {"type": Path, "default": None, "metavar": "DIR"},
    "--seed": {"type": whole(0, 2**32 - 1)},
}


@command("enjoy", REFUSED)
def enjoy(arguments: Sequence[str]) -> int:
    """Plays a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    parser = _parser("enjoy", "Play with a model trained by python -m sb3_ext.train.")
    args = parser.parse_args(arguments)
    _play(args, None if args.no_render else "human")
    return 0


@command("record_video", REFUSED)
def record_video(arguments: Sequence[str]) -> int:
    """Films a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    if importlib.util.find_spec("moviepy") is None:
        raise ValueError("videos need moviepy, which is not installed: resgym[train]")
    description = "Record a video of a model trained by python -m sb3_ext.train."
    parser = _parser("record_video", description, "--norm-reward", "--reward-log")
    parser.add_argument("-o", "--output-folder", type=Path, help="default: videos in the run")
    parser.set_defaults(norm_reward=False, reward_log=None, verbose=0)
    _play(parser.parse_args(arguments), "rgb_array")
    return 0


def _parser(name: str, description: str, *without: str) -> argparse.ArgumentParser:
    parser = OneLineParser(prog=f"python -m sb3_ext {name}", description=description)
    add_flags(parser, rl_zoo3.enjoy.enjoy, _CHANGED, ("--custom-objects", *without))
    parser.set_defaults(env_kwargs={})
    add_trust(parser)
    return parser


def _play(args: argparse.Namespace, render: str | None) -> None:
    """Plays this many steps of all environments, shown, filmed or neither; Ctrl-C ends them."""
    if args.num_threads > 0:
        torch.set_num_threads(args.num_threads)
    import_modules(args.gym_packages)
    check_algorithm(args.algo)
    which = (args.load_best, args.load_checkpoint, args.load_last_checkpoint)
    # rl_zoo3 looks for a pattern, which the folder's own name must not be.
    runs = glob.escape(str(args.folder / args.algo))
    number = args.exp_id or get_latest_run_id(runs, args.env)
    prefix, path, folder = get_model_path(number, args.folder, args.algo, args.env, *which)
    print(f"Loading {path}")
    set_random_seed(args.seed)
    with command_line(args.trust, *Path(folder).glob("*/*.yml")):
        run = SavedRun(Path(folder), args.env_kwargs)
    shown = {} if render is None else {"render_mode": render}
    env = run.make_env(args.n_envs, args.seed, args.reward_log, **shown)
    if (statistics := unwrap_vec_normalize(env)) is not None:
        statistics.norm_reward = args.norm_reward
    model = with_masks(run.model(Path(path), env, args.device), env)
    if render == "rgb_array":
        films = str(args.output_folder or run.folder / "videos")
        env = VecVideoRecorder(env, films, lambda step: step == 0, args.n_timesteps, prefix)
    observations: Any = env.reset()
    state, starts = None, np.ones(env.num_envs, dtype=bool)
    episode, episodes = np.zeros(2), []  # return and length, of the first row
    with suppress(KeyboardInterrupt):
        for _ in tqdm(range(args.n_timesteps), disable=not args.progress):
            actions, state = model.predict(observations, state, starts, not args.stochastic)
            observations, rewards, starts, _ = env.step(actions)
            if render == "human":
                env.render("human")
            episode = episode + np.array([rewards[0], 1])
            if starts[0]:
                if args.verbose > 0:
                    print(f"Episode Reward: {episode[0]:.2f}\nEpisode Length {episode[1]:.0f}")
                episodes.append(episode)
                episode = np.zeros(2)
    env.close()
    if args.verbose > 0 and episodes:
        (mean, length), deviation = np.mean(episodes, 0), np.std(episodes, 0)
        print(f"{len(episodes)} Episodes\nMean reward: {mean:.2f} +/- {deviation[0]:.2f}")
        print(f"Mean episode length: {length:.2f} +/- {deviation[1]:.2f}")
