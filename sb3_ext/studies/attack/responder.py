"""Trains one responder against a frozen player and keeps its best version."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import torch

import resgym  # noqa: F401  (registers the environments)
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.config.sections import ConfigError
from sb3_ext.ddqn import DDQN
from sb3_ext.schedules.frequency import Every
from sb3_ext.studies.attack.frozen import FrozenPlayer, other_role
from sb3_ext.studies.attack.settings import AttackBudget

__all__ = ["Look", "Training", "train_responder"]

Look = Callable[[dict[str, Any]], None]
"""Called with every entry of the history as it is made."""

_ENVIRONMENTS = {"host": "resgym/HironakaHost-v0", "agent": "resgym/HironakaAgent-v0"}


@dataclass(frozen=True)
class Training:
    """One trained responder.

    Attributes:
        model: the learner, with the weights of its best version.
        history: the looks at it: updates, transitions, seconds, rho on the validation starts.
        best: the entry of the history that was kept.
        updates: gradient updates made.
        transitions: moves played for training.
        parameters: numbers in the network that plays.
        seconds: time taken, looks included.
    """

    model: DDQN
    history: list[dict[str, Any]]
    best: dict[str, Any]
    updates: int
    transitions: int
    parameters: int
    seconds: float


class _KeepBest(RhoEvaluation):
    """Keeps the weights of the best version in memory."""

    def __init__(self, *args: Any, look: Look | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.weights: dict[str, torch.Tensor] = {}
        self.kept: dict[str, Any] = {}
        self._look = look

    def evaluate(self) -> dict[str, float]:
        before = self.best_score
        results = super().evaluate()
        entry = self.history[-1]
        if self.best_score != before:
            self.weights = copy.deepcopy(self.model.policy.state_dict())
            self.kept = entry
        if self._look is not None:
            self._look({**entry, "best": self.best_score})
        return results


def train_responder(
    frozen: FrozenPlayer, budget: AttackBudget, seed: int, look: Look | None = None
) -> Training:
    """Learns a best response.

    The learner meets only the frozen player, in random games. Every so many updates it is measured
    on the validation starts, the untrained network too, and the version with the worst rho for the
    frozen player is what comes out.

    Args:
        frozen: the player under attack.
        budget: size and length of the training.
        seed: fixes the network, the games and the exploration.
        look: called at each measurement.

    Raises:
        ConfigError: the learner refuses an argument of the budget.
        FloatingPointError: the training became NaN.
    """
    begin = time.monotonic()
    model = _model(frozen, budget, seed)
    game, section = budget.game, budget.responder
    best = _KeepBest(
        [frozen.player],
        Every(updates=budget.validation.every_updates),
        look=look,
        games=budget.validation.games,
        seed=budget.validation.seed,
        at_start=True,
        max_value=game.max_value,
        polytope=game.polytope,
        reposition=game.reposition,
        max_moves=game.max_moves,
    )
    model.learn(_steps(budget) * section.num_envs, callback=best, log_interval=None)
    model.policy.load_state_dict(best.weights)
    history = [_plain(entry) for entry in best.history]
    return Training(
        model,
        history,
        _plain(best.kept),
        model.num_updates,
        int(model.num_timesteps),
        sum(weight.numel() for weight in model.q_net.parameters()),
        time.monotonic() - begin,
    )


def _steps(budget: AttackBudget) -> int:
    """Parallel steps for exactly so many updates (rounded up to whole blocks)."""
    section = budget.responder
    if section.updates == 0:
        return 0
    # Updates begin with the step that brings more transitions than learning_starts.
    before = section.learning_starts // section.num_envs
    return before + -(-section.updates // section.updates_per_step)


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "updates": entry["updates"],
        "transitions": entry["transitions"],
        "seconds": round(entry["training_seconds"], 1),
        "rho": entry["score"],
    }


def _model(frozen: FrozenPlayer, budget: AttackBudget, seed: int) -> DDQN:
    game, section = budget.game, budget.responder
    seat = other_role(frozen.role)
    games = gymnasium.make_vec(
        _ENVIRONMENTS[seat],
        num_envs=section.num_envs,
        opponent=frozen.player,
        reward=section.reward,
        dimension=game.dimension,
        max_num_points=game.max_num_points,
        max_value=game.max_value,
        polytope=game.polytope,
        reposition=game.reposition,
        max_episode_steps=game.max_moves,
    )
    try:
        return DDQN(
            "HostPolicy" if seat == "host" else "AgentPolicy",
            TensorVecEnv(games),
            learning_rate=section.learning_rate,
            exploration_rate=section.exploration_rate,
            buffer_size=section.buffer_size,
            learning_starts=section.learning_starts,
            batch_size=section.batch_size,
            gamma=section.gamma,
            n_steps=section.n_steps,
            train_freq=1,
            gradient_steps=section.updates_per_step,
            target_update_interval=section.target_update_interval,
            tau=section.tau,
            max_grad_norm=section.max_grad_norm,
            dueling=section.dueling,
            policy_kwargs={**section.policy_arguments, "net_arch": section.net_arch},
            seed=seed,
            device="cpu",
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(f"responder: {' '.join(str(error).split())}") from None
