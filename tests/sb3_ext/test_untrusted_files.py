"""Files from others: what they may not do is refused in one line, and nothing happens.

Every payload makes a file, writes outside its run or connects; none may have happened.
"""

import base64
import contextlib
import importlib
import io
import json
import pickle
import shutil
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import torch
import yaml

from resgym.cli import main as resgym_main
from resgym.trust import command_line, command_words
from sb3_ext.attack.attack import main as attack_main
from sb3_ext.config.effects import confine_paths
from sb3_ext.runs.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from sb3_ext.train.card import main as card_main
from sb3_ext.train.loading import load_player, read_weights
from sb3_ext.train.play import enjoy as enjoy_main
from sb3_ext.train.train import main as train_main
from sb3_ext.two_player import HostAgentTrainer
from sb3_ext.two_player.job import main as two_player_main
from tests.sb3_ext.helpers import GAME, player_model, run_of
from tests.sb3_ext.two_player.helpers import written

NAME = GAME.replace("/", "-")
SMALL = ["-n", "64", "--eval-freq", "-1", "--verbose", "0", "--seed", "1"]
PARAMETERS = {
    "n_envs": 8,
    "learning_starts": 32,
    "batch_size": 16,
    "buffer_size": 200,
    "n_timesteps": 64,
    "policy": "HostPolicy",
    "policy_kwargs": {"net_arch": [8]},
}


class Touch:
    """A pickle that makes a file when it is read."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


TOP = ("algo", "env", "hyperparameters")
"""Keys of a run's configuration beside the section of its file."""


class Place:
    """A folder with a trained run, a marker, and modules that make it when they are imported."""

    def __init__(self, root):
        self.root = root
        self.marker = root / "MARKER"
        self.logs = root / "logs"
        self.run = run_of(self.logs)
        self.code = f"__import__('pathlib').Path({str(self.marker)!r}).touch()"
        self.tag = f"env_kwargs: !!python/object/apply:os.mkdir [{self.marker}]\n".encode()
        self.pickle = pickle.dumps(Touch(self.marker))
        for name in ("evil.py", "evil:1.py"):
            (root / name).write_text(
                f"{self.code}\nclass Code:\n    def __init__(self, *a, **k): pass\n"
            )

    def put(self, file, content):
        """Writes a file into the folder of the run."""
        (self.run / file).write_bytes(content)
        return self

    def saved(self, **changes):
        """Changes the configuration of the run."""
        data = yaml.safe_load((self.run / CONFIG).read_text())
        for key, value in changes.items():
            (data if key in TOP else data["hyperparameters"])[key] = value
        return self.put(CONFIG, yaml.safe_dump(data).encode())

    def zip(self, name="evil.zip", seat="host"):
        """The path of a model whose other parts are sound."""
        sound = self.root / f"sound_{seat}.zip"
        path = self.root / name
        player_model(seat).save(sound)
        with zipfile.ZipFile(sound) as old, zipfile.ZipFile(path, "w") as new:
            for each in old.namelist():
                data = old.read(each)
                if each == "data":
                    entry = {":type:": "x", ":serialized:": base64.b64encode(self.pickle).decode()}
                    entry["__module__"] = "stable_baselines3.common.policies"
                    data = json.dumps({**json.loads(data), "policy_kwargs": entry}).encode()
                new.writestr(each, data)
        return str(path)

    def agent(self):
        return self.zip(seat="agent")

    def train(self, *arguments, **changes):
        """With other values in the configuration."""
        path = self.root / "file.yml"
        path.write_text(yaml.safe_dump({GAME: {**PARAMETERS, **changes}}))
        common = ["--algo", "ddqn", "--env", GAME, "-f", str(self.logs), *SMALL, "-conf", str(path)]
        return train_main([*common, *arguments])

    def resume(self, *arguments):
        return train_main(["--resume", str(self.run), *arguments])

    def play(self, *arguments):
        common = ["--algo", "ddqn", "--env", GAME, "-f", str(self.logs)]
        return enjoy_main([*common, "--no-render", "-n", "5", "--exp-id", "1", *arguments])

    def two_player(self, *settings, more=()):
        path = written(self.root / "tiny.yml", *settings)
        out = str(self.root / "two")
        return two_player_main(["--config", path, "--out", out, "--no-progress", *more])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("trained"))
    assert place.train("--checkpoint-updates", "1") == 0
    assert place.two_player() == 0
    return place.root


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Place(tmp_path)
    sys.modules.pop("evil", None)
    importlib.invalidate_caches()


