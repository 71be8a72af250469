"""Distinct positions of a dataset, drawn from its families and split by their canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom, derive_seed
from resgym.solver.labels import SOLVER_VERSION, Labeller
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.teach.dataset import SCHEMA
from sb3_ext.studies.teach.families import BATCH_ROWS, TeachConfig, draw_batch, excluded_forms

__all__ = ["Plan", "Positions", "draw_positions", "held_out_shares", "labeller_of"]

SHARD_ROWS = 4096
"""Positions labelled with one table, and lost at most when the command is killed."""

IDLE_BATCHES = 20
"""A family has no more to give once so many draws in a row brought nothing new."""

_SET_WORD, _ORDER_WORD = 0x73657473, 0x6F72646572


class Plan(NamedTuple):
    """What determines a dataset.

    Attributes:
        config: families, exclusions, budget.
        positions: how many to draw.
        seat: ``host`` or ``agent``.
        objective: ``depth`` or ``nodes``.
        seed: 0 or more.
        held_out: share of the canonical forms that are held out, 0 to 1 (exclusive).
    """

    config: TeachConfig
    positions: int
    seat: str = "host"
    objective: str = "depth"
    seed: int = 0
    held_out: float = 0.05

    def to_dict(self) -> dict[str, Any]:
        """Plain data that names everything the content depends on."""
        return {
            **self._asdict(),
            "config": self.config.to_dict(),
            "dimension": self.config.dimension,
            "max_num_points": self.config.max_num_points,
            "schema": SCHEMA,
            "shard_rows": SHARD_ROWS,
            "solver": SOLVER_VERSION,
        }


@dataclass(frozen=True)
class Positions:
    """Distinct positions, N rows of numpy arrays; see `Examples`."""

    points: np.ndarray
    count: np.ndarray
    family: np.ndarray
    held_out: np.ndarray
    coords: np.ndarray

    def rows(self, rows: slice) -> Positions:
        """Some of them."""
        return Positions(**{name: array[rows] for name, array in vars(self).items()})


def draw_positions(plan: Plan) -> tuple[Positions, list[dict[str, Any]]]:
    """The positions, without doubles, and what became of the families."""
    from resgym.solver.kernels import new_members  # needs numba

    config = plan.config
    labeller = labeller_of(config.dimension, config.max_num_points, "depth", 1)
    barred = _barred_digests(config)
    slots = _with_room(np.zeros((1024, 2), np.int64), len(barred))
    new_members(slots, barred, np.empty(len(barred), np.bool_))
    kept: list[tuple[np.ndarray, ...]] = []
    families = []
    for place, target in enumerate(_shares(plan)):
        family = config.families[place]
        found = drawn = idle = batch = 0
        while found < target and idle < IDLE_BATCHES:
            draws = draw_batch(config, place, batch, plan.seed)
            batch += 1
            rows = np.asarray(draws.count)
            # In any order: the positions of a game must not come before those of later moves.
            words = _random_rows(len(rows), plan.seed, _ORDER_WORD, place, batch).words()
            order = np.argsort(words.numpy(), kind="stable")
            some, rows = np.asarray(draws.points)[order], rows[order]
            codes = labeller.canonical(some, rows).digests
            new = np.empty(len(rows), np.bool_)
            # A whole batch is put in, however few of it are wanted.
            slots = _with_room(slots, len(codes))
            new_members(slots, codes, new)
            index = np.flatnonzero(new)
            drawn += len(rows)
            # The rest of the last batch stays marked as met: the next families draw others.
            index = index[: target - found]
            idle = 0 if len(index) else idle + 1
            found += len(index)
            kept.append((some[index], rows[index], np.full(len(index), place), codes[index]))
        if found == 0 and target > 0:
            raise ConfigError(
                f"families[{family.name}]: no position that fits and is new in {batch} times "
                f"{BATCH_ROWS} draws; take other points, values, alive or exclude"
            )
        families.append(
            {"name": family.name, "wanted": target, "positions": found, "looked_at": drawn}
        )
    points, count, family_of, codes = map(np.concatenate, zip(*kept, strict=True))
    held_out = held_out_shares(codes) < plan.held_out
    return Positions(points, count, family_of, held_out, _sets(plan, len(codes))), families


def held_out_shares(digests: np.ndarray) -> np.ndarray:
    """A number from 0 to 1 for each digest [N, 2]; with less than ``held_out`` it is held out."""
    # Of the second half, so that the order in the hash table plays no part.
    return np.asarray((digests[:, 1].copy().view(np.uint64) >> np.uint64(11)) * 2.0**-53)


def _with_room(slots: np.ndarray, more: int) -> np.ndarray:
    """The set of `new_members`, or a larger copy if it would be more than half full."""
    from resgym.solver.kernels import new_members

    held = slots[slots.any(1)]
    size = 1 << (2 * (len(held) + more)).bit_length()
    if size <= len(slots):
        return slots
    larger = np.zeros((2 * size, 2), np.int64)
    new_members(larger, held, np.empty(len(held), np.bool_))
    return larger


def _shares(plan: Plan) -> list[int]:
    """Positions of each family: proportional to the weights, the largest remainders rounded up."""
    weights = [family.weight for family in plan.config.families]
    exact = [plan.positions * weight / sum(weights) for weight in weights]
    shares = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda k: (shares[k] - exact[k], k))
    for k in by_remainder[: plan.positions - sum(shares)]:
        shares[k] += 1
    return shares


def _barred_digests(config: TeachConfig) -> np.ndarray:
    forms = sorted(excluded_forms(config.exclude, config.dimension))
    size = max([2, *map(len, forms)])
    labeller = labeller_of(config.dimension, size, "depth", 1)
    points = np.full((len(forms), size, config.dimension), -1)
    for row, form in zip(points, forms, strict=True):
        row[: len(form)] = form
    return labeller.canonical(points, np.array([len(form) for form in forms], np.int64)).digests


def _sets(plan: Plan, rows: int) -> np.ndarray:
    """Bool [N, D]: the set that the agent is asked about, uniform; none for the host."""
    if plan.seat == "host":
        return np.zeros((rows, 0), np.bool_)
    table = host_action_table(plan.config.dimension)
    return table[_random_rows(rows, plan.seed, _SET_WORD).integers(len(table))].numpy()


def _random_rows(rows: int, *words: int) -> RowRandom:
    return RowRandom.for_episode(torch.full((rows,), derive_seed(*words)), torch.arange(rows))


@lru_cache(maxsize=4)
def labeller_of(dimension: int, max_num_points: int, objective: Any, budget: int) -> Labeller:
    """A labeller, shared between calls; one with budget 1 serves for canonical forms."""
    room = 2**20 if budget > 1 else 2**10
    return Labeller(dimension, max_num_points, objective, budget=budget, room=room)
