"""Supervised pretraining: it learns, resumes bit for bit, and gives an ordinary model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import resgym
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.checkpoint import CheckpointError, list_checkpoints
from sb3_ext.checkpoints.resume import init_from
from sb3_ext.ddqn import DDQN
from sb3_ext.studies.teach.measures import chosen_moves
from sb3_ext.studies.teach.pretraining import Pretraining
from sb3_ext.studies.teach.settings import TeachingSettings
from sb3_ext.training.loading import load_player
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.studies.teach.labelled import QUICK, SMALL, SmallData, make_model, optimal_share


def make(seat="host", data=None, seed=0, model=None, **settings):
    return Pretraining(
        model or make_model(seat, seed),
        data or SmallData(seat),
        TeachingSettings(**{**QUICK, "seed": seed, **settings}),
    )


def shuffled(examples):
    """The same labels, handed out to the positions in another order (of one set for the agent)."""
    order = torch.arange(len(examples))
    source = torch.Generator().manual_seed(1)
    groups = torch.zeros_like(order) if examples.coords is None else examples.coords.long() @ SETS
    for group in groups.unique():
        rows = (groups == group).nonzero()[:, 0]
        order[rows] = rows[torch.randperm(len(rows), generator=source)]
    return replace(examples, optimal=examples.optimal[order], value=examples.value[order])


SETS = torch.tensor([1, 2, 4])
LEARN = {"updates": 120, "batch_size": 128, "learning_rate": "cos_1e-2_1e-3"}


# Demanded shares of optimal choices on held-out positions, and recorded ones; the control is taught
# the labels of other positions, and must stay below what is demanded.
@pytest.mark.learning
@pytest.mark.parametrize(
    ("seat", "extractor", "demanded"),
    [
        ("host", "point_pairs", 0.75),  # 0.87, control 0.40
        ("host", "point_set", 0.52),  # 0.57, control 0.46
        ("host", "flatten", 0.53),  # 0.60, control 0.47
        ("agent", "point_pairs", 0.80),  # 0.90, control 0.65
        ("agent", "point_set", 0.74),  # 0.82, control 0.62
        ("agent", "flatten", 0.74),  # 0.82, control 0.65
    ],
)
def test_it_learns_positions_it_has_not_seen(seat, extractor, demanded):
    data = SmallData(seat, positions=350 if seat == "host" else 130)
    held_out, part = data.split("held_out"), data.split("train")
    kwargs = SMALL if extractor == "point_pairs" else {"extractor": extractor}
    shares = {}
    for name, examples in (("taught", part), ("control", shuffled(part))):
        model = make_model(seat, policy_kwargs=kwargs)
        data.split = lambda _, examples=examples: examples
        make(seat, data, model=model, **LEARN).run()
        shares[name] = optimal_share(model, held_out)
        chosen = chosen_moves(player_of(model), held_out)
        assert held_out.coords is None or bool(held_out.coords.gather(1, chosen[:, None]).all())
    assert shares["control"] < demanded < shares["taught"]


@pytest.mark.parametrize("stop_after", [20, 33])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, stop_after):
    whole = make()
    whole.run(tmp_path / "whole")
    first = make()

    def tick():
        if first.update == stop_after:
            first.request_stop()

    assert not first.run(tmp_path / "parts", tick=tick)
    assert first.update == stop_after
    second = make()
    assert second.resume(tmp_path / "parts") is not None
    assert second.update == stop_after
    assert second.run(tmp_path / "parts")
    assert same(weights(whole), weights(second))
    drop = [{k: v for k, v in entry.items() if k != "seconds"} for entry in whole.history]
    assert drop == [{k: v for k, v in e.items() if k != "seconds"} for e in second.history]
    files = [sorted(p.name for p in (tmp_path / part).iterdir()) for part in ("whole", "parts")]
    assert files[0] == files[1]


def test_the_seed_decides_and_augmentation_matters():
    def taught(**settings):
        pretraining = make(updates=20, **settings)
        pretraining.run()
        return weights(pretraining)

    again = taught(seed=1)
    assert same(again, taught(seed=1))
    assert not same(again, taught(seed=2))
    assert not same(again, taught(seed=1, augment=False))
    assert not same(again, taught(seed=1, value_weight=0.0))


def test_the_result_plays_loads_and_goes_on_learning(tmp_path):
    model = make_model()
    pretraining = make(model=model)
    assert pretraining.run(tmp_path / "run")
    examples = pretraining.validation
    expected = chosen_moves(player_of(model), examples)
    assert not model.policy.training

    model.save(tmp_path / "model.zip")
    loaded = DDQN.load(tmp_path / "model.zip", device="cpu")
    assert torch.equal(chosen_moves(player_of(loaded), examples), expected)

    trees = [
        resgym.resolution_tree("A2", load_player(path, "host"), max_depth=8)
        for path in (tmp_path / "run", tmp_path / "model.zip")
    ]
    assert [c.axes for c in trees[0]] == [c.axes for c in trees[1]]

    other = make_model(seed=5)
    init_from(other, tmp_path / "run")
    assert torch.equal(chosen_moves(player_of(other), examples), expected)
    assert same(other.q_net.state_dict(), other.q_net_target.state_dict())
    other.learn(200)
    assert other._n_updates > 0
    model.learn(200)  # and so does the model itself
    assert model._n_updates > 0


def test_the_models_own_learning_rate_plays_no_part():
    """A schedule of the model sets the rate of the model's optimiser before every step of it."""

    schedule = {"schedule": "linear", "init": 1e-9, "final": 1e-9, "steps": 10}
    models = make_model(), make_model(learning_rate=schedule)
    for model in models:
        make(model=model, updates=20).run()
    assert same(*map(weights, models))


