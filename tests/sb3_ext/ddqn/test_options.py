"""The loss by name, updates in bfloat16, and parts of the network with rates of their own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from sb3_ext.ddqn import DDQN
from tests.sb3_ext.ddqn.helpers import FixedBatches, make_model, random_batch, same, weights
from tests.sb3_ext.ddqn.test_learning import THRESHOLD, score, trained


def terms_of(loss: Any, **changes: Any) -> Any:
    model = make_model(loss=loss)
    model.policy.set_training_mode(False)
    return model._compute_loss(random_batch(1)._replace(**changes))


@pytest.mark.parametrize(
    ("loss", "by_hand"),
    [
        ("huber", lambda error: torch.where(error < 1, error**2 / 2, error - 0.5)),
        ("mse", torch.square),
        ("mae", lambda error: error),
        (functional.huber_loss, lambda error: torch.where(error < 1, error**2 / 2, error - 0.5)),
    ],
    ids=["huber", "mse", "mae", "function"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_by_hand(loss: Any, by_hand: Any, weighted: bool) -> None:
    given = torch.linspace(0.0, 1.0, 16) if weighted else None
    terms = terms_of(loss, weights=given)
    each = by_hand((terms.predicted - terms.target).abs())
    torch.testing.assert_close(terms.loss, (each if given is None else given * each).mean())
    assert bool((each > 1.0).any())  # else three of them could not be told apart


def updated(model: DDQN, updates: int = 1) -> DDQN:
    model.replay_buffer = FixedBatches([random_batch(i) for i in range(updates)])  # type: ignore[assignment]
    model._update_current_progress_remaining(0, 1)
    model.train(updates, 16)
    return model


def test_autocast_is_the_same_update_with_fewer_digits() -> None:
    """Products have 8 bits: values differ, by about 2^-8 of them. All that is kept is float32."""
    first, second = make_model(autocast=True), make_model()
    batch = random_batch(1)
    half, full = (model._compute_loss(batch) for model in (first, second))
    assert half.loss.dtype == half.predicted.dtype == half.target.dtype == torch.float32
    assert not torch.equal(half.predicted, full.predicted)
    torch.testing.assert_close(half.predicted, full.predicted, atol=0.02, rtol=0.02)
    assert not same(weights(updated(first)), weights(updated(second)))
    assert {value.dtype for value in weights(first).values()} == {torch.float32}


FACTORS = {"q_net": 0.5, "q_net.0": 0.0, "q_net.1.bias": 3.0}


def test_parts_have_rates_of_their_own() -> None:
    """Plain gradient descent, so that a step is the rate times the gradient."""

    def step(**policy_kwargs: Any) -> dict[str, torch.Tensor]:
        kwargs: Any = {"net_arch": [32], "optimizer_class": "sgd", **policy_kwargs}
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


def test_factors_stay_with_a_schedule_and_a_saved_model(tmp_path: Any) -> None:
    kwargs = {"net_arch": [32], "learning_rate_factors": {"q_net.1": 0.1}}
    model = make_model(learning_rate="lin_1.0_0.0_10", policy_kwargs=kwargs)
    updated(model, 6)
    model.save(tmp_path / "model")
    for each in (model, DDQN.load(tmp_path / "model", env=model.env)):
        rates = [group["lr"] for group in each.policy.optimizer.param_groups]
        assert rates == pytest.approx([0.5, 0.05])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"loss": "hubert"}, ValueError, "unknown loss 'hubert'; did you mean 'huber'"),
        ({"loss": 3}, TypeError, "loss: got 3, need a function or huber, mae, mse"),
        ({"autocast": "bf16"}, TypeError, "autocast: got 'bf16', need True or False"),
        (
            {"policy_kwargs": {"learning_rate_factors": {"q_nat": 2.0}}},
            ValueError,
            "learning_rate_factors: unknown part 'q_nat'; did you mean 'q_net'",
        ),
        (
            {"policy_kwargs": {"learning_rate_factors": {"q_net": -1.0}}},
            ValueError,
            r"learning_rate_factors.q_net must lie in \[0",
        ),
        (
            {"policy_kwargs": {"learning_rate_factors": 3}},
            TypeError,
            "learning_rate_factors must map parts of the network to factors, got 3",
        ),
    ],
)
def test_bad_arguments(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as found:
        make_model(**arguments)
    assert "\n" not in str(found.value)


@pytest.mark.learning
@pytest.mark.parametrize("arguments", [{"autocast": True}, {"loss": "mse"}], ids=str)
def test_learns_the_toy(arguments: dict[str, Any]) -> None:
    assert score(trained(**arguments)) > THRESHOLD
