"""Solved positions: renamed, observed, in files; and the losses, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import gymnasium
import pytest
import torch

import resgym  # noqa: F401  registers the environments
from sb3_ext.teach.fit import losses
from sb3_ext.teach.solved import Solved, joined, solve
from tests.sb3_ext.teach.labelled import rows_of, small


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_the_solver_says_what_plain_recursion_says_under_all_names_of_the_axes(seat):
    data = small(seat, 12)
    unsolved = replace(data, optimal=~data.optimal, value=0 * data.value)
    assert solve("depth", 2000, unsolved).digest() == data.digest()
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
    for content, said in (
        (whole[:-1], "data: "),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "digest"),
        (whole.replace(b'solver\\": ', b'solver\\":9'), "solver: got 9"),
        (b"\x80\x04.", "data: "),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=said) as error:
            Solved.load(file)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="none"):
        Solved.load(tmp_path / "none")
    two = data.select(data.count == 2)
    assert two.points.shape[1] == 2
    wide = replace(two, points=data.points[: len(two)])
    assert joined([two, wide]).points.shape[1] == wide.points.shape[1]


def one(optimal, coords=(), value=3):
    """A batch of one position with these best moves."""
    return Solved(
        torch.zeros(1, 2, 3, dtype=torch.int64), torch.tensor([2]),
        torch.tensor([coords], dtype=torch.bool).view(1, -1), torch.tensor([False]),
        torch.tensor([optimal]), torch.tensor([value]),
    )  # fmt: skip


def found(values, batch, gamma=1.0, temperature=1.0):
    terms = losses(torch.tensor([values]), batch, gamma, temperature)
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
    losses(given, agent, 1.0, 0.1).choice.backward()
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
