"""What a player is, and players made from functions or from other players.

A player answers for one seat of many games at once. It is handed the positions, the hosts' sets if
it is the agent, and the rows' random numbers; it keeps no memory of earlier moves: the answer to a
row is the same alone, in any batch and after a resume.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.spec import Role
from resgym.game.state import GameState

__all__ = [
    "CallablePlayer",
    "MixedPlayer",
    "Player",
    "PlayerFunction",
    "check_answer",
    "check_role",
    "compiled_name",
    "given_sets",
    "rows_of",
]

PlayerFunction = Callable[[GameState, "Tensor | None", RowRandom], Tensor]


@runtime_checkable
class Player(Protocol):
    """Plays one seat of N games."""

    @property
    def role(self) -> Role:
        """``host`` or ``agent``."""
        ...

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """Answers in every game.

        Args:
            state: positions of N games; read only.
            coords: bool [N, D], the hosts' sets, for an agent; None for a host. Read only.
            rng: the rows' random numbers. Drawing advances nothing, so a player that needs several
                independent numbers takes them from ``rng.split``.

        Returns:
            int64 [N] on the device of the state: action numbers 0..A-1 of a host, axes of an agent
            with ``coords[n, axis[n]]`` True. Finished games get any legal answer.
        """
        ...


def check_role(role: object) -> Role:
    """Returns ``role`` if it is one.

    Raises:
        ValueError: it is neither ``host`` nor ``agent``.
    """
    for known in get_args(Role):
        if role == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"role must be 'host' or 'agent', got {role!r}")


def given_sets(coords: Tensor | None) -> Tensor:
    """The hosts' sets that an agent was handed.

    Raises:
        TypeError: there are none.
    """
    if coords is None:
        raise TypeError("coords must be the hosts' sets when an agent plays, got None")
    return coords


def compiled_name(player: Player) -> str | None:
    """The name under which `resgym.kernels` knows a player's choice, or None.

    It is the class attribute ``compiled``, which stands for ``act`` of this very class: a subclass
    may choose differently and does not inherit it.
    """
    name = vars(type(player)).get("compiled")
    return name if isinstance(name, str) else None


def rows_of(player: Player, index: Tensor) -> Player:
    """The player for some rows of its batch.

    Players answer every row alike and are returned as they are, except those that belong to a fixed
    batch, which offer ``select(index)`` (`MixedPlayer`).

    Args:
        player: any player.
        index: int64 or bool [N], the rows.
    """
    select = getattr(player, "select", None)
    return player if select is None else select(index)


class CallablePlayer:
    """A player from a function ``(state, coords, rng) -> answers``.

    Args:
        function: called with a `GameState`, the hosts' sets (None for a host) and a `RowRandom`;
            returns an integer tensor [N] on the device of the state.
        role: ``host`` or ``agent``.
        name: shown in errors; the function's own name if not given.

    Raises:
        TypeError: ``function`` cannot be called.
        ValueError: ``role`` is unknown.
    """

    def __init__(self, function: PlayerFunction, role: Role, name: str | None = None) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        self.function = function
        self.role: Role = check_role(role)
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"CallablePlayer({self.name}, role={self.role!r})"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """Calls the function and checks its answer.

        Type, shape and device are checked everywhere. The values are checked on the CPU only: on an
        accelerator that would stall every step, and the environment's rule for illegal actions
        applies instead.

        Raises:
            TypeError: the answer is no integer tensor.
            ValueError: it has a wrong shape or device, or an illegal entry.
        """
        answer = self.function(state, coords, rng)
        if not isinstance(answer, Tensor):
            raise TypeError(
                f"{self.role} {self.name} must return a tensor, got {type(answer).__name__}"
            )
        if answer.dtype.is_floating_point or answer.dtype.is_complex or answer.dtype == torch.bool:
            raise TypeError(f"{self.role} {self.name} must return integers, got {answer.dtype}")
        if answer.shape != (state.num_games,):
            raise ValueError(
                f"{self.role} {self.name} must return shape ({state.num_games},), "
                f"got {tuple(answer.shape)}"
            )
        if answer.device != state.device:
            raise ValueError(
                f"{self.role} {self.name} must answer on {state.device}, got {answer.device}"
            )
        answer = answer.to(torch.int64)
        if state.device.type == "cpu":
            check_answer(answer, state, coords, f"{self.role} {self.name}")
        return answer


def check_answer(answer: Tensor, state: GameState, coords: Tensor | None, who: str) -> None:
    """Raises ValueError if an int64 [N] answer has an illegal entry (looks at the values)."""
    dimension = state.points.shape[2]
    size = 2**dimension - dimension - 1 if coords is None else dimension
    legal = (answer >= 0) & (answer < size)
    if coords is not None:
        legal &= coords.gather(1, answer.clamp(0, dimension - 1)[:, None])[:, 0]
    if bool(legal.all()):
        return
    row = int((~legal).nonzero()[0])
    if coords is None:
        raise ValueError(
            f"{who} answered {int(answer[row])} in row {row}, allowed are 0..{size - 1}"
        )
    allowed = coords[row].nonzero()[:, 0].tolist()
    raise ValueError(f"{who} answered {int(answer[row])} in row {row}, allowed are {allowed}")


class MixedPlayer:
    """One player per row.

    On the CPU each player answers only its own rows. On an accelerator each answers all rows and
    the right answers are picked, because finding the rows would wait for the device; there the
    cost is that of all players together.

    Args:
        players: players of one role.
        assignment: int64 [N], the player (a position in ``players``) of each row. Kept by the
            object and may be written to between moves, for example to seat a new opponent.

    Raises:
        TypeError: ``assignment`` holds no integers.
        ValueError: no players, players of two roles, or an assignment out of range.
    """

    def __init__(self, players: Sequence[Player], assignment: Tensor | Sequence[int]) -> None:
        self.players = list(players)
        if not self.players:
            raise ValueError("players must have at least one player, got none")
        roles = sorted({check_role(player.role) for player in self.players})
        if len(roles) > 1:
            raise ValueError(f"players must have one role, got {roles}")
        self.role: Role = roles[0]
        assignment = torch.as_tensor(assignment)
        if assignment.dtype.is_floating_point or assignment.dtype == torch.bool:
            raise TypeError(f"assignment must hold integers, got {assignment.dtype}")
        if assignment.ndim != 1:
            raise ValueError(f"assignment must have shape (N,), got {tuple(assignment.shape)}")
        outside = (assignment < 0) | (assignment >= len(self.players))
        if bool(outside.any()):
            raise ValueError(
                f"assignment must be in 0..{len(self.players) - 1} (players), "
                f"got {int(assignment[outside][0])}"
            )
        self.assignment = assignment.to(torch.int64)

    def __repr__(self) -> str:
        return f"MixedPlayer({self.players!r}, {len(self.assignment)} rows)"

    def select(self, index: Tensor) -> MixedPlayer:
        """The player of some rows only; the assignment is copied.

        Args:
            index: int64 or bool [N].
        """
        mixed = MixedPlayer.__new__(MixedPlayer)
        # Players that belong to a batch have to be cut to the same rows.
        mixed.players = [rows_of(player, index) for player in self.players]
        mixed.role = self.role
        mixed.assignment = self.assignment.to(index.device)[index]
        return mixed

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """Answers each row by its player.

        Raises:
            ValueError: the number of games is not that of the assignment.
        """
        if self.assignment.shape[0] != state.num_games:
            raise ValueError(
                f"assignment is for {self.assignment.shape[0]} games, got {state.num_games}"
            )
        if self.assignment.device != state.device:
            self.assignment = self.assignment.to(state.device)
        if len(self.players) == 1:
            return self.players[0].act(state, coords, rng)
        answer = torch.zeros(state.num_games, dtype=torch.int64, device=state.device)
        for number, player in enumerate(self.players):
            mine = self.assignment == number
            if state.device.type == "cpu":
                rows = mine.nonzero()[:, 0]
                if len(rows):
                    answer[rows] = rows_of(player, rows).act(*_take(state, coords, rng, rows))
            else:
                answer = torch.where(mine, player.act(state, coords, rng), answer)
        return answer


def _take(
    state: GameState, coords: Tensor | None, rng: RowRandom, rows: Tensor
) -> tuple[GameState, Any, RowRandom]:
    return state.select(rows), None if coords is None else coords[rows], rng.select(rows)
