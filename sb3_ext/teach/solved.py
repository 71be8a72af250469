"""Positions with their best moves, as the solver proves them.

Letters: N positions, P points, D axes, A actions of the seat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn.functional import pad

from resgym import GameState, Player, RowRandom
from resgym.files import write_file
from resgym.game.actions import coords_to_action, host_action_table
from resgym.game.rules import observe_points
from resgym.players import ask_player
from resgym.solver.labels import SOLVER_VERSION, Labeller
from resgym.solver.search import Objective
from resgym.trust import regular_file
from sb3_ext.networks.mirror import rows_in_order
from sb3_ext.runs.checkpoint import errors_named
from sb3_ext.runs.files import digest_of

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Solved:
    """Positions of one seat with their best moves.

    Attributes:
        points: int64 [N, P, D]: alive points first, descending; absent rows -1.
        count: int64 [N]: alive points, 2 or more.
        coords: bool [N, D]: the host's sets; [N, 0] if the host is to move.
        held_out: bool [N]: the position serves to measure, not to learn.
        optimal: bool [N, A]: all best moves, sets in the order of the environments, or axes;
            [N, 0] before `solve`.
        value: int64 [N]: least depth (nodes, leaves); for an agent with this move counted.
    """

    points: Tensor
    count: Tensor
    coords: Tensor
    held_out: Tensor
    optimal: Tensor
    value: Tensor

    def __len__(self) -> int:
        return len(self.count)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(vars(self).values())

    @property
    def seat(self) -> str:
        """Who is to move."""
        return "agent" if self.coords.shape[1] else "host"

    def select(self, index: Tensor) -> Solved:
        """The rows of an index, int64 [B] or bool [N]; the points cut to the rows in use."""
        width = max(self.count[index].tolist(), default=1)
        points, *others = self
        return Solved(points[:, :width][index], *(each[index] for each in others))

    def renamed(self, order: Tensor) -> Solved:
        """The same positions under other names of the axes: `order` numbers `axis_orders`."""
        orders, actions = axis_orders(self.points.shape[2])
        axes = orders[order]
        host = self.seat == "host"
        return replace(
            self,
            points=rows_in_order(self.points.gather(2, axes[:, None].expand_as(self.points))),
            coords=self.coords if host else self.coords.gather(1, axes),
            optimal=self.optimal.gather(1, actions[order] if host else axes),
        )

    def drawn(self, rows: int, seed: Sequence[int]) -> Solved:
        """This many rows with replacement, the axes of each in an order that is drawn too."""
        if not len(self):
            raise ValueError("data: got no position; expected some to learn from")
        word = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        source = torch.Generator().manual_seed(int(word >> np.uint64(1)))
        batch = self.select(torch.randint(len(self), (rows,), generator=source))
        orders = len(axis_orders(self.points.shape[2])[0])
        return batch.renamed(torch.randint(orders, (rows,), generator=source))

    def observed(self, rows: int, scale: bool = True) -> Any:
        """What an environment with this many rows and ``scale_observation=scale`` shows of them."""
        points = pad(self.points, (0, 0, 0, rows - self.points.shape[1]), value=-1)
        shown = observe_points(GameState(points, self.count), scale)
        if self.seat == "host":
            return shown
        return {"coords": self.coords.to(torch.int8), "points": shown}

    def right(self, player: Player) -> Tensor:
        """Bool [N]: whether the move that a player of this seat chooses is a best one."""
        chosen = []
        for rows in torch.arange(len(self)).split(_ROWS_AT_ONCE):
            part, rng = self.select(rows), RowRandom.for_episode(torch.zeros_like(rows), rows)
            coords = part.coords if self.seat == "agent" else None
            chosen.append(ask_player(player, GameState(part.points, part.count), coords, rng))
        return self.optimal.gather(1, torch.cat(chosen)[:, None])[:, 0]

    def digest(self) -> str:
        """SHA-256, equal for equal positions whatever file they came from."""
        return digest_of(*(each.numpy() for each in self))

    def save(self, file: Path) -> None:
        """Writes one file ``.safetensors``; the same positions give the same bytes."""
        arrays = {name: _narrow(each) for name, each in vars(self).items()}
        about = {"digest": self.digest(), "solver": SOLVER_VERSION}
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, save(arrays, {"solved": json.dumps(about)}))

    @classmethod
    def load(cls, file: Path) -> Solved:
        """Reads what `save` wrote; nothing in it is executed.

        Raises:
            ValueError: there is no such file, it is damaged, of another kind or of another version
                of the solver; one line.
        """
        with errors_named(f"data: {file}", ValueError):
            with safe_open(regular_file(file, "data"), "pt") as opened:
                about = json.loads(opened.metadata()["solved"])
                found = [opened.get_tensor(name) for name in cls.__dataclass_fields__]
            solved = cls(*(x if x.dtype == torch.bool else x.long() for x in found))
            for name, own in (("solver", SOLVER_VERSION), ("digest", solved.digest())):
                if about[name] != own:
                    raise ValueError(f"{name}: got {about[name]!r}; expected {own!r}")
        return solved


def _narrow(values: Tensor) -> Tensor:
    """The same in the smallest signed type that holds all."""
    for kind in (torch.int8, torch.int16, torch.int32):
        if values.dtype == torch.int64 and torch.equal(values.to(kind).long(), values):
            return values.to(kind)
    return values.contiguous()


def joined(several: Sequence[Solved]) -> Solved:
    """Several sets of positions of one seat as one."""
    size = max(each.points.shape[1] for each in several)
    padded = [
        replace(each, points=pad(each.points, (0, 0, 0, size - each.points.shape[1]), value=-1))
        for each in several
    ]
    return Solved(*map(torch.cat, zip(*padded, strict=True)))


def solve(objective: Objective, budget: int, drawn: Solved) -> Solved:
    """Solve the positions, as far as the budget of expanded positions per position allows.

    Which ones that are depends on all positions, because they share a table.
    """
    points, count, coords = (each.numpy() for each in (drawn.points, drawn.count, drawn.coords))
    labeller = Labeller(points.shape[2], points.shape[1], objective, budget=budget)
    host = drawn.seat == "host"
    labels = labeller.host(points, count) if host else labeller.agent(points, count, coords)
    optimal, value, good = map(torch.from_numpy, labels)
    return Solved(*(x[good] for x in replace(drawn, optimal=optimal, value=value)))


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
