"""Spivakovsky's host and its weak form.

M. Spivakovsky, "A solution to Hironaka's polyhedra game", in Arithmetic and Geometry II,
Birkhauser 1983.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.spec import action_axes, axes_to_coords, coords_to_action
from resgym.game.state import GameState
from resgym.players.registry import ScriptedHost

_ABSENT = 2**62

# An operation in double precision is off by at most half of this, relative to its result.
_STEP = 2.0**-52


class WeakSpivakovskyHost(ScriptedHost):
    """The smallest set that meets the support of every point.

    The support of a point is the set of axes on which it exceeds the least value of all points. Of
    several smallest sets (with at least two axes) the host takes the lexicographically first.
    """

    invariant = "scale"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        dimension = state.dimension
        alive = state.alive()[..., None]
        lowest = torch.where(alive, state.points, _ABSENT).amin(1, keepdim=True)
        bit = 1 << torch.arange(dimension, device=state.device)
        # An absent point is met by every set.
        support = (((state.points > lowest) | ~alive) * bit).sum(2)
        sets = torch.zeros(
            state.num_games, 2**dimension, dtype=torch.bool, device=state.device
        ).scatter_(1, support, True)
        # A set misses a support exactly if its complement contains one.
        for axis in range(dimension):
            halves = sets.view(state.num_games, 1 << (dimension - 1 - axis), 2, 1 << axis)
            halves[:, :, 1] |= halves[:, :, 0]
        numbers, actions = _sets_by_size(dimension, state.device)
        meets = ~sets[:, 2**dimension - 1 - numbers]
        return actions[meets.to(torch.uint8).argmax(1)]


class SpivakovskyHost(ScriptedHost):
    """Spivakovsky's winning strategy.

    One level works on points v over the current axes (first the state's points over all axes):

    1. Let w be the least value per axis, and u = v - w.
    2. If some u is 0, the polyhedron is an orthant. Add the smallest set of axes on which the sum
       of w is at least 1 (of several the lexicographically first) to the answer, and stop.
    3. Otherwise let nu be the least |u|, the sum over the axes. Add the axes M on which some u
       with |u| = nu is positive to the answer.
    4. Points whose sum s of u over M is below nu continue to the next level as u / (nu - s) over
       the axes outside M. From the second level on so do those whose sum t of v over M is below 1,
       as v / (1 - t). If there are none, stop.

    The first level, on which all later ones depend, is exact. After it each number is a pair of
    doubles that encloses it, and numbers count as equal if their enclosures meet. So equal numbers
    always compare as equal; different ones do only if they agree to nearly all digits.
    """

    invariant = "shift"  # large quotients are rounded

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        dimension = state.dimension
        columns = state.columns()
        alive = state.alive()[:, : columns.shape[1]].t().contiguous()
        bounds, alive, chosen = _first_level(columns, alive & ~state.finished())
        for most_axes in range(dimension - 1, 0, -1):  # each level chooses an axis or more
            bounds, alive, joined = _level(bounds, alive, ~chosen, most_axes > 2)
            chosen = chosen | joined
        # -1 for finished games, whose set is empty.
        return coords_to_action(chosen.t()).clamp(min=0)


def _first_level(columns: Tensor, alive: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Do steps 1, 3 and 4 on integers [D, P, N] (an unfinished state is not a orthant).

    Returns the enclosures float64 [2, D, P, N] of the points of the next level, from below and from
    above, which points bool [P, N] go there, and the chosen axes bool [D, N].
    """
    above_corner = columns - torch.where(alive, columns, _ABSENT).amin(1, keepdim=True)
    above_corner = torch.where(alive, above_corner, 0)
    total = above_corner.sum(0)
    nearest = torch.where(alive, total, _ABSENT).amin(0)
    chosen = _any((above_corner > 0) & (alive & (total == nearest)), 1)
    gap = nearest - (above_corner * chosen[:, None]).sum(0)
    alive = alive & (gap > 0)
    quotient = above_corner.to(torch.float64) / gap.clamp(min=1)
    quotient = torch.where(alive & ~chosen[:, None], quotient, 0.0)
    # Both numbers are rounded when they become doubles; so is their quotient.
    return quotient * _outwards(2, quotient.device)[..., None], alive, chosen


def _level(
    bounds: Tensor, alive: Tensor, current: Tensor, both: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Do one level on enclosures; returns as `_first_level`, with no points in finished games.

    The bounds of the points are float64 [2, D, P, N], 0 outside the current axes, bool [D, N]. What
    is subtracted or divided by takes its other bound. With ``both`` the points v continue beside
    the u. On two axes they make no difference: the next level takes its axis in any case.
    """
    infinity = float("inf")
    step, slack = (_outwards(k, bounds.device) for k in (1, bounds.shape[1]))
    corner = torch.where(alive, bounds, infinity).amin(2)
    corner = torch.where(_any(alive, 0), corner, 0.0)

    points, bounds = bounds, bounds - corner.flip(0)[:, :, None]
    positive = (bounds[0] > 0) & alive
    bounds = torch.where(positive, bounds * step[..., None], 0.0)
    orthant = _any(alive & ~_any(positive, 0), 0)

    total = bounds.sum(1) * slack
    nearest = torch.where(alive, total, infinity).amin(1, keepdim=True)
    on_face = alive & (total[0] <= nearest[1]) & ~orthant
    joined = _any(positive & on_face, 1)

    if both:  # from here on the height from which a point is projected
        bounds, alive = torch.cat([bounds, points], 2), alive.repeat(2, 1)
        nearest = torch.cat([nearest.expand_as(total), torch.ones_like(total)], 1)
    inside = (bounds * joined[:, None]).sum(1) * slack
    gap = (nearest - inside.flip(0)) * step
    goes_on = alive & ~orthant & (gap[0] > 0)
    kept = goes_on & (current & ~joined)[:, None]
    bounds = torch.where(kept, bounds / gap.flip(0)[:, None] * step[..., None], 0.0)
    return bounds, goes_on, joined | (orthant & _reaching_one(corner[1]))


@cache
def _outwards(operations: int, device: torch.device) -> Tensor:
    """Float64 [2, 1, 1]: factors for bounds of a number that this many operations rounded."""
    most = operations * _STEP
    return torch.tensor([[[1 - most]], [[1 + most]]], dtype=torch.float64).to(device)


def _reaching_one(values: Tensor) -> Tensor:
    """Smallest sets of axes with a sum of at least 1, bool [D, N], for float64 [D, N] bounds."""
    table = _all_sets(values.shape[0], values.device)
    sums = (values.t() @ table.to(values.dtype).t()) * (1 + values.shape[0] * _STEP)
    return table[(sums >= 1).to(torch.uint8).argmax(1)].t()


def _any(mask: Tensor, axis: int) -> Tensor:
    """``mask.any(axis)``; torch reduces bytes much faster than booleans."""
    return mask.view(torch.uint8).amax(axis).view(torch.bool)


@cache
def _all_sets(dimension: int, device: torch.device) -> Tensor:
    """Bool [2^D - 1, D]: the nonempty sets of axes by size, then in lexicographic order."""
    sets = sorted(action_axes(dimension, 1), key=lambda axes: (len(axes), axes))
    return axes_to_coords(sets, dimension).to(device)


@cache
def _sets_by_size(dimension: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Bit numbers and actions, int64 [A], of the sets of two axes or more, as in `_all_sets`."""
    table = _all_sets(dimension, device)[dimension:]
    bits = 1 << torch.arange(dimension, device=device)
    return (table * bits).sum(1), coords_to_action(table)
