"""What positions are drawn, what a network is shown of them, and the losses, by hand."""

import math

import gymnasium
import pytest
import torch
import yaml

import resgym
from resgym import GameSpec, singularity
from resgym.benchmark.solved import Asked
from resgym.game.exact import canonical, moved, prune
from resgym.game.rng import RowRandom
from resgym.game.spec import action_axes
from resgym.game.state import GameState, state_from_points
from resgym.players import make_agent, make_host
from sb3_ext.config.sections import find_config
from sb3_ext.teach import positions
from sb3_ext.teach.losses import losses, observation
from sb3_ext.teach.positions import TeachConfig, draw
from tests.resgym.benchmark.recursion import small

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


class Noting:
    """Zeillinger's host, which notes what it is asked first."""

    role = "host"
    name = "asked"
    starts = None

    def act(self, state, coords, rng):
        self.starts = self.starts or state.point_lists()
        return make_host("zeillinger").act(state, coords, rng)


def test_every_answer_is_followed():
    """The positions are those that a walk in plain numbers meets."""
    asked = Noting()
    walked = forms({"max_value": [8], "hosts": ["student"], "moves": [0, 99]}, student=asked)
    waiting = list(asked.starts)
    seen = set()
    met = set()
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
    agent = drawn({}, seat="agent")
    host = drawn({})
    assert torch.equal(agent.points, host.points)
    shares = torch.bincount(host.split) / len(host)
    assert shares.tolist() == pytest.approx([0.05, 0.05, 0.9], abs=0.02)
    assert torch.equal(agent.split, host.split)


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_observations_are_those_of_the_environment(seat):
    data = small(8)
    env = gymnasium.make_vec(f"resgym/Hironaka{seat.title()}-v0", num_envs=len(data))
    shown, _ = env.reset(options={"points": data.points.numpy()})
    ours = observation(data.asked(seat), 20)
    if seat == "agent":
        assert ours["coords"].dtype == shown["coords"].dtype
        ours = ours["points"]
        shown = shown["points"]
    assert torch.equal(ours, shown)
    assert ours.dtype == shown.dtype


def one(optimal, coords=None):
    """A batch of one position with these best moves, of a game of three."""
    state = resgym.state_from_points([[(0, 1, 0), (1, 0, 0)]], resgym.GameSpec(3, 2))
    sets = None if coords is None else torch.tensor([coords])
    regret = 1 - torch.tensor([optimal]).long()
    if coords is not None:
        regret = torch.where(sets, regret, -1)
    return Asked(state, sets, regret, torch.tensor([3]))


def found(values, batch, gamma=1.0, temperature=1.0):
    choice, value = losses(torch.tensor([values]), batch, gamma, temperature)
    return choice.item(), value.item()


def test_the_choice_is_minus_log_of_the_share_of_the_best_moves():
    values = [math.log(1.0), math.log(2.0), math.log(5.0), -math.inf]
    batch = one([True, True, False, False])
    assert found(values, batch)[0] == pytest.approx(math.log(8 / 3))
    # At half the temperature the odds are squared.
    assert found(values, batch, temperature=0.5)[0] == pytest.approx(math.log(30 / 5))
    # What is not legal has no part, not in the gradient either.
    agent = one([True, False, False], (True, True, False))
    given = torch.zeros(1, 3, requires_grad=True)
    losses(given, agent, 1.0, 0.1)[0].backward()
    torch.testing.assert_close(given.grad, torch.tensor([[-5.0, 5.0, 0.0]]))


@pytest.mark.parametrize(("gamma", "best", "worse"), [(0.5, -1.75, -1.875), (1.0, -3.0, -4.0)])
def test_true_values_have_no_loss_of_value(gamma, best, worse):
    """Of a game of three moves, and of one that is a move worse; others may be lower."""
    batch = one([True, False, False, False])
    assert found([best, worse, -9.0, -9.0], batch, gamma)[1] == 0
    # Huber of 0.5; of the others one is 0.3 too high.
    off = found([best - 0.5, worse + 0.3, -9.0, -9.0], batch, gamma)
    assert off[1] == pytest.approx(0.5 * 0.5**2 + 0.5 * 0.3**2 / 3)
    agent = one([True, False, False], (True, True, False))  # its values are the negative ones
    assert found([3.0, 2.0, 99.0], agent)[1] == 0
    assert found([3.0, 2.4, 99.0], agent)[1] == pytest.approx(0.5 * 0.4**2)
