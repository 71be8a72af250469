"""What is drawn: random starts, games, walks; different positions, without what is measured on."""

import pytest
import torch
import yaml

from resgym import GameSpec, singularity
from resgym.game.exact import canonical, moved, prune
from resgym.game.rng import RowRandom
from resgym.game.spec import action_axes
from resgym.game.state import GameState, state_from_points
from resgym.players import make_agent, make_host
from sb3_ext.config.sections import find_config
from sb3_ext.teach import positions
from sb3_ext.teach.positions import TeachConfig, draw

TABLE = action_axes(3)
STARTS = {"positions": 10**6, "points": [3, 6], "max_value": [4]}


@pytest.fixture(autouse=True)
def first_batch_only(monkeypatch):
    """A family has no more than one batch of few rows."""
    for name, rows in (("BATCH_ROWS", 40), ("WALKED_ROWS", 20)):
        monkeypatch.setattr(positions, name, rows)
    monkeypatch.setattr(positions, "numbers", lambda: range(1))


def drawn(*families, seat="host", student=None):
    data = yaml.safe_load(find_config("small", "teach").read_text())
    rounds = [[{**STARTS, **each} for each in families]]
    return draw(TeachConfig.read({**data, "seat": seat, "rounds": rounds}), 0, student)


def forms(*families, **more):
    """Their canonical forms."""
    found = drawn(*families, **more)
    return {canonical(prune(p)) for p in GameState(found.points, found.count).point_lists()}


class Asked:
    """Zeillinger's host, which notes what it is asked first."""

    role, name, starts = "host", "asked", None

    def act(self, state, coords, rng):
        self.starts = self.starts or state.point_lists()
        return make_host("zeillinger").act(state, coords, rng)


def test_every_answer_is_followed():
    """The positions are those that a walk in plain numbers meets."""
    asked = Asked()
    walked = forms({"max_value": [8], "hosts": ["student"], "moves": [0, 99]}, student=asked)
    waiting, seen, met = list(asked.starts), set(), set()
    while waiting:
        points = tuple(waiting.pop())
        if len(points) > 1 and points not in seen:
            seen.add(points)
            met.add(canonical(points))
            state = state_from_points([points], GameSpec(3, 6))
            axes = TABLE[int(asked.act(state, None, RowRandom(torch.zeros(1, dtype=torch.int64))))]
            waiting += [prune(moved(points, axes, axis)) for axis in axes]
    assert len(met) >= 50
    assert walked == met


def test_the_student_plays_under_its_name_and_hosts_may_change_from_move_to_move():
    named = {"hosts": ["zeillinger", "random"], "moves": [0, 12]}
    agent = make_agent("choose_last")
    own = forms({**named, "agents": ["student"]}, student=agent, seat="agent")
    assert own == forms({**named, "agents": ["choose_last"]})
    assert own != forms({**named, "agents": ["choose_first"]})
    last = {"max_value": [12], "agents": ["choose_last"], "moves": [0, 12]}
    alone = [forms({**last, "hosts": [name]}) for name in ("zeillinger", "all_coord")]
    mixed = forms({**last, "hosts": ["zeillinger", "all_coord"], "mixed": True})
    assert len(mixed - alone[0] - alone[1]) > 10


def test_all_are_different_and_fit():
    both = drawn({"alive": [3, 4]}, {"positions": 7, "max_value": [9], "sparsity": [0.5]})
    found = [canonical(prune(p)) for p in GameState(both.points, both.count).point_lists()]
    assert len(set(found)) == len(found)
    assert {len(form) for form in found[:-7]} == {3, 4}
    with pytest.raises(ValueError, match="family 0: got no position that fits"):
        drawn({"points": [2, 2], "max_value": [1], "alive": [4, 4]})


def test_what_is_measured_on_is_not_drawn(monkeypatch):
    monkeypatch.setattr(positions, "BATCH_ROWS", 4000)
    family = {"points": None, "exponents": [1, 9]}
    named = canonical(prune(singularity("E8")))
    assert named not in forms(family)
    monkeypatch.setattr(positions, "singularity_names", lambda: ["A1"])
    assert named in forms(family)


def test_both_seats_have_the_same_positions_and_splits(monkeypatch):
    monkeypatch.setattr(positions, "BATCH_ROWS", 3000)
    agent, host = drawn({}, seat="agent"), drawn({})
    assert torch.equal(agent.points, host.points)
    shares = torch.bincount(host.split) / len(host)
    assert shares.tolist() == pytest.approx([0.05, 0.05, 0.9], abs=0.02)
    assert torch.equal(agent.split, host.split)
