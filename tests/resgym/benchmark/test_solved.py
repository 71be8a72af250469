"""Solved positions: as the reference solves them, renamed, asked, and in files."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from resgym import make_agent, make_host
from resgym.benchmark import Solved
from resgym.benchmark.solved import joined, solve
from resgym.game.spec import host_action_table
from tests.resgym.benchmark.recursion import small, values

pytest.importorskip("numba")


def test_the_solver_agrees_with_plain_recursion_under_all_names_of_the_axes():
    data = small(12)
    fresh = replace(data, costs=0 * data.costs, after=0 * data.after)
    assert solve("depth", 2000, True, fresh).digest() == data.digest()
    changed = 0
    for number in range(6):
        renamed = data.renamed(torch.full((len(data),), number))
        for row in range(len(data)):
            points = [tuple(p) for p in renamed.points[row, : renamed.count[row]].tolist()]
            assert renamed.after[row].tolist() == values(points)
            assert points == sorted(points, reverse=True)
            changed += renamed.costs[row].tolist() != data.costs[row].tolist()
    assert changed > len(data) / 2  # costs that are left as they are would be noticed
    assert torch.equal(renamed.costs, 1 + renamed.after.amax(2))


def test_what_is_solved_for_hosts_has_the_same_best_sets_and_serves_no_agent():
    data = small()
    hosts = solve("depth", 2000, False, data)
    assert torch.equal(hosts.value, data.value)
    assert torch.equal(hosts.asked("host").regret == 0, data.asked("host").regret == 0)
    with pytest.raises(ValueError, match="data: got positions solved for hosts"):
        hosts.asked("agent")


def test_regrets_are_what_a_move_loses():
    data = small(40)
    host, agent = data.asked("host"), data.asked("agent")
    assert torch.equal(host.regret, data.costs - data.costs.amin(1, keepdim=True))
    sets = host_action_table(3)
    for row in range(len(data)):
        action = row % 4
        after = data.after[row, action]
        lost = [int(after.max() - each) if each >= 0 else -1 for each in after]
        assert agent.regret[row].tolist() == lost
        assert torch.equal(agent.coords[row], sets[action])
        assert agent.value[row] == 1 + after.max()
    assert not host.chosen(make_host("optimal")).any()
    assert not agent.chosen(make_agent("optimal")).any()
    assert host.chosen(make_host("all_coord")).tolist() == host.regret[:, 3].tolist()
    assert agent.chosen(make_agent("choose_first")).float().mean() > 0


def test_what_is_drawn_depends_on_the_seed_alone():
    data = small()
    first, again, other = (data.drawn(50, seed, "agent") for seed in ((0, 1), (0, 1), (0, 2)))
    hosts = data.drawn(50, (0, 1), "host")
    assert torch.equal(first.coords, again.coords)
    assert not torch.equal(first.state.points, other.state.points)
    assert set(first.coords.sum(1).tolist()) == {2, 3}
    assert torch.equal(hosts.state.points, first.state.points)
    with pytest.raises(ValueError, match="data: got no position"):
        data.select(data.count == 0).drawn(1, (0,), "host")


def test_a_file_holds_them_and_shows_damage(tmp_path):
    data, file = small(10), tmp_path / "solved.npz"
    for each in (solve("depth", 2000, False, data), data.select(data.count < 0), data):
        each.save(file)
        read = Solved.load(file)
        assert all(torch.equal(*pair) for pair in zip(read, each, strict=True))
    assert read.digest() == data.digest() != data.select(data.count > 2).digest()
    whole = file.read_bytes()
    np.savez_compressed(tmp_path / "other.npz", **{**data.columns(), "solver": 999})
    for content, text in (
        (whole[:-30], "data: "),
        (whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], "data: "),
        ((tmp_path / "other.npz").read_bytes(), "solver: got 999"),
        (b"\x80\x04.", "data: "),
        (b"", "data: "),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=text) as error:
            Solved.load(file)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="none"):
        Solved.load(tmp_path / "none")
    assert len(joined([data, data])) == 20
