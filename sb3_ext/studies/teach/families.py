"""Families of positions: what a configuration declares, and how positions are drawn from it.

``configs/teach`` has examples. Everything drawn depends on the seed, the family's place and the
number of the draw alone.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge, Le, Len
from pydantic import BeforeValidator, Field, model_validator
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.plain import Position, canonical, prune
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState, canonical_state
from resgym.kernels.dispatch import resolve_backend
from resgym.measure.worst_case import worst_case_moves
from resgym.players import Player, ask_players, make_agent, make_host
from resgym.polynomials.singularities import singularity, singularity_names
from resgym.solver.labels import MAX_LABEL_DIMENSION
from sb3_ext.config.checks import check_count, shown
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import (
    Fraction,
    PositiveCount,
    PositiveNumber,
    Section,
    Whole,
    accepted_by,
    checked,
)

BATCH_ROWS = 8192
"""Rows of one draw; what is drawn depends on it."""

WALKED_ROWS, WALKED_POSITIONS = 512, 5_000
"""Rows of a draw all of whose games are followed, and positions after which that is given up."""

MAX_POINTS = 64
MAX_VALUE = 10**6


def _range(low: int, high: int) -> Any:
    """Least and greatest value, both given, within bounds."""

    def check(value: Any) -> Any:
        counts = [check_count("", each, low) for each in value] if isinstance(value, list) else []
        if len(counts) != 2 or not counts[0] <= counts[1] <= high:
            raise ValueError(f" must be [least, greatest] within {low}..{high}, got {shown(value)}")
        return counts

    return checked(check)


Points = Annotated[list[int], _range(2, MAX_POINTS)]
Exponents = Annotated[list[int], _range(1, MAX_VALUE)]
Moves = Annotated[list[int], _range(0, 1000)]
Value = Annotated[int, Whole, Ge(1), Le(MAX_VALUE)]


STUDENT = "student"


def _known_player(make: Callable[[str], Player]) -> Any:
    """A validator for names of players of one seat, or of the one that is being taught."""
    return accepted_by(lambda name: name == STUDENT or make(name))


Hosts = Annotated[list[Annotated[str, _known_player(make_host)]], Len(1)]
Agents = Annotated[list[Annotated[str, _known_player(make_agent)]], Len(1)]


class Play(Section):
    """Positions met in games from the drawn ones, instead of these.

    Every unfinished position of a game counts that comes after a number of moves in ``moves`` and
    has an allowed number of points. Each game has one of the hosts and one of the agents, or, if it
    is ``mixed``, each of its moves. Without agents every answer to the host is followed, so that
    the positions of its worst games are met too. The player ``student``, of either seat, is the one
    that is being taught, see `Plan`.
    """

    hosts: Hosts
    agents: Agents | None = None
    moves: Moves
    mixed: bool = False

    @model_validator(mode="after")
    def _mixed_has_games(self) -> Play:
        if self.mixed and self.agents is None:
            raise ValueError(".mixed has no meaning without agents")
        return self


class Family(Section):
    """One family.

    Attributes:
        name: shown in reports and in the dataset.
        kind: ``uniform``: points with coordinates uniform on 0..max; ``brieskorn_pham``:
            x^a+y^b+...; ``invertible``: as many monomials as axes, the j-th a power of x_j,
            alone or times another variable (the normal forms of A, D and E are of this form).
        weight: its share of the positions, relative to the other families.
        points: least and greatest number of points drawn (``uniform``).
        max_value: largest coordinates, one of which is drawn per position (``uniform``).
        sparsity: chances that a coordinate is 0, one of which is drawn per position
            (``uniform``).
        exponents: least and greatest exponent (the other kinds).
        alive: least and greatest number of points left once covered ones are dropped; others are
            drawn again. By default 2 and what is drawn at most.
        play: if given, positions from games.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    kind: Literal["uniform", "brieskorn_pham", "invertible"]
    weight: PositiveNumber = 1.0
    points: Points | None = None
    max_value: Annotated[list[Value], Len(1)] | None = None
    sparsity: Annotated[list[Fraction], Len(1)] | None = None
    exponents: Exponents | None = None
    alive: Points | None = None
    play: Play | None = None

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, data: Any) -> Any:
        uniform = isinstance(data, Mapping) and data.get("kind") == "uniform"
        if uniform and data.get("sparsity") is None:
            return {**data, "sparsity": [0.0]}
        return data

    @model_validator(mode="after")
    def _keys_fit(self) -> Family:
        for key in ("points", "max_value", "sparsity", "exponents"):
            wanted = (key == "exponents") == (self.kind != "uniform")
            given = getattr(self, key) is not None
            if given != wanted:
                why = f"has no meaning for kind {self.kind}" if given else "is missing"
                raise ValueError(f".{key} {why}")
        return self


