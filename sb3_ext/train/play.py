"""The commands ``enjoy`` and ``record_video``: a trained model plays, shown, filmed or neither."""

from __future__ import annotations

import glob
import importlib.util
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from huggingface_sb3 import EnvironmentName
from rl_zoo3.utils import get_latest_run_id, get_model_path
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecVideoRecorder, unwrap_vec_normalize
from tqdm import tqdm

from resgym.command import OneLineParser
from resgym.trust import add_trust, command_line, import_modules
from sb3_ext.config.checks import errors_named, errors_of
from sb3_ext.config.sections import (
    Count,
    PositiveCount,
    Section,
    Size,
    Threads,
    Whole,
    add_fields,
    fields_of,
    read_as,
)
from sb3_ext.ddqn.legality import with_masks
from sb3_ext.runs.command import command, torch_threads
from sb3_ext.train.loading import SavedRun
from sb3_ext.types import Arguments


class Play(Section):
    """What ``enjoy`` plays; the text below a field is the help of its option, as rl_zoo3 has it."""

    algo: str = "ppo"
    """algorithm of the run"""
    env: str = "CartPole-v1"
    """id of its environment"""
    folder: str = "logs"
    """logs of all runs"""
    exp_id: Count = 0
    """number of the run, 0 for the newest"""
    n_timesteps: PositiveCount = 1000
    """transitions to play"""
    n_envs: Size = 1
    """environments"""
    seed: Annotated[int, Whole, Ge(0), Le(2**32 - 1)] = 0
    """seed of the games"""
    env_kwargs: Arguments = {}  # noqa: RUF012
    """arguments of the environment, as key:value, before those of the run"""
    device: str = "auto"
    """device of PyTorch"""
    num_threads: Threads = -1
    """threads of PyTorch, -1 leaves it to PyTorch"""
    load_best: bool = False
    """the best model in place of the last one"""
    load_checkpoint: PositiveCount | None = None
    """the copy after this many transitions (--save-freq)"""
    load_last_checkpoint: bool = False
    """the last such copy"""
    stochastic: bool = False
    """draw actions in place of taking the best ones"""
    deterministic: bool = False
    """take the best actions, which is the default"""
    norm_reward: bool = False
    """normalise rewards, for a run with statistics"""
    no_render: bool = False
    """show nothing"""
    reward_log: str | None = None
    """folder for a monitor file"""
    output_folder: str | None = None
    """record_video: folder for films (default: videos in the run)"""
    progress: bool = False
    """show a bar of progress"""
    verbose: Annotated[int, Whole, Ge(0), Le(2)] = 1
    """how much is printed, 0 to 2"""
    gym_packages: list[str] = []  # noqa: RUF012
    """modules that register environments"""


@command("enjoy")
def enjoy(arguments: Sequence[str]) -> int:
    """Plays a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    args, trust = _read("enjoy", "Play with a model of python -m sb3_ext.train.", arguments)
    _play(args, trust, None if args.no_render else "human")
    return 0


@command("record_video")
def record_video(arguments: Sequence[str]) -> int:
    """Films a trained model; returns the exit code, see `sb3_ext.runs.command.command`."""
    if importlib.util.find_spec("moviepy") is None:
        raise ValueError("videos need moviepy, which is not installed: resgym[train]")
    args, trust = _read(
        "record_video", "Record a video of a model of python -m sb3_ext.train.", arguments
    )
    _play(args, trust, "rgb_array")
    return 0


def _read(name: str, description: str, arguments: Sequence[str]) -> tuple[Play, bool]:
    parser = OneLineParser(prog=f"python -m sb3_ext {name}", description=description)
    short = {"folder": "-f", "n_timesteps": "-n", "output_folder": "-o", "progress": "-P"}
    add_fields(parser, Play, short)
    add_trust(parser)
    given = parser.parse_args(arguments)
    return read_as(Play, fields_of(given, Play)), given.trust


def _play(args: Play, trust: bool, render: str | None) -> None:
    """Plays this many steps of all environments, shown, filmed or neither; Ctrl-C ends them."""
    with errors_of("gym-packages", ValueError):
        import_modules(args.gym_packages)
    # rl_zoo3 looks for a pattern, which the folder's own name must not be.
    name = EnvironmentName(args.env)
    number = args.exp_id or get_latest_run_id(glob.escape(f"{args.folder}/{args.algo}"), name)
    which: Any = (args.load_best, args.load_checkpoint, args.load_last_checkpoint)
    with errors_named("folder", ValueError):
        prefix, path, folder = get_model_path(number, args.folder, args.algo, name, *which)
    print(f"Loading {path}")
    set_random_seed(args.seed)
    more = args.env_kwargs | ({"render_mode": render} if render else {})
    log = Path(args.reward_log) if args.reward_log else None
    with command_line(trust, Path(folder, "config.yml")):
        run = SavedRun(Path(folder))
        env = run.make_env(args.n_envs, args.seed, log, **more)
    if statistics := unwrap_vec_normalize(env):
        statistics.norm_reward = args.norm_reward
    model = with_masks(run.model(Path(path), env, args.device), env)
    if render == "rgb_array":
        films = str(args.output_folder or run.folder / "videos")
        env = VecVideoRecorder(env, films, lambda step: step == 0, args.n_timesteps, prefix)
    observations: Any = env.reset()
    state, starts = None, np.ones(env.num_envs, dtype=bool)
    episode, episodes = np.zeros(2), []  # return and length, of the first row
    with torch_threads(max(args.num_threads, 0) or None), suppress(KeyboardInterrupt):
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
