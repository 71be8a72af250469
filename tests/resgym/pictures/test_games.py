"""Recorded games as animations."""

import itertools

import pytest
from PIL import Image, ImageSequence

from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.pictures.games import HEIGHT, WIDTH
from tests.resgym.games import record_game


def game(points=((2, 0, 0), (0, 3, 0), (0, 0, 5))):
    spec = GameSpec(len(points[0]))
    start = state_from_points([list(point) for point in points], spec)
    return record_game("zeillinger", "choose_last", start, spec)


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
    assert all(one[1] != other[1] for one, other in itertools.pairwise(shown))


def test_what_cannot_be_written_is_refused(tmp_path):
    for points, name, seconds, message in [
        (((2, 0), (0, 3)), "game.png", 1.0, r"^path must end in one of \.gif, got 'game\.png'"),
        (((2, 0, 0, 0), (0, 3, 0, 0)), "g.gif", 1.0, "^points must have 2 or 3 axes to be drawn"),
    ]:
        with pytest.raises(ValueError, match=message):
            game(points).to_gif(tmp_path / name, seconds=seconds)
    assert not list(tmp_path.iterdir())
