"""Families of positions: what a configuration declares, and how positions are drawn from it.

    dimension: 3
    budget: 2000
    exclude: {singularities: true, brieskorn_pham: 9}
    families:
      - {name: small, kind: uniform, weight: 3, points: [2, 5], max_value: [4, 8]}
      - {name: played, kind: uniform, points: [20, 20], max_value: [20], alive: [2, 5],
         play: {hosts: [random, zeillinger], agents: [random], moves: [1, 30]}}
      - {name: bp, kind: brieskorn_pham, exponents: [2, 12]}

Everything drawn depends on the seed, the family's place and the number of the draw alone.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.plain import Position, canonical, prune
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state
from resgym.kernels.dispatch import resolve_backend
from resgym.players import ask_player, make_agent, make_host
from resgym.polynomials.singularities import singularity, singularity_names
from resgym.solver.labels import MAX_LABEL_DIMENSION
from sb3_ext.config.sections import (
    ConfigError,
    Fraction,
    PositiveCount,
    PositiveNumber,
    Section,
    read_section,
)
from sb3_ext.config.yaml_files import read_yaml
from sb3_ext.training.config_files import config_folder

__all__ = [
    "BATCH_ROWS",
    "Drawn",
    "Exclude",
    "Family",
    "Play",
    "TeachConfig",
    "draw_batch",
    "excluded_forms",
    "read_teach_config",
]

BATCH_ROWS = 8192
"""Rows of one draw; what is drawn depends on it."""

INT64_MAX = torch.iinfo(torch.int64).max
MAX_POINTS = 64
MAX_VALUE = 10**6

Range = Annotated[list[int], Field(min_length=2, max_length=2)]


class Play(Section):
    """Positions met in games from the drawn ones, instead of these.

    Every unfinished position of a game counts that comes after a number of moves in ``moves`` and
    has an allowed number of points. Each game has one of the hosts and one of the agents.
    """

    hosts: Annotated[list[str], Field(min_length=1)]
    agents: Annotated[list[str], Field(min_length=1)]
    moves: Range


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
        largest: greatest coordinate left once every axis is touched and common factors are
            divided out; others are drawn again. The proof of a label grows steeply with it: with 8
            nine of ten positions of 5 points need fewer than 400 expansions, with 20 one of ten.
        play: if given, positions from games.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    kind: Literal["uniform", "brieskorn_pham", "invertible"]
    weight: PositiveNumber = 1.0
    points: Range | None = None
    max_value: Annotated[list[PositiveCount], Field(min_length=1)] | None = None
    sparsity: Annotated[list[Fraction], Field(min_length=1)] | None = None
    exponents: Range | None = None
    alive: Range | None = None
    largest: PositiveCount | None = None
    play: Any = None


class Exclude(Section):
    """Positions that must not be in the dataset, whatever their shift, factor and order of axes.

    Attributes:
        singularities: the sixteen of `singularity_names`.
        brieskorn_pham: all x^a+y^b+... with exponents from 1 to this; 0 for none.
    """

    singularities: bool = False
    brieskorn_pham: int = 0


class _Top(Section):
    """A configuration as it is written."""

    dimension: int
    budget: PositiveCount
    families: Annotated[list[Any], Field(min_length=1)]
    exclude: Any = None


class TeachConfig(NamedTuple):
    """A checked configuration.

    Attributes:
        dimension: number of axes D.
        budget: positions expanded for a label.
        exclude: what is kept out.
        families: in order.
    """

    dimension: int
    budget: int
    exclude: Exclude
    families: tuple[Family, ...]

    @property
    def max_num_points(self) -> int:
        """Rows P that the positions of all families fit into."""
        return max(alive_range(family, self.dimension)[1] for family in self.families)

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which the same configuration is read."""
        return {
            "dimension": self.dimension,
            "budget": self.budget,
            "exclude": self.exclude.model_dump(),
            "families": [
                {
                    key: value.model_dump() if isinstance(value, Section) else value
                    for key, value in family
                    if value is not None
                }
                for family in self.families
            ],
        }


