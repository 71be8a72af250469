"""Saved models: players from files, and runs of ``train``.

A player is loaded by `opponent="runs/host"` in an environment, or on a command line.

Reading checkpoint directories and runs of `train` runs no code. A run's ``.zip`` of SB3 is read
without its pickles: algorithm, environment and policy come from ``config.yml``, checked as all
files are, and the weights from ``torch.load`` with ``weights_only``. A lone ``.zip`` and one of
rl_zoo3 itself contain pickles, so command lines need ``--trust``; programs load them as SB3's own
`load` does.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import ConstantSchedule
from stable_baselines3.common.vec_env import VecEnv

from resgym.files import opened, parse_json
from resgym.players import ScoringPlayer
from resgym.trust import check_pickle
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.checkpoints.models import MAX_WEIGHTS, MODEL, read_policy
from sb3_ext.checkpoints.policy_description import build_policy
from sb3_ext.config.checks import errors_named, one_line
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.runs.checkpoint import CheckpointError, checkpoint_errors, read_checkpoint
from sb3_ext.train.config_files import saved_config, with_classes
from sb3_ext.train.environments import STATISTICS, evaluation_seed, make_envs


def load_player(path: Any, role: str) -> ScoringPlayer:
    """The greedy player of a saved model; the entry point of the group ``resgym.player_loaders``.

    Args:
        path: a checkpoint, the folder of a run or of a model card, a ``.safetensors`` as `ship`
            writes it, or a ``.zip`` of DDQN, DQN, QRDQN, PPO, A2C, MaskablePPO or RecurrentPPO;
            or such a model or its policy, as an object.
        role: the seat that it has to play, ``host`` or ``agent``.

    Returns:
        A player on the CPU. It raises ValueError when it is asked to play another dimension, unless
        its network is for every size.

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


def load_policy(path: str | Path, role: str | None = None) -> BasePolicy:
    """The policy of a saved model, on the CPU, ready to play; paths and errors as in `load_player`.

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
        policy = read_policy(path)
    elif path.is_dir():
        policy = _policy_of_checkpoint(path, role)
    elif zipfile.is_zipfile(path):
        if (path.parent / "runs.jsonl").is_file():  # in other runs models lie deeper
            run = SavedRun(path.parent)
            policy = run.model(path, run.make_env(1)).policy
        else:
            policy = _policy_of_zip(path)
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


def _policy_of_checkpoint(path: Path, role: str | None) -> BasePolicy:
    def choose(names: list[str]) -> list[str]:
        prefix = f"{role}." if f"{role}.policy" in names else ""
        return [f"{prefix}network", f"{prefix}policy"]

    found, parts = read_checkpoint(path, choose)
    network, weights = parts.values()
    field = f"{found}: {next(iter(parts))}"
    network = network if isinstance(network, dict) else {}
    if "policy" not in network:
        raise CheckpointError(
            f"{field}: the policy is not described: {network.get('not_described', 'nothing there')}"
        )
    with checkpoint_errors(field):
        policy = build_policy(network["policy"])
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


def _policy_of_zip(path: Path) -> BasePolicy:
    check_pickle(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_stored(archive)
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
        model = algorithm.load(path, device="cpu", custom_objects=_NOT_READ)
    except Exception as error:  # whatever a file may hold
        raise ValueError(f"{path}: cannot be loaded: {one_line(error)}") from error
    model.policy.set_training_mode(False)
    return model.policy


_PLAYING = ("env", "policy", "policy_kwargs", "use_sde", "dueling", "mask_source")
"""Arguments of an algorithm that a model needs to play, if they are there."""


class SavedRun:
    """A run of ``python -m sb3_ext.train``.

    Args:
        folder: folder of the run, such as ``logs/ddqn/resgym-HironakaHost-v0_1``.

    Raises:
        ValueError: the folder is of no run, or holds what a file may not ask for.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, saved_config(folder)

    def make_env(
        self, n_envs: int, seed: int = 0, log_dir: Path | None = None, /, **more: Any
    ) -> VecEnv:
        """Make environments with the run's wrappers and statistics, for evaluation.

        ``more`` are arguments of the environment that replace those of the run.
        """
        with errors_named(f"{self.folder}: env_kwargs", ValueError):
            return make_envs(
                self.config,
                n_envs,
                evaluation_seed(seed),
                {**self.config.hyperparameters.get("env_kwargs", {}), **more},
                folder=log_dir,
                training=False,
                statistics=self.folder / STATISTICS,
            )

    def model(self, path: Path, env: VecEnv, device: torch.device | str = "cpu") -> BaseAlgorithm:
        """The model of a ``.zip`` of the run, ready to play in ``env``.

        Raises:
            ValueError: the file is damaged, of another kind, or does not fit the configuration.
        """
        make = ALGORITHMS.resolve(self.config.algo)
        arguments = with_classes(self.config.hyperparameters, make, env)
        values = {key: arguments[key] for key in _PLAYING if key in arguments}
        if issubclass(make, OffPolicyAlgorithm):
            values["buffer_size"] = 1
        with errors_named(f"{path}: cannot be loaded", ValueError):
            model: BaseAlgorithm = make(device=device, **values)
            model.policy.load_state_dict(read_weights(path))
        model.policy.set_training_mode(False)
        return model


def read_weights(path: Path) -> dict[str, Any]:
    """The weights of a policy in a ``.zip`` of SB3, of no more bytes than the file has.

    Raises:
        ValueError: the file is damaged, or unpacks to more than it holds.
    """
    what = "is damaged, or not a .zip of stable-baselines3"
    try:
        with zipfile.ZipFile(path) as archive:
            _check_stored(archive)
            content = archive.read("policy.pth")
        what = "policy.pth: contains something other than weights"
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            _check_stored(inner)
        with warnings.catch_warnings(action="ignore"):  # of torch, about unusual pickles
            weights = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        for name, each in weights.items():
            if each.layout != torch.strided or each.is_complex():
                raise ValueError(f"{name}: expected dense real numbers")
        return dict(weights)
    except Exception as error:  # whatever a damaged file raises
        raise ValueError(f"{what} ({type(error).__name__}: {one_line(error)[:100]})") from error


def _check_stored(archive: zipfile.ZipFile) -> None:
    """SB3 and torch store each entry by itself; what is compressed or shared may be of any size."""
    entries = archive.infolist()
    size = sum(each.file_size for each in entries)
    if any(each.compress_type for each in entries) or size > archive.start_dir:
        raise ValueError("has entries that are compressed, or that overlap")
