"""Whole populations, in this process: what is decided, what is on the disk, what goes on."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from sb3_ext.checkpoints.checkpoint import checkpoint_name, load_checkpoint
from sb3_ext.population import run as run_module
from sb3_ext.population.cli import main
from sb3_ext.population.config import PopulationConfig
from sb3_ext.population.member import seats
from sb3_ext.population.run import Population
from sb3_ext.runs.folder import RunFolder
from sb3_ext.training.loading import load_player, load_policy
from sb3_ext.two_player.trainer import HostAgentTrainer
from tests.sb3_ext.population.helpers import RATE, plain, written
from tests.sb3_ext.runs.killed import killed_runs
from tests.sb3_ext.two_player.helpers import difference

HERE = map


def played(path: Path, data: dict[str, Any], rounds: int | None = None) -> Population:
    """A population after its rounds."""
    with RunFolder(path) as folder:
        population = Population(PopulationConfig.read(data), folder)
        for _ in range(population.config.rounds if rounds is None else rounds):
            population.play_round(HERE)
    return population


def decisions(path: Path, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (path / "decisions.jsonl").read_text().splitlines()]
    return [line for line in lines if line["decision"] == kind]


def last(path: Path, member: int, number: int) -> dict[str, Any]:
    return load_checkpoint(path / "members" / str(member) / checkpoint_name(number))


ALONE = {"exploit.share=0", "explore={}", "league.latest_share=1"}


def test_without_league_and_selection_members_are_runs_of_their_own(tmp_path: Path) -> None:
    population = played(tmp_path, plain(*ALONE))
    for member in range(2):
        config = population.config.base(member=member)
        assert config.seed == 3 + member
        alone = HostAgentTrainer(config)
        for _ in range(2):
            alone.train(4)
        assert difference(alone.state_dict(), last(tmp_path, member, 2)) == []
        other = HostAgentTrainer(population.config.base(member=member + 1))
        other.train(8)
        assert difference(other.state_dict(), last(tmp_path, member, 2))
    assert not decisions(tmp_path, "opponents")


def test_a_league_changes_what_is_learned(tmp_path: Path) -> None:
    """A control: the opponents are really met."""
    played(tmp_path / "alone", plain(*ALONE))
    played(tmp_path / "league", plain(*ALONE, "league.latest_share=0.5"))
    first, second = (last(tmp_path / name, 0, 2) for name in ("alone", "league"))
    assert "host.policy" in "".join(difference(first, second))


def test_the_worst_goes_on_as_a_copy_of_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    population = played(tmp_path, plain(), rounds=1)
    (line,) = [each for each in decisions(tmp_path, "exploit") if each["role"] == "host"]
    worst, best = line["member"], line["copies"]
    (fitness,) = [each for each in decisions(tmp_path, "fitness") if each["role"] == "host"]
    assert fitness["fitness"][worst] <= fitness["fitness"][best]
    (change,) = decisions(tmp_path, "explore")
    assert change["name"] == RATE
    assert change["to"] in (change["from"] / 2, change["from"] * 2)
    values = [each["host"]["hyperparameters"][RATE] for each in population.members]
    assert values[worst] == change["to"]
    assert values[best] == change["from"]

    began: dict[int, dict[str, Any]] = {}

    def train(trainer: HostAgentTrainer, steps: int) -> None:
        began[trainer.config.seed - 3] = {
            role: (
                {name: value.clone() for name, value in learner.policy.state_dict().items()},
                learner.model.random_streams.explore.get_state(),
                trainer.config.roles[role].learning_rate,
            )
            for role, learner in trainer.roles.items()
        }

    monkeypatch.setattr(HostAgentTrainer, "train", train)
    with RunFolder(tmp_path) as folder:
        Population(population.config, folder).play_round(HERE)
    copied, source = began[worst]["host"], began[best]["host"]
    assert all(torch.equal(value, source[0][name]) for name, value in copied[0].items())
    assert not torch.equal(copied[1], source[1])  # or both would explore alike
    assert (copied[2], source[2]) == (change["to"], change["from"])


def test_the_folder_holds_the_league_and_every_decision(tmp_path: Path) -> None:
    population = played(tmp_path, plain("rounds=4"))
    league = population.league
    state = json.loads((tmp_path / "league" / "league.json").read_text())
    assert state["round"] == 4
    assert state["tags"] == league.tags()
    folders = {path.name for path in (tmp_path / "league").iterdir() if path.is_dir()}
    assert folders == {*league.present("host"), *league.present("agent")}
    for name in folders:
        role = name.partition("-")[0]
        assert load_player(tmp_path / "league" / name, role).role == role
    removed = [name for line in decisions(tmp_path, "collect") for name in line["removed"]]
    assert removed
    assert {*removed, *folders} == set(league.versions)
    for member in range(2):
        names = [path.name for path in (tmp_path / "members" / str(member)).glob("check*")]
        assert names == [checkpoint_name(4)]
    for line in decisions(tmp_path, "opponents"):
        assert len(line["drawn"]) == 2
        assert sum(line["weights"].values()) == pytest.approx(1)
        assert all(line["weights"][name] > 0 for name in line["drawn"])
    assert Counter(line["step"] for line in decisions(tmp_path, "fitness")) == dict.fromkeys(
        range(1, 5), 2
    )


def test_nothing_is_played_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    original = run_module.play_pairings

    def counted(plan: Any) -> Any:
        seen.update((Path(plan.path).name, Path(other).name) for other in plan.others)
        return original(plan)

    monkeypatch.setattr(run_module, "play_pairings", counted)
    population = played(tmp_path, plain("rounds=3"))
    assert set(seen.values()) == {1}
    assert seen.keys() == {
        (name, other) for name, others in population.league.payoffs.items() for other in others
    }
    assert {name for pair in seen for name in pair} == set(population.league.versions)


def test_rows_of_a_rollout() -> None:
    assert seats(7, 0.5, 2) == [0, 0, 0, 0, 1, 2, 1]
    assert seats(4, 0.0, 3) == [1, 2, 3, 1]
    assert seats(3, 1.0, 2) == seats(3, 0.0, 0) == [0, 0, 0]


def test_a_killed_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Killed in the second round, in its members' writes, and twice."""
    plans = ["step:11", "write:95", "step:3,write:30"]
    lines = killed_runs("tests.sb3_ext.population.killed_runs", tmp_path, plans)
    assert lines == ["step:11 1 nothing", "write:95 1 nothing", "step:3,write:30 2 nothing"]


