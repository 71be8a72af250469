"""Files from others that hold code: refused in one line without --trust, and run with it.

Every payload makes a file; none may be there after a command without --trust.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import pickle
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import torch
import yaml

from resgym.cli import main as resgym_main
from resgym.players.trust import trusting
from sb3_ext.ddqn import DDQN
from sb3_ext.studies.attack.cli import main as attack_main
from sb3_ext.studies.teach.cli import main as teach_main
from sb3_ext.training.loading import load_player
from sb3_ext.training.train import main as train_main
from sb3_ext.training.trust import known_class, plain_value, read_pickle
from sb3_ext.training.zoo import enjoy as enjoy_main
from sb3_ext.training.zoo_scripts import record_video
from sb3_ext.two_player.cli import main as two_player_main
from tests.sb3_ext.training.helpers import make_env, make_model
from tests.sb3_ext.two_player.helpers import tiny

HOST = "resgym/HironakaHost-v0"
NAME = "resgym-HironakaHost-v0"
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

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


class Place:
    """A folder with a trained run, a marker, and modules that make it when they are imported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.marker = root / "MARKER"
        self.logs = root / "logs"
        self.run = self.logs / "ddqn" / f"{NAME}_1"
        self.code = f"__import__('pathlib').Path({str(self.marker)!r}).touch()"
        self.tag = f"env_kwargs: !!python/object/apply:os.mkdir [{self.marker}]\n".encode()
        self.pickle = pickle.dumps(Touch(self.marker))
        for name in ("evil.py", "evil:1.py"):
            (root / name).write_text(
                f"{self.code}\nclass Code:\n    def __init__(self, *a, **k): pass\n"
            )

    def put(self, file: str, content: bytes | dict[str, Any]) -> Place:
        """Changes a file of the run, or writes another one there."""
        path = self.run / file
        if isinstance(content, dict):
            changed = {**yaml.safe_load(path.read_text()), **content}
            content = yaml.safe_dump(changed).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return self

    def zip(self, name: str = "evil.zip", field: str = "policy_kwargs", seat: str = "host") -> str:
        """The path of a model whose other parts are sound."""
        sound, path = self.root / f"sound_{seat}.zip", self.root / name
        make_model(seat).save(sound)
        with zipfile.ZipFile(sound) as old, zipfile.ZipFile(path, "w") as new:
            for each in old.namelist():
                data = old.read(each)
                if each == "data":
                    entry = {":type:": "x", ":serialized:": base64.b64encode(self.pickle).decode()}
                    entry["__module__"] = "stable_baselines3.common.policies"
                    data = json.dumps({**json.loads(data), field: entry}).encode()
                new.writestr(each, data)
        return str(path)

    def agent(self) -> str:
        return self.zip(seat="agent")

    def train(self, *arguments: str, **changes: Any) -> int:
        """With other values in the configuration."""
        path = self.root / "file.yml"
        path.write_text(yaml.safe_dump({HOST: {**PARAMETERS, **changes}}))
        common = ["--algo", "ddqn", "--env", HOST, "-f", str(self.logs), *SMALL, "-conf", str(path)]
        return train_main([*common, *arguments])

    def resume(self, *arguments: str) -> int:
        return train_main(["--resume", str(self.run), *arguments])

    def play(self, command: Any = enjoy_main, *arguments: str) -> int:
        common = ["--algo", "ddqn", "--env", HOST, "-f", str(self.logs)]
        return int(command([*common, "--no-render", "-n", "5", "--exp-id", "1", *arguments]))

    def two_player(self, *settings: str) -> int:
        path = self.root / "tiny.yml"
        path.write_text(yaml.safe_dump(tiny(*settings), sort_keys=False))
        out = str(self.root / "two")
        return two_player_main(["--config", str(path), "--out", out, "--no-progress"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("trained"))
    assert place.train("--checkpoint-updates", "1") == 0
    assert place.two_player() == 0
    return place.root


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Place(tmp_path)
    sys.modules.pop("evil", None)
    importlib.invalidate_caches()


def resume_two_players(place: Place) -> int:
    run = place.root / "two"
    shutil.rmtree(run / "checkpoints")
    config = yaml.safe_load((run / "config.yml").read_text())
    config["roles"]["host"]["opponent"] = place.agent()
    (run / "config.yml").write_text(yaml.safe_dump(config))
    return two_player_main(["--resume", str(run), "--no-progress"])


def film(place: Place) -> int:
    pytest.importorskip("moviepy")
    return place.put(MODEL, Path(place.zip()).read_bytes()).play(record_video)


CONFIG, ARGS, MODEL = f"{NAME}/config.yml", f"{NAME}/args.yml", f"{NAME}.zip"
FEW = ("--games", "5")
ATTACKS: dict[str, Callable[[Place], int]] = {
    # Configurations and arguments of `train`.
    "buffer": lambda here: here.train(replay_buffer_class=here.code),
    "callback": lambda here: here.train(callback="evil.Code"),
    "callback with arguments": lambda here: here.train(
        callback=[{"os.system": {"command": f"touch {here.marker}"}}]
    ),
    "callback in a known module": lambda here: here.train(
        callback=[{"rl_zoo3.utils.importlib.import_module": {"name": "evil"}}]
    ),
    "env_wrapper": lambda here: here.train(env_wrapper="evil.Code"),
    "vec_env_wrapper": lambda here: here.train(vec_env_wrapper=[{"evil.Code": {}}]),
    "policy": lambda here: here.train(policy="evil.Code"),
    "normalize": lambda here: here.train(normalize=here.code),
    "opponent": lambda here: here.train(env_kwargs={"opponent": here.agent()}),
    "tag": lambda here: here.put("tag.yml", here.tag).train("-conf", str(here.run / "tag.yml")),
    "python": lambda here: here.train("-conf", "evil.py"),
    "-params buffer": lambda here: here.train(
        "-params", f"replay_buffer_class:{json.dumps(here.code)}"
    ),
    "-params callback": lambda here: here.train("-params", "callback:evil.Code"),
    "-params gamma": lambda here: here.train("-params", f"gamma:{here.code}"),
    "--env-kwargs": lambda here: here.train("--env-kwargs", f"opponent:{here.agent()}"),
    "-i model": lambda here: here.train("-i", here.zip()),
    "-i buffer": lambda here: here.put("replay_buffer.pkl", here.pickle).train(
        "-i", str(here.run / MODEL)
    ),
    "-i statistics": lambda here: here.put(f"{NAME}/vecnormalize.pkl", here.pickle).train(
        "-i", str(here.run / MODEL)
    ),
    # Folders of a run.
    "resumed callback": lambda here: here.put(CONFIG, {"callback": "evil.Code"}).resume(),
    "resumed buffer": lambda here: here.put(CONFIG, {"replay_buffer_class": here.code}).resume(),
    "resumed opponent": lambda here: here.put(
        CONFIG, {"env_kwargs": {"opponent": here.agent()}}
    ).resume(),
    "resumed tag": lambda here: here.put(ARGS, here.tag).resume(),
    "an option among resumed arguments": lambda here: here.put(
        ARGS, {"env_kwargs": {"--gym-packages=evil": 1}}
    ).resume(),
    "trust among resumed arguments": lambda here: (
        here.put(ARGS, {"env": "--trust"})
        .put(CONFIG, {"callback": "evil.Code"})
        .resume(f"--env={HOST}")
    ),
    "enjoyed normalize": lambda here: here.put(CONFIG, {"normalize": here.code}).play(),
    "enjoyed statistics": lambda here: (
        here.put(CONFIG, {"normalize": True}).put(f"{NAME}/vecnormalize.pkl", here.pickle).play()
    ),
    "enjoyed env_wrapper": lambda here: here.put(CONFIG, {"env_wrapper": "evil.Code"}).play(),
    "enjoyed tag": lambda here: here.put(CONFIG, here.tag).play(),
    "enjoyed tag of arguments": lambda here: here.put(ARGS, here.tag).play(),
    "enjoyed opponent": lambda here: here.put(
        ARGS, {"env_kwargs": {"opponent": here.agent()}}
    ).play(),
    "enjoyed model": lambda here: here.put(MODEL, Path(here.zip()).read_bytes()).play(),
    "filmed model": film,
    # Players and opponents.
    "two-player opponent": lambda here: here.two_player(f"roles.host.opponent={here.agent()}"),
    "two-player evaluation": lambda here: here.two_player(
        f"evaluation.opponents.host=[{here.agent()}]"
    ),
    "two-player misspelt": lambda here: here.two_player(
        f"roles.host.opponent={Path(here.zip('choose_frist.zip', seat='agent')).stem}"
    ),
    "two-player resumed": resume_two_players,
    "rho": lambda here: resgym_main(["rho", here.zip(), "random", *FEW]),
    "rho misspelt": lambda here: resgym_main(
        ["rho", Path(here.zip("zeilinger.zip")).stem, "random", *FEW]
    ),
    "rho of a class": lambda here: resgym_main(
        ["rho", here.zip(field="policy_class"), "random", *FEW]
    ),
    "tree": lambda here: resgym_main(["tree", "E8", "--host", here.zip(field="observation_space")]),
    "attack": lambda here: attack_main(["exact", here.zip(), "--role", "host", "--no-progress"]),
    "attack misspelt": lambda here: attack_main(
        ["exact", Path(here.zip("zeilinger.zip")).stem, "--no-progress"]
    ),
    "ship": lambda here: teach_main(
        ["ship", here.zip(), "--out", str(here.root / "out.safetensors")]
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_runs_without_trust(
    name: str, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code = ATTACKS[name](place)
    err = capsys.readouterr().err
    assert not place.marker.exists(), "code of a file was run"
    assert code == 2, err
    assert len(err.strip().splitlines()) == 1, err


@pytest.mark.parametrize(
    "attack",
    [
        lambda here: here.train("--trust", callback="evil.Code"),
        lambda here: here.put(CONFIG, {"normalize": here.code}).play(enjoy_main, "--trust"),
        lambda here: resgym_main(["rho", here.zip(), "random", *FEW, "--trust"]),
    ],
)
def test_with_trust_it_runs(attack: Any, place: Place) -> None:
    with contextlib.suppress(Exception):  # what follows the payload is no sound program
        attack(place)
    assert place.marker.exists()


class Elsewhere(torch.nn.Module):
    """Not known."""


@pytest.mark.parametrize(
    "payload",
    [
        b"cos\nsystem\n(S'touch MARKER'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
        b"(S'touch MARKER'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'touch MARKER'\no.",  # OBJ
        # An attribute of a known class through a dotted name, a call of a class that is only named,
        # and a change of a class.
        b"\x80\x04\x8c\x17torch.nn.modules.module\x8c\x0fModule.__init__\x93.",
        b"\x80\x04\x8c\x1btorch.nn.modules.activation\x8c\x04Tanh\x93)R.",
        b"\x80\x04\x8c\x1btorch.nn.modules.activation\x8c\x04Tanh\x93N}\x8c\x01aK\x01s\x86b.",
        b"\x80\x04\x8c\x05numpy\x8c\x05dtype\x93N}\x8c\x01aK\x01s\x86b.",
        # Known packages that hold modules of others.
        b"\x80\x04\x8c\x0drl_zoo3.utils\x8c\x09importlib\x93.",
        cloudpickle.dumps(lambda: 1),
        pickle.dumps(Elsewhere),
        b"\x80\x04",
        b"",
    ],
)
def test_pickles_that_are_refused(
    payload: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file.pkl"
    path.write_bytes(payload)
    with path.open("rb") as file, pytest.raises(ValueError, match=r"file\.pkl: ") as caught:
        read_pickle(file)
    assert "\n" not in str(caught.value)
    assert not Path("MARKER").exists()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dict(norm_obs=True, norm_reward=False)", {"norm_obs": True, "norm_reward": False}),
        ("{'a': [1, 2.5]}", {"a": [1, 2.5]}),
        ("dict()", {}),
    ],
)
def test_texts_that_rl_zoo3_evaluates(text: str, value: Any) -> None:
    assert plain_value(text) == value


@pytest.mark.parametrize("text", ["dict(**{})", "dict([1])", "print(1)", "a", "1 +", "dict(a=b)"])
def test_texts_that_are_code(text: str) -> None:
    with pytest.raises(ValueError, match="is code, which only --trust runs"):
        plain_value(text)


@pytest.mark.parametrize(
    "name",
    [
        "stable_baselines3.common.callbacks.CheckpointCallback",
        "sb3_contrib.common.wrappers.TimeFeatureWrapper",
        "gymnasium.wrappers.FlattenObservation",
        "stable_baselines3.common.buffers.ReplayBuffer",
        "sb3_ext.ddqn.policies.HostPolicy",
    ],
)
def test_classes_that_a_configuration_may_name(name: str) -> None:
    assert known_class(name).__name__ == name.rpartition(".")[2]


def test_a_run_with_normalized_observations_is_enjoyed(tmp_path: Path) -> None:
    path, run = tmp_path / "ppo.yml", tmp_path / "ppo" / f"{NAME}_1" / NAME
    parameters = {"n_envs": 2, "n_steps": 8, "batch_size": 8, "n_timesteps": 32}
    values = {**parameters, "policy": "MlpPolicy", "normalize": True}
    path.write_text(yaml.safe_dump({HOST: values}))
    common = ["--algo", "ppo", "--env", HOST, "-f", str(tmp_path)]
    assert train_main([*common, *SMALL, "-conf", str(path)]) == 0
    assert (run / "vecnormalize.pkl").is_file()
    play = [*common, "--no-render", "-n", "5", "--exp-id", "1"]
    assert enjoy_main(play) == 0
    values["normalize"] = "dict(norm_obs=False, norm_reward=True)"
    (run / "config.yml").write_text(yaml.safe_dump(values))
    assert enjoy_main(play) == 0


def test_training_goes_on_from_a_model_and_its_buffer(place: Place) -> None:
    assert place.train("--save-replay-buffer") == 0
    run = place.run.with_name(f"{NAME}_2")
    assert (run / "replay_buffer.pkl").is_file()
    assert place.train("-i", str(run / MODEL)) == 0


def test_models_with_schedules_are_known(tmp_path: Path) -> None:
    pieces = [[10, "lin_1_0.1_10"], [10, {"schedule": "warmup", "steps": 5, "then": "const_0.1"}]]
    rates = {"learning_rate": "cos_1e-3_1e-4_50", "learning_starts": 8}
    chained = {"schedule": "chained", "pieces": pieces}
    model = make_model("host", exploration_rate=chained, **rates)
    model.learn(40)
    model.save(tmp_path / "model.zip")
    assert load_player(tmp_path / "model.zip", "host").role == "host"


def test_functions_that_only_train_do_not_matter_for_playing(tmp_path: Path) -> None:
    model = make_model("host")
    model.lr_schedule = lambda progress: 0.1  # type: ignore[assignment]
    model.save(tmp_path / "model.zip")
    assert load_player(tmp_path / "model.zip", "host").role == "host"


def test_in_a_program_stable_baselines3_loads_as_always(place: Place) -> None:
    with contextlib.suppress(Exception):  # what follows the payload is no sound model
        DDQN.load(place.zip(), env=make_env("host"))
    assert place.marker.exists()
    place.marker.unlink()
    with pytest.raises(ValueError, match="only --trust"):
        load_player(place.zip(), "host")
    assert not place.marker.exists()
    with trusting(), pytest.raises(ValueError, match="cannot be loaded"):
        load_player(place.zip(), "host")
    assert place.marker.exists()
