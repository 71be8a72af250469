"""Recorded games as animations and pages."""

from __future__ import annotations

import io
import itertools
import xml.etree.ElementTree as ElementTree

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
    assert told[0] == "host {x, y}, agent x: x becomes x + y"
    assert told[-1] == "one point left: the game is over"
    assert notes(record, names="abc")[0] == "host {a, b}, agent a: a becomes a + b"


def test_an_animation_has_every_frame_and_time():
    record = game()
    with Image.open(io.BytesIO(record.to_gif())) as film:
        assert film.size == (WIDTH, HEIGHT)
        assert film.n_frames == 2 * len(record.axis) + 1
        times, frames = [], []
        for number in range(film.n_frames):
            film.seek(number)
            times.append(film.info["duration"])
            frames.append(np.asarray(film.convert("RGB")))
    assert times == [600, 900] * len(record.axis) + [4500]
    for one, other in itertools.pairwise(frames):
        assert not np.array_equal(one, other)


def test_a_page_holds_all_pictures():
    record = game(((2, 0), (0, 3)))
    page = record.to_html(names=("x<", "y"))
    assert page.count("<svg") == len(record.positions)
    assert f"<h1>A game of {len(record.axis)} moves</h1>" in page
    assert "<p>{x&lt;, y} →" in page
    for part in page.split("<li>")[1:]:
        ElementTree.fromstring(part.split("</li>")[0])


@pytest.mark.parametrize("write", [GameRecord.to_gif, GameRecord.to_html])
def test_games_of_four_axes_have_no_pictures(write):
    record = game(((2, 0, 0, 0), (0, 3, 0, 0)))
    with pytest.raises(ValueError, match=r"^points must have 2 or 3 axes to be drawn, got 4$"):
        write(record)
