"""The teacher during reinforcement, and games seen in a mirror."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
import torch
from stable_baselines3.common.callbacks import CallbackList

import resgym  # noqa: F401  registers the environments
from resgym.game.actions import host_action_table
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.checkpoints.checkpoint import CheckpointError
from sb3_ext.checkpoints.resume import resume, save_run
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.buffers import TensorReplayBufferSamples
from sb3_ext.studies.teach.examples import examples_of, observe
from sb3_ext.studies.teach.losses import teaching_loss
from sb3_ext.studies.teach.pretraining import optimal_choices
from sb3_ext.studies.teach.reinforcement import MirroredGames, Teacher
from tests.sb3_ext.checkpoints.test_checkpoint import equal
from tests.sb3_ext.checkpoints.test_resume import full_state
from tests.sb3_ext.ddqn.helpers import make_model, same, weights
from tests.sb3_ext.studies.teach.labelled import SmallData


def make(seat: str = "host", **arguments: Any) -> DDQN:
    name = {"host": "Host", "agent": "Agent"}[seat]
    opponent = ["choose_first", "choose_last", "random"] if seat == "host" else "zeillinger"
    env = gymnasium.make_vec(
        f"resgym/Hironaka{name}-v0",
        num_envs=8,
        opponent=opponent,
        reward="step",
        max_num_points=5,
        max_value=4,
    )
    return make_model(TensorVecEnv(env), policy=f"{name}Policy", **arguments)


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_the_teacher_adds_its_loss(seat: str) -> None:
    """Its loss is that of the positions as they are, if it sees all of them unchanged."""
    data = SmallData(seat)
    teacher = Teacher(data, weight=0.5, batch_size=4000, temperature=0.3, augment=False)
    model = make(seat)
    teacher.init_callback(model)
    term = teacher._make(model)
    loss = float(term.extra_loss(model).detach())  # type: ignore[union-attr]
    examples = examples_of(data.split("train"))
    values = model.q_net(observe(examples, 5))
    everything = teaching_loss(
        values,
        examples.optimal,
        examples.coords,
        examples.value,
        seat=seat,
        reward="step",
        gamma=model.gamma,
        temperature=0.3,
        value_weight=0.0,
    )
    # 4000 draws of about a hundred positions.
    assert loss == pytest.approx(0.5 * float(everything.total.detach()), rel=0.05)
    assert loss != pytest.approx(float(everything.total.detach()), rel=0.2)


def test_the_moves_are_learned_while_it_plays() -> None:
    data = SmallData()
    examples = examples_of(data.split("train"))

    def share(*callbacks: Any) -> float:
        model = make(learning_rate=3e-3, gradient_steps=2, policy_kwargs={"net_arch": [64, 64]})
        model.learn(64 + 8 * 150, list(callbacks))
        assert model.extensions == []
        return float(optimal_choices(model.policy, examples).double().mean())

    assert share(Teacher(data, weight=1.0, batch_size=64)) > 0.9
    assert share() < 0.8


def test_resuming_with_a_teacher_and_a_mirror_is_exact(tmp_path: Any) -> None:
    def callbacks() -> list[Any]:
        return [Teacher(SmallData(), batch_size=16, seed=3), MirroredGames([2, 1, 0])]

    whole = make()
    whole.learn(480, callbacks())
    first, its = make(), callbacks()
    first.learn(240, its)
    save_run(first, tmp_path, CallbackList(its))
    second, its = make(), callbacks()
    resume(second, tmp_path, CallbackList(its))
    second.learn(480 - second.num_timesteps, its, reset_num_timesteps=False)
    ours, theirs = full_state(second), full_state(whole)
    for part in theirs:
        assert equal(ours[part], theirs[part]), part
    # Each of the two, and the seed, made a difference.
    for others in (
        [],
        callbacks()[:1],
        callbacks()[1:],
        [Teacher(SmallData(), batch_size=16, seed=4), MirroredGames([2, 1, 0])],
        [Teacher(SmallData(), batch_size=16, seed=3, augment=False), callbacks()[1]],
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
        part.family = (part.value > 3).long()
        return part


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
    for order in ([0, 1, 2], [0, 0, 1], [1, 2, 3]):
        with pytest.raises(ValueError, match=r"^order must be another order"):
            MirroredGames(order)
    with pytest.raises(ValueError, match=r"^order must have 3 axes, got \[1, 0\]$"):
        make().learn(80, MirroredGames([1, 0]))


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 2, 0], [0, 2, 1]])
@pytest.mark.parametrize("seat", ["host", "agent"])
def test_a_mirrored_transition_is_one_of_the_renamed_game(seat: str, order: list[int]) -> None:
    """Plays a move in a position and in the renamed one, by sets and axes, not by tables."""
    model = make(seat)
    env = gymnasium.make_vec(
        "resgym/Hironaka-v0", num_envs=1, max_num_points=5, max_value=4, reward="step"
    )
    sets = [set(row.nonzero()[:, 0].tolist()) for row in host_action_table(3)]

    def play(points: list[tuple[int, ...]], chosen: set[int], axis: int) -> Any:
        """Host's and agent's observation before, and the host's after."""
        before = env.reset(seed=0, options={"points": points})[0]["points"].clone()
        env.step(torch.tensor([sets.index(chosen)]))
        named = torch.tensor([[int(a in chosen) for a in range(3)]], dtype=torch.int8)
        after = env.step(torch.tensor([axis]))[0]["points"].clone()
        return before, named, after

    points, chosen, axis = [(4, 0, 1), (0, 3, 2), (1, 1, 1), (2, 2, 0)], {0, 2}, 2
    new = {old: place for place, old in enumerate(order)}  # where an old axis has gone
    renamed = [tuple(point[old] for old in order) for point in points]
    one = play(points, chosen, axis)
    two = play(renamed, {new[a] for a in chosen}, new[axis])
    assert not torch.equal(one[0], two[0])

    def transition(played: Any, chosen: set[int], axis: int) -> Any:
        before, named, after = played
        host = seat == "host"
        observation = before if host else {"coords": named, "points": before}
        reached = after if host else {"coords": named, "points": after}
        action = sets.index(chosen) if host else axis
        double = (
            (lambda x: torch.cat([x, x]))
            if host
            else (lambda x: {k: torch.cat([v, v]) for k, v in x.items()})
        )
        return TensorReplayBufferSamples(
            double(observation),
            torch.tensor([[action]] * 2),
            double(reached),
            torch.zeros(2, 1),
            -torch.ones(2, 1),
        )

    batch = transition(one, chosen, axis)
    mirror = MirroredGames(order)
    mirror.init_callback(model)
    changed = mirror._make(model).change_batch(model, batch)
    expected = transition(two, {new[a] for a in chosen}, new[axis])
    for name in ("observations", "actions", "next_observations"):
        got, want, old = (getattr(each, name) for each in (changed, expected, batch))
        if isinstance(got, dict):
            for key in got:
                assert torch.equal(got[key][0], want[key][0])
                assert torch.equal(got[key][1], old[key][1])
        else:
            assert torch.equal(got[0], want[0])
            assert torch.equal(got[1], old[1])