def test_the_best_networks_are_kept(tmp_path):
    """Training on after the best measurement, here with an absurd rate, loses nothing."""
    rate = {
        "schedule": "chained",
        "pieces": [{"steps": 40, "then": 5e-3}, {"steps": None, "then": 3.0}],
    }
    pretraining = make(updates=120, learning_rate=rate, max_grad_norm=None)
    pretraining.run(tmp_path)
    last, best = pretraining.history[-1]["accuracy"], pretraining.best["accuracy"]
    assert best > last
    assert optimal_share(pretraining.model, pretraining.validation) == best
    player = load_player(tmp_path, "host")
    assert player.role == "host"


def test_patience_ends_a_run_without_progress():
    pretraining = make(updates=1000, learning_rate=1e-12, patience=3)
    assert pretraining.run()
    assert pretraining.update == pretraining.best["update"] + 3 * 20
    assert pretraining.update < 1000


def test_every_position_is_seen_once_in_an_epoch():
    pretraining = make(batch_size=7, augment=False)
    per_epoch = len(pretraining.train) // 7
    seen = []
    for update in range(2 * per_epoch):
        pretraining.update = update
        batch = pretraining._batch()
        seen += [str(p[: int(c)].tolist()) for p, c in zip(batch.points, batch.count, strict=True)]
    half = per_epoch * 7
    assert len(set(seen[:half])) == half
    assert seen[:half] != seen[half:]


@pytest.mark.parametrize(
    ("seat", "changes", "reward", "message"),
    [
        ("agent", {}, "step", "is labelled for the agent, the policy is a host"),
        ("host", {"dimension": 4}, "step", "has dimension 4, the policy plays 3"),
        ("host", {"max_num_points": 21}, "step", "up to 21 points, the policy observes 20"),
        ("host", {"objective": "nodes"}, "step", "value_weight: must be 0 for values in nodes"),
        ("host", {}, "points", "value_weight: must be 0 for the reward 'points'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(seat, changes, reward, message):
    data = SmallData(seat, positions=5)
    vars(data).update(changes)
    with pytest.raises(ValueError, match=message):
        Pretraining(make_model(), data, TeachingSettings(), reward)
    if "value_weight" in message:
        Pretraining(make_model(), data, TeachingSettings(value_weight=0.0), reward)


def test_a_resume_with_other_data_or_settings_is_refused(tmp_path):
    make(updates=20).run(tmp_path)
    with pytest.raises(CheckpointError, match=r"teaching/settings: temperature was 0\.1, now"):
        make(updates=20, temperature=0.5).resume(tmp_path)
    with pytest.raises(CheckpointError, match="teaching/data"):
        make(data=SmallData(seed=3), updates=20).resume(tmp_path)
    assert make(updates=20).resume(tmp_path / "nothing") is None
    assert len(list_checkpoints(tmp_path)) == 1


def test_a_loss_that_is_no_number_ends_training(tmp_path):
    pretraining = make(updates=60)
    with torch.no_grad():
        next(pretraining.policy.q_net.parameters()).fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="loss: is nan after 20 updates"):
        pretraining.run(tmp_path)
    assert not list_checkpoints(tmp_path)
