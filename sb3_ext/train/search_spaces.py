"""rl_zoo3's tables of algorithms and of their search spaces, with those of this project in them."""

from __future__ import annotations

from typing import Any

import rl_zoo3
import rl_zoo3.hyperparams_opt

from resgym.trust import import_modules
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import errors_of
from sb3_ext.ddqn.algorithms import ALGORITHMS, family

_SAMPLE_PPO = rl_zoo3.hyperparams_opt.sample_ppo_params
MANY_GAMES = 8
POWERS = {"batch_size_pow": (7, 11), "n_steps_pow": (3, 7)}
"""Sizes 2^k for PPO with many games at once; rl_zoo3's are for one, and take hours with 128."""


class _ManyGames:
    """A trial of Optuna's that suggests sizes of `POWERS`."""

    def __init__(self, trial: Any) -> None:
        self._trial = trial

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trial, name)

    def suggest_int(self, name: str, low: int, high: int, **more: Any) -> int:
        low, high = POWERS.get(name, (low, high))
        return self._trial.suggest_int(name, low, high, **more)  # type: ignore[no-any-return]


def _sample_ppo(trial: Any, n_actions: int, n_envs: int, more: Any) -> dict[str, Any]:
    suited: Any = _ManyGames(trial) if n_envs >= MANY_GAMES else trial
    return _SAMPLE_PPO(suited, n_actions, n_envs, more)


def _sample_ddqn(trial: Any, *_: Any) -> dict[str, Any]:
    """Arguments of DDQN from its search space, in which sizes are powers of two."""
    sampled = {
        "batch_size_pow": trial.suggest_int("batch_size_pow", 6, 10),
        "exploration_final_eps": trial.suggest_float("exploration_final_eps", 0.005, 0.2, log=True),
        "exploration_fraction": trial.suggest_float("exploration_fraction", 0.05, 0.5),
        "gradient_steps": trial.suggest_int("gradient_steps", 1, 4),
        "learning_rate": trial.suggest_float("learning_rate", 1e-5, 3e-3, log=True),
        "net_width_pow": trial.suggest_int("net_width_pow", 6, 9),
        "one_minus_gamma": trial.suggest_float("one_minus_gamma", 0.003, 0.1, log=True),
        "target_update_interval": trial.suggest_int("target_update_interval", 50, 2000, log=True),
    }
    return _convert_ddqn(sampled)


def _convert_ddqn(sampled: dict[str, Any]) -> dict[str, Any]:
    """Arguments of DDQN from what `_sample_ddqn` suggested."""
    values = dict(sampled)
    width = 2 ** values.pop("net_width_pow")
    values["batch_size"] = 2 ** values.pop("batch_size_pow")
    values["gamma"] = 1.0 - values.pop("one_minus_gamma")
    values["policy_kwargs"] = {"extractor": "point_set", "net_arch": [width, width]}
    values["exploration_rate"] = None
    return values


def known_algorithms(*classes: str) -> dict[str, Any]:
    """rl_zoo3's table with ours and classes (module:Class) in it, as it asks plugins to."""
    ours = {**ALGORITHMS, **{path: ALGORITHMS.resolve(path) for path in classes}}
    samplers: Any = rl_zoo3.hyperparams_opt.HYPERPARAMS_SAMPLER
    converters: Any = rl_zoo3.hyperparams_opt.HYPERPARAMS_CONVERTER
    samplers.update(ddqn=_sample_ddqn)
    samplers.update(dict.fromkeys(("ppo", "ppo_lstm", "ppo_mask"), _sample_ppo))
    converters.update(ddqn=_convert_ddqn, ppo_mask=converters["ppo"])
    rl_zoo3.ALGOS.update(ours)
    for name in ours:  # those of others are searched as what they derive from
        for table in (samplers, converters):
            if (near := family(ours[name])) in table:
                table.setdefault(name, table[near])
    return rl_zoo3.ALGOS


def check_algorithm(name: str) -> str:
    """The name of an algorithm that is known; a class (module:Class) is entered first."""
    with errors_of("algo", ValueError):
        classes = [name] if ":" in name else []
        import_modules(each.partition(":")[0] for each in classes)
        known = known_algorithms(*classes)
        if name not in known:
            raise ValueError(unknown_word("algorithm", name, known))
    return name
