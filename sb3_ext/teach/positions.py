"""The file of a taught player, and where its positions come from.

These are random starts, games from them, and walks through all answers to a host.

Everything drawn depends on the seed, the round, the family's place and the number of the draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count as numbers
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Le, Len
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn.functional import one_hot, pad

from resgym import (
    GameSpec,
    GameState,
    Player,
    RowRandom,
    Stream,
    functional,
    make_agent,
    make_host,
    singularity,
    singularity_names,
    state_from_points,
)
from resgym.benchmark import SPLITS, Solved
from resgym.game.rng import derive_seed
from resgym.game.spec import host_action_table
from resgym.game.state import canonical_state
from resgym.players.asking import ask_players
from resgym.solver.labels import MAX_LABEL_DIMENSION, digests
from resgym.solver.responses import Graph
from resgym.solver.search import Objective
from sb3_ext.config.checks import ConfigError, check_count, shown
from sb3_ext.config.sections import (
    ConfigFile,
    Count,
    Fraction,
    NonNegative,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Whole,
    accepted_by,
    checked,
)
from sb3_ext.schedules.schedules import schedule_field

STUDENT = "student"


def _range(low: int, high: int) -> Any:
    """Least and greatest value, both given, within bounds."""

    def check(value: Any) -> Any:
        counts = [check_count("", each, low) for each in value] if isinstance(value, list) else []
        if len(counts) != 2 or not counts[0] <= counts[1] <= high:
            raise ValueError(f" must be [least, greatest] within {low}..{high}, got {shown(value)}")
        return counts

    return checked(check)


Points = Annotated[list[int], _range(2, 64)]
Host = Annotated[str, accepted_by(lambda name: name == STUDENT or make_host(name))]
Agent = Annotated[str, accepted_by(lambda name: name == STUDENT or make_agent(name))]


class Family(Section):
    """Positions of one kind."""

    positions: Annotated[PositiveCount, Le(10**8)]
    """number of positions, different up to shifts, factors and orders of points and axes"""
    points: Points | None = None
    """least and greatest number of points of a start"""
    max_value: Annotated[list[Annotated[int, Whole, Ge(1), Le(10**6)]], Len(1)] = Field([20])
    """largest coordinates; each start draws one"""
    sparsity: Annotated[list[Fraction], Len(1)] = Field([0.0])
    """probabilities of a coordinate 0; each start draws one"""
    exponents: Annotated[list[int], _range(1, 10**6)] | None = None
    """in place of points: least and greatest exponent of as many monomials as axes, the j-th a
    power of x_j, alone or times another variable"""
    alive: Points | None = None
    """least and greatest number of points of a position that is kept"""
    hosts: list[Host] = Field([])
    """hosts of games from the starts, whose positions are used; ``student``: the current player"""
    agents: list[Agent] = Field([])
    """agents of these games; none: every answer is followed"""
    mixed: bool = False
    """draw host and agent for every move, not for every game"""
    moves: Annotated[list[int], _range(0, 1000)] = Field([0, 0])
    """positions after this many moves are kept, at least and at most"""

    @model_validator(mode="after")
    def _fits(self) -> Family:
        if (self.points is None) == (self.exponents is None):
            raise ValueError(".points: give either points or exponents")
        if (self.agents or self.moves[1]) and not self.hosts:
            raise ValueError(".hosts: is missing; agents and moves belong to games")
        if self.mixed and not self.agents:
            raise ValueError(".agents: is missing; mixed draws one for every move")
        return self

    def most(self, dimension: int) -> list[int]:
        """Least and greatest number of points of its positions."""
        return self.alive or [2, self.points[1] if self.points else dimension]


class TeachConfig(ConfigFile):
    """A whole file."""

    folder = "teach"

    seat: Literal["host", "agent"]
    """the seat to teach"""
    dimension: Annotated[int, Whole, Ge(2), Le(MAX_LABEL_DIMENSION)]
    """number of axes"""
    objective: Objective = "depth"
    """quantity that best moves minimise"""
    budget: PositiveCount
    """positions to expand before a position is left out"""
    rounds: Annotated[list[Annotated[list[Family], Len(1)]], Len(1)]
    """families of positions, new ones for each round; student is the player so far"""
    algorithm: str
    """networks and discount, a file in rl_zoo3's form"""
    updates: Count
    """updates of each round; 0: only solve the first positions"""
    batch_size: Size
    """positions of an update"""
    learning_rate: Annotated[Any, schedule_field(units=("updates", "progress"), unit=None)]
    """learning rate of each round, a number or schedule"""
    temperature: PositiveNumber
    """divisor of the values in the choice loss"""
    value_weight: NonNegative
    """weight of the value loss; 0 for nodes or leaves"""
    max_grad_norm: PositiveNumber
    """the gradient is clipped to this norm"""
    every: PositiveCount
    """updates between two measurements"""
    seed: Count
    """seed of everything random"""

    @model_validator(mode="after")
    def _fits(self) -> TeachConfig:
        other = "agents" if self.seat == "host" else "hosts"
        if any(STUDENT in getattr(each, other) for families in self.rounds for each in families):
            raise ValueError(f".rounds: {other}: got {STUDENT}; expected it among the {self.seat}s")
        return self


