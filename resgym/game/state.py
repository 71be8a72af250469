"""The state of N games as tensors, and the differences between the rules, which a state carries.

Rows behind the P rows of points hold further data of a rule; code that reads alive points never
sees them. Letters in shapes, everywhere in this project:

    N  games (rows of a batch)
    P  points (rows of a state, alive ones first)
    D  axes
    A  actions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from resgym.game.devices import resolve_device
from resgym.game.exact import OrderedPolyhedra, OrderedRule, OrderedThom
from resgym.game.pruning import newton_vertices, prune_dominated, used_rows
from resgym.game.spec import (
    MAX_COORDINATE,
    RULES,
    GameSpec,
    Point,
    action_axes,
    check_coordinates,
    host_action_table,
    register,
)
from resgym.texts import AXIS_NAMES, Rows, Table, position_pretty, shown

_ABSENT = 2**61  # with ten coordinates on top it still fits in int64


class Rule:
    """The default rule, and the questions that every rule answers.

    Sets are bool [N, D].

    Attributes:
        ordered: the same rule on Python integers, which trees and the solver play. A subclass that
            changes the rule must set it: nothing compares the two, and the default one would prove
            values of the default rule.
        limits_sets: whether some positions forbid sets, as `permits` says.
        extra_rows: number of rows behind those of the points.
        spec: the game.
    """

    ordered = OrderedRule
    limits_sets = False
    extra_rows = 0

    def __init__(self, spec: GameSpec) -> None:
        self.spec = spec

    def sums(self, columns: Tensor, coords: Tensor) -> Tensor:
        """Return int64 [P, N]: the new coordinates of points int64 [D, P, N] on agents' axes."""
        return (columns * coords.t()[:, None]).sum(0)

    def finished(self, state: GameState) -> Tensor:
        """Return bool [N]: the game is over."""
        return state.count <= 1

    def permits(self, state: GameState, coords: Tensor) -> Tensor:
        """Return bool [N]: the host may choose this set."""
        return coords.sum(1) >= self.spec.least_axes

    def answers(self, state: GameState, coords: Tensor) -> Tensor:
        """Return bool [N, D]: the axes of a set that the agent may choose."""
        return coords


class Polyhedra(Rule):
    """Hironaka's polyhedra game; coordinates are multiples of 1/unit.

    A set is permissible if in every point the sum over it is at least one unit. The game is over
    when all coordinates of a point sum to less: then no set is permissible.
    """

    ordered = OrderedPolyhedra
    limits_sets = True

    def sums(self, columns: Tensor, coords: Tensor) -> Tensor:
        """See `Rule`."""
        return super().sums(columns, coords) - self.spec.unit

    def finished(self, state: GameState) -> Tensor:
        """See `Rule`."""
        return (state.alive() & (state.points.sum(2) < self.spec.unit)).any(1)

    def permits(self, state: GameState, coords: Tensor) -> Tensor:
        """See `Rule`."""
        enough = (state.points * coords[:, None]).sum(2) >= self.spec.unit
        return (enough | ~state.alive()).all(1)


class Thom(Rule):
    """The game on Thom polynomials: axes have weights, and one point is distinguished.

    Behind the points come a row of weights, 0 or more, and the distinguished point, which is -1
    throughout once it is dropped. The agent takes an axis of least weight in the set,
    and the weights of the other axes of the set fall by it. The game is over when one point is left
    or the distinguished one is lost.
    """

    ordered = OrderedThom
    extra_rows = 2

    def finished(self, state: GameState) -> Tensor:
        """See `Rule`."""
        return (state.count <= 1) | (state.points[:, -1, 0] < 0)

    def answers(self, state: GameState, coords: Tensor) -> Tensor:
        """See `Rule`."""
        weights = torch.where(coords, state.points[:, -2], _ABSENT)
        return coords & (weights == weights.amin(1, keepdim=True))


BASIC = Rule(GameSpec())


def register_rule(name: str) -> Callable[[type[Rule]], type[Rule]]:
    """Register a subclass of `Rule` with its own ``ordered`` under a free name (decorator).

    See docs/game.md.
    """
    return register(RULES, "rule", name)


def holds_integers(tensor: Tensor) -> bool:
    """Return whether a tensor is a dense tensor of integers."""
    return tensor_kind(tensor).startswith(("torch.int", "torch.uint"))


def tensor_kind(tensor: Tensor) -> str:
    """Describe a tensor for errors: its dtype, and its form if it is not dense."""
    form = "nested " if tensor.is_nested else ""
    form += "" if tensor.layout == torch.strided else "sparse "
    return f"{form}{tensor.dtype}"