class Exclude(Section):
    """Positions that must not be in the dataset, whatever their shift, factor and order of axes.

    Attributes:
        singularities: the sixteen of `singularity_names`.
        brieskorn_pham: all x^a+y^b+... with exponents from 1 to this; 0 for none.
    """

    singularities: bool = False
    brieskorn_pham: Annotated[int, Whole, Ge(0), Le(30)] = 0


class TeachConfig(ConfigFile):
    """A whole configuration; ``budget`` is the number of positions expanded for a label."""

    folder: ClassVar[str] = "teach"

    dimension: Annotated[int, Whole, Ge(2), Le(MAX_LABEL_DIMENSION)]
    budget: PositiveCount
    exclude: Annotated[Exclude, BeforeValidator(lambda given: {} if given is None else given)] = (
        Exclude()
    )
    families: Annotated[list[Family], Len(1)]

    @model_validator(mode="after")
    def _names_differ(self) -> TeachConfig:
        (name, times), *_ = Counter(family.name for family in self.families).most_common()
        if times > 1:
            raise ValueError(f".families: the name {name!r} stands there twice")
        if len(self._student_seats) > 1:
            raise ValueError(f".families: {STUDENT} must be a host or an agent, got both")
        return self

    @property
    def max_num_points(self) -> int:
        """Rows P that the positions of all families fit into."""
        return max(_alive_range(family, self.dimension)[1] for family in self.families)

    @property
    def _student_seats(self) -> set[Role]:
        plays = [family.play for family in self.families if family.play]
        hosts: set[Role] = {"host" for play in plays if STUDENT in play.hosts}
        return hosts | {"agent" for play in plays if play.agents and STUDENT in play.agents}

    @property
    def student_seat(self) -> Role | None:
        """The seat of the player that is being taught, if a family plays with it."""
        return next(iter(self._student_seats), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which the same configuration is read."""
        return self.model_dump(exclude_none=True)


def _alive_range(family: Family, dimension: int) -> list[int]:
    """Least and greatest number of points of a family's positions."""
    return family.alive or [2, dimension if family.points is None else family.points[1]]


def excluded_forms(exclude: Exclude, dimension: int) -> set[Position]:
    """Canonical forms of the positions that are kept out."""
    starts = [list(start) for start in brieskorn_pham_starts(1, exclude.brieskorn_pham, dimension)]
    if exclude.singularities and dimension == 3:
        starts += [list(singularity(name)) for name in singularity_names()]
    return {canonical(prune(start)) for start in starts}


def brieskorn_pham_starts(lowest: int, highest: int, dimension: int) -> list[Position]:
    """The positions of x^a + y^b + ... with lowest <= a <= b <= ... <= highest."""
    powers = itertools.combinations_with_replacement(range(lowest, highest + 1), dimension)
    return [tuple(map(tuple, np.diag(exponents).tolist())) for exponents in powers]


# Streams of random numbers of a draw.
_NUMBER, _VALUE, _SPARSITY, _COORDINATE, _ZERO, _TWIST, _HOST, _AGENT = range(16, 24)


def draw_batch(
    config: TeachConfig, place: int, batch: int, seed: int, student: Player | None = None
) -> GameState:
    """Positions of the family at an index: one batch of draws, without those that do not fit."""
    family = config.families[place]
    walked = family.play is not None and family.play.agents is None
    size = WALKED_ROWS if walked else BATCH_ROWS
    rows = torch.arange(size) + batch * size
    seeds = torch.full_like(rows, derive_seed(seed, 0x7465616368, place))
    rng = RowRandom.for_episode(seeds, rows)
    columns, count = _start(family, config.dimension, rng)
    spec = GameSpec(dimension=config.dimension, max_num_points=columns.shape[1])
    state = canonical_state(columns, count, spec)
    low, high = _alive_range(family, config.dimension)
    states: Iterable[GameState] = [state]
    if family.play is not None:
        states = (_walked if walked else _played)(family.play, state, spec, rng, student)
    points, counts = [], []
    for each in states:
        fits = (each.count >= low) & (each.count <= high)
        fitting = each.select(fits)
        missing = config.max_num_points - fitting.points.shape[1]  # cut off where it is negative
        points.append(torch.nn.functional.pad(fitting.points, (0, 0, 0, missing), value=-1))
        counts.append(fitting.count)
    return GameState(torch.cat(points), torch.cat(counts))


def _start(family: Family, dimension: int, rng: RowRandom) -> tuple[Tensor, Tensor]:
    """Drawn points int64 [D, W, N] and their number int64 [N]."""
    num_rows = len(rng.key)
    if family.kind == "uniform":
        assert family.points
        assert family.max_value
        assert family.sparsity
        low, high = family.points
        count = low + rng.split(_NUMBER).integers(high - low + 1)
        top = torch.tensor(family.max_value)[rng.split(_VALUE).integers(len(family.max_value))]
        which = rng.split(_SPARSITY).integers(len(family.sparsity))
        chance = torch.tensor(family.sparsity)[which]
        values = rng.split(_COORDINATE).integers(top + 1, high * dimension)
        zero = rng.split(_ZERO).uniform(high * dimension) < chance[:, None]
        points = values.masked_fill(zero, 0).view(num_rows, high, dimension)
        return points.permute(2, 1, 0).contiguous(), count
    assert family.exponents
    low, high = family.exponents
    powers = low + rng.split(_VALUE).integers(high - low + 1, dimension)
    points = torch.diag_embed(powers)
    if family.kind == "invertible":
        # 0: alone, k: times the k-th axis after its own.
        other = rng.split(_TWIST).integers(dimension, dimension)
        own = torch.arange(dimension)
        factor = torch.nn.functional.one_hot((own + other) % dimension, dimension)
        points = points + factor * (other > 0)[..., None]
    return points.permute(2, 1, 0).contiguous(), torch.full((num_rows,), dimension)


def _players(
    names: Sequence[str], make: Callable[[str], Player], student: Player | None
) -> list[Player]:
    # That there is a student where one is needed is checked by `Plan`.
    return [student if student and name == STUDENT else make(name) for name in names]


def _walked(
    play: Play, state: GameState, spec: GameSpec, rng: RowRandom, student: Player | None
) -> Iterator[GameState]:
    """The unfinished positions of all games that the hosts allow, after each number of moves."""
    hosts = _players(play.hosts, make_host, student)
    which = rng.split(_HOST).integers(len(hosts))
    for number, host in enumerate(hosts):
        met: list[GameState] = []
        own = state.select((which == number) & ~state.finished())
        worst_case_moves(host, own, spec, play.moves[1], WALKED_POSITIONS, met.append)
        yield from met[play.moves[0] :]


def _played(
    play: Play, state: GameState, spec: GameSpec, rng: RowRandom, student: Player | None
) -> Iterator[GameState]:
    """The unfinished positions of games, after each number of moves that counts."""
    assert play.agents
    backend = resolve_backend("auto", state.device, spec)
    table = host_action_table(spec.dimension)
    hosts = _players(play.hosts, make_host, student)
    agents = _players(play.agents, make_agent, student)
    which_host = rng.split(_HOST).integers(len(hosts))
    which_agent = rng.split(_AGENT).integers(len(agents))
    going = ~state.finished()
    for moves in range(play.moves[1] + 1):
        state, rng = state.select(going), rng.select(going)
        which_host, which_agent = which_host[going], which_agent[going]
        if not state.num_games:
            return
        if moves >= play.moves[0]:
            yield state
        if moves < play.moves[1]:
            if play.mixed:
                which_host = rng.at(moves, _HOST).integers(len(hosts))
                which_agent = rng.at(moves, _AGENT).integers(len(agents))
            coords = table[ask_players(hosts, which_host, state, None, rng.at(moves, Stream.HOST))]
            axis = ask_players(agents, which_agent, state, coords, rng.at(moves, Stream.AGENT))
            state, overflow = backend.move(state, coords, axis, spec)
            going = ~(overflow | state.finished())
