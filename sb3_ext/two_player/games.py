"""What the trainer has to know of a game; `examples/symmetric_game.py` is another one.

Each of the two roles has an environment of its own: a tensor `VectorEnv` with one seat, in which
the player that its method `set_opponent(player)` was given answers for the other role. What a
*player* is belongs to the game: here it is a function from observations to actions, in
`HironakaGame` a player of `resgym`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from sb3_ext.config.registry import Registry, unknown_word
from sb3_ext.config.sections import Section
from sb3_ext.ddqn.legality import legal_argmax, mask_key
from sb3_ext.networks.policy_scores import action_scores


class GameSettings(Section):
    """What a configuration says of a game; subclasses add their sizes."""

    name: str
    """name of the game: hironaka, or one that was registered"""


class Game(ABC):
    """A game of two roles.

    Attributes:
        Settings: the section `game` of a configuration.
        roles: names of the roles. The first one is who a result counts for.
        measure: name of what `evaluate` gives.
        settings: the sizes.
    """

    Settings: ClassVar[type[GameSettings]] = GameSettings
    roles: ClassVar[tuple[str, str]] = ("host", "agent")
    measure: ClassVar[str] = "mean_return"

    def __init__(self, settings: GameSettings) -> None:
        self.settings = settings

    @abstractmethod
    def make_env(
        self, role: str, num_envs: int, reward: Any = None, device: torch.device | str = "cpu"
    ) -> VectorEnv:
        """A tensor environment of N games with the seat of a role; SAME_STEP autoreset.

        ``reward`` is what the configuration calls the role's reward; None: the game's plain result.
        """

    def other(self, role: str) -> str:
        """The name of the other role."""
        return self.roles[1] if role == self.roles[0] else self.roles[0]

    def pair_name(self, role: str, opponent: str) -> str:
        """What a role and an opponent of it are called in results, such as ``host-random``."""
        return f"{role}-{opponent}" if role == self.roles[0] else f"{opponent}-{role}"

    def named_player(self, role: str, name: str) -> Any:
        """A scripted player, or a saved model.

        Raises:
            ValueError: there is none of this name.
        """
        raise ValueError(unknown_word(f"player of {role}", name, ()))

    def policy_player(self, role: str, policy: Any, name: str) -> Any:
        """Plays the best legal action of a role's SB3 policy as it is then, without exploring."""
        key = mask_key(policy.observation_space, policy.action_space)

        def play(observation: Any) -> Tensor:
            """Actions int64 [N] for observations [N, ...]."""
            legal = None if key is None else observation[key].bool()
            return legal_argmax(action_scores(policy, observation), legal)

        return play

    def set_opponents(
        self, env: VectorEnv, players: Sequence[Any], assignment: Sequence[int] | None = None
    ) -> None:
        """Seat one or several players in an environment of `make_env`, from the next move on.

        ``assignment`` says for several which of them answers in each of the N rows.
        """
        seated: Any = env.unwrapped
        several = (list(players), assignment)
        seated.set_opponent(*(players if len(players) == 1 else several))

    def set_reward(self, env: VectorEnv, reward: Any) -> None:
        """Give an environment's role another reward.

        Raises:
            ValueError, TypeError: the game has no such reward.
        """
        raise ValueError(f"reward: the game {self.settings.name!r} has no other rewards")

    def evaluate(self, players: Mapping[str, Any], games: int, seed: int, max_moves: int) -> float:
        """The measure of two players, one per role; higher is better for the first role.

        ``seed`` fixes the starts, and nothing else random is touched; games are cut after
        ``max_moves``.
        """
        returns, _ = self._play(players, self.roles[0], games, seed, max_moves)
        return float(returns.mean())

    def match(self, players: Mapping[str, Any], games: int, seed: int, max_moves: int) -> float:
        """Score of the first role in 0..1, as a rating needs it: won 1, drawn 1/2, lost 0."""
        returns, _ = self._play(players, self.roles[0], games, seed, max_moves)
        return float((returns.sign() + 1).mean() / 2)

    def count_actions(
        self, players: Mapping[str, Any], role: str, games: int, seed: int, max_moves: int
    ) -> list[int]:
        """How often a role takes each of its actions."""
        _, counts = self._play(players, role, games, seed, max_moves)
        return counts.tolist()

    def _play(
        self, players: Mapping[str, Any], role: str, games: int, seed: int, max_moves: int
    ) -> tuple[Tensor, Tensor]:
        """One episode in every row from a role's seat: returns float32 [N], actions taken [A]."""
        env: Any = self.make_env(role, games)
        self.set_opponents(env, [players[self.other(role)]])
        observation, _ = env.reset(seed=seed)
        num_actions = int(env.single_action_space.n)
        returns, running = torch.zeros(games), torch.ones(games, dtype=torch.bool)
        counts = torch.zeros(num_actions, dtype=torch.int64)
        for _ in range(max_moves):
            actions = players[role](observation)
            counts = counts + torch.bincount(actions[running], minlength=num_actions)
            observation, reward, terminated, truncated, _ = env.step(actions)
            returns = returns + torch.where(running, reward, 0.0)
            running = running & ~(terminated | truncated)
            if not bool(running.any()):
                break
        env.close()
        return returns, counts


GAMES: Registry[type[Game]] = Registry("game", Game)
