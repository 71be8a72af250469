"""The loss by name, bfloat16, compiled networks, rates of parts, and what takes part in updates."""

import pytest
import torch

from sb3_ext.ddqn import DDQN
from tests.sb3_ext.ddqn.helpers import FixedBatches, make_model, random_batch, same, weights


def terms_of(loss, **changes):
    model = make_model(loss=loss)
    model.policy.set_training_mode(False)
    return model.compute_loss(random_batch(1)._replace(**changes))


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
    terms = terms_of(loss, weights=given)
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
    first, second = make_model(autocast=True, exploration_rate=0.0), make_model()
    batch = random_batch(1)
    half, full = (model.compute_loss(batch) for model in (first, second))
    assert half.loss.dtype == half.predicted.dtype == half.target.dtype == torch.float32
    assert not torch.equal(half.predicted, full.predicted)
    torch.testing.assert_close(half.predicted, full.predicted, atol=0.02, rtol=0.02)
    assert not same(weights(updated(first)), weights(updated(second)))
    assert {value.dtype for value in weights(first).values()} == {torch.float32}
    seen = torch.rand(512, 9)
    values = first.q_net(seen)
    first.learning_starts = 0
    chosen = first.explorer()(seen, None, torch.Generator())
    best = values.amax(dim=1)
    assert (best - values.gather(1, chosen[:, None])[:, 0]).max() < 0.05


FACTORS = {"q_net.0": 0.0, "q_net.1.bias": 3.0, "q_net": 0.5}


def test_parts_have_rates_of_their_own():
    """Plain gradient descent, so that a step is the rate times the gradient."""

    def step(**policy_kwargs):
        kwargs = {"net_arch": [32], "optimizer_class": "sgd", **policy_kwargs}
        model = make_model(learning_rate=0.1, max_grad_norm=None, policy_kwargs=kwargs)
        before = weights(model)
        after = weights(updated(model))
        return {name: after[name] - before[name] for name in after if name.startswith("q_net.")}

    plain, own = step(), step(learning_rate_factors=FACTORS)
    for name, factor in {
        "0.0.weight": 0.0,
        "0.0.bias": 0.0,
        "1.weight": 0.5,
        "1.bias": 3.0,
    }.items():
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

    def loss(model):
        parts = [parameter.square().sum() for parameter in model.q_net.parameters()]
        return factor * 0.5 * torch.stack(parts).sum()

    return loss


def test_the_gradient_of_an_extra_loss_is_added(tmp_path):
    """After one plain step of gradient descent on a fixed batch; a saved model has none."""

    def after(rate, *losses):
        kwargs = {"net_arch": [8], "optimizer_class": "sgd"}
        model = make_model(learning_rate=rate, max_grad_norm=None, policy_kwargs=kwargs)
        model.extra_losses.extend(losses)
        model.save(tmp_path / "model.zip")
        assert DDQN.load(tmp_path / "model.zip").extra_losses == []
        return weights(updated(model))

    before, plain, decayed = after(0.0), after(0.1), after(0.1, decay(0.1), decay(0.2))
    for name, value in before.items():
        if name.startswith("q_net."):
            torch.testing.assert_close(decayed[name], plain[name] - 0.1 * 0.3 * value)
    assert not same(plain, decayed)


@pytest.mark.parametrize("flag", ["dueling", "sort_axes", "quotients"])
def test_a_flag_is_true_or_false(flag):
    """A word such as "no" would count as true."""
    for value in ("no", 1, [0, 1, 2]):
        settings = {flag: value}
        if flag == "quotients":
            settings = {"extractor": "point_pairs", "features_extractor_kwargs": settings}
        with pytest.raises(TypeError, match=rf"^{flag} must be true or false, got "):
            DDQN("HostPolicy", "resgym/HironakaHost-v0", policy_kwargs=settings)
