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
from resgym.players import Player, agent_names, ask_player, host_names, resolve_player
from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.attack.config import AttackConfig
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.config.sections import ConfigError, errors_of
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.driver import Pulse, Used
from sb3_ext.runs.stopping import Ended
from sb3_ext.schedules.frequency import Every
from sb3_ext.train.runs import transitions_for

_PROBES = 256


def seated(player: Any, spec: GameSpec, role: Role | None = None) -> Player:
    """What a caller means by a player, in the seat that it has or that is given.

    Raises:
        ConfigError: the seat is not clear, or there is no such player for it.
    """
    seats: tuple[Role, ...] = ("host", "agent") if role is None else (role,)
    if isinstance(player, str):
        known = {"host": host_names(), "agent": agent_names()}
        seats = tuple(seat for seat in seats if player in known[seat]) or seats
    elif role is None and hasattr(player, "role") and not isinstance(player, type):
        seats = (player.role,)
    elif role is None and callable(player):
        raise ConfigError("role: got none; expected host or agent, a function plays either")
    found: list[Player] = []
    reasons: list[str] = []
    for seat in seats:  # a saved model plays the seat that it was trained for
        try:
            found.append(resolve_player(player, seat, spec))
        except ValueError as error:
            reasons.append(str(error).removeprefix("opponent: "))
    if not found:
        raise ConfigError(f"player: {reasons[0]}")
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

    def _beat(self, **metrics: float) -> None:
        updates = self._before.updates + num_updates(self.model)
        used = Used(updates, self._before.timesteps + self.num_timesteps)
        if not self._pulse(used, exact=False, **metrics):
            raise Ended

    def _on_step(self) -> bool:
        self._beat()
        return super()._on_step()

    def after_train(self) -> None:
        """Called after every block of updates."""
        self._beat()

    def evaluate(self) -> dict[str, float]:
        before = self.best_score
        results = super().evaluate()
        if self.best_score != before:
            self.weights = copy.deepcopy(self.model.policy.state_dict())
        assert self.best_score is not None
        self._beat(**{"rho/validation": self.best_score})
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
    model = _model(player, config, seed)
    game = {**config.game.to_dict(), **config.validation.to_dict()}
    best = _Best(pulse, before, [player], Every(updates=config.every), **game)
    model.learn(transitions_for(model, config.updates), callback=best, log_interval=None)
    model.policy.load_state_dict(best.weights)
    return model, best


def _model(player: Player, config: AttackConfig, seed: int) -> DDQN:
    seat, arguments = "Agent" if player.role == "host" else "Host", config.game.to_dict()
    section = dict(config.learner)
    games = gymnasium.make_vec(
        f"resgym/Hironaka{seat}-v0",
        num_envs=section.pop("n_envs", 1),
        opponent=player,
        reward=config.reward,
        max_episode_steps=arguments.pop("max_moves"),
        **arguments,
    )
    with errors_named("learner", ConfigError):
        return DDQN(f"{seat}Policy", TensorVecEnv(games), **section, seed=seed, device="cpu")
