"""Updates of plain networks without autograd beside the same ones with it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

from sb3_ext.ddqn import DDQN, UpdateExtension
from sb3_ext.ddqn import ddqn as module
from sb3_ext.ddqn.update import updates_are_plain
from sb3_ext.networks.extractors import FlattenExtractor
from tests.sb3_ext.ddqn.helpers import make_model, random_batch

pytest.importorskip("numba")


def is_plain(model: DDQN) -> bool:
    return updates_are_plain(model, DDQN._compute_loss)


class Nothing(UpdateExtension):
    """Takes part and changes nothing."""


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"double_q": False, "max_grad_norm": 1e-3},
        {"policy_kwargs": {"net_arch": []}},
        {"policy_kwargs": {"net_arch": [8], "optimizer_class": "sgd"}},
    ],
    ids=str,
)
def test_a_run_is_the_same_within_rounding(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for plain in (True, False):
        if not plain:
            monkeypatch.setattr(module, "updates_are_plain", lambda *_: False)
        model = make_model(**arguments)
        assert is_plain(model)
        backward = torch.Tensor.backward
        used: list[bool] = []
        monkeypatch.setattr(
            torch.Tensor,
            "backward",
            lambda *a, b=backward, u=used, **k: (u.append(True), b(*a, **k)),
        )
        model.learn(320)
        monkeypatch.setattr(torch.Tensor, "backward", backward)
        assert bool(used) != plain
        assert model.num_updates > 20
        runs.append((model.q_net.state_dict(), model.logger.name_to_value))
    for name, value in runs[0][0].items():
        torch.testing.assert_close(value, runs[1][0][name], rtol=1e-3, atol=1e-5)


def test_what_an_update_measures_is_the_same() -> None:
    model, batch = make_model(), random_batch(3)
    parameters = list(model.q_net.parameters())
    found = []
    for plain in (True, False):
        state = {key: value.clone() for key, value in model.policy.state_dict().items()}
        found.append(module.make_update(model, parameters, batch, plain=plain))
        gradients = [each.grad.clone() for each in parameters]
        found.append(torch.cat([each.flatten() for each in gradients]))
        model.policy.load_state_dict(state)
    torch.testing.assert_close(found[0], found[2], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found[1], found[3], rtol=1e-4, atol=1e-6)


def test_whoever_takes_part_in_the_loss_gets_autograd() -> None:
    class Own(DDQN):
        def _compute_loss(self, batch: Any) -> Any:
            terms = super()._compute_loss(batch)
            assert terms.loss.requires_grad
            return terms._replace(loss=2.0 * terms.loss)

    model = make_model()
    assert is_plain(model)
    own = make_model()
    own.__class__ = Own
    assert not is_plain(own)
    own.learn(100)
    model.extensions.append(Nothing())
    assert not is_plain(model)
    model = make_model()
    model._compute_loss = lambda batch: None  # type: ignore[method-assign,assignment]
    assert not is_plain(model)


@pytest.mark.parametrize(
    "arguments",
    [
        {"loss": "mse"},
        {"autocast": True},
        {"policy_kwargs": {"net_arch": [16, "b"]}},
        {"policy_kwargs": {"net_arch": [16], "dueling": True}},
        {"policy_kwargs": {"net_arch": [16], "extractor": "sb3.FlattenExtractor"}},
    ],
    ids=str,
)
def test_what_is_not_plain(arguments: dict[str, Any]) -> None:
    assert not is_plain(make_model(**arguments))


def test_a_policy_of_sb3_is_not_plain_and_learns() -> None:
    model = make_model(policy=DQNPolicy, policy_kwargs={"net_arch": [16]})
    assert not is_plain(model)
    model.learn(100)
    assert model.num_updates > 0


class Scaled(FlattenExtractor):
    """Flattens, and learns a factor."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space)
        self.factor = nn.Parameter(torch.tensor(0.5))

    def forward(self, observations: Any) -> torch.Tensor:
        return self.factor * super().forward(observations)


def test_an_extractor_that_learns_is_not_plain_and_learns() -> None:
    model = make_model(policy_kwargs={"net_arch": [16], "features_extractor_class": Scaled})
    assert not is_plain(model)
    model.learn(200)
    assert float(model.q_net.features_extractor.factor) != 0.5


def test_hooks_and_frozen_weights_are_not_plain() -> None:
    model = make_model()
    handle = model.q_net.register_forward_hook(lambda *_: None)
    assert not is_plain(model)
    handle.remove()
    assert is_plain(model)
    weight = next(model.q_net.parameters())
    handle = weight.register_hook(lambda gradient: gradient * 0.0)
    assert not is_plain(model)
    handle.remove()
    weight.requires_grad_(False)
    assert not is_plain(model)


def test_a_batch_with_weights_and_targets_of_another_kind_get_autograd() -> None:
    model, batch = make_model(), random_batch(3)
    parameters = list(model.q_net.parameters())
    half = torch.full((len(batch.rewards),), 0.5)
    whole, weighted = (
        module.make_update(model, parameters, each, plain=True)[0]
        for each in (batch, batch._replace(weights=half))
        if model.policy.optimizer.zero_grad() is None
    )
    assert weighted < 0.75 * whole
    target = model._compute_target
    model._compute_target = lambda batch: target(batch).double()  # type: ignore[method-assign]
    assert module.make_update(model, parameters, batch, plain=True).isfinite().all()
