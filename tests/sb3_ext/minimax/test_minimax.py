"""Minimax targets by hand and by the reference, and hosts that learn by them, of several sizes."""

import gymnasium
import pytest
import torch
from stable_baselines3.common.vec_env import VecNormalize

import resgym
from benchmarks.joined import join
from resgym import GameSpec, RowRandom, functional, make_host
from resgym.benchmark import load
from resgym.players import resolve_player
from resgym.solver.responses import Graph, worst_cases
from resgym.solver.search import Limits
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import GrowingStarts
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.checkpoints.models import save_player
from sb3_ext.minimax import (
    MinimaxDQN,
    OtherSize,
    ValueAgent,
    ValueHost,
    WorstCasePositions,
    minimax_targets,
)
from sb3_ext.minimax.algorithm import (
    EquivariantGraph,
    fingerprints,
    position_values,
    set_costs,
    worst_answers,
)
from tests.reference import rule
from tests.sb3_ext.helpers import make_model

SPEC = GameSpec(max_num_points=4, max_value=3)
ID = "resgym/HironakaHost-v0"


def host(**arguments):
    sizes = {"max_num_points": 4, "max_value": 3}
    env = gymnasium.make_vec(ID, 32, opponent="random", scale_observation=False, **sizes)
    settings = {"learning_starts": 64, "batch_size": 64, "buffer_size": 10_000, "seed": 0}
    settings.update(gamma=0.9, tau=0.05, target_update_interval=1, learning_rate=3e-3)
    settings["exploration_rate"] = None  # SB3's, which falls
    settings["policy_kwargs"] = {"extractor": "point_set", "net_arch": [64]}
    return MinimaxDQN("HostPolicy", TensorVecEnv(env), **{**settings, **arguments})


def network(observations):
    """Of each position its sum, halved, thirded, ..., so that sets differ; all negative."""
    total = observations.clamp(min=0).sum((1, 2))
    return -total[:, None] / torch.tensor([3.0, 5.0, 2.0, 4.0])


def worth(points, plies=0):
    """What a position is worth to the host by that network, after a search of some plies."""
    if rule.is_finished(points):
        return 0.0  # which is more than any other
    if plies == 0:
        return -sum(map(sum, points)) / 5
    return max(target(points, axes, plies) for axes in rule.host_actions(3))


def target(points, axes, plies):
    return 0.9 * min(worth(rule.move(points, axes, axis), plies - 1) for axis in axes) - 1


@pytest.mark.parametrize("plies", [1, 2])
def test_targets_take_the_worst_answer_and_then_the_best_set(plies):
    state = functional.starts(SPEC, 30, seed=5)
    found = minimax_targets(network, state, 0.9, plies=plies)
    for points, values in zip(state.point_lists(), found.tolist(), strict=True):
        expected = [target(points, axes, plies) for axes in rule.host_actions(3)]
        assert values == pytest.approx(expected, abs=1e-4)
    best = ValueHost(network, lookahead=plies, gamma=0.9).act(state, None, None)
    assert torch.equal(best, found.argmax(1))


def test_the_agent_of_a_network_leaves_what_is_worth_least():
    state = functional.starts(SPEC, 40, seed=6)
    for axes in rule.host_actions(3):
        coords = torch.zeros(40, 3, dtype=torch.bool)
        coords[:, list(axes)] = True
        answers = ValueAgent(network).act(state, coords, RowRandom(torch.zeros_like(state.count)))
        for points, answer in zip(state.point_lists(), answers.tolist(), strict=True):
            worths = {axis: worth(rule.move(points, axes, axis)) for axis in axes}
            assert worths[answer] == min(worths.values())


def test_an_environment_that_scales_and_another_algorithm_are_refused():
    with pytest.raises(ValueError, match="need MinimaxDQN, got DDQN"):
        make_model().learn(8, WorstCasePositions())
    for env in (gymnasium.make_vec(ID, num_envs=2), VecNormalize(host().env)):
        with pytest.raises(ValueError, match="scale_observation=False and not normalised"):
            MinimaxDQN("HostPolicy", env)


