"""Sets of starts: files with one position a line, or lists of points."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import torch

from resgym.game.rules import unfinished_positions
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import parse_lines

MAX_POSITIONS = 1_000_000
"""Largest number of positions of a file."""

_PAIRS = 2**24  # most pairs of points compared at once


def resolve_starts(
    starts: Any, spec: GameSpec, device: torch.device | str = "cpu"
) -> GameState | None:
    """Return the positions M that a caller gives as ``starts``; None for None.

    Args:
        starts: the path of a file, see `read_starts`; lists of points, as for `state_from_points`;
            or a result of this function.
        spec: the game.
        device: device of the positions.

    Raises:
        ValueError, TypeError: the positions are not unfinished positions of this game.
    """
    if starts is None:
        return None
    if isinstance(starts, (str, Path)):
        return read_starts(starts, spec, device)
    if isinstance(starts, GameState):
        return starts.to(device)
    try:
        return unfinished_positions(starts, spec, device)
    except (TypeError, ValueError) as error:
        raise type(error)(f"starts: {error}") from None


def read_starts(path: str | Path, spec: GameSpec, device: torch.device | str = "cpu") -> GameState:
    """Read the positions of a file, in order.

    Args:
        path: one position a line, in the forms of `resgym.parse`, with comments after ``#`` and
            ``//``; positions may repeat.
        spec: the game.
        device: device of the positions.

    Raises:
        ValueError: the file cannot be read or is empty, or a line is not a position, or has the
            wrong number of axes or too many points, or is finished already. One line names the
            file and the line.
    """
    lines = parse_lines(path)
    batch = min(4096, _PAIRS // spec.max_num_points**2)
    parts = list[GameState]()
    while some := list(islice(lines, batch)):
        if len(parts) * batch >= MAX_POSITIONS:
            raise ValueError(f"{path}: must contain at most {MAX_POSITIONS} positions, got more")
        parts.append(_positions(path, some, spec))
    if not parts:
        raise ValueError(f"{path}: must contain positions, one a line, got none")
    points = torch.cat([part.points for part in parts])
    count = torch.cat([part.count for part in parts])
    return GameState(points, count, parts[0].rule).to(device)


def _positions(path: str | Path, lines: list[tuple[int, Exponents]], spec: GameSpec) -> GameState:
    try:
        return unfinished_positions([points for _, points in lines], spec, "cpu")
    except (TypeError, ValueError) as error:
        if lines[1:]:
            for line in lines:
                _positions(path, [line], spec)
        raise ValueError(f"{path}, line {lines[0][0]}: {error}") from None
