"""The player protocol, players by name, and `resolve_player` for all that can be an opponent.

A player has no memory: its answer to a row is the same alone, in any batch and after a resume. A
`resgym.players.RecurrentPlayer` has one and declares it in ``remembers``. Nothing here needs torch.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, get_args, runtime_checkable

from resgym.game.spec import (
    IMPORTED,
    GameSpec,
    Role,
    check_choice,
    check_function,
    check_keywords,
    nearest,
    register,
)
from resgym.texts import shown
from resgym.trust import named_object, packaged, parse_expression

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
    return check_choice(name, role, get_args(Role))  # type: ignore[return-value]


def given_sets(coords: Tensor | None) -> Tensor:
    """Return the hosts' sets that an agent was given; raise TypeError if there are none."""
    if coords is None:
        raise TypeError("coords must be the hosts' sets when an agent plays, got None")
    return coords


def own_attribute(player: Player, name: str) -> str | None:
    """What the class itself declares about ``act``; a subclass may choose differently.

    ``compiled`` is the name of the choice in `resgym.kernels`. ``invariant`` is what never changes
    an answer, beside the order of points: ``shift``, or ``scale`` for shift and factor. ``draws``
    is true if the player draws random numbers.
    """
    return vars(type(player)).get(name)


def rows_of(player: Player, index: Tensor | None) -> Player:
    """Return the player for some rows of its batch, int64 or bool [N]; None: all.

    Players answer every row alike and are returned as they are, except those that remember
    (`resgym.players.RecurrentPlayer`), which offer ``select(index)``.
    """
    select = getattr(player, "select", None)
    return player if index is None or select is None else select(index)


def select_rows(
    state: GameState, coords: Tensor | None, rng: RowRandom, index: Tensor
) -> tuple[GameState, Tensor | None, RowRandom]:
    """Return the arguments of `Player.act` for some rows, int64 or bool [N]."""
    return state.select(index), None if coords is None else coords[index], rng.select(index)


def begin_games(player: Player, rows: Tensor) -> None:
    """Tells a player that remembers in which rows of its batch, bool [N], a game begins."""
    if hasattr(player, "begin"):
        player.begin(rows)


@dataclass(frozen=True)
class ScriptedHost:
    """A host; two of the same class with the same fields are equal."""

    role: ClassVar[Role] = "host"
    rules: ClassVar[Collection[str]] = ("basic", "thom")


@dataclass(frozen=True)
class ScriptedAgent:
    """An agent; two of the same class with the same fields are equal."""

    role: ClassVar[Role] = "agent"


class CallablePlayer:
    """A player made from a function ``(state, coords, rng) -> answers``, like `Player.act`.

    Errors show ``name``, the name of the function.
    """

    def __init__(self, function: PlayerFunction, role: Role) -> None:
        self.act = function
        self.role = check_role(role)
        self.name = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"CallablePlayer({self.name}, role={self.role!r})"


Factory = Callable[..., Player]
AnyFactory = TypeVar("AnyFactory", bound=Factory)

LOADER_GROUP = "resgym.player_loaders"
"""Entry-point group of loaders of saved models: functions ``(path, role) -> Player`` that raise
ValueError for a file that they cannot read."""

PLAYERS: dict[Role, dict[str, str | Factory]] = {
    "host": {
        "all_coord": "resgym.players.scripted:AllCoordHost",
        "any": "sb3_ext.teach.shipped:AnyHost",
        "optimal": "resgym.solver.players:OptimalHost",
        "played": "sb3_ext.teach.shipped:PlayedHost",
        "random": "resgym.players.scripted:RandomHost",
        "random_pair": "resgym.players.scripted:RandomPairHost",
        "safe": "resgym.solver.players:SafeHost",
        "spivakovsky": "resgym.players.spivakovsky:SpivakovskyHost",
        "taught": "sb3_ext.teach.shipped:TaughtHost",
        "weak_spivakovsky": "resgym.players.spivakovsky:WeakSpivakovskyHost",
        "zeillinger": "resgym.players.scripted:ZeillingerHost",
        "zeillinger_lex": "resgym.players.scripted:ZeillingerLexHost",
    },
    "agent": {
        "any": "sb3_ext.teach.shipped:AnyAgent",
        "choose_first": "resgym.players.scripted:ChooseFirstAgent",
        "choose_last": "resgym.players.scripted:ChooseLastAgent",
        "greedy_points": "resgym.players.scripted:GreedyPointsAgent",
        "optimal": "resgym.solver.players:OptimalAgent",
        "played": "sb3_ext.teach.shipped:PlayedAgent",
        "random": "resgym.players.scripted:RandomAgent",
        "taught": "sb3_ext.teach.shipped:TaughtAgent",
    },
}
"""Players by name: those registered, and those of this project as ``module:class``, imported when
first used.

``any``, ``played`` and ``taught`` belong to the learning package. They are not among the names
without it, or without safetensors, which reads them."""


