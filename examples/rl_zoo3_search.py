"""rl_zoo3's own commands with DDQN: its hyperparameter search, its tracking by Weights & Biases.

python examples/rl_zoo3_search.py -optimize --n-trials 20
python examples/rl_zoo3_search.py --track

All options of `rl_zoo3 train` work. They maximise the mean reward; examples/tune_two_player.py
searches by rho. This file is its configuration, too, as rl_zoo3 reads Python.
"""

import sys

import rl_zoo3.train
from rl_zoo3.exp_manager import ExperimentManager
from rl_zoo3.hyperparams_opt import HYPERPARAMS_CONVERTER, HYPERPARAMS_SAMPLER

import resgym  # noqa: F401  registers the environments
from sb3_ext import DDQN, TensorVecEnv

HOST = "resgym/HironakaHost-v0"
hyperparams = {
    HOST: {
        "n_timesteps": 40_000,
        "n_envs": 64,
        "policy": "HostPolicy",
        "policy_kwargs": {"extractor": "point_set"},
    }
}


def main(*given: str) -> None:
    """Runs `rl_zoo3 train` with these options."""
    rl_zoo3.ALGOS["ddqn"] = DDQN
    HYPERPARAMS_SAMPLER["ddqn"] = HYPERPARAMS_SAMPLER["dqn"]
    HYPERPARAMS_CONVERTER["ddqn"] = HYPERPARAMS_CONVERTER["dqn"]
    ExperimentManager.default_vec_env_cls = TensorVecEnv
    game = ["--env", HOST, "--env-kwargs", "opponent:'choose_first'", "reward:'step'"]
    sys.argv[1:] = ["--algo", "ddqn", "-conf", __file__, *game, *given]
    rl_zoo3.train.train()


if __name__ == "__main__":
    main(*sys.argv[1:])
