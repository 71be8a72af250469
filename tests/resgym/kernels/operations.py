"""The single operations of a backend beside the reference, bit for bit, along random games."""

from __future__ import annotations

import torch

from resgym.game import GameSpec, GameState, RowRandom, Stream, move
from resgym.game.state import state_from_points
from resgym.kernels import resolve_backend


def rows(
    num_games: int, step: int, stream: int = Stream.USER, seed: int = 0, device: str = "cpu"
) -> RowRandom:
    """Keys as environments make them: raw ones that differ in low bits would share draws."""
    row = torch.arange(num_games, device=device)
    return RowRandom.for_episode(row + seed, row * 0).at(row * 0 + step, stream)


def same(a: GameState, b: GameState) -> bool:
    return torch.equal(a.points, b.points) and torch.equal(a.count, b.count)


def check_memory_and_no_games(name: str, device: str = "cpu") -> None:
    """Memory that is not contiguous, and none."""
    spec = GameSpec(3, 6)
    kernels = resolve_backend(name, torch.device(device), spec)
    points = rows(16, 7, device=device).integers(9, n=18).view(16, 6, 3)
    state = state_from_points(points, spec, device)
    expanded = GameState(state.points[:1].expand(16, -1, -1), state.count[:1].expand(16))
    strided = GameState(state.points.mT.contiguous().mT, state.count.repeat(2, 1).t()[:, 0])
    coords = torch.ones(3, 16, dtype=torch.bool, device=device).t()
    axis = torch.tensor([[0, 9], [1, 9]], device=device).repeat(8, 1)[:, 0]
    for each in (strided, expanded):
        expected, _ = move(each, coords, axis, spec)
        assert same(expected, kernels.move(each, coords, axis, spec)[0])
    after, overflow = kernels.move(state.select(slice(0, 0)), coords[:0], axis[:0], spec)
    assert (*after.points.shape, *overflow.shape) == (0, 6, 3, 0)
