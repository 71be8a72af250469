"""An agent of one's own: it takes the axis whose largest coordinate is largest."""

from typing import Literal

import torch
from torch import Tensor

import resgym


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
        ["random", "zeillinger"], ["random", "choose_first", "tallest_axis"], games=games
    )
    print(table)
    return {host: table.results[host]["tallest_axis"].rho for host in table.hosts}


if __name__ == "__main__":
    main()
