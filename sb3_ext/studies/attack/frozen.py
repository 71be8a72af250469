"""The player under attack: who it is, which seat it has, and how to know it again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.measure.rho import rho_starts
from resgym.players import Player, agent_names, ask_player, host_names, player_name, resolve_player
from sb3_ext.config.sections import ConfigError

__all__ = ["FrozenPlayer", "other_role"]

_PROBES = 256


def other_role(role: Role) -> Role:
    """The seat that attacks."""
    return "agent" if role == "host" else "host"


@dataclass(frozen=True)
class FrozenPlayer:
    """A player that only answers.

    Attributes:
        player: it.
        role: its seat.
        name: for tables and folders.
        fingerprint: 16 hexadecimal digits that tell players apart by what they answer in the
            first positions of the game; a saved model that was trained further has another one.
    """

    player: Player
    role: Role
    name: str
    fingerprint: str

    @classmethod
    def of(
        cls, player: Any, spec: GameSpec, role: Role | None = None, name: str | None = None
    ) -> FrozenPlayer:
        """Resolves what a caller means.

        Args:
            player: a name, a `Player`, a function or the path of a saved model; a `FrozenPlayer`
                is given back as it is.
            spec: the game.
            role: its seat; None where that is clear from the player.
            name: for tables; by default the player's own.

        Raises:
            ConfigError: the seat is not clear, or there is no such player for it.
            TypeError: it is nothing that plays.
        """
        if isinstance(player, cls):
            return player
        if role is not None and role not in ("host", "agent"):
            raise ConfigError(f"role must be 'host' or 'agent', got {role!r}")
        resolved = _resolve(player, spec, role)
        found = resolved.role
        try:
            fingerprint = _fingerprint(resolved, spec)
        except ValueError as error:  # a model of another dimension, or of fewer points
            raise ConfigError(f"player: {error}") from None
        return cls(resolved, found, name or player_name(player), fingerprint)


def _resolve(player: Any, spec: GameSpec, role: Role | None) -> Player:
    if role is None and isinstance(player, str):
        seats = [
            seat
            for seat, names in (("host", host_names()), ("agent", agent_names()))
            if player in names
        ]
        if len(seats) == 2:
            raise ConfigError(
                f"role must be given: {player!r} is the name of a host and of an agent"
            )
        role = "host" if seats == ["host"] else "agent" if seats else None
    if role is None and isinstance(player, Player) and not isinstance(player, type):
        role = player.role
    if role is None and callable(player):
        raise ConfigError("role must be given: a function plays either seat, allowed: host, agent")
    try:
        if role is not None:
            return resolve_player(player, role, spec)
        return _either(player, spec)
    except ValueError as error:
        raise ConfigError(f"player: {str(error).removeprefix('opponent: ')}") from None


def _either(player: Any, spec: GameSpec) -> Player:
    """A saved model for the seat that it was trained for."""
    found: list[Player] = []
    reasons: list[ValueError] = []
    roles: tuple[Role, ...] = ("host", "agent")
    for role in roles:
        try:
            found.append(resolve_player(player, role, spec))
        except ValueError as error:
            reasons.append(error)
    if len(found) == 2:
        raise ValueError(f"role must be given: {Path(player)} holds a host and an agent")
    if not found:
        raise reasons[0]
    return found[0]


def _fingerprint(player: Player, spec: GameSpec) -> str:
    state = rho_starts(spec, _PROBES)
    row = torch.arange(_PROBES)
    coords = None
    if player.role == "agent":
        sets = host_action_table(spec.dimension)
        coords = sets[row % len(sets)]
    rng = RowRandom.for_episode(row, torch.zeros_like(row))
    answers = ask_player(player, state, coords, rng).cpu().numpy().astype("<i8")
    return hashlib.sha256(answers.tobytes()).hexdigest()[:16]
