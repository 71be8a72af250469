"""rho: the number of games that a host finishes per move, against a given agent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import torch

from resgym.game.devices import resolve_device
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import start_positions
from resgym.game.spec import GameSpec, Polytope, Role, check_function, check_integer, hints_keywords
from resgym.game.state import GameState, state_from_points
from resgym.measure.games import play_lengths
from resgym.players import Player, player_name, resolve_player
from resgym.polynomials.starts import resolve_starts
from resgym.texts import Data, Rows, Table, counted, percent, shown

_BATCH = 8192
_MAX_GAMES = 10**9
_BATCH_PAIRS = 2**26  # games times pairs of points; bounds the memory of pruning
_SEED_WORD = 0x72686F  # separates evaluation starts from those of environments with that seed


@dataclass(frozen=True)
class RhoResult(Table):
    """The result of one pairing.

    Attributes:
        rho: games finished per move played; moves of unfinished games count.
        games: games played.
        moves: moves of all games together.
        mean_length: mean moves per game.
        unfinished: games cut at ``max_moves`` or stopped before an overflow.
        overflowed: those of ``unfinished`` that were stopped before an overflow.
        histogram: ``histogram[k]`` is the number of finished games of k moves.
        interval: 95 % interval of rho over random starts (ratio estimator, normal
            approximation with the linearised variance; Cochran, "Sampling Techniques", ch. 6).
        optimum: lower and upper bound of the best rho that any host reaches against this agent
            from these starts; None if not asked for or unknown.
    """

    rho: float
    games: int
    moves: int
    mean_length: float
    unfinished: int
    overflowed: int
    histogram: list[int] = field(repr=False)
    interval: tuple[float, float]
    optimum: tuple[float, float] | None = None

    @property
    def share(self) -> tuple[float, float] | None:
        """Lower and upper bound of rho / optimum, in 0..1; None without an optimum."""
        if not self.optimum:
            return None
        least, greatest = self.optimum
        # The host itself reaches rho, so the optimum is at least that; both may be 0.
        return self.rho / greatest, self.rho / max(least, self.rho, 1e-300)

    @property
    def win_rate(self) -> float:
        """The share of games that the host finished."""
        return 1.0 - self.unfinished / self.games

    @property
    def shortest(self) -> int:
        """Moves of the shortest finished game; of the cut games if none was finished."""
        lengths = (length for length, number in enumerate(self.histogram) if number)
        return next(lengths, self._cut_length)

    @property
    def longest(self) -> int:
        """Moves of the longest game; games stopped by an overflow count like cut ones."""
        return max(len(self.histogram) - 1, self._cut_length)

    @property
    def _cut_length(self) -> int:
        finished = sum(length * number for length, number in enumerate(self.histogram))
        return round((self.moves - finished) / self.unfinished) if self.unfinished else 0

    def to_dict(self) -> Data:
        """Plain data, for JSON."""
        plain = asdict(self)
        optimum, plain["interval_95"] = plain.pop("optimum"), [*plain.pop("interval")]
        if self.share:
            plain |= {"optimal_rho": [*optimum], "share": [*self.share]}
        return plain

    def __str__(self) -> str:
        return (
            f"rho {self.rho:.4f} "
            f"(95 % interval {self.interval[0]:.4f} to {self.interval[1]:.4f}), "
            f"{counted(self.games, 'game')}, {counted(self.moves, 'move')}, "
            f"mean length {self.mean_length:.2f}, longest {self.longest}, "
            f"{self.unfinished} unfinished"
            + (f", {percent(self.share)} of the optimum" if self.share else "")
        )


@hints_keywords
def rho(
    host: Any,
    agent: Any,
    *,
    games: int = 10_000,
    dimension: int = 3,
    max_num_points: int = 20,
    max_value: int = 20,
    polytope: Polytope = "dominance",
    reposition: bool = False,
    rule: str = "basic",
    unit: int = 1,
    max_moves: int = 200,
    points: Any = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    backend: str = "auto",
    starts: Any = None,
    progress: Callable[[str], None] | None = None,
    optimum: bool | tuple[float, float] | None = False,
) -> RhoResult:
    """Measure a host against an agent.

    Args:
        host: a player's name, a `Player`, a callable or a saved model's path.
        agent: likewise.
        games: number of games, each from its own random start.
        dimension: number of axes.
        max_num_points: points of a random start.
        max_value: starts are uniform on 0..max_value inclusive; finished ones are drawn again.
        polytope: which points a move keeps, as in `GameSpec`.
        reposition: subtract the per-axis minimum after every move.
        rule: rule of the game, as in `GameSpec`.
        unit: with ``polyhedra``, coordinates are multiples of 1/unit.
        max_moves: games are cut after this many moves.
        points: given starts instead of random ones, repeated in turn up to ``games``.
        seed: seed of starts and players; game i is the same for any number of games.
        device: device of the games.
        backend: implementation of the moves.
        starts: the set that random starts are drawn from, a file or lists of points; see
            `resgym.polynomials.starts.resolve_starts`.
        progress: called with a line of progress every few thousand games.
        optimum: True finds the shortest games against the agent, if it has no memory; or the
            ``optimum`` of an earlier result from the same games.

    Returns:
        The result; rho is 0 if no move was played (all given starts were finished).

    Raises:
        ValueError, TypeError: an argument is out of range; the message names it.
    """
    games = check_integer("games", games, 1, _MAX_GAMES)
    max_moves = check_integer("max_moves", max_moves, 1)
    if progress is not None:
        check_function("progress", progress, "line")
    seed = check_integer("seed", seed, 0)
    if not isinstance(optimum, bool | tuple | list | None):
        raise TypeError(f"optimum must be True, False or two bounds, got {shown(optimum)}")
    spec = GameSpec(dimension, max_num_points, max_value, polytope, reposition, rule, unit)
    resolved = resolve_device(device)
    players = (
        resolve_player(host, "host", spec, "host"),
        resolve_player(agent, "agent", spec, "agent"),
    )
    if points is not None and starts is not None:
        raise ValueError("starts: give a set to draw from, or points to take in turn, not both")
    given = None if points is None else state_from_points(points, spec, resolved)
    drawn = resolve_starts(starts, spec, resolved)

    def starts_of(row: torch.Tensor) -> GameState:
        if given is not None:
            return given.select(row % given.num_games)
        return start_positions(spec, _random_of_games(row, seed).at(0, Stream.START), drawn)

    played = []
    batch = max(1, min(_BATCH, _BATCH_PAIRS // spec.max_num_points**2))
    for first in range(0, games, batch):
        if progress is not None:
            progress(f"{' against '.join(map(player_name, players))}: {first} of {games} games")
        row = torch.arange(first, min(first + batch, games), device=resolved)
        rng = _random_of_games(row, seed)
        played.append(play_lengths(*players, starts_of(row), spec, rng, max_moves, backend))
    result = rho_of_games(*map(torch.cat, zip(*played, strict=True)))
    if optimum is True:
        from resgym.measure.optimum import optimum as find  # needs the solver's players

        if progress is not None:
            progress(f"the shortest games against {player_name(players[1])}")
        optimum = find(players[1], starts_of(torch.arange(games, device=resolved)), spec, max_moves)
    return replace(result, optimum=optimum or None)


def _random_of_games(row: torch.Tensor, seed: int) -> RowRandom:
    return RowRandom.for_episode(row + (derive_seed(seed, _SEED_WORD) >> 1))


def rho_starts(spec: GameSpec, games: int, seed: int = 0, starts: Any = None) -> GameState:
    """Return the random starts of `rho` with the same game, seed and set of starts."""
    check_integer("games", games, 1, _MAX_GAMES)
    check_integer("seed", seed, 0)
    rng = _random_of_games(torch.arange(games), seed)
    return start_positions(spec, rng.at(0, Stream.START), resolve_starts(starts, spec))


def rho_of_games(moves: torch.Tensor, finished: torch.Tensor, overflow: torch.Tensor) -> RhoResult:
    """Return the result of games that were played already; arguments as in `Lengths`."""
    games, total = len(moves), int(moves.sum())
    # A given start that is finished already is not credited to the host.
    won = finished & (moves > 0)
    value = int(won.sum()) / total if total else 0.0
    residual = won.double() - value * moves.double()
    half = 1.96 * math.sqrt(float((residual**2).sum())) / total if total else 0.0
    return RhoResult(
        rho=value,
        games=games,
        moves=total,
        mean_length=total / games,
        unfinished=int((~finished).sum()),
        overflowed=int(overflow.sum()),
        histogram=torch.bincount(moves[finished].cpu()).tolist(),
        interval=(max(0.0, value - half), value + half),
    )


Several = Mapping[str, Any] | Sequence[Any]
"""Players by name, or a list of them."""


@dataclass(frozen=True)
class CrossPlay(Table):
    """A table of pairings.

    Attributes:
        hosts: names of the rows.
        agents: names of the columns.
        results: ``results[host][agent]``.
    """

    hosts: list[str]
    agents: list[str]
    results: dict[str, dict[str, RhoResult]]

    def to_dict(self) -> Data:
        """Plain data, for JSON."""
        return {
            host: {agent: result.to_dict() for agent, result in row.items()}
            for host, row in self.results.items()
        }

    def table_rows(self) -> Rows:
        """See `Table`: rho, and its share of the optimum if known."""
        rows = [["host", *self.agents]]
        for host in self.hosts:
            results = [self.results[host][agent] for agent in self.agents]
            shares = [f" ({percent(each.share)})" if each.share else "" for each in results]
            cells = [f"{each.rho:.4f}{share}" for each, share in zip(results, shares, strict=True)]
            rows.append([host, *cells])
        return rows


def players_by_name(players: Iterable[Any]) -> dict[str, Any]:
    """Players by their short names; of several with the same name, all but the first get primes."""
    named: dict[str, Any] = {}
    for player in players:
        name = player_name(player)
        while name in named:
            name += "'"
        named[name] = player
    return named


def _named(players: Several, role: Role, spec: GameSpec) -> dict[str, Player]:
    if isinstance(players, str) or not isinstance(players, Iterable):
        raise TypeError(f"{role}s must be a list or a dict of players, got {shown(players)}")
    named = players if isinstance(players, Mapping) else players_by_name(players)
    if not named:
        raise ValueError(f"{role}s must have at least one player, got none")
    return {name: resolve_player(player, role, spec, f"{role}s") for name, player in named.items()}


def cross_play(
    hosts: Several,
    agents: Several,
    **kwargs: Any,
) -> CrossPlay:
    """Measure every host against every agent, all from the same starts.

    Players are a list, or a dict with their names; other arguments are those of `rho`.
    """
    sizes = {each.name for each in fields(GameSpec)} & kwargs.keys()
    spec = GameSpec(**{name: kwargs[name] for name in sizes})
    kwargs["starts"] = resolve_starts(kwargs.get("starts"), spec)
    host_players, agent_players = _named(hosts, "host", spec), _named(agents, "agent", spec)
    optima = dict.fromkeys(agent_players, kwargs.pop("optimum", False))
    results = {}
    for host, hp in host_players.items():
        results[host] = {
            agent: rho(hp, ap, optimum=optima[agent], **kwargs)
            for agent, ap in agent_players.items()
        }
        optima = {agent: result.optimum for agent, result in results[host].items()}
    return CrossPlay(list(host_players), list(agent_players), results)
