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
from sb3_ext.enjoy import main as enjoy_main
from sb3_ext.record_video import record_video
from sb3_ext.studies.attack.cli import main as attack_main
from sb3_ext.studies.teach.cli import main as teach_main
from sb3_ext.train import main as train_main
from sb3_ext.training.loading import load_player
from sb3_ext.training.trust import known_class, plain_value, read_pickle
from sb3_ext.two_player.cli import main as two_player_main
from tests.sb3_ext.training.test_loading import make_env, make_model
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
        self.params = self.run / NAME
        (root / "evil.py").write_text(
            f"import pathlib\npathlib.Path({str(self.marker)!r}).touch()\n"
            "class Code:\n    def __init__(self, *a, **k): pass\n"
        )

    @property
    def code(self) -> str:
        """An expression that makes the marker."""
        return f"__import__('pathlib').Path({str(self.marker)!r}).touch()"

    def config(self, **changes: Any) -> str:
        path = self.root / "file.yml"
        path.write_text(yaml.safe_dump({HOST: {**PARAMETERS, **changes}}))
        return str(path)

    def change(self, file: str, **changes: Any) -> None:
        path = self.params / file
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}))

    def zip(self, name: str = "evil.zip", field: str = "policy_kwargs", seat: str = "host") -> Path:
        """A model whose other parts are sound."""
        sound, path = self.root / f"sound_{seat}.zip", self.root / name
        make_model(seat).save(sound)
        content = pickle.dumps(Touch(self.marker))
        with zipfile.ZipFile(sound) as old, zipfile.ZipFile(path, "w") as new:
            for each in old.namelist():
                data = old.read(each)
                if each == "data":
                    fields = json.loads(data)
                    entry = {":type:": "x", ":serialized:": base64.b64encode(content).decode()}
                    fields[field] = {**entry, "__module__": "stable_baselines3.common.policies"}
                    data = json.dumps(fields).encode()
                new.writestr(each, data)
        return path

    def train(self, *arguments: str) -> int:
        return train_main(
            ["--algo", "ddqn", "--env", HOST, "-f", str(self.logs), *SMALL, *arguments]
        )

    def enjoy(self, *arguments: str) -> int:
        fixed = ["--no-render", "-n", "5", "--exp-id", "1", "--verbose", "0"]
        return enjoy_main(
            ["--algo", "ddqn", "--env", HOST, "-f", str(self.logs), *fixed, *arguments]
        )

    def two_player(self, *settings: str) -> int:
        path = self.root / "tiny.yml"
        path.write_text(yaml.safe_dump(tiny(*settings), sort_keys=False))
        return two_player_main(
            ["--config", str(path), "--out", str(self.root / "two"), "--no-progress"]
        )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("trained"))
    assert place.train("-conf", place.config(), "--checkpoint-updates", "1") == 0
    path = place.root / "tiny.yml"
    path.write_text(yaml.safe_dump(tiny(), sort_keys=False))
    out = str(place.root / "two")
    assert two_player_main(["--config", str(path), "--out", out, "--no-progress"]) == 0
    return place.root


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Place(tmp_path)
    sys.modules.pop("evil", None)
    importlib.invalidate_caches()


Attack = Callable[[Place], int]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__] = function
    return function


# ----------------------------------------------------------------- configurations of train


@attack
def yaml_replay_buffer_class(place: Place) -> int:
    return place.train("-conf", place.config(replay_buffer_class=place.code))


@attack
def params_replay_buffer_class(place: Place) -> int:
    value = json.dumps(place.code)
    return place.train("-conf", place.config(), "-params", f"replay_buffer_class:{value}")


@attack
def yaml_callback(place: Place) -> int:
    return place.train("-conf", place.config(callback="evil.Code"))


@attack
def yaml_callback_with_arguments(place: Place) -> int:
    call = {"os.system": {"command": f"touch {place.marker}"}}
    return place.train("-conf", place.config(callback=[call]))


@attack
def yaml_callback_found_in_a_known_module(place: Place) -> int:
    call = {"rl_zoo3.utils.importlib.import_module": {"name": "evil"}}
    return place.train("-conf", place.config(callback=[call]))


@attack
def params_callback(place: Place) -> int:
    return place.train("-conf", place.config(), "-params", "callback:evil.Code")


@attack
def yaml_env_wrapper(place: Place) -> int:
    return place.train("-conf", place.config(env_wrapper="evil.Code"))


@attack
def yaml_vec_env_wrapper(place: Place) -> int:
    return place.train("-conf", place.config(vec_env_wrapper=[{"evil.Code": {}}]))


