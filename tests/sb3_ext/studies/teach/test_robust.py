"""One host against several opponents: what is kept, the command, and going on with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import yaml

import resgym
from sb3_ext.checkpoints.checkpoint import read_checkpoint
from sb3_ext.config.reading import find_config
from sb3_ext.ddqn import DDQN
from sb3_ext.studies.teach import measures, robust, robust_evaluation
from sb3_ext.studies.teach.cli import main
from sb3_ext.studies.teach.robust_evaluation import RobustEvaluation, worst_margin
from sb3_ext.studies.teach.settings import read_robust_config
from sb3_ext.studies.teach.train import ENVIRONMENTS, read_hyperparameters
from sb3_ext.training.loading import load_player
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.runs.held import held_by_another
from tests.sb3_ext.studies.teach.labelled import SmallData, make

ALGORITHM = """
default:
  {policy: HostPolicy, n_timesteps: 1000, n_envs: 8, learning_starts: 64, batch_size: 16,
   gradient_steps: 2, buffer_size: 2000, env_kwargs: {reward: step},
   exploration_rate: 0.2,  # one that does not depend on the length of the run
   policy_kwargs: {extractor: ordered_points, net_arch: [16],
                   mirror: {axes: [2, 1, 0], actions: [2, 1, 0, 3]}}}
"""
TARGETS = {"choose_first": 0.15, "random": 0.22}


def test_the_worst_margin() -> None:
    assert worst_margin({"choose_first": 0.18, "random": 0.11}, TARGETS) == pytest.approx(0.5)
    rho = {"choose_first": 0.165, "random": 0.3, "x": 0.0}
    assert worst_margin(rho, TARGETS) == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("excess", "score"), [([0, 1, 0], 0.8), ([0, 2, 0], -0.2), ([0, None, 1], -0.2)]
)
def test_deep_singularities_cost_more_than_any_margin(
    monkeypatch: pytest.MonkeyPatch, excess: list[Any], score: float
) -> None:
    least = {"A2": 3, "D4": 4, "E8": 7}
    monkeypatch.setattr(resgym, "singularity_names", lambda: list(least))
    depths = [None if e is None else e + d for e, d in zip(excess, least.values(), strict=True)]
    monkeypatch.setattr(measures, "worst_case_depths", lambda *_, **__: depths)
    evaluation = RobustEvaluation(TARGETS, {"updates": 1000}, deeper=1, games=20)
    make().learn(8, evaluation)
    rho = {"choose_first": 0.12, "random": 0.33}
    assert evaluation._score(rho) == pytest.approx(score)
    details = evaluation._details()
    assert details["deeper"] == dict(zip(least, excess, strict=True))
    assert details["margin"] == pytest.approx(0.8)


def test_the_least_depths_are_those_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeillinger's host is worse than the least depth in some of the trees, never better."""
    evaluation = RobustEvaluation({"random": 0.2}, {"updates": 1000}, games=20)
    monkeypatch.setattr(robust_evaluation, "player_of", lambda _: resgym.make_host("zeillinger"))
    make().learn(8, evaluation)
    values = evaluation.history[-1]["deeper"]
    # A1 takes Zeillinger's host two moves, where one is enough.
    assert values["A1"] == 1
    assert min(values.values()) >= 0
    assert max(values.values()) > 1
    assert evaluation.best_score == evaluation.history[-1]["rho"]["random"] / 0.2 - 1.0


def test_the_average_is_measured_and_training_does_not_notice(tmp_path: Any) -> None:
    def run(**arguments: Any) -> tuple[DDQN, RobustEvaluation]:
        model = make()
        evaluation = RobustEvaluation(
            {"random": 0.2}, {"updates": 1000}, games=20, save_path=tmp_path, **arguments
        )
        seen: list[list[torch.Tensor]] = []
        step = evaluation._on_step

        def noted() -> bool:
            seen.append([p.detach().clone() for p in model.q_net.parameters()])
            return step()

        evaluation._on_step = noted  # type: ignore[method-assign]
        model.learn(64 + 8 * 20, evaluation)
        evaluation.seen = seen  # type: ignore[attr-defined]
        return model, evaluation

    plain, _ = run()
    model, evaluation = run(average=0.9)
    assert same(weights(plain), weights(model))
    # By hand: (1 + t) / (10 + t) of the average stays at step t, at most 0.9.
    for number, average in enumerate(evaluation._averaged):
        expected = evaluation.seen[0][number].double()  # type: ignore[attr-defined]
        for t, values in enumerate(evaluation.seen, 1):  # type: ignore[attr-defined]
            stays = min(0.9, (1 + t) / (10 + t))
            expected = stays * expected + (1 - stays) * values[number].double()
        torch.testing.assert_close(average.double(), expected, atol=1e-5, rtol=1e-4)
    saved = read_checkpoint(tmp_path / "best")[1]["policy"]
    names = [name for name, _ in model.q_net.named_parameters()]
    for name, average in zip(names, evaluation._averaged, strict=True):
        assert torch.equal(saved[f"q_net.{name}"], average)
    assert not torch.equal(saved[f"q_net.{names[0]}"], model.q_net.state_dict()[names[0]])


