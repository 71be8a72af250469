"""Vertices of Newton polyhedra by floating point, with proofs: many points at once.

Let g_k be the gaps q_k - p from a point p to the other points. Exactly one of these exists (a
theorem of the alternative of Ville, 1938):

    a direction w >= 0 with w . g_k > 0 for every k:     p is a vertex;
    weights y >= 0, not all 0, with sum_k y_k g_k <= 0:  p is none.

The simplex method in float64 proposes a w or a y, and only the proposal's own inequality is
checked, with a bound on its rounding errors or in integers below 2^53. Whatever the method does, a
verdict is therefore right; without a proof there is none, and the caller decides in integers.

Problems are innermost in every tensor: letters D axes, P points, M problems.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

UNDECIDED, NO_VERTEX, VERTEX = -1, 0, 1

# Gaps are scaled so that none is below -1. A sum of D <= 10 products of a rounded gap and a weight
# u_i, with a positive true value s, is off by at most (D + 8) 2^-53 times the sum of the absolute
# products, and that sum is at most s + 2 sum(u). So a computed sum beyond this bound times sum(u)
# has the right sign. Sums of weights count as no less than `_TINY`, far above what underflow loses.
_ERROR = 2.0**-46
_TINY = 1e-200

# When the simplex method counts a number as zero. Proofs do not depend on them.
_OPTIMAL = 1e-10
_INTERIOR = 0.5 + 1e-9
_PIVOT = 1e-11

_FAR = 1e300  # score of points that take no part
_EXACT = 2.0**50  # integers up to here survive scaling there and back
_COMMON = 232_792_560  # least common multiple of 1..22


class _Problems(NamedTuple):
    """Linear programmes "maximise sum(y), sum_k y_k (gap_kj + 2) <= 1 for every axis j, y >= 0".

    Their optimum is above 1/2 exactly when some weights make all sums negative.

    Attributes:
        number: int64 [M], which problem of the caller it is.
        gaps: [D, P, M], scaled gaps, at least -1; -1 on axes that no longer matter.
        penalty: [P, M], 0 for points that take part.
        scale: [D, M], unit of the gaps of every axis; 0 on axes that no longer matter.
        table: [D, D + 1, M], inverse basis and right-hand side.
        basis: int64 [D, M], the point of every row, or 0 where it is a slack.
        cost: [D, M], 1 for rows of points, 0 for rows of slacks.
        determinant: [M], of the basis in unscaled units.
    """

    number: Tensor
    gaps: Tensor
    penalty: Tensor
    scale: Tensor
    table: Tensor
    basis: Tensor
    cost: Tensor
    determinant: Tensor


def _select(problems: _Problems, index: Tensor) -> _Problems:
    return _Problems(*(tensor.index_select(-1, index) for tensor in problems))


def prove(gaps: Tensor, present: Tensor, max_pivots: int | None = None) -> Tensor:
    """Verdicts with a proof.

    Args:
        gaps: int64 [D, P, M], other points minus the point of the problem, below 2^62.
        present: bool [P, M], which rows hold another point.
        max_pivots: steps of the simplex method before it gives up.

    Returns:
        int8 [M]: `VERTEX`, `NO_VERTEX`, or `UNDECIDED` where rounding errors hide the answer.
    """
    verdict = torch.full_like(gaps[0, 0], VERTEX, dtype=torch.int8)
    problems = _open_problems(gaps.to(torch.float64), present)
    dimension = gaps.shape[0]
    verdict[problems.number] = UNDECIDED
    # At first the direction in which the point's own distances to the least coordinates weigh
    # the same: the tangent of a surface of constant product, which decides most vertices.
    prices = (problems.scale > 0).to(torch.float64)
    objective = torch.full_like(problems.determinant, -1.0)
    for _ in range(max_pivots or 10 + 6 * dimension):
        if not len(problems.number):
            break
        least, point = _least_score(problems, prices)
        total = prices.clamp(min=0).sum(0)
        proved = least > _ERROR * total.clamp(min=_TINY)
        verdict[problems.number] = torch.where(proved, VERTEX, UNDECIDED).to(torch.int8)
        slack, axis = prices.min(0)
        reduced = least + 2 * total - 1
        optimal = (objective >= 0) & (torch.minimum(reduced, slack) >= -_OPTIMAL)
        ended = (optimal | (objective > _INTERIOR)) & ~proved
        ends = ended.nonzero()[:, 0]
        if len(ends):
            last = _select(problems, ends)
            verdict[last.number] = torch.where(_proves_mean(last), NO_VERTEX, UNDECIDED).to(
                torch.int8
            )
        keep = (~(ended | proved)).nonzero()[:, 0]
        problems = _select(problems, keep)
        # In the first round no price is final: a point enters.
        enters = (slack >= reduced) | (objective < 0)
        problems = _pivot(problems, point[keep], axis[keep], enters[keep])
        prices = (problems.cost[:, None] * problems.table[:, :dimension]).sum(0)
        objective = (problems.cost * problems.table[:, dimension]).sum(0)
    return verdict


def _open_problems(gaps: Tensor, present: Tensor) -> _Problems:
    """The problems that no axis alone decides.

    If p has the least coordinate of an axis, weights can only be on points that share it, and
    among these the axis no longer matters. Repeated, this leaves no point for any p that is first
    in a lexicographic order. Signs of gaps are exact in floating point.
    """
    dimension = len(gaps)
    while True:
        lowest = torch.where(present, gaps, torch.inf).amin(1)
        least = lowest >= 0
        # Where p is not least, the limit is beyond every gap.
        limit = torch.where(least, 0.0, torch.inf)
        narrowed = present
        for axis in range(dimension):
            narrowed = narrowed & (gaps[axis] <= limit[axis])
        if torch.equal(narrowed, present):
            break
        present = narrowed
    index = present.view(torch.uint8).amax(0).nonzero()[:, 0]
    matters = ~least.index_select(1, index)
    scale = torch.where(matters, -lowest.index_select(1, index), 0.0)
    scaled = gaps.index_select(2, index)
    scaled = torch.where(matters[:, None], scaled / scale[:, None], -1.0)
    table = scaled.new_zeros(dimension, dimension + 1, len(index))
    table.diagonal().fill_(1)
    table[:, dimension] = 1
    return _Problems(
        index,
        scaled,
        (~present.index_select(1, index)).to(torch.float64) * _FAR,
        scale,
        table,
        torch.zeros_like(matters, dtype=torch.int64),
        torch.zeros_like(scale),
        torch.where(matters, scale, 1.0).prod(0),
    )


def _least_score(problems: _Problems, prices: Tensor) -> tuple[Tensor, Tensor]:
    """The least value [M] of direction . gap over the points, and the point int64 [M]."""
    direction = prices.clamp(min=0)
    score = torch.addcmul(problems.penalty, direction[0], problems.gaps[0])
    for axis in range(1, len(direction)):
        score.addcmul_(direction[axis], problems.gaps[axis])
    return score.min(0)


def _pivot(problems: _Problems, point: Tensor, axis: Tensor, enters: Tensor) -> _Problems:
    """One step of the simplex method: a point enters the basis, or else the slack of an axis."""
    table, basis, cost = problems.table, problems.basis, problems.cost
    dimension = len(table)
    column = problems.gaps.gather(1, point.expand(dimension, 1, len(point)))[:, 0] + 2
    axes = torch.arange(dimension, device=axis.device)
    column = torch.where(enters, column, (axes[:, None] == axis).to(torch.float64))
    change = (table[:, :dimension] * column).sum(1)
    ratio = torch.where(change > _PIVOT, table[:, dimension] / change, torch.inf)
    row = ratio.argmin(0, keepdim=True)
    pivot = change.gather(0, row)
    pivot_row = table.gather(0, row[:, None].expand(1, dimension + 1, len(point)))
    # The pivot row r itself becomes r / pivot = r - (pivot - 1) / pivot * r.
    factor = change.scatter(0, row, pivot - 1) / pivot
    return problems._replace(
        table=table - factor[:, None] * pivot_row,
        basis=basis.scatter(0, row, torch.where(enters, point, 0)[None]),
        cost=cost.scatter(0, row, enters.to(torch.float64)[None]),
        determinant=problems.determinant * pivot[0],
    )


def _proves_mean(problems: _Problems) -> Tensor:
    """Bool [M]: the basis has weights that prove the point to be no vertex."""
    dimension = len(problems.table)
    # A point that takes no part must have no weight, whatever happened on the way.
    takes_part = problems.penalty.gather(0, problems.basis) == 0
    weights = (problems.cost * problems.table[:, dimension]).clamp(min=0) * takes_part
    at = problems.basis.expand(dimension, -1, -1)
    gaps = problems.gaps.gather(1, at)
    total = weights.sum(0)
    sums = (gaps * weights).sum(1)
    limit = -_ERROR * total.clamp(min=_TINY)
    proved = ((sums < limit) | (problems.scale == 0)).all(0)
    # On the boundary of the polyhedron some sums are 0, which only integers can show: by Cramer's
    # rule the determinant makes them of the weights, often a smaller number does. Sums of integers
    # below 2^53 are exact.
    gaps = (gaps * problems.scale[:, None]).round()
    for multiple in (problems.determinant, _COMMON / total):
        whole = (weights * multiple).round()
        size = (gaps.abs() * whole).sum(1).amax(0)
        below = ((gaps * whole).sum(1) <= 0).all(0)
        proved |= below & (size < _EXACT) & (whole.sum(0) >= 1)
    return proved
