"""A host and an agent of one's own.

The agent takes the axis whose largest coordinate is largest, the host the axes on which the first
two points differ most, up and down.
"""

from typing import Literal

import torch
from torch import Tensor

import resgym
from resgym.game.spec import coords_to_action


@resgym.register_host("first_pair")
class FirstPair:
    role: Literal["host"] = "host"

    def act(self, state: resgym.GameState, coords: Tensor | None, rng: resgym.RowRandom) -> Tensor:
        """Returns numbers of actions, int64 [N], 0..A-1: one for each set of axes."""
        v = state.points[:, 0] - state.points[:, 1]
        sets = (v == v.amax(dim=1, keepdim=True)) | (v == v.amin(dim=1, keepdim=True))
        return coords_to_action(sets)


@resgym.register_agent("tallest_axis")
class TallestAxis:
    role: Literal["agent"] = "agent"

    def act(self, state: resgym.GameState, coords: Tensor | None, rng: resgym.RowRandom) -> Tensor:
        """state.points is int64 [N, P, D] with -1 in absent rows; coords bool [N, D]."""
        assert coords is not None  # the host has named a set
        tallest = state.points.amax(dim=1)
        return torch.where(coords, tallest, -1).argmax(dim=1)


def main(games: int = 2_000) -> dict[str, float]:
    table = resgym.cross_play(
        ["random", "zeillinger", "first_pair"],
        ["random", "choose_first", "tallest_axis"],
        games=games,
    )
    print(table)
    return {host: table.results[host]["tallest_axis"].rho for host in table.hosts}


if __name__ == "__main__":
    main()