def resume_saved(place, **changes):
    """Goes on with two players, the host with other values; as a program too."""
    run = place.root / "two"
    newest = list_checkpoints(run / "checkpoints")[0]
    state = load_checkpoint(newest)
    state["trainer"]["config"]["roles"]["host"] |= changes
    save_checkpoint(newest, state)
    with pytest.raises(ValueError, match="imports code"):
        HostAgentTrainer.load(newest)
    return two_player_main(["--resume", str(run), "--trust", "--no-progress"])


def resume_two_players(place):
    run = place.root / "two"
    shutil.rmtree(run / "checkpoints")
    config = yaml.safe_load((run / "config.yml").read_text())
    config["roles"]["host"]["opponent"] = place.agent()
    (run / "config.yml").write_text(yaml.safe_dump(config))
    return two_player_main(["--resume", str(run), "--no-progress"])


def other_run(here):
    shutil.copytree(here.run, here.root / "other")
    return here.root / "other"


def saving_to(path):
    saving = "stable_baselines3.common.callbacks.CheckpointCallback"
    return [{saving: {"save_freq": 1, "save_path": path}}]


CHECKPOINTS = "sb3_ext.callbacks.base.Checkpoints"
ADDRESS = {"actors": 1, "address": "ray://127.0.0.1:9"}
CONFIG = "config.yml"
MODEL = f"{NAME}.zip"
FEW = ("--games", "5")
ATTACKS = {
    # Configurations and arguments of `train`.
    "buffer": lambda here: here.train(replay_buffer_class=here.code),
    "callback": lambda here: here.train(callback="evil.Code"),
    "callback in a known module": lambda here: here.train(
        callback=[{"rl_zoo3.utils.importlib.import_module": {"name": "evil"}}]
    ),
    "normalize": lambda here: here.train(normalize=here.code),
    "opponent": lambda here: here.train(env_kwargs={"opponent": here.agent()}),
    "tag": lambda here: here.put("tag.yml", here.tag).train("-conf", str(here.run / "tag.yml")),
    "python": lambda here: here.train("-conf", "evil.py"),
    "--env-kwargs": lambda here: here.train("--env-kwargs", f"opponent:{here.agent()}"),
    "-i model": lambda here: here.train("-i", here.zip()),
    "-i buffer": lambda here: here.put("replay_buffer.pkl", here.pickle).train(
        "-i", str(here.run / MODEL)
    ),
    # Folders of a run.
    "resumed buffer": lambda here: here.saved(replay_buffer_class=here.code).resume(),
    "resumed option": lambda here: here.saved(env_kwargs={"--gym-packages=evil": 1}).resume(),
    "resumed trust": lambda here: (
        here.saved(env="--trust").saved(callback="evil.Code").resume(f"--env={GAME}")
    ),
    "enjoyed normalize": lambda here: here.saved(normalize=here.code).play(),
    "enjoyed statistics": lambda here: (
        here.saved(normalize=True).put("vecnormalize.pkl", here.pickle).play()
    ),
    "enjoyed tag": lambda here: here.put(CONFIG, here.tag).play(),
    "enjoyed opponent": lambda here: here.saved(env_kwargs={"opponent": here.agent()}).play(),
    # Players and opponents.
    "two-player opponent": lambda here: here.two_player(f"roles.host.opponent={here.agent()}"),
    "two-player algorithm": lambda here: here.two_player("roles.host.algorithm=evil:Code"),
    "two-player resumed": resume_two_players,
    "saved algorithm": lambda here: resume_saved(here, algorithm="evil:Code"),
    "rho": lambda here: resgym_main(["rho", here.zip(), "random", *FEW]),
    "attack": lambda here: attack_main([here.zip(), "--role", "host", "--no-progress"]),
    "attack misspelt": lambda here: attack_main(
        [Path(here.zip("zeilinger.zip")).stem, "--parts", "exact", "--no-progress"]
    ),
    "card": lambda here: card_main([here.zip(), "--out", str(here.root / "card")]),
    # Connections, imports and writing that files ask for.
    "address": lambda here: here.train(collector=ADDRESS),
    "address of a saved run": lambda here: here.saved(collector=ADDRESS).resume(),
    "env of a saved run": lambda here: here.saved(env=f"evil:{GAME}").resume(),
    "env of an enjoyed run": lambda here: here.saved(env=f"evil:{GAME}").play(),
    "checkpoints of another run": lambda here: here.train(
        callback=[{CHECKPOINTS: {"run_dir": str(other_run(here)), "every": {"updates": 1}}}]
    ),
    "a path upwards": lambda here: here.train(callback=saving_to("../escaped")),
    "a trusted file": lambda here: here.train(
        "--trust", callback=saving_to(str(here.root / "escaped"))
    ),
    "a saved callback": lambda here: here.saved(callback="evil.Code").resume("--trust"),
    "a saved algorithm": lambda here: here.saved(algo="evil:Code").resume("--trust"),
    "a model that a trusted file names": lambda here: here.train(
        "--trust", env_kwargs={"opponent": here.agent()}
    ),
}


