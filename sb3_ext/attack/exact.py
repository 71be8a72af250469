"""The exact worst case of a player from many starts, in parts that processes may share."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch

from resgym import GameSpec, Player, exploitability
from resgym.game.state import GameState
from resgym.measure.rho import rho_of_games
from sb3_ext.cluster.connection import Spread
from sb3_ext.types import Data

TOGETHER = 100
"""Starts of a part, which share what is found."""


def exact(
    player: Player, starts: GameState, spec: GameSpec, cut: int, positions: int, spread: Spread
) -> Data:
    """Measure a player against a perfect opponent, beside best play of both.

    Args:
        player: the player, deterministic and without memory.
        starts: N positions of ``spec``.
        spec: the game.
        cut: moves after which games are cut.
        positions: most positions in memory for each start, on average.
        spread: maps a function to parts of the starts.

    Returns:
        Plain data. ``starts``: N. ``lowest``, ``highest``: rho if open games are as long or as
        short as their bounds allow. ``optimum``: rho of best play; the ``unproved`` optima count
        with their lower bounds. ``cut``: games longer than the cut; of these ``endless`` ones never
        end, as a cycle proves. ``given_up``: open games. ``optimal``: games proved to be as long as
        the optimum, both cut. ``largest_gap``: most moves that another game is longer or shorter.
    """
    parts = map(starts.select, torch.arange(starts.num_games).split(TOGETHER))
    found = zip(*spread(partial(_bounds, player, spec, cut, positions), parts), strict=True)
    (least, most), (low, high) = (np.concatenate(each).T for each in found)

    def rho(moves: np.ndarray) -> Data:
        length = torch.from_numpy(moves.clip(max=cut)).long()
        finished = torch.from_numpy(moves <= cut)
        return rho_of_games(length, finished, torch.zeros_like(finished)).to_dict()

    is_open = (low < high) & (low <= cut)
    gaps = abs(low.clip(max=cut) - least.clip(max=cut))[(least == most) & ~is_open]
    return {
        "starts": len(low),
        "lowest": rho(high),
        "highest": rho(low),
        "optimum": rho(least),
        "optimal": int((gaps == 0).sum()),
        "largest_gap": int(gaps.max(initial=0)),
        "cut": int((low > cut).sum()),
        "endless": int((low == math.inf).sum()),
        "given_up": int(is_open.sum()),
        "unproved": int((least < most).sum()),
    }


def _bounds(
    player: Player, spec: GameSpec, cut: int, positions: int, starts: GameState
) -> tuple[np.ndarray, np.ndarray]:
    """The moves of best play and of the worst case, float [N, 2] each."""
    positions *= starts.num_games
    found = exploitability(player, starts, cut=cut, spec=spec, positions=positions)
    if found.stopped == "interrupt":
        raise KeyboardInterrupt
    return found.optimal, found.worst


def exact_line(found: Data) -> str:
    """The exact figures as a line of text; a range where searches were given up."""
    ends = [found["lowest"], found["highest"]]
    rhos = " to ".join(dict.fromkeys(f"{each['rho']:.4f}" for each in ends))
    moves = " to ".join(dict.fromkeys(f"{each['mean_length']:.2f}" for each in ends[::-1]))
    least = "at least " if found["unproved"] else ""
    return (
        f"exact {rhos} on {found['starts']} starts, {moves} moves each, {found['cut']} cut, "
        f"{found['given_up']} searches given up; optimum {least}"
        f"{found['optimum']['mean_length']:.2f} moves, reached on {found['optimal']}, missed by at "
        f"most {found['largest_gap']}"
    )
