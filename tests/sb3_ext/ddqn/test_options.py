"""Losses, networks and optimisers by name, and what else takes part in updates."""

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.policies import (
    OPTIMIZERS,
    DuelingHead,
    FusedAdam,
    clip_gradients,
    forget_tiny_moments,
)
from tests.sb3_ext.helpers import FixedBatches, equal, game_model, make_model, random_batch, weights


@pytest.mark.parametrize(
    ("loss", "by_hand"),
    [
        ("huber", lambda error: torch.where(error < 1, error**2 / 2, error - 0.5)),
        ("mse", torch.square),
        ("mae", lambda error: error),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_by_hand(loss, by_hand, weighted):
    given = torch.linspace(0.0, 1.0, 16) if weighted else None
    model = make_model(loss=loss)
    model.policy.set_training_mode(False)
    terms = model.compute_loss(random_batch(1)._replace(weights=given))
    each = by_hand((terms.predicted - terms.target).abs())
    torch.testing.assert_close(terms.loss, (each if given is None else given * each).mean())
    assert bool((each > 1.0).any())  # else three of them could not be told apart


def updated(model, updates=1):
    model.replay_buffer = FixedBatches([random_batch(i) for i in range(updates)])
    model._update_current_progress_remaining(0, 1)
    model.train(updates, 16)
    return model


def test_autocast_is_the_same_update_with_fewer_digits():
    """Products have 8 bits: values differ, by about 2^-8 of them. All that is kept is float32."""
    first = make_model(autocast=True, exploration_rate=0.0)
    second = make_model()
    batch = random_batch(1)
    half, full = (model.compute_loss(batch) for model in (first, second))
    assert half.loss.dtype == half.predicted.dtype == half.target.dtype == torch.float32
    assert not torch.equal(half.predicted, full.predicted)
    torch.testing.assert_close(half.predicted, full.predicted, atol=0.02, rtol=0.02)
    assert not equal(weights(updated(first)), weights(updated(second)))
    assert {value.dtype for value in weights(first).values()} == {torch.float32}
    seen = torch.rand(512, 9)
    values = first.q_net(seen)
    first.learning_starts = 0
    chosen = first.explorer()(seen, None, torch.Generator())
    best = values.amax(dim=1)
    assert (best - values.gather(1, chosen[:, None])[:, 0]).max() < 0.05


def descending(rate=0.1, **policy_kwargs):
    """A model of plain gradient descent: a step is the rate times the gradient."""
    kwargs = {"net_arch": [32], "optimizer_class": "sgd", **policy_kwargs}
    return make_model(learning_rate=rate, max_grad_norm=None, policy_kwargs=kwargs)


def test_parts_have_rates_of_their_own():
    def step(**policy_kwargs):
        model = descending(**policy_kwargs)
        before = weights(model)
        after = weights(updated(model))
        return {name: after[name] - before[name] for name in after if name.startswith("q_net.")}

    factors = {"q_net.0": 0.0, "q_net.1.bias": 3.0, "q_net": 0.5}
    plain = step()
    own = step(learning_rate_factors=factors)
    parts = {"0.0.weight": 0.0, "0.0.bias": 0.0, "1.weight": 0.5, "1.bias": 3.0}
    for name, factor in parts.items():
        full = plain[f"q_net.q_net.{name}"]
        assert full.abs().sum() > 0
        torch.testing.assert_close(own[f"q_net.q_net.{name}"], factor * full)


@pytest.mark.long
def test_compiled_networks_learn_the_same_and_compile_once():
    """No compilation after the first updates, counted by PyTorch."""
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler

        get_cpp_compiler()
    except Exception:
        pytest.skip("no compiler")
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    eager, model = (
        make_model(gradient_steps=2, compile_networks=each) for each in (None, "default")
    )
    eager.learn(240)
    model.learn(80)
    graphs = counters["stats"]["unique_graphs"]
    assert graphs > 0
    model.learn(160, reset_num_timesteps=False)
    assert counters["stats"]["unique_graphs"] == graphs
    for name, value in weights(eager).items():
        torch.testing.assert_close(weights(model)[name], value, atol=1e-5, rtol=1e-4)


def decay(factor):
    """Half of the squared weights, times a factor: its gradient is known."""
    return lambda model: (
        factor * 0.5 * sum(each.square().sum() for each in model.q_net.parameters())
    )


def test_the_gradient_of_an_extra_loss_is_added(tmp_path):
    """After one step on a fixed batch; a saved model has none."""

    def after(rate, *losses):
        model = descending(rate)
        model.extra_losses.extend(losses)
        model.save(tmp_path / "model.zip")
        assert DDQN.load(tmp_path / "model.zip").extra_losses == []
        return weights(updated(model))

    before = after(0.0)
    plain = after(0.1)
    decayed = after(0.1, decay(0.1), decay(0.2))
    for name, value in before.items():
        if name.startswith("q_net."):
            torch.testing.assert_close(decayed[name], plain[name] - 0.1 * 0.3 * value)
    assert not equal(plain, decayed)


@pytest.mark.parametrize(
    ("role", "extractor", "optimizer"),
    [
        ("host", "flatten", "adam"),
        ("host", "point_set", "adamw"),
        ("agent", "flatten", "rmsprop"),
        ("agent", "point_set", "sgd"),
        ("host", "point_set", "muon"),
    ],
)
def test_policies_learn_on_the_game_and_predict_for_one_row_or_many(role, extractor, optimizer):
    kwargs = {"extractor": extractor, "optimizer_class": optimizer, "net_arch": [32, "b", "r32"]}
    model = game_model(role, 16, dueling=optimizer != "adamw", policy_kwargs=kwargs)
    assert isinstance(model.policy.optimizer, OPTIMIZERS.resolve(optimizer))
    before = next(model.q_net.parameters()).clone()
    model.learn(160)
    assert not torch.equal(before, next(model.q_net.parameters()))
    seen = model.env.reset()
    first = {k: v[0] for k, v in seen.items()} if isinstance(seen, dict) else seen[0]
    many, one = (model.predict(each, deterministic=True)[0] for each in (seen, first))
    assert (many.shape, one.shape, one) == ((16,), (), many[0])
    assert isinstance(one, np.ndarray)


def test_dueling_head_by_hand():
    head = DuelingHead(1, 3)
    with torch.no_grad():
        head.value.weight.fill_(0.0)
        head.value.bias.fill_(5.0)
        head.advantage.weight.copy_(torch.tensor([[1.0], [2.0], [6.0]]))
        head.advantage.bias.fill_(0.0)
    latent = torch.tensor([[2.0], [1.0]])  # each row has a mean of its own
    assert head(latent).tolist() == [[1.0, 3.0, 11.0], [3.0, 4.0, 8.0]]


SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


def test_no_square_becomes_subnormal_and_no_weight_changes():
    """Squares shrink more slowly than means: here they begin where 70,000 updates bring them."""
    found = []
    for forget in (True, False):
        weights = torch.nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))
        optimizer = torch.optim.Adam([weights], lr=1e-3)
        weights.grad = torch.tensor([0.5, 0.0, 0.0])
        optimizer.step()
        state = optimizer.state[weights]
        state["exp_avg_sq"][1:] = 1.5e-37
        for step in range(1, 3001):
            # The third unit comes back to life in the end.
            weights.grad = torch.tensor([0.5, 0.0, 1e-3 if step > 2990 else 0.0])
            optimizer.step()
            if forget and step % 100 == 0:
                forget_tiny_moments(optimizer)
            smallest = float(state["exp_avg_sq"][1])
            assert not forget or smallest == 0 or smallest >= SMALLEST_NORMAL
        found.append(weights.detach().clone())
        if not forget:
            assert 0 < smallest < SMALLEST_NORMAL  # what would be there otherwise
    assert torch.equal(*found)


