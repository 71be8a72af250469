"""Depths of many trees at once, accuracy by size, held-out positions with repetition."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

import resgym
from resgym.game.plain import canonical, prune
from resgym.game.state import GameState
from resgym.measure.rho import rho_starts
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.studies.teach import measures
from sb3_ext.studies.teach.dataset import load_dataset
from sb3_ext.studies.teach.drawing import Plan
from sb3_ext.studies.teach.families import draw_batch
from sb3_ext.studies.teach.generate import generate
from sb3_ext.studies.teach.measures import (
    COMPARED,
    agent_summary,
    held_out_accuracy,
    measure_agent,
    optimal_choices,
    worst_case_depths,
)
from tests.sb3_ext.studies.teach.labelled import SmallData, make_model


@pytest.mark.parametrize("name", ["zeillinger_lex", "spivakovsky", "optimal"])
def test_depths_are_those_of_the_trees(name):
    host = resgym.make_host(name)
    starts = [[tuple(p) for p in resgym.singularity(s)] for s in ("A1", "A3", "D4", "A5")]
    starts.append([(2, 0, 1), (0, 3, 0), (1, 1, 1), (0, 0, 4)])
    starts.append([(1, 1, 1)])
    trees = [resgym.resolution_tree(s, host, max_depth=12, max_num_points=20) for s in starts]
    expected = [tree.depth if tree.complete else None for tree in trees]
    assert worst_case_depths(host, starts, max_depth=12) == expected
    assert expected[-1] == 0
    assert len(set(expected)) > 2


@pytest.mark.parametrize("axes", [2, 4, 5])
def test_depths_in_other_numbers_of_axes(axes):
    starts = rho_starts(resgym.GameSpec(axes, 3, 4), 6, 0).point_lists()
    host = resgym.make_host("zeillinger")
    trees = [resgym.resolution_tree(s, host, max_depth=30) for s in starts]
    assert worst_case_depths(host, starts) == [tree.depth for tree in trees]
    assert all(tree.complete for tree in trees)


def test_branches_that_never_end_are_given_up():
    """Whoever names all axes never tells x from y apart in the chart of z."""
    host = resgym.make_host("all_coord")
    endless = [(1, 0, 0), (0, 1, 0)]
    tree = resgym.resolution_tree(endless, host, max_depth=30, max_num_points=20)
    assert not tree.complete
    one = [(2, 0, 0), (1, 1, 1)]  # x(x + yz)
    assert worst_case_depths(host, [endless, [(1, 1, 1)], endless], max_depth=9) == [None, 0, None]
    assert worst_case_depths(resgym.make_host("zeillinger"), [endless, one]) == [1, 2]


def test_accuracy_by_size_adds_up():
    examples = SmallData(positions=80).split("train")
    player = player_of(make_model())
    result = held_out_accuracy(player, examples)
    right = optimal_choices(player, examples)
    assert result["positions"] == len(examples)
    assert result["accuracy"] == pytest.approx(float(right.double().mean()))
    for key, numbers in (("by_count", examples.count), ("by_value", examples.value)):
        assert sum(share["positions"] for share in result[key].values()) == len(examples)
        for number, share in result[key].items():
            chosen = torch.tensor([n == number for n in numbers.tolist()])
            assert share["positions"] == int(chosen.sum())
            assert share["accuracy"] == pytest.approx(float(right[chosen].double().mean()))


def test_how_long_an_agent_holds_up_hosts():
    """Its games are those of `rho`; nobody outlasts the longest, which are the least depths with
    the optimal host and longer with the others."""
    found = measure_agent(resgym.make_agent("choose_last"), games=4, dimension=3)
    starts = rho_starts(resgym.GameSpec(), 4).point_lists()
    least = sum(resgym.solve(points).value for points in starts) / 4
    assert found["optimal"]["longest"] == least
    for host, row in found.items():
        assert set(row["moves"]) == {"trained", *COMPARED}
        for name, agent in (("trained", "choose_last"), ("greedy_points", "greedy_points")):
            assert row["moves"][name] == resgym.rho(host, agent, games=4).mean_length
        if host != "random":
            assert max(row["moves"].values()) <= row["longest"] >= least
    assert found["zeillinger"]["longest"] > least
    assert found["random"]["longest"] is None
    lines = agent_summary(found).splitlines()
    assert len(lines) == 6
    assert lines[1].startswith("  optimal: trained ")
    assert lines[1].endswith(f"; longest {least:.2f}")


def forms(split):
    return [canonical(prune(p)) for p in GameState(split.points, split.count).point_lists()]


def test_they_count_as_often_as_they_come_and_were_not_taught(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "DRAWN_BATCHES", 2)
    plan = Plan.read({"config": "small", "positions": 3000, "seed": 3, "held_out": 0.2})
    generate(plan, tmp_path / "data")
    taught = load_dataset(tmp_path / "data").split("train")
    found, left_out = measures.held_out_draws(plan)
    assert left_out == 0
    drawn = [draw_batch(plan.config, 0, batch, 4) for batch in range(2)]
    everything = Counter(form for d in drawn for form in forms(d))
    held_out = Counter(forms(found))
    assert not set(held_out) & set(forms(taught))
    assert all(everything[form] == times for form, times in held_out.items())
    assert max(held_out.values()) > 5
    # About a fifth of the forms.
    assert 0.1 < len(held_out) / len(everything) < 0.3
    for row in range(0, len(found), 200):
        points = found.points[row, : found.count[row]].tolist()
        assert resgym.solve(points).value == found.value[row]
    right = optimal_choices(resgym.make_host("zeillinger"), found).double().mean()
    assert 0.2 < right < 0.95
    assert bool((found.value > 0).all())