@attack
def yaml_policy(place: Place) -> int:
    return place.train("-conf", place.config(policy="evil.Code"))


@attack
def yaml_normalize(place: Place) -> int:
    return place.train("-conf", place.config(normalize=place.code))


@attack
def yaml_opponent(place: Place) -> int:
    zipped = str(place.zip(seat="agent"))
    return place.train("-conf", place.config(env_kwargs={"opponent": zipped}))


@attack
def yaml_tag(place: Place) -> int:
    path = Path(place.config())
    path.write_text(f"{path.read_text()}  gamma: !!python/object/apply:os.mkdir [{place.marker}]\n")
    return place.train("-conf", str(path))


@attack
def python_configuration(place: Place) -> int:
    return place.train("-conf", "evil.py")


@attack
def opponent_on_the_command_line(place: Place) -> int:
    zipped = place.zip(seat="agent")
    return place.train("-conf", place.config(), "--env-kwargs", f"opponent:{zipped}")


@attack
def model_to_continue(place: Place) -> int:
    return place.train("-conf", place.config(), "-i", str(place.zip()))


@attack
def replay_buffer_to_continue(place: Place) -> int:
    shutil.copy(place.run / f"{NAME}.zip", place.root / "model.zip")
    (place.root / "replay_buffer.pkl").write_bytes(pickle.dumps(Touch(place.marker)))
    return place.train("-conf", place.config(), "-i", str(place.root / "model.zip"))


@attack
def statistics_to_continue(place: Place) -> int:
    folder = place.root / "other"
    (folder / NAME).mkdir(parents=True)
    shutil.copy(place.run / f"{NAME}.zip", folder / "model.zip")
    (folder / NAME / "vecnormalize.pkl").write_bytes(pickle.dumps(Touch(place.marker)))
    return place.train("-conf", place.config(), "-i", str(folder / "model.zip"))


# -------------------------------------------------------------------------------- folders of a run


@attack
def resumed_config(place: Place) -> int:
    place.change("config.yml", callback="evil.Code")
    return train_main(["--resume", str(place.run)])


@attack
def resumed_replay_buffer_class(place: Place) -> int:
    place.change("config.yml", replay_buffer_class=place.code)
    return train_main(["--resume", str(place.run)])


@attack
def resumed_opponent(place: Place) -> int:
    place.change("config.yml", env_kwargs={"opponent": str(place.zip(seat="agent"))})
    return train_main(["--resume", str(place.run)])


@attack
def resumed_arguments_smuggle_an_option(place: Place) -> int:
    (place.root / "evil:1.py").write_text((place.root / "evil.py").read_text())
    place.change("args.yml", env_kwargs={"--gym-packages=evil": 1})
    return train_main(["--resume", str(place.run)])


@attack
def resumed_arguments_grant_trust(place: Place) -> int:
    place.change("args.yml", env="--trust")
    place.change("config.yml", callback="evil.Code")
    return train_main(["--resume", str(place.run), f"--env={HOST}"])


@attack
def resumed_arguments_with_a_tag(place: Place) -> int:
    (place.params / "args.yml").write_text(f"x: !!python/object/apply:os.mkdir [{place.marker}]\n")
    return train_main(["--resume", str(place.run)])


@attack
def enjoyed_normalize(place: Place) -> int:
    place.change("config.yml", normalize=place.code)
    return place.enjoy()


@attack
def enjoyed_statistics(place: Place) -> int:
    place.change("config.yml", normalize=True)
    (place.params / "vecnormalize.pkl").write_bytes(pickle.dumps(Touch(place.marker)))
    return place.enjoy()


@attack
def enjoyed_env_wrapper(place: Place) -> int:
    place.change("config.yml", env_wrapper="evil.Code")
    return place.enjoy()


@attack
def enjoyed_config_with_a_tag(place: Place) -> int:
    tag = f"x: !!python/object/apply:os.mkdir [{place.marker}]\n"
    (place.params / "config.yml").write_text(tag)
    return place.enjoy()


@attack
def enjoyed_arguments_with_a_tag(place: Place) -> int:
    tag = f"env_kwargs: !!python/object/apply:os.mkdir [{place.marker}]\n"
    (place.params / "args.yml").write_text(tag)
    return place.enjoy()


@attack
def enjoyed_opponent(place: Place) -> int:
    place.change("args.yml", env_kwargs={"opponent": str(place.zip(seat="agent"))})
    return place.enjoy()


