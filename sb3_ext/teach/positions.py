"""Where positions come from: random starts, games from these, walks through all answers to a host.

Everything drawn depends on the seed, the round, the family's place and the number of the draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Le, Len
from pydantic import Field, model_validator
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.plain import Position
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state
from resgym.kernels import resolve_backend
from resgym.measure.worst_case import worst_case_moves
from resgym.players import Player, ask_players, make_agent, make_host
from resgym.polynomials.singularities import singularity, singularity_names
from resgym.solver.labels import Labeller
from sb3_ext.config.checks import check_count, shown
from sb3_ext.config.sections import (
    ConfigError,
    Fraction,
    PositiveCount,
    Section,
    Whole,
    accepted_by,
    checked,
)
from sb3_ext.teach.solved import Drawn

BATCH_ROWS = 8192
WALKED_ROWS, WALKED_POSITIONS = 512, 5_000
"""Starts of a draw all of whose games are walked through, and positions until that is given up."""
IDLE_BATCHES = 20
"""A family has no more to give once so many draws in a row brought nothing new."""
HELD_OUT = 0.05
"""Share of the canonical forms that serve to measure."""
STUDENT = "student"

_NUMBER, _VALUE, _SPARSITY, _COORDINATE, _ZERO, _TWIST, _HOST, _AGENT = range(16, 24)
_SETS, _ORDER, _FAMILY = 0x73657473, 0x6F72646572, 0x7465616368


def _range(low: int, high: int) -> Any:
    """Least and greatest value, both given, within bounds."""

    def check(value: Any) -> Any:
        counts = [check_count("", each, low) for each in value] if isinstance(value, list) else []
        if len(counts) != 2 or not counts[0] <= counts[1] <= high:
            raise ValueError(f" must be [least, greatest] within {low}..{high}, got {shown(value)}")
        return counts

    return checked(check)


def _known(make: Callable[[str], Player]) -> Any:
    """A validator for players of one seat by name, and for the one that is being taught."""
    return accepted_by(lambda name: name == STUDENT or make(name))


Points = Annotated[list[int], _range(2, 64)]
Hosts = list[Annotated[str, _known(make_host)]]
Agents = list[Annotated[str, _known(make_agent)]]
Value = Annotated[int, Whole, Ge(1), Le(10**6)]


class Family(Section):
    """Positions of one kind.

    Attributes:
        positions: how many different ones, up to shifts, factors and orders of points and axes.
        points: least and greatest number of points of a start.
        max_value: largest coordinates, one of which is drawn for a start.
        sparsity: chances that a coordinate is 0, one of which is drawn for a start.
        exponents: in place of points: least and greatest exponent of as many monomials as axes, the
            j-th a power of x_j, alone or times another variable.
        alive: least and greatest number of points of a position that is kept.
        hosts: players whose games from the starts are followed; ``student`` is who is taught.
        agents: of these games; none: every answer is followed.
        mixed: every move has its own host and agent, not every game.
        moves: positions after so many moves are kept, at least and at most.
    """

    positions: Annotated[PositiveCount, Le(10**8)]
    points: Points | None = None
    max_value: Annotated[list[Value], Len(1)] = Field([20])
    sparsity: Annotated[list[Fraction], Len(1)] = Field([0.0])
    exponents: Annotated[list[int], _range(1, 10**6)] | None = None
    alive: Points | None = None
    hosts: Hosts = Field([])
    agents: Agents = Field([])
    mixed: bool = False
    moves: Annotated[list[int], _range(0, 1000)] = Field([0, 0])

    @model_validator(mode="after")
    def _fits(self) -> Family:
        if (self.points is None) == (self.exponents is None):
            raise ValueError(".points: give either points or exponents")
        if (self.agents or self.moves[1]) and not self.hosts:
            raise ValueError(".hosts: is missing; agents and moves belong to games")
        return self

    def most(self, dimension: int) -> tuple[int, int]:
        """Least and greatest number of points of its positions."""
        low, high = self.alive or [2, self.points[1] if self.points else dimension]
        return low, high


Round = Annotated[list[Family], Len(1)]


def draw(
    families: Sequence[Family],
    seat: Literal["host", "agent"],
    dimension: int,
    seed: int,
    student: Player,
    beat: Callable[[], object] = lambda: None,
) -> Drawn:
    """Different positions of all families; of an agent each with a set that is drawn.

    Raises:
        ConfigError: a family has no position that fits.
    """
    rows = max(family.most(dimension)[1] for family in families)
    labeller = Labeller(dimension, rows)
    met = {bytes(16), *_singularities(dimension)}  # 0 is the digest of what has none
    kept: list[tuple[Tensor, Tensor, Tensor]] = []
    for place, family in enumerate(families):
        found = idle = batch = 0
        while found < family.positions and idle < IDLE_BATCHES:
            beat()
            state = _batch(family, dimension, rows, (seed, _FAMILY, place), batch, student)
            # In any order: the positions of a game must not come before those of later moves.
            words = _rows(state.num_games, seed, _ORDER, place, batch).words()
            state = state.select(words.argsort(stable=True))
            digests = labeller.digests(state.points.numpy(), state.count.numpy())
            new = []
            # A whole batch is met, however few of it are wanted: the next families draw others.
            for row, word in enumerate(_words(digests)):
                if word not in met:
                    met.add(word)
                    new.append(row)
            index = torch.tensor(new[: family.positions - found], dtype=torch.int64)
            found, idle, batch = found + len(index), 0 if len(index) else idle + 1, batch + 1
            share = (digests[:, 1].copy().view(np.uint64) >> np.uint64(11)) * 2.0**-53
            held = torch.from_numpy(share < HELD_OUT)
            kept.append((state.points[index], state.count[index], held[index]))
        if not found:
            raise ConfigError(
                f"rounds: family {place}: got no position that fits in {batch} draws; expected "
                "other points, max_value, alive or moves"
            )
    points, count, held_out = map(torch.cat, zip(*kept, strict=True))
    coords = torch.zeros(len(count), 0, dtype=torch.bool)
    if seat == "agent":
        table = host_action_table(dimension)
        coords = table[_rows(len(count), seed, _SETS).integers(len(table))]
    return Drawn(points, count, coords, held_out)


def _rows(rows: int, *words: int, first: int = 0) -> RowRandom:
    seeds = torch.full((rows,), derive_seed(*words))
    return RowRandom.for_episode(seeds, torch.arange(first, first + rows))


def _words(digests: np.ndarray) -> list[bytes]:
    """The digests [N, 2] as what a set can hold."""
    words: list[bytes] = digests.view("V16")[:, 0].tolist()
    return words


def _singularities(dimension: int) -> list[bytes]:
    """Digests of the named ones: hosts are measured on them, so they are taught none."""
    if dimension != 3:
        return []
    forms: list[Position] = [tuple(singularity(name)) for name in singularity_names()]
    size = max(map(len, forms))
    points = np.full((len(forms), size, 3), -1)
    for row, form in zip(points, forms, strict=True):
        row[: len(form)] = form
    return _words(Labeller(3, size).digests(points, np.array([len(form) for form in forms])))


def _batch(
    family: Family,
    dimension: int,
    rows: int,
    seed: tuple[int, ...],
    batch: int,
    student: Player,
) -> GameState:
    """One batch of draws with so many rows each, without positions that do not fit."""
    walks = bool(family.hosts) and not family.agents
    size = WALKED_ROWS if walks else BATCH_ROWS
    rng = _rows(size, *seed, first=batch * size)
    columns, count = (_monomials if family.exponents else _points)(family, dimension, rng)
    spec = GameSpec(dimension=dimension, max_num_points=columns.shape[1])
    state = canonical_state(columns, count, spec)
    met: Iterable[GameState] = [state]
    if family.hosts:
        met = (_walked if walks else _played)(family, state, spec, rng, student)
    low, high = family.most(dimension)
    points, counts = [], []
    for each in met:
        fitting = each.select((each.count >= low) & (each.count <= high))
        missing = rows - fitting.points.shape[1]  # cut off where it is negative
        points.append(torch.nn.functional.pad(fitting.points, (0, 0, 0, missing), value=-1))
        counts.append(fitting.count)
    return GameState(torch.cat(points), torch.cat(counts))


def _points(family: Family, dimension: int, rng: RowRandom) -> tuple[Tensor, Tensor]:
    """Drawn points int64 [D, W, N] and their number int64 [N]."""
    assert family.points
    low, high = family.points
    count = low + rng.split(_NUMBER).integers(high - low + 1)
    top = torch.tensor(family.max_value)[rng.split(_VALUE).integers(len(family.max_value))]
    which = rng.split(_SPARSITY).integers(len(family.sparsity))
    values = rng.split(_COORDINATE).integers(top + 1, high * dimension)
    chance = torch.tensor(family.sparsity)[which]
    zero = rng.split(_ZERO).uniform(high * dimension) < chance[:, None]
    points = values.masked_fill(zero, 0).view(len(count), high, dimension)
    return points.permute(2, 1, 0).contiguous(), count


def _monomials(family: Family, dimension: int, rng: RowRandom) -> tuple[Tensor, Tensor]:
    """As `_points`: the exponents of invertible polynomials."""
    assert family.exponents
    low, high = family.exponents
    powers = low + rng.split(_VALUE).integers(high - low + 1, dimension)
    other = rng.split(_TWIST).integers(dimension, dimension)  # 0: alone
    factor = (torch.arange(dimension) + other) % dimension
    twist = torch.nn.functional.one_hot(factor, dimension) * (other > 0)[..., None]
    points = torch.diag_embed(powers) + twist
    return points.permute(2, 1, 0).contiguous(), torch.full((len(powers),), dimension)


def _players(names: Sequence[str], make: Callable[[str], Player], student: Player) -> list[Player]:
    return [student if name == STUDENT else make(name) for name in names]


def _walked(
    family: Family, state: GameState, spec: GameSpec, rng: RowRandom, student: Player
) -> Iterator[GameState]:
    """The unfinished positions of all games that the hosts allow, after each number of moves."""
    hosts = _players(family.hosts, make_host, student)
    which, (first, last) = rng.split(_HOST).integers(len(hosts)), family.moves
    for number, host in enumerate(hosts):
        met: list[GameState] = []
        own = state.select((which == number) & ~state.finished())
        worst_case_moves(host, own, spec, last, WALKED_POSITIONS, met.append)
        yield from met[first:]


def _played(
    family: Family, state: GameState, spec: GameSpec, rng: RowRandom, student: Player
) -> Iterator[GameState]:
    """The unfinished positions of games, after each number of moves that counts."""
    backend, table = resolve_backend("auto", state.device, spec), host_action_table(spec.dimension)
    hosts = _players(family.hosts, make_host, student)
    agents = _players(family.agents, make_agent, student)
    host, agent = rng.split(_HOST).integers(len(hosts)), rng.split(_AGENT).integers(len(agents))
    going, (first, last) = ~state.finished(), family.moves
    for moves in range(last + 1):
        state, rng = state.select(going), rng.select(going)
        host, agent = host[going], agent[going]
        if not state.num_games:
            return
        if moves >= first:
            yield state
        if moves < last:
            if family.mixed:
                host = rng.at(moves, _HOST).integers(len(hosts))
                agent = rng.at(moves, _AGENT).integers(len(agents))
            coords = table[ask_players(hosts, host, state, None, rng.at(moves, Stream.HOST))]
            axis = ask_players(agents, agent, state, coords, rng.at(moves, Stream.AGENT))
            state, overflow = backend.move(state, coords, axis, spec)
            going = ~(overflow | state.finished())