def test_an_agent_has_no_such_targets() -> None:
    with pytest.raises(ValueError, match=r"^targets: are those of a host, the model is an agent"):
        make("agent").learn(8, RobustEvaluation({"zeillinger": 0.1}, {"updates": 5}))
    with pytest.raises(ValueError, match="targets: random"):
        RobustEvaluation({"random": 0.0}, {"updates": 5})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[str]:
    """The command on small data, with a small network and few games."""
    # Trees of untrained hosts are wide.
    monkeypatch.setattr(resgym, "singularity_names", lambda: ["A1", "D4", "E8"])
    for module in (robust, robust_evaluation):
        monkeypatch.setattr(module, "MAX_DEPTH", 9)
    monkeypatch.setattr(robust, "load_dataset", lambda *_, **__: SmallData())
    (tmp_path / "algorithm.yml").write_text(ALGORITHM)
    values = yaml.safe_load(find_config("taught/robust.yml").read_text())
    sizes = {"updates": 40, "checkpoint_updates": 20}
    values["algorithm"] |= {"file": str(tmp_path / "algorithm.yml"), **sizes}
    values["teacher"]["families"] = None
    values["evaluation"] |= {"updates": 20, "games": 20, "test_games": 30}
    (tmp_path / "robust.yml").write_text(yaml.safe_dump(values))
    return ["robust", "--data", "nowhere", "--config", f"{tmp_path}/robust.yml", "--no-progress"]


