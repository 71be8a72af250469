"""The teacher during reinforcement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from stable_baselines3.common.callbacks import CallbackList

import resgym  # noqa: F401  registers the environments
from sb3_ext.checkpoints.checkpoint import CheckpointError
from sb3_ext.checkpoints.model_state import model_state
from sb3_ext.checkpoints.resume import resume, save_run
from sb3_ext.studies.teach.examples import observe
from sb3_ext.studies.teach.losses import choice_loss
from sb3_ext.studies.teach.reinforcement import Teacher
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.studies.teach.labelled import SmallData, make, optimal_share


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_the_teacher_adds_its_loss(seat: str) -> None:
    """Its loss is that of the positions as they are, if it sees all of them unchanged."""
    data = SmallData(seat)
    teacher = Teacher(data, weight=0.5, batch_size=4000, temperature=0.3, augment=False)
    model = make(seat)
    loss = float(teacher.extra_loss(model).detach())
    examples = data.split("train")
    values = model.q_net(observe(examples, 5))
    losses = choice_loss(values, examples.optimal, examples.coords, 0.3)
    # 4000 draws of about a hundred positions.
    assert loss == pytest.approx(0.5 * float(losses.detach().mean()), rel=0.05)


def test_the_moves_are_learned_while_it_plays() -> None:
    data = SmallData()
    examples = data.split("train")

    def share(*callbacks: Any) -> float:
        model = make(learning_rate=3e-3, gradient_steps=2, policy_kwargs={"net_arch": [64, 64]})
        model.learn(64 + 8 * 150, list(callbacks))
        assert model.extensions == []
        return optimal_share(model, examples)

    assert share(Teacher(data, weight=1.0, batch_size=64)) > 0.9
    assert share() < 0.8


def test_resuming_with_a_teacher_is_exact(tmp_path: Any) -> None:
    def callbacks() -> list[Any]:
        return [Teacher(SmallData(), batch_size=16, seed=3)]

    whole = make()
    whole.learn(480, callbacks())
    first, its = make(), callbacks()
    first.learn(240, its)
    save_run(first, tmp_path, CallbackList(its))
    second, its = make(), callbacks()
    resume(second, tmp_path, CallbackList(its))
    second.learn(480 - second.num_timesteps, its, reset_num_timesteps=False)
    ours, theirs = model_state(second), model_state(whole)
    for part in theirs:
        assert equal(ours[part], theirs[part]), part
    # The teacher, its seed and the renaming made a difference.
    for others in (
        [],
        [Teacher(SmallData(), batch_size=16, seed=4)],
        [Teacher(SmallData(), batch_size=16, seed=3, augment=False)],
    ):
        other = make()
        other.learn(480, others)
        assert not same(weights(other), weights(whole))


def test_another_teacher_is_refused(tmp_path: Any) -> None:
    model, teacher = make(), Teacher(SmallData(), batch_size=16)
    model.learn(80, teacher)
    save_run(model, tmp_path, teacher)
    for other, message in (
        (Teacher(SmallData(), batch_size=16, weight=0.2), "weight was 0.1, now it is 0.2"),
        (Teacher(SmallData(positions=50), batch_size=16), "data was .*, now it is"),
    ):
        with pytest.raises(CheckpointError, match=message):
            resume(make(), tmp_path, other)


class TwoFamilies(SmallData):
    """Positions of less and of more than three moves."""

    families = ("quick", "slow")

    def split(self, name: str) -> Any:
        part = super().split(name)
        return replace(part, family=(part.value > 3).long())


def test_some_families_only() -> None:
    every = Teacher(TwoFamilies())._examples.value
    slow = Teacher(TwoFamilies(), families=["slow"])._examples
    assert torch.equal(slow.value, every[every > 3])
    assert 0 < len(slow) < len(every)
    assert len(Teacher(TwoFamilies(), families=["slow", "quick"])._examples) == len(every)
    with pytest.raises(ValueError, match="families: unknown family 'slaw'; did you mean 'slow'"):
        Teacher(TwoFamilies(), families=["slaw"])
    with pytest.raises(ValueError, match="families: there is no position of"):
        Teacher(TwoFamilies(), families=[])


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="data: is labelled for the agent, the policy is a host"):
        make().learn(80, Teacher(SmallData("agent")))
    with pytest.raises(ValueError, match=r"^weight must lie in \(0, inf\), got 0.0$"):
        Teacher(SmallData(), weight=0.0)
    with pytest.raises(ValueError, match=r"reward must be one of .* with value_weight, got None"):
        Teacher(SmallData(), value_weight=0.3)
    with pytest.raises(ValueError, match="there is no dataset"):
        Teacher("nowhere/at/all")
