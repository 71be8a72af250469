"""N games in play: positions, sets named, clocks and seeds. No spaces, rewards or resets here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from resgym.envs.held import HeldField, Holder, as_tensor
from resgym.game import devices
from resgym.game.rng import RowRandom, Stream
from resgym.game.spec import GameSpec, check_integer
from resgym.game.state import GameState, state_from_points, where_state
from resgym.kernels import resolve_backend

__all__ = ["Table", "resolve_device"]


def resolve_device(device: torch.device | str) -> torch.device:
    """The torch device of a name.

    Raises:
        ValueError: no such device here.
    """
    try:
        resolved = torch.device(device)
        if resolved.type == "meta":
            raise RuntimeError("tensors without data cannot hold a game")
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError, TypeError) as error:
        available = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise ValueError(f"device must be one of {available}, got {str(device)!r}") from error
    return resolved


class Table(Holder):
    """The mutable fields of N games. Tensors are replaced, never written to in place.

    Attributes:
        state: positions.
        coords: bool [N, D], the set that the host named and the agent has not answered yet;
            all False when it is the host's turn.
        half_moves: int64 [N], half-moves played in the episode.
        seed: int64 [N], row seeds.
        episode: int64 [N], episodes started since the row was seeded, from 0.
        start_spec: sizes of random starts; those of ``spec`` unless `set_starts` made them smaller.
    """

    state = HeldField(lambda held: GameState(as_tensor(held.points), as_tensor(held.counts)))
    coords = HeldField(lambda held: as_tensor(held.coords))
    half_moves = HeldField(lambda held: as_tensor(held.half_moves))
    episode = HeldField(lambda held: as_tensor(held.episode))
    _episode_rng = HeldField(lambda held: RowRandom(as_tensor(held.key)))

    def __init__(
        self, num_games: int, spec: GameSpec, device: torch.device, backend: str = "auto"
    ) -> None:
        self.num_games = num_games
        self.spec = spec
        self.start_spec = spec
        self.device = device
        self.backend = resolve_backend(backend, device, spec)
        zeros = torch.zeros(num_games, dtype=torch.int64, device=device)
        self.seed = zeros
        self.episode = zeros - 1
        self.half_moves = zeros
        self.coords = torch.zeros(num_games, spec.dimension, dtype=torch.bool, device=device)
        self.state = GameState(
            torch.full(
                (num_games, spec.max_num_points, spec.dimension),
                -1,
                dtype=torch.int64,
                device=device,
            ),
            zeros + 1,
        )
        self._episode_rng = RowRandom.for_episode(self.seed, self.episode)

    def reseed(self, seeds: Sequence[int | None], mask: Tensor) -> None:
        """Gives the rows of ``mask`` new seeds and starts their episode count afresh.

        Args:
            seeds: one per row, 0..2^63-1, where None keeps a row as it is.
            mask: bool [N].
        """
        if all(seed is None for seed in seeds):
            return
        given = torch.tensor([seed is not None for seed in seeds], device=self.device) & mask
        fresh = torch.tensor([seed or 0 for seed in seeds], device=self.device)
        self.seed = torch.where(given, fresh, self.seed)
        self.episode = torch.where(given, -1, self.episode)

    def start(self, mask: Tensor, points: Any = None) -> None:
        """Starts new episodes in the rows of ``mask``: one masked select over every field.

        Args:
            mask: bool [N].
            points: given positions (one game for all rows, or N), else random ones.

        Raises:
            ValueError, TypeError: the points make no unfinished position of this game.
        """
        given = None if points is None else self._given_starts(points)
        self.episode = self.episode + mask
        self._episode_rng = RowRandom.for_episode(self.seed, self.episode)
        self.half_moves = torch.where(mask, 0, self.half_moves)
        self.coords = self.coords & ~mask[:, None]
        if given is not None:
            self.state = where_state(mask, given, self.state)
            return
        rng = self._episode_rng.at(0, Stream.START)
        if not devices.can_look(self.device):
            self.state = where_state(mask, self._random_starts(rng), self.state)
            return
        # On the CPU the started rows can be counted for free, and only they are drawn.
        rows = mask.nonzero()[:, 0]
        if len(rows) == self.num_games:
            self.state = self._random_starts(rng)
        elif len(rows):
            fresh = self._random_starts(rng.select(rows))
            self.state = GameState(
                self.state.points.index_copy(0, rows, fresh.points),
                self.state.count.index_copy(0, rows, fresh.count),
            )

    def set_starts(self, num_points: int | None = None, max_value: int | None = None) -> None:
        """Sizes of the random starts from the next episodes on; shapes stay as they are.

        Args:
            num_points: points drawn, 2 to the game's ``max_num_points``; None for all.
            max_value: they are uniform on 0..max_value, 1 to the game's own; None for that.

        Raises:
            ValueError, TypeError: a size is out of its range; nothing has changed then.
        """
        points, value = self.spec.max_num_points, self.spec.max_value
        if num_points is not None:
            points = check_integer("num_points", num_points, 2, points)
        if max_value is not None:
            value = check_integer("max_value", max_value, 1, value)
        self.start_spec = replace(self.spec, max_num_points=points, max_value=value)

    def _random_starts(self, rng: RowRandom) -> GameState:
        fresh = self.backend.random_starts(self.start_spec, rng)
        missing = self.spec.max_num_points - self.start_spec.max_num_points
        if missing == 0:
            return fresh
        return GameState(pad(fresh.points, (0, 0, 0, missing), value=-1), fresh.count)

    def _given_starts(self, points: Any) -> GameState:
        given = state_from_points(points, self.spec, self.device)
        if given.num_games not in (1, self.num_games):
            raise ValueError(
                f"points must hold one game or {self.num_games} (num_envs), got {given.num_games}"
            )
        finished = given.finished()
        if bool(finished.any()):
            row = int(finished.nonzero()[0, 0])
            raise ValueError(
                f"points must be unfinished positions, but game {row} is down to the one point "
                f"{given.point_lists()[row][0]}"
            )
        return GameState(
            given.points.expand_as(self.state.points), given.count.expand_as(self.state.count)
        )

    def rng(self, stream: int) -> RowRandom:
        """The rows' random numbers at their half-move, for one `Stream`."""
        return self._episode_rng.at_later(self.half_moves, stream)

    def name_set(self, coords: Tensor, mask: Tensor) -> None:
        """The host's half-move in the rows of ``mask``: ``coords`` bool [N, D] await an answer."""
        self.coords = torch.where(mask[:, None], coords, self.coords)
        self.half_moves = self.half_moves + mask

    def answer(self, axis: Tensor, mask: Tensor) -> Tensor:
        """The agent's half-move in the rows of ``mask``, which completes a move.

        Args:
            axis: int64 [N], legal where ``mask`` holds.
            mask: bool [N], rows whose host has named a set.

        Returns:
            bool [N]: the move would have overflowed; the position stays.
        """
        self.state, overflow = self.backend.move(
            self.state, self.coords & mask[:, None], axis, self.spec
        )
        self.coords = self.coords & ~mask[:, None]
        self.half_moves = self.half_moves + mask
        return overflow
