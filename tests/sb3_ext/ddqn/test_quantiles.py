"""Quantiles of the return: against sb3-contrib's loss, masks in the target, learning."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sb3_contrib.common.utils import quantile_huber_loss

from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.ddqn import DDQN, quantiles
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from tests.sb3_ext.ddqn.helpers import MaskedToy, make_model, random_batch
from tests.sb3_ext.ddqn.test_learning import THRESHOLD, score, trained


def test_the_loss_is_that_of_sb3_contrib_row_by_row() -> None:
    source = torch.Generator().manual_seed(0)
    predicted = 2 * torch.randn((16, 7), generator=source)
    target = 2 * torch.randn((16, 5), generator=source)
    ours, theirs = predicted.clone().requires_grad_(), predicted.clone().requires_grad_()
    each = quantiles.quantile_huber(ours, target)
    loss = quantile_huber_loss(theirs, target, sum_over_quantiles=True)
    torch.testing.assert_close(each.mean(), loss)
    for row in range(16):
        alone = quantile_huber_loss(predicted[[row]], target[[row]], sum_over_quantiles=True)
        torch.testing.assert_close(each[row], alone)
    each.mean().backward()
    loss.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_targets_by_hand() -> None:
    """Three rows: the best action is illegal; nothing is legal; the episode terminated."""
    of_one = torch.tensor([[1.0, 9.0, 4.0], [3.0, 9.0, 6.0]])  # two quantiles, three actions
    given = of_one.repeat(3, 1, 1)
    legal = torch.tensor([[True, False, True], [False] * 3, [True] * 3])
    rewards, dones = torch.tensor([10.0, 20.0, 30.0]), torch.tensor([0.0, 0.0, 1.0])
    plain = quantiles.quantile_targets(rewards, dones, 0.5, given, legal)
    assert plain.tolist() == [[12.0, 13.0], [20.0, 20.0], [30.0, 30.0]]
    # Double: the online network prefers the first of the legal ones.
    online = torch.tensor([[2.0, 5.0, 1.0]]).repeat(3, 1)
    discounts = torch.tensor([0.5, 0.5, 0.5])
    double = quantiles.quantile_targets(rewards, dones, discounts, given, legal, online)
    assert double[0].tolist() == [10.5, 11.5]


@pytest.mark.parametrize("double_q", [False, True])
def test_the_masks_of_a_batch_are_in_the_target(double_q: bool) -> None:
    model = make_model(n_quantiles=5, double_q=double_q)
    batch = random_batch(1, masked=True)._replace(dones=torch.zeros(16, 1))
    with torch.no_grad():
        masked = model._compute_target(batch)
        of_next = model.q_net_target.quantiles(batch.next_observations)
    # The target network is a copy, so that both kinds choose the same action here.
    for row in range(16):
        allowed = batch.next_legal[row].nonzero()[:, 0].tolist()
        best = max(allowed, key=lambda a, row=row: float(of_next[row, :, a].mean()), default=None)
        value = torch.zeros(5) if best is None else of_next[row, :, best]
        torch.testing.assert_close(masked[row], batch.rewards[row] + 0.99 * value)
    assert not torch.equal(masked, model._compute_target(batch._replace(next_legal=None)))


def test_the_value_is_the_mean_of_the_quantiles(tmp_path: Any) -> None:
    model = make_model(n_quantiles=5, policy_kwargs={"net_arch": [8]}).learn(128)
    shown = torch.rand(6, 9)
    values = model.q_net(shown)
    torch.testing.assert_close(values, model.q_net.quantiles(shown).mean(1))
    again = build_policy(describe_policy(model.policy))
    again.load_state_dict(model.policy.state_dict())
    torch.testing.assert_close(again.q_net(shown), values)
    model.save(tmp_path / "model")
    torch.testing.assert_close(DDQN.load(tmp_path / "model").q_net(shown), values)


def test_weights_of_a_batch_count() -> None:
    model = make_model(n_quantiles=5)
    model.policy.set_training_mode(False)
    batch = random_batch(2)
    weights = torch.linspace(0, 1, 16)
    parts = [
        model._compute_loss(random_batch(2)._replace(weights=row)).loss * 16
        for row in torch.eye(16)
    ]
    torch.testing.assert_close(model._compute_loss(batch).loss, sum(parts) / 16)
    weighted = model._compute_loss(batch._replace(weights=weights)).loss
    torch.testing.assert_close(
        weighted, sum(w * part for w, part in zip(weights, parts, strict=True)) / 16
    )


@pytest.mark.parametrize(
    "arguments", [{"dueling": True}, {"loss": "mse"}, {"compile_networks": True}], ids=str
)
def test_what_does_not_go_together(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"^n_quantiles: ") as error:
        make_model(n_quantiles=5, **arguments)
    assert "\n" not in str(error.value)


@pytest.mark.learning
@pytest.mark.parametrize("kind", [None, PrioritizedReplayBuffer])
def test_learns_the_toy(kind: Any) -> None:
    model = trained(MaskedToy, n_quantiles=10, replay_buffer_class=kind)
    assert score(model, MaskedToy) > THRESHOLD
