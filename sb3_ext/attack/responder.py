"""Who is attacked, and the training of a best response against it."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import gymnasium
import torch

import resgym  # noqa: F401  (registers the environments)
from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.measure.rho import rho_starts
from resgym.players import Player, ask_player, resolve_player
from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.attack.config import AttackConfig
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.config.sections import ConfigError, errors_of
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.checkpoint_format import errors_named
from sb3_ext.runs.driver import Pulse, Used, beat
from sb3_ext.train.runs import transitions_for

_PROBES = 256


def seated(player: Any, spec: GameSpec, role: Role | None = None) -> Player:
    """What a caller means by a player, in the seat that it has or that is given.

    Raises:
        ConfigError: the seat is not clear, or there is no such player for it.
    """
    found: list[Player] = []
    reasons: list[str] = []
    seats: tuple[Role, ...] = ("host", "agent") if role is None else (role,)
    for seat in seats:  # a saved model plays the seat that it was trained for
        try:
            found.append(resolve_player(player, seat, spec, "player"))
        except ValueError as error:
            reasons.append(str(error))
    if not found:
        raise ConfigError(min(reasons, key=lambda reason: "unknown" in reason))
    if len(found) == 2:
        raise ConfigError(f"role: got none; expected host or agent, {player!r} is both")
    return found[0]


def fingerprint(player: Player, spec: GameSpec, episode: int = 0) -> str:
    """16 hexadecimal digits that tell players apart by what they answer in 256 first positions.

    Other episodes draw other random numbers, so a player that draws some has other digits there.
    """
    state = rho_starts(spec, _PROBES)
    row = torch.arange(_PROBES)
    sets = host_action_table(spec.dimension)
    coords = sets[row % len(sets)] if player.role == "agent" else None
    rng = RowRandom.for_episode(row, torch.full_like(row, episode))
    with errors_of("player"):  # a model of another dimension, or of fewer points
        answers = ask_player(player, state, coords, rng).cpu().numpy().astype("<i8")
    return hashlib.sha256(answers.tobytes()).hexdigest()[:16]


class _Best(RhoEvaluation):
    """Keeps the weights of the best version in memory, and has the pulse decide at every step."""

    def __init__(self, pulse: Pulse, before: Used, *args: Any, **more: Any) -> None:
        super().__init__(*args, at_start=True, **more)
        self._pulse, self._before = pulse, before
        self.weights: dict[str, Any] = {}

    def after_train(self, **metrics: float) -> None:
        """Called after every block of updates."""
        updates = self._before.updates + num_updates(self.model)
        beat(self._pulse, Used(updates, self._before.timesteps + self.num_timesteps), **metrics)

    def _on_step(self) -> bool:
        self.after_train()
        return super()._on_step()

    def evaluate(self) -> dict[str, float]:
        before = self.best_score
        results = super().evaluate()
        if self.best_score != before:
            self.weights = copy.deepcopy(self.model.policy.state_dict())
        assert self.best_score is not None
        self.after_train(**{"rho/validation": self.best_score})
        return results


def trained(
    player: Player, config: AttackConfig, seed: int, pulse: Pulse, before: Used
) -> tuple[DDQN, _Best]:
    """Learns a best response; the version that did most on the validation starts is kept.

    The learner meets only the frozen player, in random games. It is measured every so many updates,
    the untrained network too.

    Raises:
        ConfigError: DDQN refuses an argument.
        Ended: the pulse said so.
        FloatingPointError: the training became NaN.
    """
    game, section = config.game.to_dict(), dict(config.learner)
    measured = {**game, **config.validation.to_dict()}
    best = _Best(pulse, before, [player], Every(updates=config.every), **measured)
    seat = "Agent" if player.role == "host" else "Host"
    games = gymnasium.make_vec(
        f"resgym/Hironaka{seat}-v0",
        num_envs=section.pop("n_envs", 1),
        opponent=player,
        reward=config.reward,
        max_episode_steps=game.pop("max_moves"),
        **game,
    )
    with errors_named("learner", ConfigError):
        model = DDQN(f"{seat}Policy", TensorVecEnv(games), **section, seed=seed, device="cpu")
    model.learn(transitions_for(model, config.updates), callback=best, log_interval=None)
    model.policy.load_state_dict(best.weights)
    return model, best
