"""A question of a link is read within its limits, and replayed exactly."""

import json
import random
import re
from pathlib import Path

import pytest

from resgym.app import answers
from resgym.app.questions import MAX_MOVES, read_question
from resgym.game.exact import OrderedRule, canonical, moved, prune, search_actions
from resgym.game.spec import GameSpec
from resgym.polynomials.parse import parse
from resgym.solver.solve import solve
from tests.resgym.tables import rows


def answer(name="game", **fields):
    text = answers.answer(name, read_question({k: str(v) for k, v in fields.items()}), None)
    return text if text.startswith("<") else json.loads(text)


# The fields of a question, and a part of what is said of it.
REFUSED = [
    (dict(field.split("=", 1) for field in question.split("&") if field), said)
    for question, said in rows(__file__, "refused.txt")
]
LONG = [
    ("start", "x" * 10**6, "start must"),
    ("seed", "9" * 11, "seed must"),
    ("moves", ",".join(["01.0"] * (MAX_MOVES + 1)), "moves must"),
    ("start", "+".join(f"x^{k}*y^{150 - k}" for k in range(1, 120)), "start must have at"),
]


@pytest.mark.parametrize(
    ("fields", "begins"),
    [*REFUSED, *(({"start": "E8", name: value}, said) for name, value, said in LONG)],
)
def test_bad_questions_are_refused_in_one_line(fields, begins, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").write_text("x^2+y^3", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(begins)) as error:
        answer(**fields)
    assert len(str(error.value)) < 400


def test_a_move_by_hand():
    """The blow-up of the origin of E8, in the chart of z."""
    game = answer(start="E8", seat="both", moves="012.2")
    assert game["history"][0]["position"] == "x²z² + y³z³ + z⁵"
    assert game["chart"]["coordinates"] == ["x = xz", "y = yz", "z = z"]
    assert (game["chart"]["factor"], game["chart"]["rest"]) == ("z²", "x² + y³z + z³")
    assert game["chart"]["divisors"][2] == {
        "name": "z",
        "ray": ["1", "1", "1"],
        "exceptional": True,
        "multiplicity": "2",
        "log_discrepancy": "3",
        "pole": "−3/2",
    }
    assert game["to_play"] == "host"
    assert [choice["code"] for choice in game["choices"]] == ["01", "02", "12", "012"]


@pytest.mark.parametrize("seat", ["host", "agent"])
@pytest.mark.parametrize("start", ["x^13+x^6*y^4+y^9", "x^3+y^4+z^5+w^6+x*y*z*w"])
def test_a_game_is_its_link(seat, start):
    """Whoever opens the link of a game sees the same, and the chart's rays give its monomials."""
    choose = random.Random(start + seat)
    fields = {"start": start, "seat": seat, "opponent": "random", "seed": 5}
    game = answer(**fields)
    while game["to_play"] and len(game["history"]) < 6:
        code = choose.choice(game["choices"])["code"]
        if seat == "host":
            fields |= {"moves": game["moves"], "named": code}
        else:
            fields["moves"] = ",".join(filter(None, [game["moves"], f"{game['named']}.{code}"]))
        game = answer(**fields)
        assert game == answer(**fields | {"moves": game["moves"], "named": game["named"]})
    assert game["history"]
    rule, rays = OrderedRule(GameSpec(len(game["variables"]))), []
    for divisor in game["chart"]["divisors"]:
        rays.append([int(entry) for entry in divisor["ray"]])
    mapped = [tuple(sum(map(int.__mul__, p, ray)) for ray in rays) for p in parse(start)]
    assert [list(map(str, point)) for point in rule.start(mapped)] == game["exponents"]


def test_a_tree_shows_every_chart_over_the_start():
    tree = answer("tree", start="E8", moves="012.2", host="zeillinger")
    assert tree["charts"][0]["factor"] == "z²"
    assert tree["complete"]
    # Every exceptional multiplicity is that of the ray over E8: the least of 2a, 3b, 5c.
    for chart in tree["charts"]:
        for divisor in chart["divisors"]:
            a, b, c = map(int, divisor["ray"])
            assert int(divisor["multiplicity"]) == min(2 * a, 3 * b, 5 * c)
    assert answer("tree", start="A2", form="svg").startswith("<svg")
    rows = answer("tree", start="A2", form="invariants")
    assert ["Milnor number", "2"] in rows


def test_a_perfect_game_costs_nothing():
    """A person who takes the best set each time, against the optimal agent, ends E6 at par."""
    fields = {"start": "E6", "seat": "host", "opponent": "optimal"}
    game = answer(**fields)
    while not game["ending"]:
        sets = {choice["text"]: choice["code"] for choice in game["choices"]}
        best = answer("hint", **fields)["hint"].partition(" is best")[0]
        game = answer(**fields, named=sets[best])
        fields["moves"] = game["moves"]
    found = answer("score", **fields)
    assert (found["par"], found["left"], found["lost"]) == (6, 0, [0, 0])
    assert found["costs"] == [[0, 0]] * 6
    # In the agent's seat the host's set of the current move belongs to the question.
    assert answer("score", start="E6", opponent="zeillinger")["left"] == 7


def test_the_puzzles_rise_in_proved_depth():
    """Thirty different singular starts, in each of which a wrong first set costs something."""
    path = Path(answers.__file__).with_name("page") / "puzzles.json"
    puzzles = json.loads(path.read_text(encoding="utf-8"))
    starts = [parse(puzzle["start"]) for puzzle in puzzles]
    assert len({canonical(prune(start)) for start in starts}) == len(puzzles) == 30
    depths = [puzzle["depth"] for puzzle in puzzles]
    assert depths == sorted(depths)
    for puzzle, start in zip(puzzles, starts, strict=True):
        assert solve(start).value == puzzle["depth"]
        assert puzzle["text"] == start.pretty()
        assert all(sum(point) > 1 for point in start), "smooth at the origin"
        after = (moved(start, axes, i) for axes in search_actions(start.dimension) for i in axes)
        assert any(solve(points).value >= puzzle["depth"] for points in after)


def test_pictures():
    plane = answer(start="x^2+y^3", seat="both", named="01")
    assert "the host named {x, y}" in plane["picture"]
    assert plane["scene"] is None
    scene = answer(start="E8", seat="both")["scene"]
    assert all(point["vertex"] for point in scene["points"])
    (compact,) = [face for face in scene["faces"] if face["compact"]]
    assert len(compact["corners"]) == 3
    flat = answer(start="x^3+y^4+z^5+w^6", seat="both")
    assert flat["picture"] is flat["scene"] is None