BATCH_ROWS = 8192
WALKED_ROWS, WALKED_POSITIONS = 512, 5_000
"""Starts of a draw all of whose games are walked through, and positions until that is given up."""
IDLE_BATCHES = 20
"""A family has no more to give once this many draws in a row brought nothing new."""
_NUMBER, _VALUE, _SPARSITY, _COORDINATE, _ZERO, _TWIST, _HOST, _AGENT = range(16, 24)
_ORDER, _FAMILY = 0x6F72646572, 0x7465616368


def draw(
    config: TeachConfig,
    number: int,
    student: Player,
    beat: Callable[[], object] = lambda: None,
) -> Solved:
    """Different positions of all families of a round, not solved yet.

    Raises:
        ConfigError: a family has no position that fits.
    """
    axes = config.dimension
    seed = config.seed + number
    families = config.rounds[number]
    # As many for every round, so that their positions can be joined.
    rows = max(family.most(axes)[1] for each in config.rounds for family in each)
    met: set[bytes] = set()
    if axes == 3:  # hosts are measured on the named singularities, so they are taught none
        named = [singularity(name) for name in singularity_names()]
        met.update(_digests(state_from_points(named, GameSpec(axes)))[0])
    kept: list[tuple[Tensor, ...]] = []
    for place, family in enumerate(families):
        left = family.positions
        idle = 0
        for batch in numbers():
            if left == 0 or idle == IDLE_BATCHES:
                break
            beat()
            state = _batch(family, axes, rows, (seed, _FAMILY, place), batch, student)
            # In any order: the positions of a game must not come before those of later moves.
            words = _rows(state.num_games, seed, _ORDER, place, batch).words()
            state = state.select(words.argsort(stable=True))
            forms, split = _digests(state)
            # A whole batch is met, however few of it are wanted: the next families draw others.
            new = []
            for row, form in enumerate(forms):
                if form not in met:
                    met.add(form)
                    new.append(row)
            index = torch.tensor(new[:left], dtype=torch.int64)
            left, idle = left - len(index), 0 if len(index) else idle + 1
            kept.append((state.points[index], state.count[index], split[index]))
        if left == family.positions:
            raise ConfigError(
                f"rounds: family {place}: got no position that fits in {batch} draws; expected "
                "other points, max_value, alive or moves"
            )
    points, count, split = map(torch.cat, zip(*kept, strict=True))
    none = count.new_zeros(len(count), 0)
    return Solved(points, count, split, none, none)


def _rows(rows: int, *words: int, first: int = 0) -> RowRandom:
    seeds = torch.full((rows,), derive_seed(*words))
    return RowRandom.for_episode(seeds, torch.arange(first, first + rows))


