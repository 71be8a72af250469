"""What takes part in an update beside the loss."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sb3_ext.ddqn import DDQN, UpdateExtension
from tests.sb3_ext.ddqn.helpers import FixedBatches, make_model, random_batch, same, weights


class Decay(UpdateExtension):
    """Half of the squared weights, times a factor: its gradient is known."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def extra_loss(self, model: Any) -> torch.Tensor:
        parts = [parameter.square().sum() for parameter in model.q_net.parameters()]
        return self.factor * 0.5 * torch.stack(parts).sum()


class FirstRows(UpdateExtension):
    def change_batch(self, model: Any, batch: Any) -> Any:
        fields = {
            name: value[:8]
            for name, value in batch._asdict().items()
            if isinstance(value, torch.Tensor)
        }
        return batch._replace(**fields)


def updated(*extensions: UpdateExtension, rate: float = 0.1, batch: Any = None) -> DDQN:
    """A model after one plain step of gradient descent on a fixed batch."""
    model = make_model(
        learning_rate=rate,
        max_grad_norm=None,
        policy_kwargs={"net_arch": [8], "optimizer_class": "sgd"},
    )
    model.replay_buffer = FixedBatches([batch or random_batch(1)])  # type: ignore[assignment]
    model.extensions.extend(extensions)
    model._update_current_progress_remaining(0, 1)
    model.train(1, 16)
    return model


def test_the_gradient_of_an_extra_loss_is_added() -> None:
    before = weights(updated(rate=0.0))
    plain, decayed = weights(updated()), weights(updated(Decay(0.3)))
    for name, value in before.items():
        if name.startswith("q_net."):
            torch.testing.assert_close(decayed[name], plain[name] - 0.1 * 0.3 * value)
    assert not same(plain, decayed)
    # Two of them add up.
    twice, both = weights(updated(Decay(0.6))), weights(updated(Decay(0.3), Decay(0.3)))
    for name, value in twice.items():
        torch.testing.assert_close(both[name], value)


def test_a_changed_batch_is_what_is_learned_from() -> None:
    few = weights(updated(batch=FirstRows().change_batch(None, random_batch(1))))
    assert same(weights(updated(FirstRows())), few)
    assert not same(weights(updated()), few)


def test_extensions_are_not_saved(tmp_path: Any) -> None:
    model = make_model()
    model.extensions.append(Decay(0.3))
    model.save(tmp_path / "model.zip")
    assert DDQN.load(tmp_path / "model.zip").extensions == []


def test_a_captured_update_refuses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    model.extensions.append(Decay(0.3))
    model.cuda_graphs = True
    monkeypatch.setattr("sb3_ext.ddqn.update.graph_fault", lambda device, optimizer: None)
    with pytest.raises(ValueError, match=r"^cuda_graphs: must be False with .* \(Decay\)$"):
        model.train(1, 16)
