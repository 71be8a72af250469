"""Positions with what the game costs after every move, as proved; the data ``solved-v1``.

The test positions come with the package. All are made by ``python -m sb3_ext.teach --config NAME``,
from the same seed on every machine, and checked by their digests. A correction makes a new version.

Letters: N positions, P points, D axes, A host actions.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import torch
from torch import Tensor

from resgym.files import opened, read_json, write_file
from resgym.game.pruning import prune_dominated
from resgym.game.rng import RowRandom, derive_seed
from resgym.game.spec import (
    MAX_COORDINATE,
    MAX_DIMENSION,
    GameSpec,
    check_choice,
    check_integer,
    coords_to_action,
    host_action_table,
)
from resgym.game.state import GameState
from resgym.players import Player, ask_exactly
from resgym.players.registry import select_rows
from resgym.solver.labels import SOLVER_VERSION, Labeller
from resgym.solver.search import Objective

SPLITS = {"test": 0.05, "validation": 0.10, "train": 1.0}
"""The parts of all positions, with the upper ends of their shares of the canonical forms."""

_ROWS_AT_ONCE = 8192

MAX_SIZE = 2**30
"""Bytes of a file, packed and unpacked."""


class Asked(NamedTuple):
    """Solved positions as one seat is asked about them.

    Attributes:
        state: N positions.
        coords: bool [N, D]: the host's sets, which an agent answers; None if the host is asked.
        regret: int64 [N, A] of a host's sets or [N, D] of an agent's axes: what the move loses, 0
            for best moves, -1 for axes outside the set.
        value: int64 [N]: what the game costs if both seats play their best, an agent's move
            counted.
    """

    state: GameState
    coords: Tensor | None
    regret: Tensor
    value: Tensor

    def chosen(self, player: Player) -> Tensor:
        """int64 [N]: the regret of the moves that a player of this seat chooses."""
        row = torch.arange(len(self.value))
        rng, action = RowRandom.for_episode(0 * row, row), torch.zeros_like(row)
        for some in row.split(_ROWS_AT_ONCE):
            action[some] = ask_exactly(player, *select_rows(self.state, self.coords, rng, some))
        return self.regret[row, action]


@dataclass(frozen=True)
class Solved:
    """Positions with what the game costs after every move, under best play.

    The cost is the least depth, or what another objective of the solver counts.

    Attributes:
        points: int64 [N, P, D]: alive points first, descending; absent rows -1.
        count: int64 [N]: alive points, 2 or more.
        split: int64 [N]: the part of all positions that this one is in, a place in `SPLITS`;
            the same for all that differ by a shift, a factor or an order of axes or points.
        costs: int64 [N, A]: the cost of the game after each of the host's sets, the move counted;
            of sets that are not best perhaps a lower bound, above the least cost.
        after: int64 [N, A, D]: the cost after a host's set and an agent's axis; -1 for axes outside
            the set, or everywhere: then the positions were solved for hosts alone.
    """

    points: Tensor
    count: Tensor
    split: Tensor
    costs: Tensor
    after: Tensor

    def __len__(self) -> int:
        return len(self.count)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(vars(self).values())

    @property
    def value(self) -> Tensor:
        """int64 [N]: the cost of the game."""
        return self.costs.amin(1)

    @property
    def state(self) -> GameState:
        """The positions."""
        return GameState(self.points, self.count)

    def select(self, index: Tensor) -> Solved:
        """The rows of an index, int64 [B] or bool [N]."""
        return Solved(*(each[index] for each in self))

    def asked(self, seat: str, action: Tensor | None = None) -> Asked:
        """The positions as a seat is asked about them.

        Args:
            seat: ``host`` or ``agent``.
            action: int64 [N], the host's sets that an agent is asked about; by default in turn.

        Raises:
            ValueError: an agent is asked, and the positions were solved for hosts alone.
        """
        if seat == "host":
            return Asked(self.state, None, self.costs - self.value[:, None], self.value)
        if len(self) and int(self.after.max()) < 0:
            raise ValueError("data: got positions solved for hosts; expected the cost of all moves")
        row, sets = torch.arange(len(self)), host_action_table(self.points.shape[2])
        action = row % len(sets) if action is None else action
        coords, after = sets[action], self.after[row, action]
        regret = torch.where(coords, after.amax(1, keepdim=True) - after, -1)
        return Asked(self.state, coords, regret, self.costs[row, action])

    def drawn(self, rows: int, seed: Sequence[int], seat: str) -> Asked:
        """This many rows with replacement, with random orders of the axes and, for agents, sets."""
        if not len(self):
            raise ValueError("data: got no position; expected some to learn from")
        source = torch.Generator().manual_seed(derive_seed(*seed))
        orders = len(axis_orders(self.points.shape[2])[0])
        row, order, action = (
            torch.randint(high, (rows,), generator=source)
            for high in (len(self), orders, self.costs.shape[1])
        )
        return self.select(row).renamed(order).asked(seat, action)

    def renamed(self, order: Tensor) -> Solved:
        """The same positions under other names of the axes: `order` numbers `axis_orders`."""
        orders, sets = (each[order] for each in axis_orders(self.points.shape[2]))
        points = self.points.gather(2, orders[:, None].expand_as(self.points))
        points, _ = prune_dominated(points.permute(2, 1, 0), self.count, points.shape[1])
        row = torch.arange(len(self))[:, None]
        after = self.after[row[..., None], sets[..., None], orders[:, None]]
        return replace(self, points=points, costs=self.costs[row, sets], after=after)

    def columns(self) -> dict[str, np.ndarray]:
        """The tensors as a file holds them, in the smallest signed types."""
        found = {}
        for name, each in vars(self).items():
            largest = max(0, int(each.max())) if len(each) else 0
            found[name] = each.numpy().astype(np.min_scalar_type(-1 - largest))
        return found

    def digest(self) -> str:
        """SHA-256, equal for equal positions whatever file they came from."""
        columns = self.columns().values()
        return hashlib.sha256(b"".join(each.tobytes() for each in columns)).hexdigest()

    def save(self, file: Path) -> None:
        """Write a file ``.npz``."""
        columns: dict[str, Any] = {"solver": SOLVER_VERSION, **self.columns()}
        np.savez_compressed(content := io.BytesIO(), **columns)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content.getvalue())

    @classmethod
    def load(cls, file: Path) -> Solved:
        """Read what `save` wrote; nothing in it is executed.

        Raises:
            ValueError: there is no such file, it is damaged, too large, of another kind or of
                another version of the solver; one line.
        """
        names = ["solver", *(field.name for field in fields(cls))]
        with opened(file, "data", MAX_SIZE) as text:
            raw = text.buffer
            try:
                with ZipFile(raw) as archive:  # what is compressed may unpack to any size
                    _check_size(sum(each.file_size for each in archive.infolist()))
                raw.seek(0)
                loaded = np.load(raw, allow_pickle=False)
                arrays = [loaded[name] for name in names]
                _check_size(8 * sum(array.size for array in arrays))  # of tensors, in int64
                solver, *found = map(_whole_numbers, names, arrays)
                if int(solver) != SOLVER_VERSION:
                    raise ValueError(f"solver: got {int(solver)}; expected {SOLVER_VERSION}")
                return cls(*found)._checked()
            except Exception as error:  # whatever a damaged file makes of its readers
                raise ValueError(f"data: {file}: {error!r:.300}") from error

    def _checked(self) -> Solved:
        rows, most, dimension = self.points.shape
        check_integer("number of axes", dimension, 2, MAX_DIMENSION)
        sets = 2**dimension - dimension - 1
        shapes = (rows, most, dimension), (rows,), (rows,), (rows, sets), (rows, sets, dimension)
        anything = -1, MAX_COORDINATE
        bounds = anything, (2, most), (0, len(SPLITS) - 1), anything, anything
        for name, array, shape, between in zip(vars(self), self, shapes, bounds, strict=True):
            if array.shape != shape:
                raise ValueError(f"{name}: got shape {tuple(array.shape)}; expected {shape}")
            for end in array.aminmax() if rows else ():
                check_integer(name, int(end), *between)
        return self


def _check_size(size: int) -> None:
    if size > MAX_SIZE:
        raise ValueError(f"size: got {size} bytes; expected at most {MAX_SIZE}")


def _whole_numbers(name: str, array: np.ndarray) -> Tensor:
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: got {array.dtype}; expected whole numbers")
    return torch.from_numpy(array.astype(np.int64))


def joined(several: Sequence[Solved]) -> Solved:
    """Several sets of positions, of the same number of rows, as one."""
    return Solved(*map(torch.cat, zip(*several, strict=True)))


def solve(objective: Objective, budget: int, exact: bool, drawn: Solved) -> Solved:
    """Solve the positions, as far as the budget of expanded positions per position allows.

    Which ones that are depends on all positions, because they share a table. What is not ``exact``
    serves hosts alone.
    """
    points, count = drawn.points.numpy(), drawn.count.numpy()
    labeller = Labeller(points.shape[2], points.shape[1], objective, budget=budget)
    costs, after, good = map(torch.from_numpy, labeller.costs(points, count, exact))
    return replace(drawn, costs=costs, after=after).select(good)


@cache
def axis_orders(dimension: int) -> tuple[Tensor, Tensor]:
    """All orders of the axes, the identity first, and what each does to the host's actions.

    Returns:
        int64 [D!, D]: under order o the new axis j is the old axis ``axes[o, j]``; int64 [D!, A]:
        the new host action k is the old action ``actions[o, k]``. Shared: do not write to them.
    """
    axes = torch.tensor(list(permutations(range(dimension))))
    table = host_action_table(dimension)
    # New axis j is in the new set where old axis order[j] is in the old one.
    return axes, torch.stack([coords_to_action(table[:, order.argsort()]) for order in axes])


GAMES = {
    "worst-5": GameSpec(3, 5),
    "worst-20": GameSpec(),
    "moves-20": GameSpec(),
    "scale-100": GameSpec(max_value=100),
    "family": GameSpec(max_value=29),
    "axes4": GameSpec(4, 5, 4),
}
"""The parts of the data, by the games that their positions come from."""

PACKAGED = Path(__file__).with_name("solved-v1")


@cache
def load(part: str, split: str = "test", folder: str | None = None) -> Solved:
    """Read solved positions, the same on every machine.

    Args:
        part: a name of `GAMES`.
        split: ``test``, ``validation`` or ``train``.
        folder: the run of ``python -m sb3_ext.teach --config PART --out FOLDER``, which makes all
            but the test positions.

    Returns:
        The positions. Shared: do not write to them.

    Raises:
        ValueError: there is no such part or split, or a file is missing, damaged or of another
            version.
    """
    check_choice("part", part, GAMES)
    place = [*SPLITS].index(check_choice("split", split, SPLITS))
    if place and not folder:
        raise ValueError(
            f"folder: got none; expected that of: python -m sb3_ext.teach --config {part} --out ..."
        )
    file, kind = PACKAGED / f"{part}.npz", "test"
    if folder:
        file, kind = Path(folder, "solved-0.npz"), "all"
    data, known = Solved.load(file), read_json(PACKAGED / "sha256.json", "data")
    if data.digest() != known[part].get(kind):
        raise ValueError(f"data: {file}: sha256: is not that of solved-v1, {part}")
    return data.select(data.split == place) if folder else data
