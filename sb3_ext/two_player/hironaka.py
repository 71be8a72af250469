"""The resolution game for the two-player trainer: the roles `host` and `agent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

import gymnasium
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from resgym.envs import HironakaVectorEnv
from resgym.game import GameSpec
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import start_positions
from resgym.game.spec import Role
from resgym.game.state import GameState
from resgym.measure.games import Lengths, play_lengths
from resgym.measure.rho import rho
from resgym.players import CallablePlayer, Player, ask_player, resolve_player
from resgym.polynomials.starts import resolve_starts
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.config.sections import PositiveCount
from sb3_ext.two_player.games import GAMES, Game, GameSettings

_SEED_WORD = 0x70616972  # keeps the starts of matches apart from others with the same seed


class HironakaSettings(GameSettings):
    """Sizes and rules; keyword arguments of `resgym/HironakaHost-v0` and `HironakaAgent-v0`."""

    name: Literal["hironaka"]
    """name of the game"""
    dimension: PositiveCount
    """axes, 2 to 10"""
    max_num_points: PositiveCount
    """points of a start, at least 2"""
    max_value: PositiveCount
    """largest coordinate of a start"""
    polytope: Literal["dominance", "newton"]
    """points that a move keeps: those no other dominates, or vertices only"""
    reposition: bool
    """subtract the per-axis minimum after every move"""
    scale_observation: bool
    """divide observed points by the largest coordinate"""
    max_episode_steps: PositiveCount
    """moves after which a game is truncated"""
    backend: str
    """implementation of the move: auto, torch, numba or triton"""
    invalid_action: Literal["error", "noop", "penalty", "terminate"]
    """what an illegal action does; only algorithms without masks choose one"""
    starts: str | None = None
    """file with a position a line that games start from, in training and in every measure, or null
    for random ones; may be left out"""


@GAMES.register("hironaka")
class HironakaGame(Game):
    """Hironaka's polyhedral game. The measure is rho, games finished per move."""

    Settings: ClassVar[type[GameSettings]] = HironakaSettings
    settings: HironakaSettings
    measure: ClassVar[str] = "rho"

    def __init__(self, settings: HironakaSettings) -> None:
        super().__init__(settings)
        names = {"dimension", "max_num_points", "max_value", "polytope", "reposition"}
        self.sizes: dict[str, Any] = settings.model_dump(include=names)
        self.spec = GameSpec(**self.sizes)
        self.starts = resolve_starts(settings.starts, self.spec)
        self._even_lengths: dict[tuple[int, int, int], Tensor] = {}

    def make_env(  # noqa: D102
        self, role: str, num_envs: int, reward: Any = None, device: torch.device | str = "cpu"
    ) -> VectorEnv:
        return gymnasium.make_vec(
            f"resgym/Hironaka{role.capitalize()}-v0",
            num_envs=num_envs,
            reward="terminal" if reward is None else reward,
            device=device,
            **self.settings.model_dump(exclude={"name"}),
        )

    def named_player(self, role: str, name: Any) -> Player:  # noqa: D102
        return resolve_player(name, cast("Role", role), self.spec)

    def policy_player(self, role: str, policy: Any, name: str) -> Player:  # noqa: D102
        return player_of(policy, name)

    def set_reward(self, env: VectorEnv, reward: Any) -> None:  # noqa: D102
        cast("HironakaVectorEnv", env.unwrapped).reward = reward

    def evaluate(  # noqa: D102
        self, players: Mapping[str, Any], games: int, seed: int, max_moves: int
    ) -> float:
        return rho(
            players["host"],
            players["agent"],
            games=games,
            seed=seed,
            max_moves=max_moves,
            backend=self.settings.backend,
            starts=self.starts,
            **self.sizes,
        ).rho

    def match(self, players: Mapping[str, Any], games: int, seed: int, max_moves: int) -> float:
        """The host's score: the mean of E / (E + L) over the games.

        L is the game's length, E that of a random host and a random agent from the same start: the
        odds E / L are how many times faster than chance the host is. A game that is cut counts with
        the moves played.
        """
        lengths = self._lengths(players, games, seed, max_moves).moves.double()
        key = (games, seed, max_moves)
        if key not in self._even_lengths:
            chance = {role: self.named_player(role, "random") for role in self.roles}
            even = self._lengths(chance, games, seed, max_moves).moves.double()
            self._even_lengths = {key: even}  # one at a time: the same key returns all training
        even = self._even_lengths[key]
        return float((even / (even + lengths)).mean())

    def count_actions(  # noqa: D102
        self, players: Mapping[str, Any], role: str, games: int, seed: int, max_moves: int
    ) -> list[int]:
        num_actions = self.spec.num_host_actions if role == "host" else self.spec.dimension
        counts = torch.zeros(num_actions, dtype=torch.int64)

        def act(state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
            answer = ask_player(players[role], state, coords, rng)
            counts.add_(torch.bincount(answer.cpu(), minlength=num_actions))
            return answer

        counting = CallablePlayer(act, cast("Role", role))
        self._lengths({**players, role: counting}, games, seed, max_moves)
        return counts.tolist()

    def _lengths(
        self, players: Mapping[str, Any], games: int, seed: int, max_moves: int
    ) -> Lengths:
        row = torch.arange(games) + (derive_seed(seed, _SEED_WORD) >> 1)
        rng = RowRandom.for_episode(row, torch.zeros_like(row))
        starts = start_positions(self.spec, rng.at(0, Stream.START), self.starts)
        host, agent = players["host"], players["agent"]
        return play_lengths(host, agent, starts, self.spec, rng, max_moves, self.settings.backend)