@attack
def enjoyed_model(place: Place) -> int:
    shutil.copy(place.zip(), place.run / f"{NAME}.zip")
    return place.enjoy()


@attack
def filmed_model(place: Place) -> int:
    pytest.importorskip("moviepy")
    shutil.copy(place.zip(), place.run / f"{NAME}.zip")
    return record_video(["--algo", "ddqn", "--env", HOST, "-f", str(place.logs), "-n", "5"])


# ------------------------------------------------------------------- players and opponents


@attack
def two_player_opponent(place: Place) -> int:
    return place.two_player(f"roles.host.opponent={place.zip(seat='agent')}")


@attack
def two_player_evaluation(place: Place) -> int:
    return place.two_player(f"evaluation.opponents.host=[{place.zip(seat='agent')}]")


@attack
def two_player_resumed(place: Place) -> int:
    run = place.root / "two"
    shutil.rmtree(run / "checkpoints")
    config = yaml.safe_load((run / "config.yml").read_text())
    config["roles"]["host"]["opponent"] = str(place.zip(seat="agent"))
    (run / "config.yml").write_text(yaml.safe_dump(config))
    return two_player_main(["--resume", str(run), "--no-progress"])


@attack
def two_player_misspelt(place: Place) -> int:
    place.zip("choose_frist.zip", seat="agent")
    return place.two_player("roles.host.opponent=choose_frist")


@attack
def rho_of_a_model(place: Place) -> int:
    return resgym_main(["rho", str(place.zip()), "random", "--games", "5"])


@attack
def rho_of_a_misspelt_name(place: Place) -> int:
    place.zip("zeilinger.zip")
    return resgym_main(["rho", "zeilinger", "random", "--games", "5"])


@attack
def rho_of_a_model_whose_class_is_code(place: Place) -> int:
    return resgym_main(["rho", str(place.zip(field="policy_class")), "random", "--games", "5"])


@attack
def tree_of_a_model(place: Place) -> int:
    return resgym_main(["tree", "E8", "--host", str(place.zip(field="observation_space"))])


@attack
def attacked_model(place: Place) -> int:
    return attack_main(["exact", str(place.zip()), "--role", "host", "--no-progress"])


@attack
def attacked_misspelt_name(place: Place) -> int:
    place.zip("zeilinger.zip")
    return attack_main(["exact", "zeilinger", "--no-progress"])


@attack
def shipped_model(place: Place) -> int:
    return teach_main(["ship", str(place.zip()), "--out", str(place.root / "out.safetensors")])


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
        lambda place: place.train("-conf", place.config(callback="evil.Code"), "--trust"),
        lambda place: (
            place.change("config.yml", normalize=place.code),
            place.enjoy("--trust"),
        ),
        lambda place: resgym_main(["rho", str(place.zip()), "random", "--games", "5", "--trust"]),
    ],
)
def test_with_trust_it_runs(attack: Any, place: Place) -> None:
    with contextlib.suppress(Exception):  # what follows the payload is no sound program
        attack(place)
    assert place.marker.exists()


# ------------------------------------------------------------------------------------- what is read


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
    place = Place(tmp_path)
    values = {"normalize": "dict(norm_obs=False, norm_reward=True)", "policy": "MlpPolicy"}
    place.config()
    path = tmp_path / "ppo.yml"
    parameters = {"n_envs": 2, "n_steps": 8, "batch_size": 8, "n_timesteps": 32}
    path.write_text(
        yaml.safe_dump({HOST: {**parameters, "policy": "MlpPolicy", "normalize": True}})
    )
    common = ["--algo", "ppo", "--env", HOST, "-f", str(place.logs)]
    assert train_main([*common, *SMALL, "-conf", str(path)]) == 0
    run = place.logs / "ppo" / f"{NAME}_1"
    assert (run / NAME / "vecnormalize.pkl").is_file()
    play = [*common, "--no-render", "-n", "5", "--exp-id", "1"]
    assert enjoy_main(play) == 0
    saved = yaml.safe_load((run / NAME / "config.yml").read_text())
    (run / NAME / "config.yml").write_text(yaml.safe_dump({**saved, **values}))
    assert enjoy_main(play) == 0


def test_training_goes_on_from_a_model_and_its_buffer(place: Place) -> None:
    arguments = ["-conf", place.config()]
    assert place.train(*arguments, "--save-replay-buffer") == 0
    run = place.logs / "ddqn" / f"{NAME}_2"
    assert (run / "replay_buffer.pkl").is_file()
    assert place.train(*arguments, "-i", str(run / f"{NAME}.zip")) == 0


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
