from __future__ import annotations

import pytest

from resgym.polynomials.singularities import random_family, singularity, singularity_names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A1", [(2, 0, 0), (0, 2, 0), (0, 0, 2)]),
        ("a_7", [(2, 0, 0), (0, 2, 0), (0, 0, 8)]),
        ("A_{12}", [(2, 0, 0), (0, 2, 0), (0, 0, 13)]),
        ("D4", [(2, 0, 0), (0, 2, 1), (0, 0, 3)]),
        (" d_8 ", [(2, 0, 0), (0, 2, 1), (0, 0, 7)]),
        ("E6", [(2, 0, 0), (0, 3, 0), (0, 0, 4)]),
        ("e7", [(2, 0, 0), (0, 3, 0), (0, 1, 3)]),
        ("E_8", [(2, 0, 0), (0, 3, 0), (0, 0, 5)]),
    ],
)
def test_normal_forms(name, expected):
    assert singularity(name) == expected
    assert singularity(name).variables == ("x", "y", "z")


def test_the_names_of_the_tables():
    names = singularity_names()
    assert len(names) == 16
    assert all(len(singularity(name)) == 3 for name in names)


@pytest.mark.parametrize("name", ["A0", "D3", "E5", "E9", "F4", "A", "A-1", "", "A1.5", "E88"])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="name must be A_n with n >= 1, D_n with n >= 4 "):
        singularity(name)


def test_a_name_is_text():
    with pytest.raises(TypeError, match="name must be text"):
        singularity(8)


def test_random_points():
    points = random_family("random(points=6, max=4, dim=5)", seed=3)
    assert len(points) == 6
    assert points.dimension == 5
    assert all(0 <= value <= 4 for point in points for value in point)
    assert points == random_family("RANDOM( dim = 5,points=6,max=4 )", seed=3)
    assert points != random_family("random(points=6, max=4, dim=5)", seed=4)
    # Known values: the same on every machine.
    assert random_family("random(points=2,max=5,dim=2)", seed=1) == [(4, 2), (1, 4)]


def test_random_points_are_unfinished_starts():
    for seed in range(50):
        points = random_family("random(points=3,max=2,dim=2)", seed)
        assert tuple(map(min, zip(*points, strict=True))) not in points


def test_all_values_occur():
    seen = {
        value
        for seed in range(200)
        for point in random_family("random(points=3,max=2,dim=2)", seed)
        for value in point
    }
    assert seen == {0, 1, 2}


def test_brieskorn_pham():
    assert random_family("bp(2,3,5,7)") == [(2, 0, 0, 0), (0, 3, 0, 0), (0, 0, 5, 0), (0, 0, 0, 7)]
    drawn = random_family("bp(dim=4, max=9)", seed=2)
    assert [sum(point) for point in drawn] == [max(point) for point in drawn]
    assert all(2 <= max(point) <= 9 for point in drawn)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("random(points=1)", "points must be between 2 and 1024, got 1"),
        ("random(dim=11)", "dim must be between 2 and 10, got 11"),
        ("random(max=0)", "max must be between 1 and"),
        ("random(foo=3)", "takes points=<number>, max=<number>, dim=<number>, got 'foo=3'"),
        ("random(points=-3)", "got 'points=-3'"),
        ("random(3)", "got '3'"),
        ("random(points=20,max=1,dim=2)", "no unfinished position"),
        ("bp(2)", "number of exponents of bp must be between 2 and 10, got 1"),
        ("bp(0,3)", "exponents of bp must be between 1 and"),
        ("cyclic(5)", "family must be"),
    ],
)
def test_bad_families(text, message):
    with pytest.raises(ValueError, match=message):
        random_family(text)