def test_moments_that_still_move_a_weight_stay():
    weights = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weights])
    weights.grad = torch.zeros(2)
    optimizer.step()
    small = {"exp_avg": torch.tensor([1e-31, 1e-29]), "exp_avg_sq": torch.tensor([1e-38, 3e-38])}
    optimizer.state[weights].update({name: each.clone() for name, each in small.items()})
    forget_tiny_moments(optimizer)
    for name, (_, stays) in small.items():
        assert torch.equal(optimizer.state[weights][name], torch.tensor([0.0, stays]))


@pytest.mark.parametrize("max_norm", [0.1, torch.inf])
def test_clip_and_step_give_the_bits_of_pytorch(max_norm):
    networks = []
    for kind, clip in (
        (FusedAdam, clip_gradients),
        (torch.optim.Adam, torch.nn.utils.clip_grad_norm_),
    ):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Linear(32, 4))
        optimizer = kind(network.parameters(), lr=0.01, fused=True, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            network(torch.randn(16, 8)).square().mean().backward()
            clip([*network.parameters()], max_norm)
            optimizer.step()
        networks.append(network.state_dict())
    assert all(torch.equal(networks[0][name], networks[1][name]) for name in networks[0])


def test_hooks_around_steps_run_and_change_no_bit():
    """Those of one optimiser, and those of all."""
    seen = []
    found = []
    for hooked in (False, True):
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = FusedAdam([weight], lr=0.1, fused=True)
        handles = []
        if hooked:
            handles = [
                optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
                optimizer.register_step_post_hook(lambda *_: seen.append("after")),
                register_optimizer_step_post_hook(lambda *_: seen.append("after any")),
            ]
        for _ in range(2):
            weight.grad = torch.tensor([1.0, -2.0, 0.5])
            optimizer.step()
        for handle in handles:
            handle.remove()
        optimizer.step()
        found.append(weight.detach().clone())
    assert torch.equal(*found)
    assert sorted(seen) == ["after"] * 2 + ["after any"] * 2 + ["before"] * 2
