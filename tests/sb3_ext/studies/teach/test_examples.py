"""Renamed axes, and observations equal to those of the environments."""

from __future__ import annotations

import gymnasium
import pytest
import torch

import resgym  # noqa: F401  registers the environments
from resgym.game.actions import action_axes
from sb3_ext.studies.teach.examples import axis_orders, checked, digest, observe, permute_axes
from sb3_ext.studies.teach.train import ENVIRONMENTS
from tests.sb3_ext.studies.teach.labelled import SmallData


def test_an_order_renames_sets_as_it_renames_coordinates():
    for dimension in (2, 3, 4):
        all_axes, all_actions = axis_orders(dimension)
        sets = action_axes(dimension)
        assert all_axes[0].tolist() == list(range(dimension))
        for axes, actions in zip(all_axes.tolist(), all_actions.tolist(), strict=True):
            for new, old in enumerate(actions):
                assert {axes[j] for j in sets[new]} == set(sets[old])


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_labels_of_a_renamed_position_are_those_of_the_solver(seat):
    """Every order of the axes of every position is a position that was labelled afresh."""
    data = SmallData(seat, positions=12)
    examples = data.split("train")
    checked = changed = 0
    for number, axes in enumerate(axis_orders(3)[0].tolist()):
        renamed = permute_axes(examples, torch.full((len(examples),), number))
        for row in range(len(examples)):
            position = tuple(
                tuple(point[j] for j in axes)
                for point in examples.points[row, : examples.count[row]].tolist()
            )
            got = renamed.points[row, : renamed.count[row]].tolist()
            assert [tuple(point) for point in got] == sorted(position, reverse=True)
            coords = None if renamed.coords is None else renamed.coords[row].tolist()
            fresh = [r for r in data._rows(position) if r[1] is None or r[1] == coords]
            assert len(fresh) == 1
            assert renamed.optimal[row].tolist() == fresh[0][2]
            assert int(renamed.value[row]) == fresh[0][3]
            changed += renamed.optimal[row].tolist() != examples.optimal[row].tolist()
            checked += 1
    assert checked == 6 * len(examples)
    assert changed > checked / 10  # labels that are left as they are would be noticed


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_observations_are_those_of_the_environment(seat):
    examples = SmallData(seat, positions=8).split("train")
    env = gymnasium.make_vec(ENVIRONMENTS[seat], num_envs=len(examples))
    shown, _ = env.reset(options={"points": examples.points.numpy()})
    ours = observe(examples, 20)
    if seat == "agent":
        assert ours["coords"].dtype == shown["coords"].dtype
        assert torch.equal(ours["coords"].bool(), examples.coords)
        ours, shown = ours["points"], shown["points"]
    assert torch.equal(ours, shown)
    assert ours.dtype == shown.dtype


def test_a_selection_is_cut_to_the_rows_in_use():
    examples = SmallData(positions=30).split("train")
    two = examples.select(examples.count == 2)
    assert two.points.shape[1] == 2
    assert bool((two.points >= 0).all())


def test_the_digest_knows_every_tensor():
    examples = SmallData(positions=10).split("train")
    again = SmallData(positions=10).split("train")
    assert digest(examples) == digest(again)
    again.optimal[3] = ~again.optimal[3]
    assert digest(examples) != digest(again)


def test_labels_that_teach_nonsense_are_refused():
    host, agent = (SmallData(seat, positions=10).split("train") for seat in ("host", "agent"))
    with pytest.raises(ValueError, match="no positions"):
        checked(host.select(host.count > 4))
    host.optimal[2] = False
    with pytest.raises(ValueError, match="without an optimal move"):
        checked(host)
    agent.optimal[:] = True
    with pytest.raises(ValueError, match="outside of the host's set"):
        checked(agent)
