"""Distinct positions of a dataset, drawn from its families and split by their canonical form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Le, Lt
from pydantic import BeforeValidator, model_validator

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom, derive_seed
from resgym.game.spec import GameSpec
from resgym.players import Player
from resgym.solver.labels import SOLVER_VERSION, Labeller
from resgym.solver.search import Objective
from sb3_ext.attack.responder import fingerprint, seated
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import ConfigError, Count, Number, PositiveCount
from sb3_ext.studies.teach.dataset import SCHEMA
from sb3_ext.studies.teach.families import TeachConfig, draw_batch, excluded_forms
from sb3_ext.training.loading import load_player

SHARD_ROWS = 4096
"""Positions labelled with one table, and lost at most when the command is killed."""

IDLE_BATCHES = 20
"""A family has no more to give once so many draws in a row brought nothing new."""

_SET_WORD, _ORDER_WORD = 0x73657473, 0x6F72646572


class Plan(ConfigFile):
    """What determines a dataset.

    Attributes:
        config: families, exclusions, budget; also a file of these, or the name of one.
        positions: how many to draw.
        seat: ``host`` or ``agent``.
        objective: ``depth``, ``nodes`` or ``leaves``.
        seed: 0 or more.
        held_out: share of the canonical forms that are held out, 0 to 1 (exclusive).
        student: the run of a player that families call ``student``; needed by these, and given to
            no others.
    """

    config: Annotated[TeachConfig, BeforeValidator(lambda given: TeachConfig.read(given))]
    positions: Annotated[PositiveCount, Le(10**8)] = 100_000
    seat: Literal["host", "agent"] = "host"
    objective: Objective = "depth"
    seed: Count = 0
    held_out: Annotated[float, Number, Ge(0), Lt(1)] = 0.05
    student: Path | None = None

    @model_validator(mode="after")
    def _student_fits(self) -> Plan:
        if self.config.student_seat and self.student is None:
            raise ValueError(".student: is missing; these families play with one (--student RUN)")
        if self.student is not None and not self.config.student_seat:
            raise ValueError(f".student: no family plays with one, got {self.student}")
        return self

    def student_player(self) -> Player | None:
        """The player that families call ``student``.

        Raises:
            ValueError: there is none in its place; one line.
        """
        seat = self.config.student_seat
        return load_player(self.student, seat) if self.student and seat else None

    def content(self) -> dict[str, Any]:
        """Plain data that names everything the content of the dataset depends on."""
        spec = GameSpec(self.config.dimension, self.config.max_num_points)
        seat = self.config.student_seat
        student = self.student and fingerprint(seated(self.student, spec, seat), spec)
        return {
            **self.to_dict(),
            "student": student,
            "config": self.config.to_dict(),
            "dimension": self.config.dimension,
            "max_num_points": self.config.max_num_points,
            "schema": SCHEMA,
            "shard_rows": SHARD_ROWS,
            "solver": SOLVER_VERSION,
        }


def draw_positions(plan: Plan) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """The positions, without doubles, and what became of the families.

    Returns:
        Rows of N positions by name, see `Examples`: ``points`` int64 [N, P, D], ``count`` and
        ``family`` int64 [N], ``held_out`` bool [N], ``coords`` bool [N, D], for the host [N, 0].
    """
    config = plan.config
    student = plan.student_player()
    labeller = Labeller(config.dimension, config.max_num_points)
    met = {bytes(16), *_words(_barred_digests(config))}  # 0 is the digest of what has none
    kept: list[tuple[np.ndarray, ...]] = []
    families = []
    for place, target in enumerate(_shares(plan)):
        family = config.families[place]
        found = drawn = idle = batch = 0
        while found < target and idle < IDLE_BATCHES:
            draws = draw_batch(config, place, batch, plan.seed, student)
            batch += 1
            # In any order: the positions of a game must not come before those of later moves.
            words = _random_rows(draws.num_games, plan.seed, _ORDER_WORD, place, batch).words()
            draws = draws.select(words.argsort(stable=True))
            points, count = np.asarray(draws.points), np.asarray(draws.count)
            digests = labeller.digests(points, count)
            new = []
            # A whole batch is put in, however few of it are wanted: the next families draw others.
            for row, digest in enumerate(_words(digests)):
                if digest not in met:
                    met.add(digest)
                    new.append(row)
            drawn += len(count)
            index = new[: target - found]
            idle = 0 if index else idle + 1
            found += len(index)
            kept.append((points[index], count[index], np.full(len(index), place), digests[index]))
        if found == 0 and target > 0:
            raise ConfigError(
                f"families[{family.name}]: no position that fits and is new in {batch} batches of "
                "draws; take other points, values, alive or exclude"
            )
        families.append(
            {"name": family.name, "wanted": target, "positions": found, "looked_at": drawn}
        )
    points, count, family_of, digests = map(np.concatenate, zip(*kept, strict=True))
    positions = {
        "points": points,
        "count": count,
        "family": family_of,
        "held_out": held_out_shares(digests) < plan.held_out,
        "coords": _sets(plan, len(count)),
    }
    return positions, families


def held_out_shares(digests: np.ndarray) -> np.ndarray:
    """A number from 0 to 1 for each digest [N, 2]; with less than ``held_out`` it is held out."""
    return np.asarray((digests[:, 1].copy().view(np.uint64) >> np.uint64(11)) * 2.0**-53)


def _words(digests: np.ndarray) -> list[bytes]:
    """The digests [N, 2] as what a set can hold."""
    words: list[bytes] = digests.view("V16")[:, 0].tolist()
    return words


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
    labeller = Labeller(config.dimension, size)
    points = np.full((len(forms), size, config.dimension), -1)
    for row, form in zip(points, forms, strict=True):
        row[: len(form)] = form
    return labeller.digests(points, np.array([len(form) for form in forms], np.int64))


def _sets(plan: Plan, rows: int) -> np.ndarray:
    """Bool [N, D]: the set that the agent is asked about, uniform; none for the host."""
    if plan.seat == "host":
        return np.zeros((rows, 0), np.bool_)
    table = host_action_table(plan.config.dimension)
    return table[_random_rows(rows, plan.seed, _SET_WORD).integers(len(table))].numpy()


def _random_rows(rows: int, *words: int) -> RowRandom:
    return RowRandom.for_episode(torch.full((rows,), derive_seed(*words)), torch.arange(rows))
