"""Whole leagues, in this process: their configuration, what is on the disk, what goes on."""

import json
import shutil

import pytest
import torch
import yaml

from sb3_ext.runs.checkpoint import checkpoint_name, load_checkpoint, save_checkpoint
from sb3_ext.runs.driver import Run, go
from sb3_ext.train.loading import load_player, load_policy
from sb3_ext.two_player.league import League, LeagueConfig, main
from sb3_ext.two_player.trainer import HostAgentTrainer
from tests.sb3_ext.two_player.helpers import difference, league_data


def played(path, data):
    """A league after its rounds."""
    job = League(LeagueConfig.read(data), Run(path))
    go(job)
    return job


def written(path, data):
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return str(path)


def last(path, member, number):
    return load_checkpoint(path / "members" / str(member) / checkpoint_name(number))


def test_without_drawn_opponents_members_are_runs_of_their_own(tmp_path):
    alone = played(tmp_path / "alone", league_data("latest_share=1"))
    for member in range(2):
        config = alone.config.member(member)
        assert config.seed == 3 + member
        trainer = HostAgentTrainer(config)
        for _ in range(2):
            trainer.train(4)
        assert difference(trainer.state_dict(), last(tmp_path / "alone", member, 2)) == []
    assert not any(version.met for version in alone.standings.versions.values())
    played(tmp_path / "league", league_data())  # a control: opponents are really met
    assert difference(*(last(tmp_path / name, 0, 2) for name in ("alone", "league")))


def test_the_folder_holds_the_league(tmp_path):
    standings = played(tmp_path, league_data("rounds=4")).standings
    state = json.loads((tmp_path / "league" / "league.json").read_text())
    assert state["round"] == 4
    folders = {path.name for path in (tmp_path / "league").iterdir() if path.is_dir()}
    assert folders == {*standings.present("host"), *standings.present("agent")}
    assert len(folders) < len(standings.versions)
    for name in folders:
        role = name.partition("-")[0]
        assert load_player(tmp_path / "league" / name, role).role == role
    for member in range(2):
        names = [path.name for path in (tmp_path / "members" / str(member)).glob("check*")]
        assert names == [checkpoint_name(4)]
    for version in standings.versions.values():
        assert len(version.met) == (2 if version.round > 1 else 0)
        assert version.role not in {standings.versions[name].role for name in version.met}
    assert standings.scores.keys() == standings.versions.keys()


def test_the_command_line(tmp_path, capsys):
    data = league_data("rounds=1")
    file, out = written(tmp_path / "tiny.yml", data), tmp_path / "run"
    assert main(["--config", file, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "round 1 of 1" in shown.err
    assert "the first of each role are in models/" in shown.out
    for role in ("host", "agent"):
        versions = json.loads((out / "league" / "league.json").read_text())["versions"]
        best = max(
            (n for n in versions if n.startswith(role)), key=lambda n: (versions[n]["elo"], n)
        )
        policy = load_checkpoint(out / "league" / best, ["policy"])["policy"]
        weights = load_policy(out / "models" / role).state_dict()
        assert all(torch.equal(value, policy[name]) for name, value in weights.items())
    assert main(["--resume", str(out), "--set", "rounds=2", "--no-progress"]) == 0
    whole = tmp_path / "whole"
    assert main(["--config", file, "--set", "rounds=2", "--out", str(whole)]) == 0
    for name in ("league/league.json", "config.yml"):
        assert (whole / name).read_bytes() == (out / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "member=3"], "unknown key 'member'"),
        (["--set", "members=0"], "members must be at least 1, got 0"),
        (["--actors", "-1"], "--actors must be"),
        (["--set", "settings=[compute.device=x]"], "compute.device"),
        (["--set", "two_player=smal"], "two_player: config: there is no file 'smal'"),
        (["--set", "settings=[roles.host.gama=1]"], "two_player: unknown key of roles.host 'gama'"),
        (["--set", "two_player=host_vs_choose_first"], "roles.agent: got choose_first; expected"),
        (["--set", "settings=[roles.host.opponent=random]"], "roles.host: got random; expected"),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(tmp_path, capsys, arguments, message):
    file, out = written(tmp_path / "tiny.yml", league_data()), tmp_path / "run"
    assert main(["--config", file, "--out", str(out), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("population: ")
    assert message in line
    assert not out.exists()


def test_a_resealed_state_of_a_wrong_form_is_refused_in_one_line(tmp_path, capsys):
    out, outside = tmp_path / "run", tmp_path / "outside"
    outside.mkdir()
    assert (
        main(["--config", written(tmp_path / "a.yml", league_data("rounds=1")), "--out", str(out)])
        == 0
    )
    name = "host-000000"
    for path, value in (
        (("versions", name, "elo"), None),
        (("versions", name, "role"), "guest"),
        (("versions", name), 3),
        (
            ("versions", str(outside)),
            {"role": "host", "member": 0, "round": 1, "met": [], "present": False},
        ),
        (("scores", name), {}),
        (("round",), "two"),
        (("round",), 2),
        (("versions",), {}),
    ):
        state = load_checkpoint(out)
        *above, key = path
        inner = state["league"]
        for each in above:
            inner = inner[each]
        inner[key] = value
        bad = tmp_path / "bad"
        shutil.copytree(out, bad)
        save_checkpoint(bad / "checkpoints" / checkpoint_name(9), state)
        capsys.readouterr()
        assert main(["--resume", str(bad), "--set", "rounds=3"]) == 2, path
        (line,) = capsys.readouterr().err.splitlines()
        assert "checkpoint-000000000009: " in line
        shutil.rmtree(bad)
    assert outside.is_dir()