UNREADABLE = {
    *("normalize", "tag", "python", "enjoyed normalize", "enjoyed tag"),
    "attack misspelt",
}
"""Refused as no value or name of that kind; of the others the error says what is expected."""


SEEN = []
"""What a program did meanwhile: connections and imports of `evil`, as Python itself sees it."""


def note(event, arguments):
    if (
        event == "socket.connect"
        or (event == "exec" and "evil" in str(getattr(arguments[0], "co_filename", "")))
        or (event == "pickle.find_class" and arguments[0] in ("os", "posix", "pathlib"))
    ):
        SEEN.append(f"{event} {arguments[0]}")


sys.addaudithook(note)  # for good: nothing takes a hook away


@pytest.fixture
def effects():
    SEEN.clear()
    return SEEN


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_runs_connects_or_is_written_elsewhere_without_trust(name, place, capsys, effects):
    before = {path for path in place.root.rglob("*") if path.is_dir()}
    capsys.readouterr()
    code = ATTACKS[name](place)
    err = capsys.readouterr().err
    assert effects == []
    assert not place.marker.exists(), "code of a file was run"
    assert code == 2, err
    assert len(err.strip().splitlines()) == 1, err
    assert ("expected" in err) == (name not in UNREADABLE), err
    # A refused run leaves no folder of its own.
    made = {path for path in place.root.rglob("*") if path.is_dir()} - before
    assert {path.relative_to(place.root).parts[0] for path in made} <= {"other"}
    assert not (place.logs / "ddqn" / "escaped").exists()


@pytest.mark.parametrize(
    "attack",
    [
        lambda here: here.train("--trust", callback="evil.Code"),
        lambda here: here.two_player("roles.host.algorithm=evil:Code", more=["--trust"]),
        lambda here: here.saved(env_wrapper="evil.Code").play("--trust"),
        lambda here: resgym_main(["rho", here.zip(), "random", *FEW, "--trust"]),
    ],
)
def test_with_trust_it_runs(attack, place):
    with contextlib.suppress(Exception):  # what follows the payload is no sound program
        attack(place)
    assert place.marker.exists()


