"""Play with trained models: ``enjoy`` and ``record_video``, with rl_zoo3's options."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_sb3 import EnvironmentName
from rl_zoo3.utils import get_model_path
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv, VecVideoRecorder, unwrap_vec_normalize
from tqdm import tqdm

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line, import_modules
from sb3_ext.runs.command import command
from sb3_ext.train.flags import REFUSED, add_flags, check_algorithm, whole
from sb3_ext.train.loading import SavedRun


@command("enjoy", REFUSED)
def enjoy(arguments: Sequence[str]) -> int:
    """Plays a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    parser = _parser("enjoy", "Play with a model trained by python -m sb3_ext.train.")
    add_flags(parser, "--num-threads", "--verbose", "--device", "--progress")
    parser.set_defaults(num_threads=-1)
    add = parser.add_argument
    add("--norm-reward", action="store_true", help="show rewards as VecNormalize scales them")
    add("--reward-log", type=Path, metavar="DIR", help="write the episodes to a monitor file there")
    args = parser.parse_args(arguments)
    if args.num_threads > 0:
        torch.set_num_threads(args.num_threads)
    run, path, _ = _saved(args)
    shown = {} if args.no_render else {"render_mode": "human"}
    env = run.make_env(args.n_envs, args.seed, args.reward_log, **shown)
    if (statistics := unwrap_vec_normalize(env)) is not None:
        statistics.norm_reward = args.norm_reward
    model = run.model(path, env, args.device)
    episode, episodes = np.zeros(2), []  # return and length, of the first row
    steps = _play(model, env, args)
    for rewards, dones in tqdm(steps, total=args.n_timesteps, disable=not args.progress):
        if not args.no_render:
            env.render("human")
        episode = episode + np.array([rewards[0], 1])
        if dones[0]:
            if args.verbose > 0:
                print(f"Episode Reward: {episode[0]:.2f}\nEpisode Length {episode[1]:.0f}")
            episodes.append(episode)
            episode = np.zeros(2)
    env.close()
    if args.verbose > 0 and episodes:
        (mean, length), deviation = np.mean(episodes, 0), np.std(episodes, 0)
        print(f"{len(episodes)} Episodes\nMean reward: {mean:.2f} +/- {deviation[0]:.2f}")
        print(f"Mean episode length: {length:.2f} +/- {deviation[1]:.2f}")
    return 0


@command("record_video", REFUSED)
def record_video(arguments: Sequence[str]) -> int:
    """Films a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    if importlib.util.find_spec("moviepy") is None:
        raise ValueError("videos need moviepy, which is not installed: resgym[train]")
    parser = _parser(
        "record_video", "Record a video of a model trained by python -m sb3_ext.train."
    )
    parser.add_argument("-o", "--output-folder", type=Path, help="default: videos in the run")
    args = parser.parse_args(arguments)
    run, path, prefix = _saved(args)
    env = run.make_env(args.n_envs, args.seed, render_mode="rgb_array")
    model = run.model(path, env)
    folder = str(args.output_folder or run.folder / "videos")
    film = VecVideoRecorder(env, folder, lambda step: step == 0, args.n_timesteps, prefix)
    for _ in _play(model, film, args):
        pass
    film.close()
    return 0


_ON_OFF = {
    "--no-render": "show nothing",
    "--deterministic": "take the best action (the default)",
    "--stochastic": "draw actions as in training",
    "--load-best": "use the best model of the run",
    "--load-last-checkpoint": "use the newest rl_model_*_steps.zip",
}


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = OneLineParser(prog=f"python -m sb3_ext {name}", description=description)
    add_flags(parser, "--algo", "--env", "--env-kwargs", "--gym-packages")
    parser.set_defaults(env_kwargs={})
    add, text = parser.add_argument, "(default %(default)s)"
    add("-n", "--n-timesteps", type=whole(1), default=1000, help=f"steps {text}")
    add("--seed", type=whole(0, 2**32 - 1), default=0, help=f"seed of the games {text}")
    add("-f", "--folder", type=Path, default=Path("logs"), help=f"folder of the runs {text}")
    add("--n-envs", type=whole(1, 2**20), default=1, help=f"environments at once {text}")
    add("--exp-id", type=whole(0), default=0, help="number of the run (default: the newest)")
    for names, text in _ON_OFF.items():
        add(names, action="store_true", help=text)
    text = "use the model after this many steps"
    add("--load-checkpoint", type=whole(1), metavar="STEPS", help=text)
    add_trust(parser)
    return parser


def _saved(args: argparse.Namespace) -> tuple[SavedRun, Path, str]:
    """The run that was asked for, the model in it, and a name for what is made of it."""
    import_modules(args.gym_packages)
    check_algorithm(args.algo)
    which = (args.load_best, args.load_checkpoint, args.load_last_checkpoint)
    found = get_model_path(args.exp_id, args.folder, args.algo, EnvironmentName(args.env), *which)
    prefix, path, folder = found[0], Path(found[1]), Path(found[2])
    print(f"Loading {path}")
    set_random_seed(args.seed)
    with command_line(args.trust, *folder.glob("*/*.yml")):
        return SavedRun(folder, args.env_kwargs), path, prefix


def _play(
    model: BaseAlgorithm, env: VecEnv, args: argparse.Namespace
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rewards and ends of this many steps of all environments; Ctrl-C ends them."""
    observations: Any = env.reset()
    state, starts = None, np.ones(env.num_envs, dtype=bool)
    try:
        for _ in range(args.n_timesteps):
            actions, state = model.predict(observations, state, starts, not args.stochastic)
            observations, rewards, starts, _ = env.step(actions)
            yield rewards, starts
    except KeyboardInterrupt:
        return
