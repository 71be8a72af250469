"""Held-out positions as often as they are drawn.

A dataset holds every position once, so that rare and difficult ones prevail. Of positions that are
drawn anew some come again and again; here they count as often as they come, and only those count
whose canonical form no dataset with the same share of held-out ones has taught.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from resgym.solver.labels import SOLVED, Labeller
from sb3_ext.studies.teach.examples import Examples
from sb3_ext.studies.teach.families import TeachConfig, draw_batch
from sb3_ext.studies.teach.generate import held_out_shares

__all__ = ["Draws", "held_out_draws"]

BATCHES = 40
"""Times that 8192 positions are drawn."""

BUDGET = 20_000
"""Positions expanded for a label."""


class Draws(NamedTuple):
    """Held-out positions as often as they came.

    Attributes:
        family: the family's name.
        examples: the positions, labelled for the host, by depth.
        left_out: how many were left out because the solver's budget was not enough.
    """

    family: str
    examples: Examples
    left_out: int


def held_out_draws(config: TeachConfig, seed: int, held_out: float) -> Draws:
    """Draws positions of the first family and labels those that are held out.

    Args:
        config: the families.
        seed: of the draws; another one than that of the dataset gives other positions.
        held_out: the dataset's share of held-out positions.
    """
    labeller = Labeller(config.dimension, config.max_num_points, budget=BUDGET)
    points, counts = [], []
    for batch in range(BATCHES):
        draws = draw_batch(config, 0, batch, seed)
        rows, count = np.asarray(draws.points), np.asarray(draws.count)
        chosen = held_out_shares(labeller.canonical(rows, count).digests) < held_out
        points.append(rows[chosen])
        counts.append(count[chosen])
    rows, count = np.concatenate(points), np.concatenate(counts)
    labels = labeller.host(rows, count)
    good = labels.status == SOLVED
    fields = (rows[good], count[good], labels.optimal[good], labels.value[good])
    found, count_of, optimal, value = map(torch.from_numpy, fields)
    examples = Examples(found, count_of, None, optimal, value)
    return Draws(config.families[0].name, examples, int((~good).sum()))