def test_a_run_with_normalized_observations_is_enjoyed(tmp_path):
    path = tmp_path / "ppo.yml"
    run = tmp_path / "ppo" / f"{NAME}_1"
    parameters = {"n_envs": 2, "n_steps": 8, "batch_size": 8, "n_timesteps": 32}
    values = {**parameters, "policy": "MlpPolicy", "normalize": True}
    path.write_text(yaml.safe_dump({GAME: values}))
    common = ["--algo", "ppo", "--env", GAME, "-f", str(tmp_path)]
    assert train_main([*common, *SMALL, "-conf", str(path)]) == 0
    assert (run / "vecnormalize.pkl").is_file()
    play = [*common, "--no-render", "-n", "5", "--exp-id", "1"]
    assert enjoy_main([*play, "--trust"]) == 0
    assert enjoy_main(play) == 2, "its statistics are a pickle"


def test_a_path_of_a_file_lies_inside_its_run(place):
    assert place.train(callback=saving_to("kept")) == 0
    run = place.run.with_name(f"{NAME}_2")
    assert list((run / "kept").glob("*.zip"))
    (run / "link").symlink_to(place.root)
    for path in ("link/x", ["link/x"], {"any": "link/x"}):
        with pytest.raises(ValueError, match="writes outside the run's folder"):
            confine_paths({"callback": saving_to(path)}, run)


def test_wrappers_write_nowhere_but_in_their_run(place):
    monitor = [{"stable_baselines3.common.monitor.Monitor": {"filename": "mine"}}]
    assert place.train("--eval-freq", "32", env_wrapper=monitor) == 0
    run = place.run.with_name(f"{NAME}_2")
    assert (run / "mine.monitor.csv").is_file()
    assert resgym_main(["rho", f"{run}/{MODEL}", "random", *FEW]) == 0
    assert not [*place.root.glob("*.csv")]


def test_a_model_of_a_run_is_played_without_its_pickles(place, effects, capsys):
    model = f"{place.run}/{MODEL}"
    assert resgym_main(["rho", model, "random", *FEW, "--json"]) == 0
    expected = capsys.readouterr().out
    with zipfile.ZipFile(model, "a") as archive:
        archive.writestr("data", place.pickle)
    assert resgym_main(["rho", model, "random", *FEW, "--json"]) == 0
    assert capsys.readouterr().out == expected
    place.put(MODEL, Path(place.zip()).read_bytes())
    assert place.play() in (0, 2)  # its network may not fit
    assert effects == []
    assert not place.marker.exists()


def overlapping():
    """An archive of one entry that its directory has 32 times."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("0", bytes(2**21))
        archive.filelist *= 32
    return content.getvalue()


@pytest.mark.parametrize(
    ("kind", "content"),
    [(zipfile.ZIP_DEFLATED, lambda: bytes(2**26)), (zipfile.ZIP_STORED, overlapping)],
    ids=["compressed", "overlapping"],
)
def test_a_zip_bomb_is_refused_before_it_is_unpacked(kind, content, place, capsys):
    path = place.run / MODEL
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("policy.pth", content())
    assert path.stat().st_size < 2**22
    tracemalloc.start()
    assert place.play() == 2
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**25
    assert "compressed, or that overlap" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [torch.Tensor.to_sparse, torch.Tensor.cfloat, repr])
def test_weights_are_dense_real_numbers(kind, place, capfd):
    path = place.run / MODEL
    content = io.BytesIO()
    torch.save({name: kind(each) for name, each in read_weights(path).items()}, content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("policy.pth", content.getvalue())
    assert place.play() == 2
    assert len(capfd.readouterr().err.strip().splitlines()) == 1


def test_in_a_program_a_path_is_trust_enough(place):
    path = place.root / "model.zip"
    player_model("host").save(path)
    assert load_player(path, "host").role == "host"
    for words in (command_line(trust=False), command_words()):
        with words, pytest.raises(ValueError, match="expected --trust"):
            load_player(path, "host")
