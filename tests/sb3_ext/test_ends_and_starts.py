"""The options that commands share: rules that end them, and files that games start from."""

import json

import gymnasium
import pytest
import yaml

import resgym
from sb3_ext.attack.attack import main as attack
from sb3_ext.runs.checkpoint import list_checkpoints, load_checkpoint
from sb3_ext.teach.teach import main as teach
from sb3_ext.train.train import main as train
from sb3_ext.two_player.job import main as two_player
from sb3_ext.two_player.trainer import HostAgentTrainer
from tests.sb3_ext.helpers import GAME, LESS, SMALL_RUN, run_of, teach_config
from tests.sb3_ext.two_player.helpers import written


class Command:
    """A command with a small run in a folder, and the same again that goes on."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.out = folder / "run"
        self.run = run_of(folder)

    def __call__(self, *more, goes_on=False):
        return getattr(self, self.name)(more, goes_on)

    def train(self, more, goes_on):
        if goes_on:
            return train(["--resume", str(self.run), *more])
        few = ("-n", "320", "--eval-freq", "-1")
        return train([*SMALL_RUN, "-f", str(self.folder), *few, *more])

    def of_file(self, job, config, more, goes_on=False):
        begin = ["--config", config, "--out", str(self.out)]
        return job([*(["--resume", str(self.out)] if goes_on else begin), *more, "--no-progress"])

    def two_player(self, *given):
        config = written(self.folder / "tiny.yml", "evaluation.every_steps=1")
        return self.of_file(two_player, config, *given)

    def attack(self, more, goes_on):
        less = [part for each in ("exact=null", "seeds=[0, 1]") for part in ("--set", each)]
        out = ("--out", str(self.out), "--no-progress")
        return attack(["zeillinger", *LESS, *less, *out, *more])

    def teach(self, more, goes_on):
        path = self.folder / "tiny.yml"
        path.write_text(yaml.safe_dump({**teach_config(self.folder), "updates": 4, "every": 2}))
        return self.of_file(teach, str(path), more)

    def kept(self, name):
        return json.loads((self.out / name).read_text())

    def made(self):
        """How far the run is: transitions, steps, seeds or updates."""
        if self.name == "train":
            newest = list_checkpoints(self.run / "checkpoints")[0]
            return load_checkpoint(newest)["training"]["num_timesteps"]
        if self.name == "two_player":
            return self.kept("summary.json")["last"]["step"]
        if self.name == "attack":
            return len(self.kept("result.json")["trained"])
        return self.kept("results.json")["updates"]


def until(field, **more):
    return f"until={json.dumps({'condition': 'bound', 'field': field, 'lower': 0, **more})}"


ENDS = [
    ("train", "max_timesteps=100", "max_timesteps 100", 104, 320),
    ("train", until("updates", lower=5), "goal reached: updates", 96, 320),
    ("two_player", "max_updates=4", "max_updates 4", 2, 6),
    ("two_player", until("rho/host-random", times=3), "goal reached: rho/", 3, 6),
    ("attack", "max_updates=6", "max_updates 6", 1, 2),
    ("teach", "max_updates=3", "max_updates 3", 3, 8),
]


@pytest.mark.parametrize(("name", "rule", "said", "then", "at_the_end"), ENDS)
def test_a_rule_ends_a_command_and_it_goes_on(name, rule, said, then, at_the_end, tmp_path, capsys):
    command = Command(name, tmp_path)
    assert command("--stop", rule) == 0
    assert said in capsys.readouterr().out
    assert command.made() == then
    assert command(goes_on=True) == 0
    assert said not in capsys.readouterr().out
    assert command.made() == at_the_end


STARTS = [[(1, 0, 0), (0, 1, 0)], [(3, 0, 0), (0, 3, 0)]]


def file_of_starts(folder):
    path = folder / "starts.txt"
    path.write_text("".join(f"{points}\n" for points in STARTS))
    return str(path)


@pytest.mark.parametrize("name", ["train", "two_player"])
def test_games_of_a_run_start_from_a_file(name, tmp_path, capsys):
    command = Command(name, tmp_path)
    path = file_of_starts(tmp_path)
    assert command("--starts", path) == 0
    if name == "train":
        saved = yaml.safe_load((command.run / "config.yml").read_text())["hyperparameters"]
        assert saved["env_kwargs"]["opponent"] == "choose_first"  # what the file says, too
        env = gymnasium.make_vec(GAME, num_envs=16, **saved["env_kwargs"])
        for option in ("--starts", path), ("--log-folder", path), ("--uuid",):
            assert train(["--resume", str(command.run), *option]) == 2
            assert f"{option[0][2:]}: a resumed run keeps its own" in capsys.readouterr().err
    else:
        trainer = HostAgentTrainer(command.out / "config.yml")
        env = trainer.game.make_env("agent", 16, "step", "cpu")
        pairs = command.kept("summary.json")["last"]["values"]
        sizes = {"max_num_points": 5, "max_value": 5, "max_moves": 20}
        models = {role: str(command.out / "models" / f"{role}.zip") for role in trainer.roles}
        found = resgym.rho(*models.values(), games=20, seed=1, starts=path, **sizes)
        assert found.rho == pairs["host-agent"]
    env.reset(seed=0)
    shown = [sorted(points) for points in env.unwrapped.games.point_lists()]
    assert [points for points in STARTS if sorted(points) not in shown] == []
    assert len({str(points) for points in shown}) == len(STARTS)
    bad = tmp_path / "bad.txt"
    bad.write_text("E8\nx^2+y^3\n")
    (tmp_path / "other").mkdir()
    assert Command(name, tmp_path / "other")("--starts", str(bad)) == 2
    error = capsys.readouterr().err
    assert f"{bad}, line 2: points[0] must have 3 coordinates (dimension), got 2" in error


def test_what_is_measured_starts_from_a_file(tmp_path, capsys):
    command = Command("attack", tmp_path)
    path = file_of_starts(tmp_path)
    assert command("--starts", str(tmp_path / "none.txt")) == 2
    assert "game.starts: starts: cannot be read" in capsys.readouterr().err
    assert command("--starts", path, "--set", "updates=0") == 0
    result = command.kept("result.json")
    sizes = {"max_num_points": 3, "max_value": 6, "max_moves": 40}
    seed = result["budget"]["test"]["seed"]
    found = resgym.rho("zeillinger", "choose_first", games=100, seed=seed, starts=path, **sizes)
    assert result["scripted"]["choose_first"] == found.to_dict()
