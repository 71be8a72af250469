"""Names and families; the numbers of the names are those of `test_invariants`."""

import pytest

import resgym
from resgym.polynomials.singularities import random_family, singularity, singularity_names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A_{12}", [(2, 0, 0), (0, 2, 0), (0, 0, 13)]),
        (" d_8 ", [(2, 0, 0), (0, 2, 1), (0, 0, 7)]),
        ("e7", [(2, 0, 0), (0, 3, 0), (0, 1, 3)]),
        (" T_{3,4,5} ", [(3, 0, 0), (0, 4, 0), (0, 0, 5), (1, 1, 1)]),
    ],
)
def test_normal_forms(name, expected):
    assert resgym.parse(name) == singularity(name) == expected
    assert singularity(name).variables == ("x", "y", "z")


def test_the_names_of_the_lists():
    for kind, number in (("simple", 16), ("exceptional", 14), ("bimodal", 14)):
        assert len(singularity_names(kind)) == number
    assert resgym.parse("z11+w12") == [(11, 0), (0, 12)]


def test_random_points():
    points = random_family("random(points=6, max=4, dim=5)", seed=3)
    assert (len(points), points.dimension) == (6, 5)
    assert points == random_family("RANDOM( dim = 5,points=6,max=4 )", seed=3)
    assert random_family("bp(2, 3,5,7)") == resgym.parse("x^2+y^3+z^5+w^7", variables="x,y,z,w")
    # Known values: the same on every machine.
    assert random_family("random(points=2,max=5,dim=2)", seed=1) == [(4, 2), (1, 4)]
    starts = [random_family("random(points=3,max=2,dim=2)", seed) for seed in range(50)]
    assert {value for start in starts for point in start for value in point} == {0, 1, 2}
    for start in starts:  # unfinished ones
        assert tuple(map(min, zip(*start, strict=True))) not in start
