"""Solved positions: renamed, observed, in files; and the losses, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import gymnasium
import pytest
import torch

import resgym  # noqa: F401  registers the environments
from resgym.game.actions import action_axes
from sb3_ext.teach.fit import losses
from sb3_ext.teach.solved import Drawn, Solved, axis_orders, joined, solve
from tests.sb3_ext.teach.labelled import rows_of, small


def test_an_order_renames_sets_as_it_renames_coordinates():
    for dimension in (2, 3, 4):
        all_axes, all_actions = axis_orders(dimension)
        sets = action_axes(dimension)
        assert all_axes[0].tolist() == list(range(dimension))
        for axes, actions in zip(all_axes.tolist(), all_actions.tolist(), strict=True):
            for new, old in enumerate(actions):
                assert {axes[j] for j in sets[new]} == set(sets[old])


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_the_solver_says_what_plain_recursion_says_under_all_names_of_the_axes(seat):
    data = small(seat, 12)
    fields = (data.points, data.count, data.coords, data.held_out)
    assert solve("depth", 2000, Drawn(*fields)).digest() == data.digest()
    changed = 0
    for number in range(6):
        renamed = data.renamed(torch.full((len(data),), number))
        for row in range(len(data)):
            points = renamed.points[row, : renamed.count[row]].tolist()
            fresh = [
                each
                for each in rows_of(tuple(map(tuple, points)), seat)
                if each[1] == renamed.coords[row].tolist()
            ]
            assert renamed.optimal[row].tolist() == fresh[0][2]
            assert int(renamed.value[row]) == fresh[0][3]
            changed += renamed.optimal[row].tolist() != data.optimal[row].tolist()
    assert changed > len(data) / 2  # labels that are left as they are would be noticed


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_observations_are_those_of_the_environment(seat):
    data = small(seat, 8)
    env = gymnasium.make_vec(f"resgym/Hironaka{seat.title()}-v0", num_envs=len(data))
    shown, _ = env.reset(options={"points": data.points.numpy()})
    ours = data.observed(20)
    if seat == "agent":
        assert ours["coords"].dtype == shown["coords"].dtype
        ours, shown = ours["points"], shown["points"]
    assert torch.equal(ours, shown)
    assert ours.dtype == shown.dtype


def test_a_file_holds_them_and_shows_damage(tmp_path):
    data, file = small("agent", 10), tmp_path / "solved.safetensors"
    data.save(file)
    assert Solved.load(file).digest() == data.digest()
    whole = file.read_bytes()
    first = data.points.shape[0]
    other = joined([data, small("agent", 10, seed=1)])
    assert len(other) > first
    other.save(tmp_path / "other.safetensors")
    assert file.read_bytes() == whole
    for content, said in (
        (whole[:-1], "data: "),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "digest"),
        (whole.replace(b'solver\\": ', b'solver\\":9'), "solver: got version 9"),
        (b"\x80\x04.", "data: "),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=said) as error:
            Solved.load(file)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="none"):
        Solved.load(tmp_path / "none")


def one(optimal, coords=(), value=3, **more):
    """A batch of one position with these best moves."""
    return Solved(
        torch.zeros(1, 2, 3, dtype=torch.int64), torch.tensor([2]),
        torch.tensor([coords], dtype=torch.bool).view(1, -1), torch.tensor([False]),
        torch.tensor([optimal]), torch.tensor([value]),
    )  # fmt: skip


def found(values, batch, reward="step", gamma=1.0, temperature=1.0):
    terms = losses(torch.tensor([values]), batch, reward, gamma, temperature)
    return terms.choice.item(), terms.value.item()


def test_the_choice_is_minus_log_of_the_share_of_the_best_moves():
    values = [math.log(1.0), math.log(2.0), math.log(5.0), -math.inf]
    batch = one([True, True, False, False])
    assert found(values, batch)[0] == pytest.approx(math.log(8 / 3))
    # At half the temperature the odds are squared.
    assert found(values, batch, temperature=0.5)[0] == pytest.approx(math.log(30 / 5))
    # What is not legal has no part, not in the gradient either.
    agent = one([True, False, False], (True, True, False))
    given = torch.zeros(1, 3, requires_grad=True)
    losses(given, agent, "step", 1.0, 0.1).choice.backward()
    torch.testing.assert_close(given.grad, torch.tensor([[-5.0, 5.0, 0.0]]))


@pytest.mark.parametrize(
    ("reward", "gamma", "returned"),
    [("step", 0.5, [-1.75, -1.875]), ("step", 1.0, [-3.0, -4.0]), ("survival", 0.5, [-1.5, -1.75]),
     ("terminal", 0.5, [0.25, 0.125])],
)  # fmt: skip
def test_true_values_have_no_loss_of_value(reward, gamma, returned):
    """Of a game of three moves, and of one that is a move worse; others may be lower."""
    best, worse = returned
    assert found([best, worse, -9.0, -9.0], one([True, False, False, False]), reward, gamma)[1] == 0
    # Huber of 0.5; of the others one is 0.3 too high.
    off = found(
        [best - 0.5, worse + 0.3, -9.0, -9.0], one([True, False, False, False]), reward, gamma
    )
    assert off[1] == pytest.approx(0.5 * 0.5**2 + 0.5 * 0.3**2 / 3)


def test_an_agents_values_are_the_negative_ones():
    agent = one([True, False, False], (True, True, False))
    assert found([3.0, 2.0, 99.0], agent)[1] == 0
    assert found([3.0, 2.4, 99.0], agent)[1] == pytest.approx(0.5 * 0.4**2)


def test_a_selection_is_cut_to_the_rows_in_use():
    data = small(positions=30)
    two = data.select(data.count == 2)
    assert two.points.shape[1] == 2
    assert bool((two.points >= 0).all())
    wide = replace(two, points=data.select(data.count >= 2).points[: len(two)])
    assert joined([two, wide]).points.shape[1] == wide.points.shape[1]
