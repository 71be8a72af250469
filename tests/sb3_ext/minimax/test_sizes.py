"""One network learns games of several sizes, and its saved host plays every size."""

import pytest
import torch

import resgym
from resgym import GameSpec, RowRandom, functional
from resgym.players import resolve_player
from sb3_ext.callbacks import GrowingStarts
from sb3_ext.checkpoints.models import save_player
from sb3_ext.minimax import MinimaxDQN, OtherSize, WorstCasePositions, minimax_targets
from sb3_ext.minimax.algorithm import fingerprints, position_values
from tests.sb3_ext.minimax.test_minimax import host

SMALL = {
    "extractor": "any_size",
    "features_extractor_kwargs": {"pair_width": 8, "width": 12},
    "net_arch": [8],
}
WALKS = {"every": {"updates": 10}, "starts": 4, "max_moves": 9, "keep": 9}


@pytest.fixture(scope="module")
def learnt():
    """A model that learned three sizes, its callbacks, and the sizes of its batches."""
    sizes = [(2, 6, 5, {"part": 0.3, "rows": 20}), (4, 4, 3, {"part": 0.5, "rows": 30})]
    others = [OtherSize(*size, games=16, **more, **WALKS) for *size, more in sizes]
    model, met = host(policy_kwargs=SMALL), []
    learn = MinimaxDQN.compute_loss

    def compute_loss(model, batch):
        met.append(tuple(batch.observations.shape))
        return learn(model, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MinimaxDQN, "compute_loss", compute_loss)
        model.learn(32 * 90, [*others, WorstCasePositions(**WALKS), GrowingStarts(0.5)])
    return model, others, met


def test_updates_are_on_batches_of_every_size(learnt):
    _, _, met = learnt
    assert set(met) == {(64, 4, 3), (20, 6, 2), (30, 4, 4)}
    assert met.count((30, 4, 4)) == pytest.approx(0.5 * len(met), rel=0.3)
    assert met.count((20, 6, 2)) == pytest.approx(0.15 * len(met), rel=0.5)


def test_positions_are_of_the_game_and_starts_grow_with_the_environments(learnt, monkeypatch):
    model, (flat, _), _ = learnt
    for state in (flat.positions, flat.played):
        count = (state[:, :, 0] >= 0).sum(1)
        assert ((count > 1) & (count <= 6)).all()
        assert (state.amin(1) <= 0).all()  # they are moved to the axes
    assert len({*map(bytes, flat.played.numpy())}) > 12
    assert (flat.start_spec().max_num_points, flat.start_spec().max_value) == (6, 5)
    model.env.env_method("set_stage", 2, 1)
    assert (flat.start_spec().max_num_points, flat.start_spec().max_value) == (3, 2)
    model.env.env_method("set_stage", 4, 3)


def test_a_saved_host_plays_every_size(learnt, tmp_path):
    save_player(tmp_path / "host", learnt[0], {})
    player = resolve_player(tmp_path / "host", "host")
    for dimension, points in ((2, 9), (3, 20), (4, 7), (5, 4)):
        state = functional.starts(GameSpec(dimension, points, max_value=3), 9, seed=1)
        shorter = functional.observe(state, scale=False)
        answers = player.act(state, None, RowRandom(torch.zeros(9).long()))
        assert torch.equal(answers, learnt[0].q_net(shorter).argmax(1))
        games = {"dimension": dimension, "max_num_points": points, "games": 5}
        assert resgym.rho(player, "random", **games).games == 5
    found = resgym.solve([(2, 0, 0, 0, 0), (0, 3, 1, 0, 2)], host=player, max_depth=5)
    assert found.lower_bound >= 1
    assert len(resgym.resolution_tree("x^2+y^3+z^5", player, max_depth=2).to_json()) > 1


def test_positions_that_differ_by_names_are_asked_about_once(learnt):
    network = learnt[0].q_net
    state = functional.starts(GameSpec(4, 5, max_value=3), 200, seed=2)
    generator = torch.Generator().manual_seed(0)
    names, axes = fingerprints(state), torch.randperm(4, generator=generator)
    shift = torch.where(state.points < 0, 0, torch.arange(4))
    moved = type(state)((state.points + shift)[:, :, axes].flip(1), state.count)
    assert torch.equal(fingerprints(moved), names)
    points = {tuple(sorted(map(tuple, each))) for each in state.point_lists()}
    assert len(names.unique()) > 0.85 * len(points)
    state = state.select(torch.arange(40))
    after, _ = functional.successors(state)
    found = position_values(network, after)
    plain = position_values(lambda seen: network(seen), after)
    assert torch.allclose(found, plain, atol=1e-5)
    assert torch.allclose(
        minimax_targets(network, state, 0.9, 2),
        minimax_targets(lambda seen: network(seen), state, 0.9, 2),
        atol=1e-4,
    )
