"""The vertices of a Newton polyhedron, exactly."""

from fractions import Fraction


def newton_vertices(points):
    """The vertices of conv(points) + orthant, among distinct points, in their order.

    A point is no vertex exactly when a mean of the others, with some weights, is <= it on every
    axis. Dropping one such point leaves the polyhedron as it is, so they are dropped in turn.
    """
    kept = list(points)
    for point in points:
        others = [other for other in kept if other != point]
        if others and mean_can_be_below(others, point):
            kept = others
    return kept


def mean_can_be_below(points, bound):
    """Whether weights >= 0 with sum 1 give sum(weight * point) <= bound on every axis.

    With g_kj = point_kj - bound_j that asks whether V <= 0 for V, the least possible
    max_j sum_k weight_k g_kj: the value of a game with the matrix g. A constant added to every g
    makes them positive and V larger by as much; then y = weight / V solves the linear programme
    "maximise sum(y) with sum_k y_k g_kj <= 1 for every j", and its optimum is 1 / V.
    """
    gaps = [[x - b for x, b in zip(point, bound, strict=True)] for point in points]
    constant = 1 - min(min(row) for row in gaps)
    matrix = [[Fraction(row[j] + constant) for row in gaps] for j in range(len(bound))]
    return 1 / maximal_sum(matrix) <= constant


def maximal_sum(matrix):
    """The maximum of sum(y) under matrix @ y <= 1 and y >= 0, all entries positive (simplex)."""
    num_rows, num_columns = len(matrix), len(matrix[0])
    one, zero = Fraction(1), Fraction(0)
    # Columns of the tableau: the variables, one slack a row, the right-hand side.
    table = [
        [*row, *(one if i == k else zero for k in range(num_rows)), one]
        for i, row in enumerate(matrix)
    ]
    objective = [-one] * num_columns + [zero] * (num_rows + 1)
    basis = list(range(num_columns, num_columns + num_rows))
    while True:
        # Bland's rule: the first column that improves, and of equal ratios the row whose variable
        # comes first. It cannot go round in circles.
        entering = next((j for j, cost in enumerate(objective[:-1]) if cost < 0), None)
        if entering is None:
            return objective[-1]
        _, _, pivot = min(
            (row[-1] / row[entering], basis[i], i)
            for i, row in enumerate(table)
            if row[entering] > 0
        )
        scale = table[pivot][entering]
        table[pivot] = [x / scale for x in table[pivot]]
        for row in [*(row for i, row in enumerate(table) if i != pivot), objective]:
            factor = row[entering]
            row[:] = [x - factor * p for x, p in zip(row, table[pivot], strict=True)]
        basis[pivot] = entering
