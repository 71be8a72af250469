"""Pictures of positions: what is drawn where, that it can be read, and games as animations."""

import random
from itertools import combinations, pairwise

import pytest
from PIL import Image, ImageSequence

from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.pictures.games import HEIGHT, WIDTH, picture_of
from resgym.pictures.shapes import Circle, Line, Polygon, Text, text_width
from tests.reference.polyhedron import newton_vertices
from tests.resgym.games import record_game


def random_points(dimension, number, top, seed):
    generator = random.Random(seed)
    points = {tuple(generator.randint(0, top) for _ in range(dimension)) for _ in range(number)}
    return sorted(points, reverse=True)


POSITIONS = {
    "twenty in the plane": random_points(2, 20, 20, 0),
    "a staircase": [(i, (19 - i) * (20 - i) // 4) for i in range(20)],
    "twenty in space": random_points(3, 20, 20, 1),
    "two": [(2, 0), (0, 3)],
    "two in space": [(2, 0, 1), (0, 3, 5)],
    "large": [(10**9, 0, 3), (5 * 10**8, 10**9 - 7, 10**9), (0, 2 * 10**9, 1)],
    "near one another": [(10**9, 10**9 + 3), (10**9 + 5, 10**9)],
    "the bound": [(2**59, 0), (2**59 - 1, 1)],
    "one": [(4, 6)],
    "the origin": [(0, 0, 0)],
    "many": random_points(3, 60, 99, 2),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_everything_is_inside_and_numbered(name):
    points = POSITIONS[name]
    picture = picture_of(points, (0, 1), 12)
    texts = [shape for shape in picture.shapes if isinstance(shape, Text)]
    for text in texts:
        x, y = text.position
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT
        assert text.anchor != "start" or x + 0.7 * text_width(text.text, text.size) <= WIDTH
    marks = [s for s in picture.shapes if isinstance(s, Circle) and s.radius == 5]
    assert len({mark.centre for mark in marks}) == len(marks) == len(points)
    numbers = [text.text for text in texts]
    counts = [numbers.count(f"#{number}") for number in range(1, len(points) + 1)]
    assert {*counts} <= {1, 2}
    shown = counts.count(2)
    assert shown == len(points) or f"and {len(points) - shown} more" in numbers


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_filled_points_are_the_vertices(seed, dimension):
    points = random_points(dimension, 8, 6, seed)
    shapes = picture_of(points, (), 0).shapes
    marks = [s for s in shapes if isinstance(s, Circle) and s.radius == 5]
    filled = {point for point, mark in zip(points, marks, strict=True) if mark.fill != "#ffffff"}
    assert filled == set(newton_vertices(points))


def test_the_polyhedron_in_space_is_shaded():
    points = [(2, 0, 0), (0, 3, 0), (0, 0, 5), (3, 3, 3)]
    shapes = picture_of(points, (), 0).shapes
    marks = [s.centre for s in shapes if isinstance(s, Circle) and s.radius == 5]
    areas = [s for s in shapes if isinstance(s, Polygon) and s.opacity < 1]
    # The triangle of x^2, y^3, z^5, and what is left of the three walls.
    assert len(areas) == 4
    (triangle,) = (area for area in areas if len(area.corners) == 3)
    assert set(triangle.corners) == set(marks[:3])
    assert len({area.fill for area in areas}) == 2
    edges = {frozenset((s.start, s.end)) for s in shapes if isinstance(s, Line) and s.width == 2.0}
    assert edges == {frozenset(pair) for pair in combinations(marks[:3], 2)}


def game():
    start = state_from_points([(2, 0, 0), (0, 3, 0), (0, 0, 5)], GameSpec())
    return record_game("zeillinger", "choose_last", start, GameSpec())


def notes(record, **kwargs):
    return [picture.shapes[-1].text for picture in record.pictures(**kwargs)]


def test_one_picture_a_position_with_its_move():
    record = game()
    told = notes(record)
    assert len(told) == len(record.positions)
    assert told[0] == "move 1: host {x, y}, agent y: y becomes x + y"
    titles = [picture.title for picture in record.pictures()]
    assert (titles[:2], titles[-1]) == (["start", "after 1 move"], f"after {len(told) - 1} moves")
    assert told[-1] == "one point left: the game is over"
    assert notes(record, names="abc")[0] == "move 1: host {a, b}, agent b: b becomes a + b"


def test_an_animation_has_every_frame_and_time(tmp_path):
    record = game()
    path = record.to_gif(tmp_path / "game.gif", seconds=1.0)
    assert path.name == "game.gif"
    with Image.open(path) as film:
        assert film.size == (WIDTH, HEIGHT)
        assert film.n_frames == 2 * len(record.axis) + 1
        shown = [
            (f.info["duration"], f.convert("RGB").tobytes()) for f in ImageSequence.Iterator(film)
        ]
    assert [time for time, _ in shown] == [400, 600] * len(record.axis) + [3000]
    assert all(one[1] != other[1] for one, other in pairwise(shown))


def test_an_animation_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^path must end in one of \.gif, got 'game\.png'"):
        game().to_gif(tmp_path / "game.png")
    assert not list(tmp_path.iterdir())
