"""The player protocol, players made from functions, and hosts in plain Python, all without torch.

A player has no memory: its answer to a row is the same alone, in any batch and after a resume. A
`resgym.players.RecurrentPlayer` has one and declares it in ``remembers``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Protocol, cast, get_args, runtime_checkable

from resgym.game.exact import Position
from resgym.game.spec import Axes, Role
from resgym.texts import shown

if TYPE_CHECKING:
    from torch import Tensor

    from resgym.game.rng import RowRandom
    from resgym.game.state import GameState


PlayerFunction = Callable[["GameState", "Tensor | None", "RowRandom"], "Tensor"]


@runtime_checkable
class Player(Protocol):
    """A player of one seat in N games.

    A registered class lists the rules that it plays in the attribute ``rules`` (names as in
    `GameSpec`); the default is ``basic`` alone. An object without that attribute may play any rule.
    """

    @property
    def role(self) -> Role:
        """``host`` or ``agent``."""
        ...

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """Choose a move in every game, without writing to an argument.

        Args:
            state: positions of N games.
            coords: bool [N, D], the hosts' sets, for an agent; None for a host. With rule ``thom``,
                only the axes of the sets that the agent may choose.
            rng: random numbers of the rows. Drawing does not advance them: for several independent
                numbers use ``rng.split``.

        Returns:
            int64 [N] on the device of the state. A host returns action numbers 0..A-1, legal by
            ``state.legal_sets()`` if that is not None. An agent returns axes with
            ``coords[n, axis[n]]`` True. In finished games any legal answer will do.
        """
        ...


def check_role(role: object, name: str = "role") -> Role:
    """Return ``role`` if it is valid; the ValueError calls it ``name``."""
    if role not in get_args(Role):
        raise ValueError(f"{name} must be 'host' or 'agent', got {shown(role)}")
    return cast(Role, role)


def given_sets(coords: Tensor | None) -> Tensor:
    """Return the hosts' sets that an agent was given; raise TypeError if there are none."""
    if coords is None:
        raise TypeError("coords must be the hosts' sets when an agent plays, got None")
    return coords


def own_attribute(player: Player, name: str) -> str | None:
    """What the class itself declares about ``act``; a subclass may choose differently.

    ``compiled`` is the name of the choice in `resgym.kernels`. ``invariant`` is what never changes
    an answer, beside the order of points: ``shift``, or ``scale`` for shift and factor.
    ``reads_order`` is true if the order matters, ``draws`` if the player draws random numbers.
    """
    return vars(type(player)).get(name)


def rows_of(player: Player, index: Tensor | None) -> Player:
    """Return the player for some rows of its batch, int64 or bool [N]; None: all.

    Players answer every row alike and are returned as they are, except those that remember
    (`resgym.players.RecurrentPlayer`), which offer ``select(index)``.
    """
    select = getattr(player, "select", None)
    return player if index is None or select is None else select(index)


def begin_games(player: Player, rows: Tensor) -> None:
    """Tells a player that remembers in which rows of its batch, bool [N], a game begins."""
    if hasattr(player, "begin"):
        player.begin(rows)


@dataclass(frozen=True)
class ScriptedHost:
    """A host; two of the same class with the same fields are equal."""

    role: ClassVar[Role] = "host"


@dataclass(frozen=True)
class ScriptedAgent:
    """An agent; two of the same class with the same fields are equal."""

    role: ClassVar[Role] = "agent"


class CallablePlayer:
    """A player made from a function ``(state, coords, rng) -> answers``, like `Player.act`.

    Errors show ``name``, by default the name of the function.
    """

    def __init__(self, function: PlayerFunction, role: Role, name: str | None = None) -> None:
        self.function = function
        self.role = check_role(role)
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"CallablePlayer({self.name}, role={self.role!r})"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """Call the function; see `Player.act`."""
        return self.function(state, coords, rng)


def _zeillinger(points: Position, *, lex: bool = False) -> Axes:
    """See `resgym.players.scripted`."""
    if lex:
        points = tuple(sorted(points, reverse=True))

    def key(v: list[int]) -> tuple[int, ...]:
        low, high = min(v), max(v)
        axes = (v.index(low), v.index(high)) if lex else ()
        return (high - low, v.count(low) + v.count(high), *axes)

    differences = (
        [a - b for a, b in zip(one, other, strict=True)] for one, other in combinations(points, 2)
    )
    v = min(differences, key=key)  # the first of equal ones
    first, second = v.index(min(v)), v.index(max(v))
    return (0, 1) if first == second else tuple(sorted((first, second)))


PLAIN_HOSTS: dict[str, Callable[[Position], Axes]] = {
    "all_coord": lambda points: tuple(range(len(points[0]))),
    "zeillinger": _zeillinger,
    "zeillinger_lex": partial(_zeillinger, lex=True),
}
"""Each function returns the host's set in an unfinished position of the default rule.

The points are in the order in which they were typed, as in `resgym.players.asking.Seat`."""
