"""Saved models: players from files, and the commands ``enjoy`` and ``record_video``.

A player is loaded by `opponent="runs/host"` in an environment, or on a command line.

Reading checkpoint directories and runs of `train` runs no code. A run's ``.zip`` of SB3 is read
without its pickles: algorithm, environment and policy come from ``args.yml`` and ``config.yml``,
checked as all files are, and the weights from ``torch.load`` with ``weights_only``. A lone ``.zip``
and one of rl_zoo3 itself contain pickles, so command lines need ``--trust``; programs load them as
SB3's own `load` does.
"""

from __future__ import annotations

import argparse
import glob
import importlib.util
import io
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from rl_zoo3.utils import get_latest_run_id, get_model_path
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import ConstantSchedule, set_random_seed
from stable_baselines3.common.vec_env import VecEnv, VecVideoRecorder, unwrap_vec_normalize
from tqdm import tqdm

from resgym.files import opened, parse_json, read_text
from resgym.players import ScoringPlayer
from resgym.terminal.command import OneLineParser
from resgym.trust import add_trust, check_pickle, command_line, import_modules
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.checkpoints.models import MAX_WEIGHTS, MODEL, read_policy
from sb3_ext.checkpoints.policy_description import build_policy
from sb3_ext.config.checks import errors_named, one_line
from sb3_ext.config.sections import read_mapping
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.legality import with_masks
from sb3_ext.runs.checkpoint import CheckpointError, checkpoint_errors, read_checkpoint
from sb3_ext.runs.command import command
from sb3_ext.train.manager import Manager, evaluation_seed
from sb3_ext.train.train import (
    CHANGED,
    REFUSED,
    add_flags,
    arguments_of,
    check_algorithm,
    make_parser,
    whole,
)


def load_player(path: Any, role: str) -> ScoringPlayer:
    """The greedy player of a saved model; the entry point of the group ``resgym.player_loaders``.

    Args:
        path: a checkpoint, the folder of a run or of a model card, a ``.safetensors`` as `ship`
            writes it, or a ``.zip`` of DDQN, DQN, QRDQN, PPO, A2C, MaskablePPO or RecurrentPPO;
            or such a model or its policy, as an object.
        role: the seat that it has to play, ``host`` or ``agent``.

    Returns:
        A player on the CPU. It raises ValueError when it is asked to play another dimension.

    Raises:
        ValueError: there is no such file here, it is damaged or of another kind, its network holds
            NaN or infinite weights, or it plays the other seat.
    """
    if hasattr(path, "predict"):
        policy, path = path, type(path).__name__
    else:
        policy = load_policy(path, role)
    player = player_of(policy, str(path))
    if player.role != role:
        raise ValueError(f"{path}: was trained as the {player.role}, need a player for the {role}")
    return player


