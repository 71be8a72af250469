"""Point sets that are hard for a test of vertices: flat, collinear, repeated, nearly flat, huge."""

from tests.reference.rule import MAX_COORDINATE

SIZES = (3, 20, 1000, 10**9, MAX_COORDINATE)


def uniform(source, dimension, size):
    high = source.choice(SIZES)
    return [tuple(source.randint(0, high) for _ in range(dimension)) for _ in range(size)]


def few_values(source, dimension, size):
    """Ties on most axes, and the same point again and again."""
    values = [0, *sorted(source.randint(0, source.choice(SIZES)) for _ in range(2))]
    return [tuple(source.choice(values) for _ in range(dimension)) for _ in range(size)]


def _composition(source, total, parts):
    """Numbers >= 0 with a given sum."""
    cuts = sorted(source.randint(0, total) for _ in range(parts - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))


def _off_by_one(source, point):
    axis = source.randrange(len(point))
    changed = min(max(point[axis] + source.choice((-1, 0, 0, 1)), 0), MAX_COORDINATE)
    return (*point[:axis], changed, *point[axis + 1 :])


def coplanar(source, dimension, size):
    """All in one hyperplane with equal slopes, or off it by one on an axis."""
    total = source.choice(SIZES)
    exact = source.random() < 0.5
    points = [_composition(source, total, dimension) for _ in range(size)]
    return points if exact else [_off_by_one(source, point) for point in points]


def collinear(source, dimension, size):
    """Equal steps along a line that goes up on some axes and down on others."""
    high = source.choice(SIZES)
    step = [source.randint(-(high // size), high // size) for _ in range(dimension)]
    start = [-size * min(x, 0) + source.randint(0, 3) for x in step]
    points = [
        tuple(a + k * b for a, b in zip(start, step, strict=True))
        for k in source.sample(range(size), size)
    ]
    return [point for point in points if max(point) <= MAX_COORDINATE] or [tuple(start)]


def means(source, dimension, size):
    """Corners, and means of them with small weights: exact, one too high or one too low."""
    parts = source.choice((2, 3, 6, 12))
    high = source.choice((2, 20, 1000, 10**9, MAX_COORDINATE // 12))
    corners = [
        tuple(x * parts for x in _composition(source, high, dimension))
        for _ in range(max(2, size // 2))
    ]
    points = list(corners)
    while len(points) < size:
        chosen = source.sample(corners, min(len(corners), source.randint(2, dimension + 1)))
        weights = _composition(source, parts, len(chosen))
        columns = zip(*chosen, strict=True)
        mean = [sum(map(int.__mul__, weights, column)) // parts for column in columns]
        points.append(_off_by_one(source, tuple(mean)))
    return points


def all_magnitudes(source, dimension, size):
    return [
        tuple(2 ** source.randint(0, 59) - source.randint(0, 1) for _ in range(dimension))
        for _ in range(size)
    ]


def stretched(source, dimension, size):
    """A small flat set with a unit of its own on every axis."""
    units = [10 ** source.randint(0, 16) for _ in range(dimension)]
    points = [_composition(source, 12, dimension) for _ in range(size)]
    return [tuple(x * unit for x, unit in zip(point, units, strict=True)) for point in points]


KINDS = (uniform, few_values, coplanar, collinear, means, all_magnitudes, stretched)
FAMILIES = {each.__name__: each for each in KINDS}


def sample(source, name, dimension, max_size):
    """One set of a family, of up to ``max_size`` points."""
    return FAMILIES[name](source, dimension, source.randint(2, max_size))