@pytest.mark.parametrize("given", [(ID,), ("HostPolicy", ID), (None,), ("HostPolicy", None)])
def test_an_id_or_an_environment_alone_is_enough(tmp_path, given):
    games = gymnasium.make_vec(ID, num_envs=3, **MinimaxDQN.game)
    model = MinimaxDQN(*[games if each is None else each for each in given], learning_starts=0)
    assert model.n_envs == (256 if ID in given else 3)
    assert model.env.get_attr("plan")[0].spec.reposition
    assert (model.policy_kwargs["sort_axes"], model.learning_rate) == (True, "lin_3e-3")
    assert model.policy_kwargs["optimizer_class"] == "muon"
    assert (model.gamma, model.tau, model.target_update_interval) == (0.98, 0.02, 1)
    model.save(tmp_path / "model.zip")
    again = MinimaxDQN.load(tmp_path / "model.zip", env=ID)
    assert (again.n_envs, again.policy_kwargs) == (256, model.policy_kwargs)
    seen = functional.observe(functional.starts(SPEC, 5, 1), scale=False)
    seen = torch.nn.functional.pad(seen, (0, 0, 0, 16), value=-1.0)
    assert torch.equal(again.q_net(seen), model.q_net(seen))


@pytest.mark.parametrize(("callback", "size", "walks"), [(None, 2, 1), ([], 4, 0)])
def test_starts_grow_and_walks_run_unless_callbacks_are_given(monkeypatch, callback, size, walks):
    found = []
    monkeypatch.setattr(WorstCasePositions, "_on_training_start", lambda _: found.append("walks"))
    step = MinimaxDQN.collect_rollouts

    def look(model, *arguments):
        found.append(model.env.get_attr("plan")[0].start_spec.max_num_points)
        return step(model, *arguments)

    monkeypatch.setattr(MinimaxDQN, "collect_rollouts", look)
    host().learn(32 * 20, callback)
    assert (found.count("walks"), found[walks], found[-1]) == (walks, size, 4)


@pytest.mark.parametrize("name", ["zeillinger", "all_coord"])
def test_costs_are_longest_games_and_unproved_ones_are_none(name):
    player = make_host(name)
    state = functional.starts(GameSpec(max_num_points=6), 4, seed=3)
    graphs = [Graph(player, GameSpec(), Limits(max_positions=most)) for most in (99_999, 60)]
    costs, few = (set_costs(each, state, 40) for each in graphs)
    after, _ = functional.successors(state)
    moves, _ = worst_cases(player, after, GameSpec(max_num_points=6), 38, 50_000)
    assert torch.equal(1 - worst_answers(-moves.view(4, -1), 3), costs)
    assert ((few == costs) | (few == 0)).all()
    assert 0 in few  # the search was given up before it proved these


def test_costs_of_the_best_host_are_the_proved_ones():
    data = load("moves-20").select(torch.arange(3))
    costs, more = (
        set_costs(Graph(make_host(name), GameSpec()), data.state, 60)
        for name in ("optimal", "zeillinger")
    )
    assert torch.equal(costs, data.costs.clamp(max=60))
    assert (more >= costs).all()