def register_host(name: str) -> Callable[[AnyFactory], AnyFactory]:
    """Register a class, or a function that builds a host, under a name (decorator).

    The name has letters, digits, ``_`` and ``-``, and must be free.
    """
    return register(PLAYERS["host"], "host", name)


def register_agent(name: str) -> Callable[[AnyFactory], AnyFactory]:
    """Register an agent; see `register_host`."""
    return register(PLAYERS["agent"], "agent", name)


def _names(role: Role) -> list[str]:
    found = find_spec("sb3_ext") and find_spec("safetensors")  # which imports nothing
    return sorted(
        name
        for name, target in PLAYERS[role].items()
        if found or not str(target).startswith("sb3_ext")
    )


def host_names() -> list[str]:
    """Return the names that `make_host` accepts, sorted."""
    return _names("host")


def agent_names() -> list[str]:
    """Return the names that `make_agent` accepts, sorted."""
    return _names("agent")


def _factory(role: Role, name: str, field: str) -> Factory:
    if ":" in name:
        found = named_object(name, field)
        if isinstance(found, Player) and not isinstance(found, type):
            return lambda: found
        if not callable(found) or (isinstance(found, type) and not hasattr(found, "act")):
            raise TypeError(f"{field}: {name!r} must be a Player or build one, got {shown(found)}")
        return found  # type: ignore[no-any-return]
    if name in PLAYERS[role]:
        target = PLAYERS[role][name]
        try:
            return packaged(target) if isinstance(target, str) else target
        except ModuleNotFoundError as error:
            raise ValueError(
                f"{role} {name!r} needs the module {error.name}, which is not installed"
            ) from error
    names = _names(role)
    got = f"{name!r}{nearest(name, names)}"
    if name in PLAYERS["host"] | PLAYERS["agent"]:
        got = f"the {'agent' if role == 'host' else 'host'} {name!r}"
    elif any(map(os.path.exists, (name, f"{name}.zip"))):  # a name has no separator
        got += f"; write {os.path.join('.', name)!r} for the file"
    raise ValueError(f"{field} must be one of {names}{IMPORTED}, got {got}")


def _make(
    role: Role, name: str, arguments: dict[str, Any], field: str, spec: GameSpec | None = None
) -> Player:
    """Make the player of a name with arguments, or load that of a path; errors name ``field``."""
    if not isinstance(name, str):
        raise TypeError(f"{field} must be a name, got {shown(name)} ({type(name).__name__})")
    bare = re.sub(r"(?s)\(.*\)$", "", name)  # arguments may hold paths
    if bare.endswith(".zip") or os.path.basename(bare) != bare:  # a path
        check_keywords(name, arguments, ())
        return _load_model(name, role, field)
    name, written = parse_expression(name, field)
    factory = _factory(role, name, field)
    parameters = inspect.signature(factory).parameters
    keywords = {"spec": spec} if spec and "spec" in parameters else {}
    keywords |= written | arguments
    if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        check_keywords(name, keywords, parameters)
    player = _checked_player(factory(**keywords), role, f"the factory of {role} {name!r}")
    _check_rule(spec, getattr(player, "rules", ("basic",)), f"{field}: {name!r}")
    return player


def _check_rule(spec: GameSpec | None, rules: Collection[str], who: str) -> None:
    if spec and spec.rule not in rules:
        raise ValueError(f"{who} plays rules {list(rules)}, the game has {spec.rule!r}")


def make_host(name: str, **arguments: Any) -> Player:
    """Build a host by name, one of `host_names`; arguments go to its class.

    Arguments may also follow the name: ``safe(lookahead=3)``, as on command lines and in files. The
    path of a saved model will do, too, see `resolve_player`.

    Raises:
        TypeError: the name is not a string, or the host has no such argument.
        ValueError: the name is unknown; the message shows the nearest valid one.
    """
    return _make("host", name, arguments, "host")


