"""What a player is, and players made from functions.

A player keeps no memory of earlier moves: the answer to a row is the same alone, in any batch and
after a resume. A `resgym.players.RecurrentPlayer` has a memory, and says so: ``remembers``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast, get_args, runtime_checkable

from resgym.game.spec import Role

if TYPE_CHECKING:
    from torch import Tensor

    from resgym.game.rng import RowRandom
    from resgym.game.state import GameState

PlayerFunction = Callable[["GameState", "Tensor | None", "RowRandom"], "Tensor"]


@runtime_checkable
class Player(Protocol):
    """Plays one seat of N games.

    A class that is registered under a name says in an attribute ``rules``, names as of `GameSpec`,
    which rules it plays; without one that is ``basic`` alone. An object without one may play any.
    """

    @property
    def role(self) -> Role:
        """``host`` or ``agent``."""
        ...

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """Answers in every game, writing to no argument.

        Args:
            state: positions of N games.
            coords: bool [N, D], the hosts' sets, for an agent; None for a host. With rule ``thom``,
                the axes of the sets that may be chosen.
            rng: the rows' random numbers. Drawing advances nothing, so a player that needs several
                independent numbers takes them from ``rng.split``.

        Returns:
            int64 [N] on the device of the state: action numbers 0..A-1 of a host, among those of
            ``state.legal_sets()`` if that is not None; axes of an agent with ``coords[n, axis[n]]``
            True. Finished games get any legal answer.
        """
        ...


def check_role(role: object, name: str = "role") -> Role:
    """``role`` if it is one, else a ValueError that calls it by ``name``."""
    if role not in get_args(Role):
        raise ValueError(f"{name} must be 'host' or 'agent', got {role!r}")
    return cast(Role, role)


def given_sets(coords: Tensor | None) -> Tensor:
    """The hosts' sets that an agent was handed; a TypeError if there are none."""
    if coords is None:
        raise TypeError("coords must be the hosts' sets when an agent plays, got None")
    return coords


def own_attribute(player: Player, name: str) -> str | None:
    """What a player's very class says of ``act``; a subclass may choose differently.

    ``compiled`` is the name under which `resgym.kernels` knows the choice. ``invariant`` says what
    of a position changes no answer, beside the order of the points: ``shift``, or ``scale`` for a
    shift and a factor. ``reads_order`` is true if that order matters, ``draws`` if chance does.
    """
    return vars(type(player)).get(name)


def compiled_name(player: Player) -> str | None:
    """The name under which `resgym.kernels` knows a player's choice, or None."""
    return own_attribute(player, "compiled")


def rows_of(player: Player, index: Tensor) -> Player:
    """The player for some rows of its batch, int64 or bool [N].

    Players answer every row alike and are returned as they are, except those that belong to a fixed
    batch, which offer ``select(index)`` (`resgym.players.MixedPlayer`).
    """
    select = getattr(player, "select", None)
    return player if select is None else select(index)


class CallablePlayer:
    """A player from a function ``(state, coords, rng) -> answers``, like `Player.act`.

    Errors show ``name``, by default the function's own.
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
        """Calls the function; see `Player.act`."""
        return self.function(state, coords, rng)
