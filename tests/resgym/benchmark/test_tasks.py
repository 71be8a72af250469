"""Results of tasks, against the solver position by position and the measures of games."""

from functools import partial

import pytest
import torch

import resgym
from resgym.benchmark import TASKS, evaluate, load, make, tasks

NUMBER = 8


@pytest.fixture(autouse=True)
def few_positions(monkeypatch):
    def some(part):
        return load(part).select(torch.arange(NUMBER))

    monkeypatch.setattr(tasks, "load", some)
    tasks._optimum.cache_clear()
    yield
    tasks._optimum.cache_clear()


@pytest.mark.parametrize("task", ["worst-5", "axes4"])
def test_strength_is_that_of_the_solver(task):
    """`resgym.solve` searches each start by itself, with other code."""
    found, starts = evaluate("taught", task), tasks.load(task)
    solve = partial(resgym.solve, host="taught")
    longest = [solve(points).value for points in starts.state.point_lists()]
    assert found.counts == longest
    shares = starts.value / torch.tensor(longest)
    assert found.value == found.highest == pytest.approx(float(shares.mean()))
    assert found.details["moves"] == pytest.approx(sum(longest) / NUMBER)
    gap = sum(longest) - int(starts.value.sum())
    assert found.details["exploitability"] == pytest.approx(gap / NUMBER)
    assert found.details["optimal"] == int((shares == 1).sum())
    half = 1.96 * float(shares.std()) / NUMBER**0.5
    assert found.interval_95 == pytest.approx((found.value - half, found.value + half))
    assert (found.details["cut"], found.details["given_up"]) == (0, 0)


def test_a_host_that_can_be_held_up_is_worth_nothing_there():
    found = evaluate("all_coord", "worst-5")
    assert found.details["cut"] == NUMBER
    assert found.value == 0.0
    assert found.counts == [201] * NUMBER


def test_a_search_that_is_given_up_gives_a_range(monkeypatch):
    monkeypatch.setattr(tasks, "POSITIONS", 10)
    found = evaluate("spivakovsky", "worst-20")
    assert found.details["given_up"] > 0
    assert found.value < found.highest
    assert min(found.counts) < 0


def test_regrets_are_capped_and_compared_with_any_move():
    data = tasks.load("moves-20")
    regret = (data.costs - data.costs.amin(1, keepdim=True)).clamp(max=10).double()
    found = evaluate("all_coord", "moves-20")
    assert found.counts == regret[:, 3].long().tolist()
    assert found.value == pytest.approx(1 - float(regret[:, 3].mean() / regret.mean()))
    assert found.details["right"] == pytest.approx(float((regret[:, 3] == 0).double().mean()))
    assert found.details["uniform_right"] == pytest.approx(float((regret == 0).double().mean()))
    best = (regret == 0).double().mean(0).max()
    assert found.details["constant_right"] == pytest.approx(float(best))
    assert evaluate("optimal", "moves-20").value == 1.0


def test_agents_have_a_task_too():
    found = evaluate("optimal", "answers-20")
    assert (found.value, found.details["right"]) == (1.0, 1.0)
    assert evaluate("choose_first", "answers-20").value < 1.0


@pytest.mark.parametrize("task", ["first-20", "greedy-20", "random-20"])
def test_games_against_one_agent_are_those_of_rho(task):
    found, opponent = evaluate("zeillinger", task), TASKS[task].opponent
    known = opponent != "random"
    points = tasks.load("worst-20").state.point_lists()
    game = {"games": NUMBER, "points": points, "optimum": known}
    played = resgym.rho("zeillinger", opponent, **game)
    if known:  # of another seed a random agent has other moves
        assert sum(found.counts) == played.moves
        assert (found.value, found.highest) == pytest.approx(played.share)
    else:
        assert found.value == found.details["rho"] > 0
        assert found.value < found.interval_95[1]


@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_environments(task):
    part, _, _, seat = TASKS[task]
    env = make(task, 3, opponent="random")
    shown, _ = env.reset(seed=0)
    points = shown["points"] if seat == "agent" else shown
    spec = tasks.GAMES[part]
    assert points.shape == (3, spec.max_num_points, spec.dimension)