def load_policy(
    path: str | Path, role: str | None = None, device: torch.device | str = "cpu"
) -> BasePolicy:
    """The policy of a saved model, ready to play; paths and errors as in `load_player`.

    ``role`` says which one, for a checkpoint of two players.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path}: there is no such file")
    if not path.is_dir():
        with opened(path, "model", MAX_WEIGHTS):
            pass
    elif (path / MODEL).exists():  # of a card
        path = path / MODEL
    if path.suffix == ".safetensors":
        policy = read_policy(path, device)
    elif path.is_dir():
        policy = _policy_of_checkpoint(path, role, device)
    elif zipfile.is_zipfile(path):
        saved = next(path.parent.glob("*/args.yml"), None)
        if saved and not read_text(saved, "model").startswith("!!python"):  # rl_zoo3's own
            run = SavedRun(path.parent)
            policy = run.model(path, run.make_env(1), device).policy
        else:
            policy = _policy_of_zip(path, device)
    else:
        raise ValueError(
            f"{path}: is not a checkpoint directory, a card's folder, a .safetensors or a "
            ".zip of stable-baselines3"
        )
    # With a NaN it would play its first legal action whatever it sees.
    for name, values in policy.state_dict().items():
        if values.is_floating_point() and not values.isfinite().all():
            raise ValueError(f"{path}: its network holds NaN or infinite weights, in {name}")
    return policy


def _policy_of_checkpoint(path: Path, role: str | None, device: torch.device | str) -> BasePolicy:
    def choose(names: list[str]) -> list[str]:
        prefix = f"{role}." if f"{role}.policy" in names else ""
        return [f"{prefix}network", f"{prefix}policy"]

    found, parts = read_checkpoint(path, choose)
    network, weights = parts.values()
    field = f"{found}: {next(iter(parts))}"
    if not isinstance(network, dict) or "policy" not in network:
        reason = network.get("not_described") if isinstance(network, dict) else None
        raise CheckpointError(f"{field}: the policy is not described: {reason or 'nothing there'}")
    with checkpoint_errors(field):
        policy = build_policy(network["policy"], device)
        policy.load_state_dict(weights)
    return policy


# What trains and does not play is not read; it may be functions, as in files of older versions.
_NOT_READ: dict[str, Any] = {
    "buffer_size": 1,  # one transition: none is needed to play
    "clip_range": 0.2,
    "clip_range_vf": None,
    "exploration_schedule": ConstantSchedule(0.0),
    "learning_rate": 0.0,
    "lr_schedule": ConstantSchedule(0.0),
}


_ALGORITHMS: Mapping[str, type[BaseAlgorithm]] = {
    "sb3_contrib.common.maskable.policies": MaskablePPO,
    "sb3_contrib.common.recurrent.policies": RecurrentPPO,
    "sb3_contrib.qrdqn.policies": QRDQN,
    "stable_baselines3.common.policies": A2C,
    "stable_baselines3.dqn.policies": DQN,
}
"""The algorithm of a file by the module of its policy; nothing is unpickled to find it."""


def _policy_of_zip(path: Path, device: torch.device | str) -> BasePolicy:
    check_pickle(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_stored(archive.getinfo("data"))
            fields = parse_json(archive.read("data").decode())
        module = str(fields["policy_class"]["__module__"])
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: is not a model of stable-baselines3") from error
    algorithm = DDQN if "double_q" in fields else _ALGORITHMS.get(module)
    if algorithm is A2C and "clip_range" in fields:
        algorithm = PPO
    if algorithm is None:
        raise ValueError(
            f"{path}: its policy is of {module}; DDQN, DQN, QRDQN, PPO, A2C, MaskablePPO"
            " and RecurrentPPO can be loaded"
        )
    try:
        model = algorithm.load(path, device=device, custom_objects=_NOT_READ)
    except Exception as error:  # whatever a file may hold
        raise ValueError(f"{path}: cannot be loaded: {one_line(error)}") from error
    model.policy.set_training_mode(False)
    return model.policy


_PLAYING = ("policy", "policy_kwargs", "use_sde", "dueling", "mask_source")
"""Arguments of an algorithm that a model needs to play, if they are there."""


class SavedRun:
    """A run of ``python -m sb3_ext.train``.

    Args:
        folder: of the run, such as ``logs/ddqn/resgym-HironakaHost-v0_1``.
        env_kwargs: of the command line, which win over those of the run.

    Raises:
        ValueError: the folder is of no run, or holds what a file may not ask for.
    """

    def __init__(self, folder: Path, env_kwargs: Mapping[str, Any] | None = None) -> None:
        self.folder, file = folder, arguments_of(folder)
        saved = read_mapping(file)
        with errors_named(str(file), ValueError):
            if saved["env"] not in gymnasium.registry:
                raise ValueError(f"env: got {saved['env']!r}; expected the id of an environment")
            words = [f"--algo={check_algorithm(saved['algo'])}", f"--env={saved['env']}"]
        args = make_parser().parse_args(words)
        args.resume, args.verbose = folder, 0
        manager: Any = Manager((), ExitStack(), args, args.algo, args.env, "", verbose=0)
        hyperparameters, _ = manager.read_hyperparameters()
        for name in ("callback", "collector"):
            hyperparameters.pop(name, None)
        found = manager._preprocess_hyperparams(hyperparameters)
        self._arguments, manager.env_wrapper, _, manager.vec_env_wrapper = found
        manager.env_kwargs = {**manager.env_kwargs, **(env_kwargs or {})}
        if manager.normalize:  # rl_zoo3 finds the statistics beside the model
            check_pickle(folder / manager.env_name / "vecnormalize.pkl")
            manager.trained_agent = str(folder / "model.zip")
        self._manager = manager

    def make_env(
        self, n_envs: int, seed: int = 0, log_dir: Path | None = None, **more: Any
    ) -> VecEnv:
        """This many environments with the run's wrappers and statistics; ``more`` are of `make`."""
        manager = self._manager
        manager.seed, manager.save_path = evaluation_seed(seed), log_dir
        manager.env_kwargs = {**manager.env_kwargs, **more}
        env: VecEnv = manager.create_envs(n_envs, no_log=log_dir is None)
        if (statistics := unwrap_vec_normalize(env)) is not None:
            statistics.training = statistics.norm_reward = False
        return env

    def model(self, path: Path, env: VecEnv, device: torch.device | str = "cpu") -> BaseAlgorithm:
        """The model of a ``.zip`` of the run, ready to play in ``env``.

        Raises:
            ValueError: the file is damaged, of another kind, or does not fit the configuration.
        """
        make: Any = self._manager.algorithm
        values = {key: self._arguments[key] for key in _PLAYING if key in self._arguments}
        if issubclass(make, OffPolicyAlgorithm):
            values["buffer_size"] = 1
        with errors_named(f"{path}: cannot be loaded", ValueError):
            model: BaseAlgorithm = make(env=env, device=device, **values)
            model.policy.load_state_dict(read_weights(path, model.device))
        model.policy.set_training_mode(False)
        return model


def read_weights(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """The weights of a policy in a ``.zip`` of SB3, of no more bytes than the file has.

    Raises:
        ValueError: the file is damaged, or unpacks to more than it holds.
    """
    what = "is damaged, or not a .zip of stable-baselines3"
    try:
        with zipfile.ZipFile(path) as archive:
            _check_stored(archive.getinfo("policy.pth"))
            content = archive.read("policy.pth")
        what = "policy.pth: contains something other than weights"
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            for each in inner.infolist():
                _check_stored(each)
        with warnings.catch_warnings(action="ignore"):  # of torch, about unusual pickles
            weights = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
        for name, each in weights.items():
            if each.layout != torch.strided or each.is_complex():
                raise ValueError(f"{name}: expected dense real numbers")
        return dict(weights)
    except Exception as error:  # whatever a damaged file raises
        raise ValueError(f"{what} ({type(error).__name__}: {one_line(error)[:100]})") from error


def _check_stored(entry: zipfile.ZipInfo) -> None:
    """SB3 and torch store without compression; what is compressed may unpack to any size."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise ValueError(f"{entry.filename}: is compressed")


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
    import rl_zoo3.enjoy  # takes a while, which a player from a file need not wait for

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