def check_tensor(name: str, value: Any, dtype: torch.dtype, shape: Sequence[int]) -> None:
    """Raise TypeError or ValueError unless a value is a tensor of this dtype and shape."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    needed = f"{dtype} {tuple(shape)}"
    got = f"{value.dtype} {tuple(value.shape)}"
    if got != needed:
        raise ValueError(f"{name} must be {needed}, got {got}")


def stamps(*tensors: Tensor | None) -> list[int]:
    """Return a stamp that every write to tensors changes, also through `Tensor.detach`.

    Rewards receive live memory. A write through NumPy leaves no stamp.
    """
    return [0 if each is None or each.is_inference() else each._version for each in tensors]


@dataclass(frozen=True)
class GameState(Table):
    """Point sets of N games. They are never changed in place: a move makes a new state.

    Attributes:
        points: int64 [N, P, D], 0..MAX_COORDINATE; alive rows first, in descending lexicographic
            order; absent rows are -1.
        count: int64 [N], number of alive rows, at least 1.
        rule: the rule of the game; it says which moves are legal and when a game is over.
    """

    points: Tensor
    count: Tensor
    rule: Rule = BASIC

    @property
    def num_games(self) -> int:
        """Number of games N."""
        return self.points.shape[0]

    @property
    def dimension(self) -> int:
        """Number of axes D."""
        return self.points.shape[2]

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self.points.device

    @property
    def num_host_actions(self) -> int:
        """Number of host actions A."""
        return len(action_axes(self.dimension, self.rule.spec.least_axes))

    def columns(self) -> Tensor:
        """Return int64 [D, W, N]: the points by axis, W of them as `used_rows` says."""
        width = used_rows(self.count, self.points.shape[1])
        return self.points[:, :width].permute(2, 1, 0).contiguous()

    def alive(self) -> Tensor:
        """Bool [N, P]: which rows hold a point."""
        return torch.arange(self.points.shape[1], device=self.device) < self.count[:, None]

    def finished(self) -> Tensor:
        """Bool [N]: the game is over (with the default rule: one point is left)."""
        return self.rule.finished(self)

    def legal_sets(self) -> Tensor | None:
        """Return the host's legal actions, bool [N, A]: all of them in a finished game.

        None if all are legal in every position.
        """
        if not self.rule.limits_sets:
            return None
        sets = host_action_table(self.dimension, self.device, self.rule.spec.least_axes)
        legal = torch.stack([self.rule.permits(self, axes[None]) for axes in sets], 1)
        return legal | self.finished()[:, None]

    def answers(self, coords: Tensor) -> Tensor:
        """Return bool [N, D]: the axes of the sets bool [N, D] that agents may choose."""
        return self.rule.answers(self, coords)

    def select(self, index: Tensor | slice) -> GameState:
        """Return the games of ``index`` (int64 or bool [N]) as copies, or of a slice as views."""
        return replace(self, points=self.points[index], count=self.count[index])

    def to(self, device: torch.device | str) -> GameState:
        """Return the same games on another device."""
        device = resolve_device(device)
        return replace(self, points=self.points.to(device), count=self.count.to(device))

    def point_lists(self) -> list[list[Point]]:
        """Return the alive points of every game as Python integers."""
        counts = self.count.tolist()
        return [
            [*map(tuple, game[:count])]
            for game, count in zip(self.points.tolist(), counts, strict=True)
        ]

    def table_rows(self) -> Rows:
        """See `Table`: a row for each of the first 20 games."""
        names = AXIS_NAMES[: self.dimension]
        rows = [
            (str(number), position_pretty(points, names))
            for number, points in enumerate(self.select(slice(20)).point_lists())
        ]
        return [(f"of {self.num_games}", "position"), *rows]


def where_state(condition: Tensor, yes: GameState, no: GameState) -> GameState:
    """Choose between two states, row by row, by bool [N]."""
    return GameState(
        torch.where(condition[:, None, None], yes.points, no.points),
        torch.where(condition, yes.count, no.count),
        yes.rule,
    )


def canonical_state(columns: Tensor, count: Tensor, spec: GameSpec) -> GameState:
    """Drop points by ``spec.polytope``, reposition if asked, and sort.

    The first ``count``, int64 [N], of the points ``columns``, int64 [D, W, N], are alive.
    """
    points, count = prune_dominated(columns, count, spec.max_num_points)
    if spec.polytope == "newton":
        points, count = newton_vertices(points, count)
    if spec.reposition:
        absent = points < 0
        lowest = torch.where(absent, MAX_COORDINATE, points).amin(1, keepdim=True)
        points = torch.where(absent, points, points - lowest)
    return GameState(points, count, spec.kind(spec))


def with_weights(state: GameState, weights: Tensor, marked: Tensor, spec: GameSpec) -> GameState:
    """Return a state of rule ``thom``: points, then weights and a distinguished point.

    ``weights`` and the points ``marked`` are int64 [N, D]. A marked point that is not alive (it was
    dropped) becomes -1.
    """
    alive = (state.points == marked[:, None]).all(2).any(1, keepdim=True)
    extra = torch.stack([weights, torch.where(alive, marked, -1)], 1)
    return GameState(torch.cat([state.points, extra], 1), state.count, spec.kind(spec))


def _lists(name: str, value: Any, depth: int = 3) -> Any:
    """Return an iterable as nested lists, at most ``depth`` deep; texts and others unchanged.

    Raises:
        TypeError: a tensor has no integers to read; the message calls it ``name``.
    """
    if isinstance(value, Tensor) and (value.is_meta or not holds_integers(value)):
        kind = f"{tensor_kind(value)} on {value.device}"
        raise TypeError(f"{name} must be a dense tensor of integers with data, got {kind}")
    if isinstance(value, (Tensor, np.ndarray)):
        value = value.tolist()
    if not depth or isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return value
    return [_lists(name, entry, depth - 1) for entry in value]


def _game_lists(points: Any, dimension: int) -> list[Any]:
    """Return the points of each game as lists, whose rows are not checked yet."""
    games = _lists("points", points)
    if not isinstance(games, list):
        hint = f" (did you mean resgym.parse({shown(points)})?)" if isinstance(points, str) else ""
        raise TypeError(f"points must be lists of integers, got {shown(points)}{hint}")
    # One game is a list of points, several are lists of lists of points; [] is a game.
    if not all(isinstance(game, list) and isinstance(next(iter(game), []), list) for game in games):
        games = [games]
    if not games:
        raise ValueError("points must have at least one game, got an empty list")
    if isinstance(points, (Tensor, np.ndarray)):
        games = [[row for row in game if row != [-1] * dimension] for game in games]
    return games


def _rows_of_game(game: Any, name: str, spec: GameSpec) -> Tensor:
    rows = game if isinstance(game, list) else [game]
    if not 1 <= len(rows) <= spec.max_num_points:
        raise ValueError(f"{name} has {len(rows)} points, allowed are 1..{spec.max_num_points}")
    checked = []
    for index, row in enumerate(rows):
        where = f"{name}[{index}]"
        values = row if isinstance(row, list) else [row]
        if len(values) != spec.dimension:
            raise ValueError(
                f"{where} must have {spec.dimension} coordinates (dimension), "
                f"got {len(values)}: {shown(row)}"
            )
        checked.append(check_coordinates(values, where))
    return torch.tensor(checked)


def state_from_points(
    points: Tensor | np.ndarray | Sequence[Any],
    spec: GameSpec,
    device: torch.device | str = "cpu",
    weights: Any = None,
) -> GameState:
    """Make a canonical state from given points.

    Args:
        points: one game (a list of points, or an array [P', D]) or several (a list of such lists,
            which may differ in length, or an array [N, P', D]). Rows of an array that are -1
            throughout are absent. P' is at most ``spec.max_num_points``.
        spec: the game.
        device: device of the state.
        weights: with rule ``thom``, the weights of the axes: D integers of at least 0, or D for
            each game; 1 by default. The last point of each game is the distinguished one.

    Raises:
        TypeError: a coordinate is not an integer.
        ValueError: a game is empty, a point has a wrong number of coordinates, a coordinate is
            negative or above 2^59, or there are too many points.
    """
    games, device = _game_lists(points, spec.dimension), resolve_device(device)
    columns = torch.full((spec.dimension, spec.max_num_points, len(games)), -1)
    for index, game in enumerate(games):
        rows = _rows_of_game(game, f"points[{index}]" if len(games) > 1 else "points", spec)
        columns[:, : len(rows), index] = rows.t()
    count = (columns[0] >= 0).sum(0)
    state = canonical_state(columns.to(device), count.to(device), spec)
    if spec.rule != "thom":
        if weights is not None:
            raise ValueError(f"weights are for rule 'thom', got rule {spec.rule!r}")
        return state
    marked = columns[:, count - 1, torch.arange(len(games))]
    if spec.reposition:
        marked = marked - torch.where(columns < 0, MAX_COORDINATE, columns).amin(1)
    return with_weights(
        state, _weights(weights, len(games), spec).to(device), marked.t().to(device), spec
    )


def _weights(weights: Any, num_games: int, spec: GameSpec) -> Tensor:
    """Return int64 [N, D] from weights for all games or for each; 1 for None.

    Raises:
        TypeError: a weight is not an integer.
        ValueError: a number of weights is wrong, or one is negative or above 2^59.
    """
    # As objects, which may be anything: the list may be ragged.
    rows = np.array(
        [1] * spec.dimension if weights is None else _lists("weights", weights, 2), object
    )
    if rows.shape not in ((spec.dimension,), (num_games, spec.dimension)):
        raise ValueError(
            f"weights must be {spec.dimension} integers in 0..2^59 (dimension), or these for each "
            f"of {num_games} games, got {shown(weights)}"
        )
    checked = [check_coordinates(row, "weights") for row in rows.reshape(-1, spec.dimension)]
    return torch.tensor(checked).expand(num_games, -1)
