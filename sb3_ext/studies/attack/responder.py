"""The responder: how it is trained against a frozen player, and how it plays with lookahead."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import torch
from torch import Tensor

import resgym  # noqa: F401  (registers the environments)
from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.kernels import resolve_backend
from resgym.measure.games import play_lengths
from resgym.players import Player, ask_player
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.config.sections import ConfigError
from sb3_ext.ddqn import DDQN
from sb3_ext.schedules.frequency import Every
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.settings import AttackBudget
from sb3_ext.training.runs import transitions_for

_ROLLOUT = 0x726F6C6C  # rollouts draw other random numbers than the game that is played

# Settings of a responder that are arguments of DDQN by the same name.
_SAME = {
    *("learning_rate", "exploration_rate", "buffer_size", "learning_starts", "batch_size"),
    *("gamma", "n_steps", "target_update_interval", "tau", "max_grad_norm", "dueling"),
}


class _KeepBest(RhoEvaluation):
    """Keeps the weights of the best version in memory."""

    def __init__(self, *args: Any, look: Callable[[dict[str, Any]], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._look = look

    def evaluate(self) -> dict[str, float]:
        before = self.best_score
        results = super().evaluate()
        if self.best_score != before:
            self.weights = copy.deepcopy(self.model.policy.state_dict())
            self.kept = len(self.history) - 1
        self._look({**self.history[-1], "best": self.best_score})
        return results


def train_responder(
    frozen: FrozenPlayer, budget: AttackBudget, seed: int, look: Callable[[dict[str, Any]], None]
) -> tuple[DDQN, dict[str, Any]]:
    """Learns a best response.

    The learner meets only the frozen player, in random games. Every so many updates it is measured
    on the validation starts, the untrained network too, and the version with the worst rho for the
    frozen player is what comes out. ``look`` is called with every measurement.

    Returns:
        The learner with the weights of its best version, and what `SeedResult` says of its
        training.

    Raises:
        ConfigError: the learner refuses an argument of the budget.
        FloatingPointError: the training became NaN.
    """
    begin = time.monotonic()
    model = _model(frozen, budget, seed)
    best = _KeepBest(
        [frozen.player],
        Every(updates=budget.validation.every_updates),
        look=look,
        games=budget.validation.games,
        seed=budget.validation.seed,
        at_start=True,
        **budget.game.to_dict(),
    )
    transitions = transitions_for(model, budget.responder.updates)
    model.learn(transitions, callback=best, log_interval=None)
    model.policy.load_state_dict(best.weights)
    history = [
        {
            "updates": entry["updates"],
            "transitions": entry["transitions"],
            "seconds": round(entry["training_seconds"], 1),
            "rho": entry["score"],
        }
        for entry in best.history
    ]
    return model, {
        "best": history[best.kept],
        "history": history,
        "updates": model.num_updates,
        "transitions": int(model.num_timesteps),
        "parameters": sum(weight.numel() for weight in model.q_net.parameters()),
        "seconds": round(time.monotonic() - begin, 1),
    }


def _model(frozen: FrozenPlayer, budget: AttackBudget, seed: int) -> DDQN:
    game, section = budget.game, budget.responder
    name, arguments = frozen.attacker.capitalize(), game.to_dict()
    games = gymnasium.make_vec(
        f"resgym/Hironaka{name}-v0",
        num_envs=section.num_envs,
        opponent=frozen.player,
        reward=section.reward,
        max_episode_steps=arguments.pop("max_moves"),
        **arguments,
    )
    with errors_named("responder", ConfigError):
        return DDQN(
            f"{name}Policy",
            TensorVecEnv(games),
            **section.model_dump(include=_SAME),
            train_freq=1,
            gradient_steps=section.updates_per_step,
            policy_kwargs={**section.policy_arguments, "net_arch": section.net_arch},
            seed=seed,
            device="cpu",
        )


class RolloutPlayer:
    """One step of policy improvement by rollouts to the end (Tesauro and Galperin 1996).

    The opponent is known, since it is frozen. For every legal answer the game is simulated with the
    opponent itself and a policy for the player's own later moves, and the answer with the longest
    game (an agent) or the shortest (a host) is given; of several equally good ones that of the
    policy, or else the first. Against an opponent that draws random numbers the rollouts draw their
    own, so nothing is known in advance.

    Args:
        policy: plays the later moves; a player of the same seat.
        opponent: the frozen player.
        spec: the game.
        moves: rollouts are cut after so many.
    """

    def __init__(self, policy: Player, opponent: Player, spec: GameSpec, moves: int) -> None:
        self.role: Role = policy.role
        self.name = f"{getattr(policy, 'name', type(policy).__name__)} with lookahead"
        self.policy, self.opponent, self.spec, self.moves = policy, opponent, spec, moves

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; costs as many moves as the rollouts have."""
        usual = ask_player(self.policy, state, coords, rng)
        games = state.num_games
        options = self.spec.dimension if self.role == "agent" else self.spec.num_host_actions
        legal = usual.new_ones(games, options) if coords is None else coords
        row, option = legal.nonzero(as_tuple=True)
        length = usual.new_full((games, options), self.moves + 1 if self.role == "host" else -1)
        length[row, option] = self._lengths(
            state.select(row),
            None if coords is None else coords[row],
            option,
            rng.split(_ROLLOUT).select(row),
        )
        score = length if self.role == "agent" else -length
        # Twice, to make room for a preference among equals.
        return (2 * score).scatter_add(1, usual[:, None], torch.ones_like(usual[:, None])).argmax(1)

    def _lengths(
        self, state: GameState, coords: Tensor | None, option: Tensor, rng: RowRandom
    ) -> Tensor:
        """int64 [R]: moves of the game after each answer; an overflow counts as never ending."""
        if coords is None:
            coords = host_action_table(self.spec.dimension, state.device)[option]
            axis = ask_player(self.opponent, state, coords, rng.split(1))
        else:
            axis = option
        kernels = resolve_backend("auto", state.device, self.spec)
        after, overflow = kernels.move(state, coords, axis, self.spec)
        pair = (self.opponent, self.policy)
        host, agent = pair if self.role == "agent" else pair[::-1]
        found = play_lengths(host, agent, after, self.spec, rng.split(2), self.moves)
        return torch.where(overflow | found.overflow, self.moves, found.moves)