def make_agent(name: str, **arguments: Any) -> Player:
    """Build an agent by name, one of `agent_names`; see `make_host`."""
    return _make("agent", name, arguments, "agent")


def _load_model(given: Any, role: Role, field: str) -> Player:
    found = given
    if not hasattr(given, "predict"):
        # stable-baselines3 appends .zip when it saves; the name given to save() works here too.
        path = Path(given)
        found = next(filter(Path.exists, (path, Path(f"{path}.zip"))), None)
    if found is None:
        raise ValueError(f"{field}: there is no saved model at {os.fspath(given)!r}")
    loaders = sorted(importlib.metadata.entry_points(group=LOADER_GROUP))
    if not loaders:
        raise ValueError(
            f"{field}: {str(found)!r} cannot be loaded, no installed package offers a loader "
            f"(entry-point group {LOADER_GROUP!r})"
        )
    reasons = []
    for entry in loaders:
        try:
            player = entry.load()(found, role)
        except (ImportError, ValueError) as error:
            reasons.append(f"{entry.name}: {error}")
            continue
        return _checked_player(player, role, f"the loader {entry.name!r}")
    raise ValueError(f"{field}: {str(found)!r} cannot be loaded ({'; '.join(reasons)})")


def _checked_player(player: Any, role: Role, source: str) -> Player:
    if not isinstance(player, Player):
        raise TypeError(f"{source} must give a Player, with role and act, got {shown(player)}")
    if player.role != role:
        raise ValueError(f"{source} must play the {role}, got a player of the {player.role}")
    return player


def resolve_player(
    opponent: Any, role: Role, spec: GameSpec | None = None, field: str = ""
) -> Player:
    """Return the player that a caller means.

    Args:
        opponent: a registered name, perhaps with arguments (see `make_host`); ``module:name`` of a
            player or of a factory, which is imported; a `Player`; a function
            ``(state, coords, rng) -> int64 [N]``; the path of a saved model, or a model or policy
            with a method ``predict``, which an installed loader reads (group `LOADER_GROUP`); or,
            with ``spec``, a torch module from observations to scores, as `ModulePlayer`, which is
            put into evaluation mode. A string is a path if it contains a separator (``./best``,
            ``runs/host``) before any arguments in parentheses, or ends in ``.zip``. Any other
            string is a name, whether or not such a file exists.
        role: the seat that the player must take.
        spec: the game; named players with an argument ``spec`` receive it.
        field: name of the argument in error messages, by default ``opponent`` with its role.

    Raises:
        TypeError: ``opponent`` is none of these.
        ValueError: an unknown name (the message shows the nearest), a player of the other seat
            or one that does not play this rule, a missing file, or a file that no loader can
            read.
    """
    role = check_role(role)
    field = field or f"opponent ({role})"
    if isinstance(opponent, str):
        return _make(role, opponent, {}, field, spec)
    if isinstance(opponent, os.PathLike):
        return _load_model(opponent, role, field)
    if not isinstance(opponent, type):
        if isinstance(opponent, Player):
            if hasattr(opponent, "rules"):
                _check_rule(spec, opponent.rules, f"{field}: {opponent!r}")
            return _checked_player(opponent, role, field)
        if hasattr(opponent, "predict") and hasattr(opponent, "observation_space"):
            return _load_model(opponent, role, field)
        if hasattr(opponent, "state_dict") and spec is not None:
            device = next((each.device for each in opponent.parameters()), "cpu")
            shape, name = (spec.max_num_points, spec.dimension), type(opponent).__name__
            scoring = packaged("resgym.players.networks:ModulePlayer")
            return scoring(role, opponent.eval(), shape, device=device, name=name)
        if callable(opponent):
            check_function(field, opponent, "state", "coords", "rng")
            return CallablePlayer(opponent, role)
    hint = f" (did you mean {opponent.__name__}()?)" if isinstance(opponent, type) else ""
    raise TypeError(
        f"{field} must be a name, a Player, a function (state, coords, rng), a model or the path "
        f"of a saved model, got {shown(opponent)}{hint}"
    )
