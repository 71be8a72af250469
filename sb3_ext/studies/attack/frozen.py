"""The player under attack: who it is, which seat it has, and how to know it again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.measure.rho import rho_starts
from resgym.players import Player, agent_names, ask_player, host_names, player_name, resolve_player
from sb3_ext.config.sections import ConfigError, errors_of

_PROBES = 256


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

    @property
    def attacker(self) -> Role:
        """The seat that attacks."""
        return "agent" if self.role == "host" else "host"

    @classmethod
    def of(
        cls, player: Any, spec: GameSpec, role: Role | None = None, name: str | None = None
    ) -> FrozenPlayer:
        """Resolves what a caller means, see `exploit`; a `FrozenPlayer` is given back as it is.

        Raises:
            ConfigError: the seat is not clear, or there is no such player for it.
            TypeError: it is nothing that plays.
        """
        if isinstance(player, cls):
            return player
        if role is not None and role not in ("host", "agent"):
            raise ConfigError(f"role must be 'host' or 'agent', got {role!r}")
        resolved = _resolve(player, spec, role)
        with errors_of("player"):  # a model of another dimension, or of fewer points
            fingerprint = _fingerprint(resolved, spec)
        return cls(resolved, resolved.role, name or player_name(player), fingerprint)

    def draws_numbers(self, spec: GameSpec) -> bool:
        """Whether it answers in another way when asked with other random numbers."""
        return _fingerprint(self.player, spec, 0) != _fingerprint(self.player, spec, 1)


def _resolve(player: Any, spec: GameSpec, role: Role | None) -> Player:
    seats: tuple[Role, ...] = ("host", "agent") if role is None else (role,)
    if isinstance(player, str):
        known = {"host": host_names(), "agent": agent_names()}
        seats = tuple(seat for seat in seats if player in known[seat]) or seats
    elif role is None and isinstance(player, Player) and not isinstance(player, type):
        seats = (player.role,)
    elif role is None and callable(player):
        raise ConfigError("role must be given: a function plays either seat, allowed: host, agent")
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
        raise ConfigError(f"role must be given: {player!r} is the name of a host and of an agent")
    return found[0]


def _fingerprint(player: Player, spec: GameSpec, episode: int = 0) -> str:
    state = rho_starts(spec, _PROBES)
    row = torch.arange(_PROBES)
    coords = None
    if player.role == "agent":
        sets = host_action_table(spec.dimension)
        coords = sets[row % len(sets)]
    rng = RowRandom.for_episode(row, torch.full_like(row, episode))
    answers = ask_player(player, state, coords, rng).cpu().numpy().astype("<i8")
    return hashlib.sha256(answers.tobytes()).hexdigest()[:16]