def read_teach_config(source: Mapping[str, Any] | str | Path) -> TeachConfig:
    """Reads and checks a configuration.

    Args:
        source: a YAML file, the name of one in ``configs/teach``, or plain data.

    Raises:
        ConfigError: one line that names file and field, what was given and what is allowed.
    """
    if isinstance(source, Mapping):
        return _config(source)
    path = Path(source)
    if not path.is_file():
        folder = config_folder() / "teach"
        path = folder / f"{source}.yml"
        if not path.is_file():
            names = ", ".join(sorted(file.stem for file in folder.glob("*.yml")))
            raise ConfigError(f"config: there is no file {str(source)!r}, and none among {names}")
    try:
        data = read_yaml(path)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path}: must hold a mapping, got {type(data).__name__}")
    try:
        return _config(data)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _config(data: Mapping[str, Any]) -> TeachConfig:
    top = read_section(_Top, data)
    if not 2 <= top.dimension <= MAX_LABEL_DIMENSION:
        raise ConfigError(f"dimension must be in 2..{MAX_LABEL_DIMENSION}, got {top.dimension}")
    exclude = read_section(Exclude, {} if top.exclude is None else top.exclude, "exclude")
    if not 0 <= exclude.brieskorn_pham <= 30:
        raise ConfigError(f"exclude.brieskorn_pham must be in 0..30, got {exclude.brieskorn_pham}")
    families = []
    for place, entry in enumerate(top.families):
        name = entry.get("name", place) if isinstance(entry, Mapping) else place
        families.append(_checked(read_section(Family, entry, f"families[{name}]"), top.dimension))
    names = [family.name for family in families]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"families: the name {name!r} stands there twice")
    return TeachConfig(top.dimension, top.budget, exclude, tuple(families))


def _checked(family: Family, dimension: int) -> Family:
    """The family with all that may be left out, after checks that need more than one key."""
    where = f"families[{family.name}]"
    uniform = family.kind == "uniform"
    for key in ("points", "max_value", "sparsity", "exponents"):
        wanted = (key != "exponents") == uniform
        given = getattr(family, key) is not None
        if given and not wanted:
            raise ConfigError(f"{where}.{key} has no meaning for kind {family.kind}")
        if wanted and not given and key != "sparsity":
            raise ConfigError(f"{where}.{key} is missing")
    changes: dict[str, Any] = {}
    if uniform and family.sparsity is None:
        changes["sparsity"] = [0.0]
    if family.play is not None:
        play = changes["play"] = read_section(Play, family.play, f"{where}.play")
        _check_range(f"{where}.play.moves", play.moves, 0, 1000)
        for key, make in (("hosts", make_host), ("agents", make_agent)):
            for name in getattr(play, key):
                try:
                    make(name)
                except (TypeError, ValueError) as error:
                    raise ConfigError(f"{where}.play.{key}: {error}") from None
    family = family.model_copy(update=changes)
    if uniform:
        _check_range(f"{where}.points", family.points, 2, MAX_POINTS)
        if max(family.max_value or [0]) > MAX_VALUE:
            raise ConfigError(f"{where}.max_value must be at most {MAX_VALUE}")
    else:
        _check_range(f"{where}.exponents", family.exponents, 1, MAX_VALUE)
    if family.alive is not None:
        _check_range(f"{where}.alive", family.alive, 2, MAX_POINTS)
    return family


def _check_range(name: str, given: list[int] | None, low: int, high: int) -> None:
    if given is None or not low <= given[0] <= given[1] <= high:
        raise ConfigError(f"{name} must be [least, greatest] within {low}..{high}, got {given}")


def alive_range(family: Family, dimension: int) -> tuple[int, int]:
    """Least and greatest number of points of a family's positions."""
    if family.alive is not None:
        return family.alive[0], family.alive[1]
    return 2, dimension if family.points is None else family.points[1]


def excluded_forms(exclude: Exclude, dimension: int) -> set[Position]:
    """Canonical forms of the positions that are kept out."""
    forms = set()
    if exclude.singularities and dimension == 3:
        forms |= {canonical(prune(singularity(name))) for name in singularity_names()}
    powers = range(1, exclude.brieskorn_pham + 1)
    for exponents in itertools.combinations_with_replacement(powers, dimension):
        points = [
            tuple(power if axis == row else 0 for axis in range(dimension))
            for row, power in enumerate(exponents)
        ]
        forms.add(canonical(prune(points)))
    return forms


@dataclass(frozen=True)
class Drawn:
    """Positions as they were drawn.

    Attributes:
        points: int64 [N, P, D], alive points first in descending lexicographic order, absent -1.
        count: int64 [N].
    """

    points: Tensor
    count: Tensor


class _Stream:
    """Streams of random numbers of a draw."""

    NUMBER, VALUE, SPARSITY, COORDINATE, ZERO, TWIST, HOST, AGENT = range(16, 24)