def _digests(state: GameState) -> tuple[list[bytes], Tensor]:
    """Digests of canonical forms as what a set can hold; int64 [N]: places in `SPLITS`."""
    found = digests(state.points.numpy(), state.count.numpy())
    share = (found[:, 1].copy().view(np.uint64) >> np.uint64(11)) * 2.0**-53
    split = np.searchsorted([*SPLITS.values()], share, side="right")
    return found.view("V16")[:, 0].tolist(), torch.from_numpy(split)


def _batch(
    family: Family, axes: int, rows: int, seed: tuple[int, ...], batch: int, student: Player
) -> GameState:
    """One batch of draws with this many rows each, without positions that do not fit."""
    walks = bool(family.hosts) and not family.agents
    size = WALKED_ROWS if walks else BATCH_ROWS
    rng = _rows(size, *seed, first=batch * size)
    state = _starts(family, axes, rng)
    hosts = [student if name == STUDENT else make_host(name) for name in family.hosts]
    agents = [student if name == STUDENT else make_agent(name) for name in family.agents]
    met: Iterable[GameState] = _played(state, hosts, agents, family, rng)
    if walks:
        met = _walked(state, hosts, family.moves, rng)
    low, high = family.most(axes)
    points, counts = [state.points.new_empty(0, rows, axes)], [state.count[:0]]
    for each in met:
        fitting = each.select((each.count >= low) & (each.count <= high))
        missing = rows - fitting.points.shape[1]  # cut off where it is negative
        points.append(pad(fitting.points, (0, 0, 0, missing), value=-1))
        counts.append(fitting.count)
    return GameState(torch.cat(points), torch.cat(counts))


def _starts(family: Family, axes: int, rng: RowRandom) -> GameState:
    """Random points, or the exponents of invertible polynomials."""
    if family.points:
        low, high = family.points
        count = low + rng.split(_NUMBER).integers(high - low + 1)
        top = torch.tensor(family.max_value)[rng.split(_VALUE).integers(len(family.max_value))]
        which = rng.split(_SPARSITY).integers(len(family.sparsity))
        values = rng.split(_COORDINATE).integers(top + 1, high * axes)
        chance = torch.tensor(family.sparsity)[which, None]
        zero = rng.split(_ZERO).uniform(high * axes) < chance
        points = values.masked_fill(zero, 0).view(len(count), high, axes)
    else:
        assert family.exponents
        low, high = family.exponents
        powers = low + rng.split(_VALUE).integers(high - low + 1, axes)
        other = rng.split(_TWIST).integers(axes, axes)  # 0: alone
        twist = one_hot((torch.arange(axes) + other) % axes, axes)
        points = torch.diag_embed(powers) + twist * (other > 0)[..., None]
        count = torch.full((len(points),), axes)
    spec = GameSpec(axes, points.shape[1])
    return canonical_state(points.permute(2, 1, 0).contiguous(), count, spec)


def _walked(
    state: GameState, hosts: Sequence[Player], moves: Sequence[int], rng: RowRandom
) -> Iterator[GameState]:
    """The unfinished positions of all games that the hosts allow, after each number of moves."""
    which = rng.split(_HOST).integers(len(hosts))
    _, rows, axes = state.points.shape
    for number, host in enumerate(hosts):
        graph = Graph(host, GameSpec(axes, rows))
        starts = state.select(which == number)
        levels = graph.walk(graph.begin(starts), moves[1], WALKED_POSITIONS)
        yield from map(graph.positions, islice(levels, moves[0], None))


def _played(
    state: GameState,
    hosts: Sequence[Player],
    agents: Sequence[Player],
    family: Family,
    rng: RowRandom,
) -> Iterator[GameState]:
    """The unfinished positions of games, after each number of moves that counts."""
    _, rows, axes = state.points.shape
    spec, table = GameSpec(axes, rows), host_action_table(axes)
    host = rng.split(_HOST).integers(len(hosts) or 1)  # without games the starts are all
    agent = rng.split(_AGENT).integers(len(agents) or 1)
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
            state, overflow = functional.move(state, coords, axis, spec)
            going = ~(overflow | state.finished())
