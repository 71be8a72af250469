"""Recorded games as animations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PIL import Image

from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.measure.games import record_game
from resgym.render.games import GameRecord
from resgym.render.positions import HEIGHT, WIDTH


def game(points=((2, 0, 0), (0, 3, 0), (0, 0, 5))) -> GameRecord:
    spec = GameSpec(len(points[0]))
    start = state_from_points([list(point) for point in points], spec)
    return record_game("zeillinger", "choose_first", start, spec)


def notes(record: GameRecord, **kwargs) -> list[str]:
    return [picture.shapes[-1].text for picture in record.pictures(**kwargs)]


def test_one_picture_a_position_with_its_move():
    record = game()
    told = notes(record)
    assert len(told) == len(record.positions)
    assert told[0] == "move 1: host {x, y}, agent x: x becomes x + y"
    titles = [picture.title for picture in record.pictures()]
    assert (titles[:2], titles[-1]) == (["start", "after 1 move"], f"after {len(told) - 1} moves")
    assert told[-1] == "one point left: the game is over"
    assert notes(record, names="abc")[0] == "move 1: host {a, b}, agent a: a becomes a + b"


def test_an_animation_has_every_frame_and_time(tmp_path):
    record = game()
    path = record.to_gif(tmp_path / "game.gif", seconds=1.0)
    assert path.name == "game.gif"
    with Image.open(path) as film:
        assert film.size == (WIDTH, HEIGHT)
        assert film.n_frames == 2 * len(record.axis) + 1
        times, frames = [], []
        for number in range(film.n_frames):
            film.seek(number)
            times.append(film.info["duration"])
            frames.append(np.asarray(film.convert("RGB")))
    assert times == [400, 600] * len(record.axis) + [3000]
    for one, other in itertools.pairwise(frames):
        assert not np.array_equal(one, other)


def test_what_cannot_be_written_is_refused(tmp_path):
    for points, name, seconds, message in [
        (((2, 0), (0, 3)), "game.png", 1.0, r"^path must end in one of \.gif, got 'game\.png'"),
        (((2, 0, 0, 0), (0, 3, 0, 0)), "g.gif", 1.0, "^points must have 2 or 3 axes to be drawn"),
    ]:
        with pytest.raises(ValueError, match=message):
            game(points).to_gif(tmp_path / name, seconds=seconds)
    assert not list(tmp_path.iterdir())
