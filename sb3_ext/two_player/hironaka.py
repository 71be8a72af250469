"""The resolution game for the two-player trainer: its roles, environments and measures."""

from __future__ import annotations

from typing import Any, Literal, cast

import gymnasium
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import start_positions
from resgym.game.spec import GameSpec, Role
from resgym.measure.games import Lengths, play_lengths
from resgym.measure.rho import rho
from resgym.players import Player, resolve_player
from resgym.polynomials.starts import resolve_starts
from sb3_ext.config.sections import PositiveCount, Section

ROLES = ("host", "agent")

ByRole = dict[str, Any]
"""What each role has, by its name."""

_SEED_WORD = 0x70616972  # keeps the starts of matches apart from others with the same seed


def other_role(role: str) -> str:
    """The name of the other role."""
    return ROLES[role == ROLES[0]]


def pair_name(role: str, opponent: str) -> str:
    """The name of a pairing in results, such as ``host-random``."""
    return f"{role}-{opponent}" if role == ROLES[0] else f"{opponent}-{role}"


class GameSizes(Section):
    """Sizes and rules of a game, and its starts."""

    dimension: PositiveCount
    """axes, 2 to 10"""
    max_num_points: PositiveCount
    """points of a start, at least 2"""
    max_value: PositiveCount
    """largest coordinate of a start"""
    polytope: Literal["dominance", "newton"]
    """points kept after a move: dominance keeps those that no other point dominates, newton only
    the vertices of the Newton polyhedron"""
    reposition: bool
    """subtract the per-axis minimum after every move"""
    starts: str | None = None
    """file of start positions, one a line, for training and all measures; null (default): random
    starts"""

    def spec(self) -> GameSpec:
        """The game as `resgym` knows it."""
        return GameSpec(**self.model_dump(include={*GameSizes.model_fields} - {"starts"}))


class GameSection(GameSizes):
    """Keyword arguments of `resgym/HironakaHost-v0` and `HironakaAgent-v0`."""

    scale_observation: bool
    """divide observed points by the largest coordinate"""
    max_episode_steps: PositiveCount
    """moves after which a game is truncated"""
    backend: str
    """implementation of the move: auto, torch, numba or triton"""
    invalid_action: Literal["error", "noop", "penalty", "terminate"]
    """effect of an illegal action; only algorithms without action masks choose illegal actions"""


class Game:
    """Hironaka's polyhedral game.

    Args:
        section: its sizes and rules.
        seed: fixes the starts of matches and measurements; each takes a number of `games`.
        max_moves: moves after which a game of these is cut.
    """

    def __init__(self, section: GameSection, seed: int, max_moves: int) -> None:
        self.section = section
        self.seed = seed
        self.max_moves = max_moves
        self.spec = section.spec()
        self.starts = resolve_starts(section.starts, self.spec)
        self._even_lengths: dict[int, Tensor] = {}

    def make_env(self, role: str, num_envs: int, reward: str, device: str) -> VectorEnv:
        """A tensor environment of N games with the seat of a role; SAME_STEP autoreset."""
        return gymnasium.make_vec(
            f"resgym/Hironaka{role.capitalize()}-v0",
            num_envs=num_envs,
            reward=reward,
            device=device,
            **self.section.to_dict(),
        )

    def named_player(self, role: str, name: Any) -> Player:
        """A scripted player, or a saved model; a ValueError if there is none of this name."""
        return resolve_player(name, cast("Role", role), self.spec)

    def evaluate(self, players: ByRole, games: int) -> float:
        """Games finished per move."""
        return rho(
            **players,
            games=games,
            seed=self.seed,
            max_moves=self.max_moves,
            backend=self.section.backend,
            starts=self.starts,
            **vars(self.spec),
        ).rho

    def match(self, players: ByRole, games: int) -> float:
        """The host's score in 0..1: the mean of E / (E + L) over the games.

        L is the game's length, E that of a random host and a random agent from the same start: the
        odds E / L are how many times faster than chance the host is. A game that is cut counts with
        the moves played.
        """
        lengths = self._lengths(players, games).moves.double()
        if games not in self._even_lengths:
            chance = {role: self.named_player(role, "random") for role in ROLES}
            even = self._lengths(chance, games).moves.double()
            self._even_lengths = {games: even}  # one at a time: it is the same in all training
        even = self._even_lengths[games]
        return float((even / (even + lengths)).mean())

    def count_actions(self, players: ByRole, role: str, games: int) -> list[int]:
        """How often a role takes each of its actions."""
        num_actions = self.spec.num_host_actions if role == "host" else self.spec.dimension
        counts = torch.zeros(num_actions, dtype=torch.int64)

        def note(game: Tensor, action: Tensor, axis: Tensor, *_: Any) -> None:
            chosen = action if role == "host" else axis
            counts.add_(torch.bincount(chosen.cpu(), minlength=num_actions))

        self._lengths(players, games, note=note)
        return counts.tolist()

    def _lengths(self, players: ByRole, games: int, **more: Any) -> Lengths:
        row = torch.arange(games) + (derive_seed(self.seed, _SEED_WORD) >> 1)
        rng = RowRandom.for_episode(row, torch.zeros_like(row))
        starts = start_positions(self.spec, rng.at(0, Stream.START), self.starts)
        return play_lengths(
            players["host"],
            players["agent"],
            starts,
            self.spec,
            rng,
            self.max_moves,
            self.section.backend,
            **more,
        )
