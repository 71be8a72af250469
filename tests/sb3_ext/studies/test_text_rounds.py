"""Rounds of sampling and fine-tuning a player that speaks: every stage, runs that are stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from resgym.players.trust import trusting
from resgym.text import answers_of, chat_of, read_answer, read_position
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.folder import RunFolder
from sb3_ext.studies.text import rounds
from sb3_ext.studies.text.cli import main
from sb3_ext.studies.text.config import TextConfig

BUDGET = (
    "settings=[game.max_num_points=4, game.max_value=4, game.max_moves=20, test.games=20, "
    "'scripted.agents=[choose_last]', 'scripted.hosts=[random]', exact.starts=4]"
)
SMALL = ("sample.games=6", "wait.seconds=0", BUDGET)
FILES = ("games.json", "scores.json", "train.jsonl", "evaluation.json")


def run(folder: Path, *settings: str, new: bool = True, trust: bool = True) -> int:
    given = [f"--set={setting}" for setting in settings]
    config = ["--config", "small", *(f"--set={each}" for each in SMALL)] if new else []
    return main([str(folder), *config, *given, *["--trust"] * trust, "--no-progress"])


def train(folder: Path, number: int, **arguments: Any) -> None:
    """What somebody outside does: reads the lines, writes the name of a model."""
    place = folder / f"round-{number:04d}"
    assert (place / "train.jsonl").is_file()
    (place / "model.json").write_text(json.dumps({"arguments": arguments}))


def through(folder: Path) -> dict[str, bytes]:
    """A whole run of two rounds; its files."""
    assert run(folder) == 1
    train(folder, 0, host="zeillinger")
    assert run(folder, new=False) == 1
    train(folder, 1, host="optimal")
    assert run(folder, new=False) == 0
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    found = sorted(folder.glob("round-*/*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("rounds") / "run"
    return folder, through(folder)


def test_stages_leave_their_files(whole, capsys):
    folder, files = whole
    names = [f"round-{number:04d}/{name}" for number in (0, 1) for name in (*FILES, "model.json")]
    assert sorted(files) == sorted(names)
    for number, host in ((0, "zeillinger"), (1, "optimal")):
        evaluation = json.loads(files[f"round-{number:04d}/evaluation.json"])
        assert evaluation["model"] == {
            "ask": "resgym.text:answers_of",
            "arguments": {"host": host},
        }
        assert set(evaluation["rho"]) == {"choose_last"}
        assert evaluation["exact"]["starts"] == 4
    assert evaluation["exact"]["optimal"] == 4  # the optimal host spoke in the last round
    assert evaluation["exact"]["lowest"]["rho"] == evaluation["exact"]["optimum"]["rho"]
    assert evaluation["counts"]["unreadable"] == evaluation["counts"]["illegal"] == 0
    commands = (folder / "commands.jsonl").read_text().splitlines()
    assert len(commands) == 3


def test_lines_to_learn_from(whole):
    _, files = whole
    scores = json.loads(files["round-0000/scores.json"])
    lines = [json.loads(line) for line in files["round-0000/train.jsonl"].splitlines()]
    statistics = scores["statistics"]
    assert len(lines) == statistics["labelled"] > statistics["optimal"] > 0
    for line in lines:
        system, user, assistant = line["messages"]
        points, named = read_position(user["content"])
        assert named == ()
        assert [system, user] == chat_of("host", points)
        answer = read_answer(assistant["content"], "host", 3)
        assert list(answer) in line["optimal"]
        if line["played"] in line["optimal"]:
            assert list(answer) == line["played"]


def test_only_answers_that_were_right_can_be_learned(whole, tmp_path):
    assert run(tmp_path / "run", "export.answers=played", "rounds=1") == 1
    lines = (tmp_path / "run/round-0000/train.jsonl").read_text().splitlines()
    statistics = json.loads(whole[1]["round-0000/scores.json"])["statistics"]
    assert len(lines) == statistics["optimal"]


@pytest.mark.parametrize("stage", FILES)
def test_a_run_goes_on_where_it_was_killed(whole, tmp_path, monkeypatch, stage):
    """The process dies while a stage writes its file; nothing that is done is done again."""
    folder, written = tmp_path / "run", rounds.write_text_durably

    def dying(path: Path, text: str) -> None:
        if path.name == stage and "round-0001" in str(path):
            raise KeyboardInterrupt
        written(path, text)

    monkeypatch.setattr(rounds, "write_text_durably", dying)
    monkeypatch.setattr("sb3_ext.runs.folder.write_text_durably", dying)
    codes = [run(folder)]
    train(folder, 0, host="zeillinger")
    codes.append(run(folder, new=False))
    if stage == "evaluation.json":
        train(folder, 1, host="optimal")
        codes.append(run(folder, new=False))
    assert codes[-1] == 130
    assert not (folder / "round-0001" / stage).exists()
    times = {path: path.stat().st_mtime_ns for path in folder.glob("round-*/*")}
    monkeypatch.undo()
    if stage != "evaluation.json":
        assert run(folder, new=False) == 1
        train(folder, 1, host="optimal")
    assert run(folder, new=False) == 0
    assert contents(folder) == whole[1]
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_waiting_ends_when_the_file_is_whole(tmp_path, monkeypatch):
    """The trainer is still writing at the first look, and done at the second."""
    assert run(tmp_path, "rounds=1") == 1
    file = tmp_path / "round-0000/model.json"
    file.write_text('{"arguments": {"ho')
    looks = []

    def later(seconds: float) -> None:
        looks.append(seconds)
        file.write_text('{"arguments": {"host": "all_coord"}}')

    monkeypatch.setattr(rounds, "sleep", later)
    assert run(tmp_path, "wait.seconds=50", new=False) == 0
    assert looks == [1.0]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('{"arguments": {', "model.json: cannot be read"),
        ('{"argument": {}}', "did you mean 'arguments'?"),
        ('{"ask": "resgym.text:nobody"}', "ask: 'resgym.text:nobody' cannot be imported"),
        ('{"ask": "nobody"}', "ask must be written like 'module:name', got 'nobody'"),
    ],
)
def test_what_a_trainer_may_not_write(tmp_path, capsys, written, words):
    assert run(tmp_path, "rounds=1") == 1
    assert "did not come within 0 s" in capsys.readouterr().err
    (tmp_path / "round-0000/model.json").write_text(written)
    assert run(tmp_path, new=False) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["sample.opponent=nobody"], "sample.opponent: opponent (agent) must be one of"),
        (["player.on_unreadable=nobody"], "player.on_unreadable: opponent (host) must be one of"),
        (["player.retries=-1"], "player.retries must be at least 0, got -1"),
        (["budget=points6"], "budget: there is no file 'points6'"),
        (["model.ask=nothing:here"], "model.ask: 'nothing:here' cannot be imported"),
        (["model.ask=math:pi"], "model.ask: 'math:pi' must be a function, got 3.14"),
    ],
)
def test_what_a_configuration_may_not_say(tmp_path, capsys, settings, words):
    folder = tmp_path / "run"
    assert run(folder, *settings) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not folder.exists()


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("raise KeyError('choices')", 1, "model.ask: own_model:ask: KeyError: 'choices'"),
        ("raise ValueError('two\\nlines')", 1, "model.ask: own_model:ask: ValueError: two lines"),
        ("return chats, chats[len(chats)]", 1, "model.ask: own_model:ask: IndexError: "),
        ("return None", 2, "ask must return a list of texts, got NoneType"),
        ("return [None for _ in chats]", 2, "ask must return texts, got one NoneType"),
        ("return []", 2, "ask must return 6 texts, got 0"),
    ],
)
def test_what_a_function_may_not_do(tmp_path, capsys, monkeypatch, body, code, words):
    """One line, and the run stands where it was."""
    (tmp_path / "own_model.py").write_text(f"def ask(chats): {body}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "run"
    try:
        assert run(folder, "model.ask=own_model:ask", "model.arguments={}") == code
    finally:
        sys.modules.pop("own_model")
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert contents(folder) == {}


def test_code_is_named_only_with_trust(tmp_path, capsys):
    assert run(tmp_path / "run", trust=False) == 2
    assert "names code: give --import" in capsys.readouterr().err


def test_a_run_keeps_its_configuration(whole, capsys):
    folder, _ = whole
    assert run(folder) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert run(folder, "sample.games=3", new=False) == 2
    assert "may change only rounds and wait" in capsys.readouterr().err


def test_an_agent_can_speak_too(tmp_path):
    settings = ["role=agent", "sample.opponent=zeillinger", "model.arguments={agent: random}"]
    assert run(tmp_path, *settings, "rounds=1") == 1
    train(tmp_path, 0, agent="optimal")
    assert run(tmp_path, new=False) == 0
    exact = json.loads((tmp_path / "round-0000/evaluation.json").read_text())["exact"]
    assert exact["role"] == "agent"
    assert exact["optimal"] == exact["starts"] == 4


def test_the_shipped_configuration_is_read():
    config = TextConfig.read("small")
    assert config.measures().exact.starts == 20
    with pytest.raises(ConfigError, match="role must be"):
        TextConfig.read("small", ["role=both"])
    with trusting():
        player = rounds.TextRun(config, RunFolder("unused"), print).player(0)
    chats = [chat_of("host", [(2, 0, 0), (0, value, 0), (0, 0, 5)]) for value in range(3, 19)]
    assert player.ask(chats) == answers_of(chats, host="random") != answers_of(chats)