@pytest.mark.parametrize("exact", [0, 6])
def test_positions_and_costs_are_learnt_and_come_back_with_the_state(monkeypatch, exact):
    monkeypatch.setattr("sb3_ext.minimax.positions.MEMORY", 5)
    settings = {"starts": 5, "max_moves": 9, "keep": 7, "exact": exact}
    walk, again = (WorstCasePositions({"updates": 10}, **settings) for _ in range(2))
    seldom = WorstCasePositions({"updates": 100}, **settings)
    model = host().learn(32 * 30, callback=[walk, seldom])
    assert (seldom.positions is None) == (exact == 0)
    assert model.extra_losses == model.batch_changes == []
    assert len(walk.positions) <= 7 * 10
    batch = model.replay_buffer.sample(64)
    mixed = walk.change_batch(model, batch).observations
    assert torch.equal(mixed[:32], batch.observations[:32])
    assert (mixed[32:, None] == walk.positions).all(2).all(2).any(1).all()
    again.load_state_dict(walk.state_dict())
    again.init_callback(model)
    assert torch.equal(again.change_batch(model, batch).observations, mixed)
    assert torch.equal(again.extra_loss(model), walk.extra_loss(model))
    if not exact:
        return
    assert len(walk.learnt) == len(walk.costs) == 5
    assert 1 <= walk.costs.min() <= walk.costs.max() <= 9
    again.learnt = walk.learnt[:1]
    again.costs = torch.tensor([[7, 2, 3, 9]])
    found = model.q_net(again.learnt)
    target = -(1 - 0.9**again.costs) / 0.1
    lost = torch.tensor([[5, 0, 1, 6]])  # 9 counts as 8
    expected = torch.nn.functional.smooth_l1_loss(found, target)
    expected = (expected + 10 * ((found / 0.3).softmax(1) * lost).sum()) * exact / 256
    assert again.extra_loss(model).item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize(("dimension", "points", "value"), [(4, 4, 6), (5, 3, 3)])
def test_costs_of_a_host_for_every_size_need_fewer_positions(dimension, points, value):
    state = functional.starts(GameSpec(dimension, points, max_value=value), 6, seed=4)
    game = GameSpec(dimension, points, reposition=True)
    plain, merged = (kind(make_host("any"), game) for kind in (Graph, EquivariantGraph))
    costs = set_costs(plain, state, 60)
    assert torch.equal(set_costs(merged, state, 60), costs)
    assert len(merged.keys) < 0.7 * len(plain.keys)


def test_joined_networks_have_the_mean_of_their_values():
    nets = {"point_net": [3], "pair_net": [4, 6], "context_net": [7], "head_net": [5]}
    shape = {"extractor": "point_pairs", "net_arch": [2], "features_extractor_kwargs": nets}
    policies = [host(seed=seed, policy_kwargs=shape).policy for seed in range(3)]
    seen = functional.observe(functional.starts(SPEC, 20, 1), scale=False)
    mean = sum(each.q_net(seen) for each in policies) / 3
    assert torch.allclose(join(policies).q_net(seen), mean, atol=1e-6)
    with pytest.raises(ValueError, match="several shapes"):
        join([policies[0], host().policy])


def held_up(model):
    """From how many of 40 starts an agent can hold the host up for more than 50 moves."""
    starts = functional.starts(SPEC, 40, seed=99)
    return int((worst_cases(player_of(model), starts, SPEC, 50, 5_000)[1] > 50).sum())


@pytest.mark.learning
def test_the_host_learns_to_win_against_every_agent_without_the_solver(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("learning by play asked the solver")

    for solver in ("search.Search", "labels.Labeller"):
        monkeypatch.setattr(f"resgym.solver.{solver}.__init__", refuse)
    model = host()
    assert held_up(model) > 20
    model.learn(32 * 1500, callback=WorstCasePositions({"updates": 100}))
    assert held_up(model) == 0


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
    model = host(policy_kwargs=SMALL)
    met = []
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


def test_positions_are_of_the_game_and_starts_grow_with_the_environments(learnt):
    model, (flat, _), _ = learnt
    for state in (flat.positions, flat.state_dict()["played"]):
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


def test_positions_that_differ_by_names_are_asked_about_once(learnt):
    network = learnt[0].q_net
    state = functional.starts(GameSpec(4, 5, max_value=3), 200, seed=2)
    generator = torch.Generator().manual_seed(0)
    names = fingerprints(state)
    axes = torch.randperm(4, generator=generator)
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