def test_the_command_leaves_a_player_curves_and_results(
    small: list[str], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([*small, "--out", str(out)]) == 0
    assert "worst margin" in capsys.readouterr().out
    results = json.loads((out / "results.json").read_text())
    assert results["updates"] == 40
    assert results["without"] == []
    assert set(results["rho"]) == {"choose_first", "choose_last", "random"}
    assert set(results["singularities"]) == {"A1", "D4", "E8"}
    assert results["singularities"]["E8"]["least_depth"] == 7
    margins = [results["rho"][name]["rho"] / goal for name, goal in results["targets"].items()]
    assert results["margin"] == min(margins)
    assert (out / "curve.svg").stat().st_size > 1000
    assert load_player(out / "run" / "best", "host").role == "host"
    history = json.loads((out / "run" / "rho.json").read_text())
    assert [entry["updates"] for entry in history] == [20, 40]


def test_runs_are_compared(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for name, without, depth in (("whole", [], 7), ("part", ["teacher"], None)):
        run = tmp_path / name / "run"
        run.mkdir(parents=True)
        results = {
            "without": without,
            "targets": {"random": 0.2},
            "rho": {"random": {"rho": 0.1}},
            "singularities": {
                "A1": {"depth": 1, "least_depth": 1},
                "E8": {"depth": depth, "least_depth": 6},
            },
        }
        (tmp_path / name / "results.json").write_text(json.dumps(results))
        history = [
            {"updates": n, "rho": {"random": 0.01 * n}, "score": 0.05 * n, "deeper": deeper}
            for n, deeper in ((n, {"A1": 0, "E8": 12 - n}) for n in (5, 8, 10))
        ]
        (run / "rho.json").write_text(json.dumps(history))
    runs = [str(tmp_path / name) for name in ("whole", "part")]
    picture = tmp_path / "margins.svg"
    assert main(["compare", *runs, "--out", str(picture)]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| everything | 0.1000 | 0.500 | 1 of 2 | 1 |",
        "| without teacher | 0.1000 | 0.500 | 1 of 2 | not finished |",
    ]
    assert "without teacher" in picture.read_text()
    assert main(["compare", runs[0], "--updates", "9"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| everything | 0.0800 | 0.400 | 1 of 2 | 4 |"
    ]
    assert main(["compare", runs[0], "--updates", "4"]) == 2
    assert "updates: must be at least 5, got 4" in capsys.readouterr().err
    (tmp_path / "whole" / "results.json").write_text("{}")
    assert main(["compare", *runs]) == 2
    assert "results.json is not of a finished run" in capsys.readouterr().err


def test_going_on_is_exact(small: list[str], tmp_path: Any) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main([*small, "--out", str(whole)]) == 0
    assert main([*small, "--out", str(parts), "--set", "algorithm.updates=20"]) == 0
    assert main([*small, "--out", str(parts)]) == 0
    (_, ours), (_, theirs) = (read_checkpoint(out / "run") for out in (parts, whole))
    for part in ("policy", "optimizer", "buffer", "environment"):
        assert equal(ours[part], theirs[part]), part
    averaged = [state["callbacks"]["RobustEvaluation"]["averaged"] for state in (ours, theirs)]
    assert equal(*averaged)
    # The shorter run was measured at its end besides; the last measurements are equal.
    last = [json.loads((out / "run" / "rho.json").read_text())[-1] for out in (whole, parts)]
    for entry in last:
        del entry["training_seconds"]
    assert last[0] == last[1]


def test_without_a_part(small: list[str], tmp_path: Any) -> None:
    found = {}
    for part in ("teacher", "mixture", "augmentation", None):
        out = tmp_path / str(part)
        options = [] if part is None else ["--without", part]
        changes = ["--set", "algorithm.updates=20", "--set", "evaluation.games=4"]
        assert main([*small, "--out", str(out), *options, *changes]) == 0
        assert json.loads((out / "results.json").read_text())["without"] == options[1:]
        found[part] = read_checkpoint(out / "run")[1]["policy"]
    for part in ("teacher", "mixture", "augmentation"):
        assert not equal(found[part], found[None]), part


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "teacher.weight=0"], "teacher.weight"),
        (["--set", "evaluation.target=1"], "unknown key of evaluation 'target'"),
        (["--set", "nothing.weight=1"], "--set: unknown key 'nothing'"),
        (["--init-from", "nowhere"], "init-from: no such folder nowhere"),
        (["--set", "opponents={}"], "opponents must be at least 1 long, got {}"),
        (["--opponent", "random"], "opponent: must be PLAYER=WEIGHT, got 'random'"),
        (["--opponent", "nobody=1"], "got 'nobody'"),
        (["--opponent", "runs/nobody=1"], "there is no saved model at 'runs/nobody'"),
        (["--config", "nowhere.yml"], "config: there is no file 'nowhere.yml'"),
    ],
)
def test_what_is_wrong_is_one_line(
    small: list[str],
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    assert main([*small, "--out", str(tmp_path / "out"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_other_settings_are_refused(
    small: list[str], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert main([*small, *out, "--set", "algorithm.updates=20"]) == 0
    capsys.readouterr()
    assert main([*small, *out, "--set", "teacher.weight=0.5"]) == 2
    assert "other settings: teacher: weight was 0.1, now it is 0.5" in capsys.readouterr().err


def test_one_process_at_a_time(
    small: list[str], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with held_by_another(out):
        assert main([*small, "--out", str(out)]) == 2
    assert "is being written to by another process" in capsys.readouterr().err
    assert not (out / "run").exists()


def test_more_opponents_join_the_mixture() -> None:
    config = read_robust_config("taught/robust.yml", opponents=["greedy_points=0.5"])
    assert list(config.opponents.items())[-1] == ("greedy_points", 0.5)
    alone = read_robust_config("taught/robust.yml", without=["mixture"])
    assert alone.opponents == {"choose_first": 1.0}
    assert not read_robust_config("taught/robust.yml", without=["augmentation"]).teacher.augment


@pytest.mark.parametrize("file", ["taught/robust.yml", "taught/robust_finish.yml"])
def test_the_files_that_come_with_it_fit_together(file: str) -> None:
    config = read_robust_config(file)
    values = read_hyperparameters(config.algorithm.file, ENVIRONMENTS["host"])
    assert config.opponents == values["env_kwargs"]["opponent"]
    assert config.opponents["choose_first"] == config.opponents["choose_last"]
    assert values["learning_rate"]["steps"] == config.algorithm.updates