def draw_batch(config: TeachConfig, place: int, batch: int, seed: int) -> Drawn:
    """Positions of a family: one batch of draws, without those that do not fit.

    Args:
        config: the configuration.
        place: the family's index.
        batch: number of the batch; each gives other positions.
        seed: fixes what is drawn.
    """
    family = config.families[place]
    rows = torch.arange(BATCH_ROWS) + batch * BATCH_ROWS
    seeds = torch.full_like(rows, derive_seed(seed, 0x7465616368, place))
    rng = RowRandom.for_episode(seeds, rows)
    columns, count = _start(family, config.dimension, rng)
    spec = GameSpec(dimension=config.dimension, max_num_points=columns.shape[1])
    state = canonical_state(columns, count, spec)
    low, high = alive_range(family, config.dimension)
    states = [state] if family.play is None else _played(family.play, state, spec, rng)
    points, counts = [], []
    for each in states:
        fits = (each.count >= low) & (each.count <= high)
        if family.largest is not None:
            fits &= _largest(each) <= family.largest
        fits = fits.nonzero()[:, 0]
        kept = each.points[fits]
        size = config.max_num_points
        padded = kept.new_full((len(fits), max(size, kept.shape[1]), config.dimension), -1)
        padded[:, : kept.shape[1]] = kept
        points.append(padded[:, :size])
        counts.append(each.count[fits])
    return Drawn(torch.cat(points), torch.cat(counts))


def _largest(state: GameState) -> Tensor:
    """Greatest coordinates after a shift to the axes and a division by the divisor, [N]."""
    absent = torch.arange(state.points.shape[1]) >= state.count[:, None]
    lowest = state.points.masked_fill(absent[:, :, None], INT64_MAX).amin(1, keepdim=True)
    shifted = (state.points - lowest).masked_fill(absent[:, :, None], 0).flatten(1)
    divisor = functools.reduce(torch.gcd, shifted.unbind(1))
    return shifted.amax(1) // divisor.clamp(min=1)


def _start(family: Family, dimension: int, rng: RowRandom) -> tuple[Tensor, Tensor]:
    """Drawn points int64 [D, W, N] and their number int64 [N]."""
    num_rows = len(rng.key)
    if family.kind == "uniform":
        assert family.points
        assert family.max_value
        assert family.sparsity
        low, high = family.points
        count = low + rng.split(_Stream.NUMBER).integers(high - low + 1)
        top = torch.tensor(family.max_value)[
            rng.split(_Stream.VALUE).integers(len(family.max_value))
        ]
        chance = torch.tensor(family.sparsity)[
            rng.split(_Stream.SPARSITY).integers(len(family.sparsity))
        ]
        values = rng.split(_Stream.COORDINATE).integers(top + 1, high * dimension)
        zero = rng.split(_Stream.ZERO).uniform(high * dimension) < chance[:, None]
        values = values.masked_fill(zero, 0)
        return values.view(num_rows, high, dimension).permute(2, 1, 0).contiguous(), count
    assert family.exponents
    low, high = family.exponents
    powers = low + rng.split(_Stream.VALUE).integers(high - low + 1, dimension)
    points = torch.diag_embed(powers)
    if family.kind == "invertible":
        # 0: alone, k: times the k-th axis after its own.
        other = rng.split(_Stream.TWIST).integers(dimension, dimension)
        own = torch.arange(dimension)
        factor = torch.nn.functional.one_hot((own + other) % dimension, dimension)
        points = points + factor * (other > 0)[..., None]
    return points.permute(2, 1, 0).contiguous(), torch.full((num_rows,), dimension)


def _played(play: Play, state: GameState, spec: GameSpec, rng: RowRandom) -> Iterator[GameState]:
    """The unfinished positions of games, after each number of moves that counts."""
    backend = resolve_backend("auto", state.device, spec)
    table = host_action_table(spec.dimension)
    hosts = [make_host(name) for name in play.hosts]
    agents = [make_agent(name) for name in play.agents]
    which_host = rng.split(_Stream.HOST).integers(len(hosts))
    which_agent = rng.split(_Stream.AGENT).integers(len(agents))
    for moves in range(play.moves[1] + 1):
        going = (state.count > 1).nonzero()[:, 0]
        if not len(going):
            return
        state, rng = state.select(going), rng.select(going)
        which_host, which_agent = which_host[going], which_agent[going]
        if moves >= play.moves[0]:
            yield state
        if moves == play.moves[1]:
            return
        host_rng, agent_rng = rng.at(moves, Stream.HOST), rng.at(moves, Stream.AGENT)
        action = torch.zeros_like(state.count)
        for number, host in enumerate(hosts):
            index = (which_host == number).nonzero()[:, 0]
            if len(index):
                action[index] = ask_player(host, state.select(index), None, host_rng.select(index))
        coords = table[action]
        axis = torch.zeros_like(action)
        for number, agent in enumerate(agents):
            index = (which_agent == number).nonzero()[:, 0]
            if len(index):
                axis[index] = ask_player(
                    agent, state.select(index), coords[index], agent_rng.select(index)
                )
        state, overflow = backend.move(state, coords, axis, spec)
        kept = (~overflow).nonzero()[:, 0]
        state, rng = state.select(kept), rng.select(kept)
        which_host, which_agent = which_host[kept], which_agent[kept]
