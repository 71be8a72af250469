"""The solver's moves beside reinforcement learning, and goals that a host is held to."""

import pytest
import torch
from stable_baselines3.common.callbacks import CallbackList

import resgym
from resgym.benchmark.solved import joined, solve
from sb3_ext.checkpoints.models import model_state
from sb3_ext.checkpoints.resume import resume, save_run
from sb3_ext.config.effects import known_class
from sb3_ext.config.sections import find_config, read_mapping
from sb3_ext.runs.checkpoint import read_checkpoint
from sb3_ext.teach import Margins, Teacher, teacher
from sb3_ext.teach.teacher import losses, observation
from tests.resgym.benchmark.recursion import small
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.teach.labelled import make


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solved")
    small().save(folder / "agent.npz")
    solve("depth", 2000, False, small()).save(folder / "host.npz")
    return {seat: str(folder / f"{seat}.npz") for seat in ("host", "agent")}


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_the_teacher_adds_its_loss(seat, files):
    """Its loss is that of the positions under all names of the axes, if it sees enough of them."""
    taught = Teacher(files[seat], 0.5, batch_size=10_000, temperature=0.3)
    model, data = make(seat), small()
    data = data.select(data.split > 0)
    data = joined([data.renamed(torch.full((len(data),), order)) for order in range(6)])
    expected = []
    for action in range(4 if seat == "agent" else 1):
        batch = data.asked(seat, torch.full((len(data),), action))
        values = model.q_net(observation(batch, 5)).detach()
        expected.append(0.5 * float(losses(values, batch, 0.9, 0.3).choice))
    found = float(taught.extra_loss(model).detach())
    assert found == pytest.approx(sum(expected) / len(expected), rel=0.05)


def test_resuming_with_a_teacher_is_exact(tmp_path, files):
    def callbacks(**changes):
        return [Teacher(files["host"], batch_size=16, **{"seed": 3, **changes})]

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
    for others in ([], callbacks(seed=4)):  # both made a difference
        other = make()
        other.learn(480, others)
        assert not same(weights(other), weights(whole))


def test_what_does_not_fit_is_refused(files):
    with pytest.raises(ValueError, match="data: got positions solved for hosts"):
        make("agent").learn(80, Teacher(files["host"]))
    with pytest.raises(ValueError, match="expected at most 3 in 3"):
        make(max_num_points=3).learn(80, Teacher(files["host"]))
    with pytest.raises(ValueError, match=r"data: .*nowhere"):
        Teacher("nowhere/at/all")


def test_deep_singularities_cost_more_than_any_margin(monkeypatch):
    """Zeillinger's host is worse than the least depth in some of the trees, never better."""
    host = resgym.make_host("zeillinger")
    monkeypatch.setattr(teacher, "player_of", lambda _: host)
    evaluation = Margins({"random": 0.2}, {"updates": 1000}, games=20)
    make().learn(8, evaluation)
    (entry,) = evaluation.history
    deeper = entry["deeper"]
    # A1 takes Zeillinger's host two moves, where one is enough.
    assert deeper["A1"] == 1
    assert 0 <= min(deeper.values()) < 2 <= max(deeper.values())
    assert entry["margin"] == entry["rho"]["random"] / 0.2
    assert entry["score"] == entry["margin"] - 1.0 == evaluation.best_score
    monkeypatch.setattr(teacher, "DEEPER", 99)
    worst = Margins({"random": 0.2, "choose_first": 0.1}, {"updates": 1000}, games=20)
    make().learn(8, worst)
    assert worst.best_score == min(
        worst.history[0]["rho"]["random"] / 0.2, worst.history[0]["rho"]["choose_first"] / 0.1
    )
    monkeypatch.setattr(teacher, "MAX_DEPTH", 5)
    endless = Margins({"random": 0.2}, {"updates": 1000}, games=20)
    make().learn(8, endless)
    assert endless.history[0]["deeper"]["E8"] is None
    assert endless.best_score == endless.history[0]["margin"] - 1.0


def test_the_average_is_measured_and_training_does_not_notice(tmp_path, monkeypatch):
    monkeypatch.setattr(teacher, "MAX_DEPTH", 1)
    seen = []

    class Noted(Margins):
        def _on_step(self):
            seen.append([each.detach().clone() for each in self.model.q_net.parameters()])
            return super()._on_step()

    def run(average, folder):
        seen.clear()
        model = make()
        evaluation = Noted(
            {"random": 0.2}, {"updates": 1000}, games=20, average=average, save_path=folder
        )
        model.learn(64 + 8 * 20, evaluation)
        return model, evaluation

    plain, _ = run(0.0, tmp_path / "plain")
    model, evaluation = run(0.9, tmp_path)
    assert same(weights(plain), weights(model))
    saved = read_checkpoint(tmp_path / "best")[1]["policy"]
    # By hand: (1 + t) / (10 + t) of the average stays at step t, at most 0.9.
    for number, (name, online) in enumerate(model.q_net.named_parameters()):
        expected = seen[0][number].double()
        for t, values in enumerate(seen, 1):
            stays = min(0.9, (1 + t) / (10 + t))
            expected = stays * expected + (1 - stays) * values[number].double()
        torch.testing.assert_close(saved[f"q_net.{name}"].double(), expected, atol=1e-5, rtol=1e-4)
        assert not torch.equal(saved[f"q_net.{name}"], online)
    again = Margins({"random": 0.2}, {"updates": 1000}, average=0.9)
    again.load_state_dict(evaluation.state_dict())
    assert equal(again.state_dict(), evaluation.state_dict())


def test_an_agent_has_no_such_goals():
    with pytest.raises(ValueError, match=r"^targets: got those of an agent"):
        make("agent").learn(8, Margins({"zeillinger": 0.1}, {"updates": 5}))
    with pytest.raises(ValueError, match="targets: random"):
        Margins({"random": 0.0}, {"updates": 5})


@pytest.mark.parametrize("file", ["robust_ddqn", "robust_finish_ddqn"])
def test_the_shipped_files_name_both(file, files):
    (section,) = read_mapping(find_config(f"taught/{file}")).values()
    for each in section["callback"]:
        ((name, arguments),) = each.items()
        kind = known_class(name)
        kind(**{**arguments, **({"data": files["host"]} if "data" in arguments else {})})