@pytest.mark.long
def test_a_run_killed_anywhere_goes_on_bit_for_bit(tmp_path: Path) -> None:
    draw = random.Random(0)
    plans = [f"write:{number}" for number in range(2, 230, 4)]
    plans += [f"step:{draw.randint(1, 24)},write:{draw.randint(1, 99)}" for _ in range(10)]
    lines = killed_runs("tests.sb3_ext.population.killed_runs", tmp_path, plans)
    assert [line for line in lines if not line.endswith(" nothing")] == []
    assert sum(int(line.split()[1]) for line in lines) >= 60


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    file, out = written(tmp_path / "tiny.yml", plain()), tmp_path / "run"
    assert main(["--config", file, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "2 members, who take turns on 1" in shown.err
    assert "round 2 of 2" in shown.err
    assert shown.out.count("* highest Elo") == 1
    for role in ("host", "agent"):
        league = json.loads((out / "league" / "league.json").read_text())["versions"]
        best = max((n for n in league if n.startswith(role)), key=lambda n: league[n]["elo"])
        policy = load_checkpoint(out / "league" / best, ["policy"])["policy"]
        weights = load_policy(out / "models" / f"{role}.zip").state_dict()
        assert all(torch.equal(value, policy[name]) for name, value in weights.items())
    for name in ("elo.png", "payoffs.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    assert main(["--resume", str(out), "--set", "rounds=3", "--no-progress"]) == 0
    assert json.loads((out / "league" / "league.json").read_text())["round"] == 3
    whole = tmp_path / "whole"
    assert main(["--config", file, "--set", "rounds=3", "--out", str(whole)]) == 0
    for name in ("decisions.jsonl", "league/league.json", "config.yml", "elo.png"):
        assert (whole / name).read_bytes() == (out / name).read_bytes()


def test_a_spoiled_member_ends_the_run_with_a_line(tmp_path: Path, capsys: Any) -> None:
    settings = ["roles.host.learning_rate=1.0e+30", "roles.host.max_grad_norm=null"]
    file = written(
        tmp_path / "tiny.yml", plain("steps_per_round=40", settings=settings, explore={})
    )
    assert main(["--config", file, "--out", str(tmp_path / "run"), "--no-progress"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("population: member 0: ")
    assert "NaN" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "{file}", "--set", "members=0"], "members must be at least 1, got 0"),
        (["--config", "{file}", "--set", "seed.a=0"], "--set seed.a: seed has no keys"),
        (["--config", "nothing"], "config: there is no file 'nothing'"),
        (["--config", "{file}", "--actors", "-1"], "--actors must be"),
        (["--config", "{file}", "--resume", "{run}"], "give --config"),
        (["--resume", "{run}"], "--resume: there is no run in"),
        (["--resume", "{done}", "--set", "seed=2"], "a resumed run may change only rounds"),
        (["--config", "{file}", "--out", "{done}"], "holds a run already"),
        (["--config", "{file}", "--set", "settings=[compute.device=x]"], "compute.device"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    names = {"file": written(tmp_path / "tiny.yml", plain()), "run": str(tmp_path / "run")}
    names["done"] = str(tmp_path / "done")
    (tmp_path / "done").mkdir()
    written(tmp_path / "done" / "config.yml", plain())
    given = [each.format(**names) for each in arguments]
    if "--out" not in given and "--resume" not in given:
        given += ["--out", names["run"]]
    assert main(given) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("population: ")
    assert message in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: {},
        lambda state: [],
        lambda state: {**state, "round": "x"},
        lambda state: {**state, "round": 2},
        lambda state: {**state, "members": state["members"][:1]},
        lambda state: {**state, "versions": {}},
        lambda state: {**state, "payoffs": {}},
        lambda state: {**state, "versions": {name: {} for name in state["versions"]}},
    ],
)
def test_a_damaged_league_is_one_line(damage: Any, tmp_path: Path, capsys: Any) -> None:
    run = tmp_path / "run"
    run.mkdir()
    version = {"hyperparameters": {}, "elo": 0.0, "present": True, "round": 1}
    names = {role: [f"{role}-{member:06d}" for member in range(2)] for role in ("host", "agent")}
    state = {
        "round": 1,
        "members": [
            {role: {"source": member, "hyperparameters": {}} for role in names}
            for member in range(2)
        ],
        "versions": {
            name: {**version, "role": role, "member": member}
            for role, each in names.items()
            for member, name in enumerate(each)
        },
        "payoffs": {host: dict.fromkeys(names["agent"], 0.5) for host in names["host"]},
    }
    (run / "config.yml").write_text(yaml.safe_dump(PopulationConfig.read(plain()).resolved()))
    (run / "league").mkdir()
    with RunFolder(run) as folder:
        file = run / "league/league.json"
        file.write_text(json.dumps(state))
        assert Population(PopulationConfig.read(plain()), folder).round == 1
        file.write_text(json.dumps(damage(state)))
    assert main(["--resume", str(run), "--no-progress"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"population: {file}: is damaged, or of another config.yml: ")
    assert said.count("\n") == 1
