"""Every key of every schema is declared by what its values can do, and each effect is refused."""

from __future__ import annotations

import copy
import importlib
import inspect
import itertools
import json
import os
import pickle
import pkgutil
import re
import socket
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import yaml
from gymnasium.envs.registration import load_env_creator
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper

from resgym.trust import command_line
from sb3_ext.config.checks import Registry
from sb3_ext.config.effects import KEYS, PACKAGES, Effect, effects_of, judge, placed
from sb3_ext.config.reading import find_config, read_mapping, shipped_configs
from sb3_ext.config.sections import ConfigError, Section
from tests.sb3_ext.config.test_damaged_files import reader_of

PLAIN = set(
    """
action_mask_fn activation algo algorithm approximate autoreset_mode backend best channels_order
command compile_networks condition config data device dict_time_key direction ent_coef
exploration_strategy explore families field file filter_keys fingerprint first game
goal_selection_strategy info_keywords invalid_action key learner learning_rate_factors log loss
mask_source max_resource min_resource mode name net_arch norm_obs_keys objective obs_key
observation output padding_type params polytope precision reduction render_key render_mode
reset_keywords reward role rule schedule scripted settings starts stats_key
supported_action_spaces target_entropy target_update_unit train_freq unit value warmup
""".split()  # noqa: SIM905
)
"""Keys of text that have no effect: words of a registry, names of entries, files read as data."""

KINDS = (
    *(BaseAlgorithm, BaseBuffer, BaseCallback, BaseFeaturesExtractor, BasePolicy, VecEnvWrapper),
    gymnasium.Wrapper,
)
"""What a configuration may name with its module, and algorithms."""

TEXT = re.compile(r"\bstr\b|Path|\b[tT]ype\[")
PLAIN_MAPPING = re.compile(r"(dict|Mapping)\[str, (typing\.)?Any\]")  # whose own keys count
TELLING = re.compile(
    r"addr|(^|_)(class|dir|directory|file|filename|folder|host|log|module|path|port|prefix|script|"
    r"storage|ur[il])s?$"
)
"""Names that say of themselves that their values are no plain numbers."""


def modules() -> Iterator[Any]:
    """Every module from which a configuration may name a class."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        yield module
        for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}."):
            with suppress(ImportError):  # it needs a package that is not installed
                yield importlib.import_module(each.name)


def below(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def keys() -> Iterator[tuple[str, str, str]]:
    """Every key that a file can set: its name, its type, where it stands."""
    tables = [
        table
        for module in modules()
        for table in list(vars(module).values())
        if isinstance(table, Registry)
    ]
    for section in below(Section):
        for name, field in section.model_fields.items():
            yield name, str(field.annotation), section.__name__
    named = {each for kind in KINDS for each in below(kind)}
    envs = [
        load_env_creator(str(entry))
        for spec in gymnasium.registry.values()
        if spec.id.startswith("resgym/")
        for entry in (spec.entry_point, spec.vector_entry_point)
        if entry
    ]
    called = {each for each in named if each.__module__.startswith(PACKAGES)}
    called |= {entry for table in tables for entry in table.values()}
    for each in {*called, *envs, Monitor}:
        with suppress(ValueError):  # it is written in C, and has no signature
            for name, parameter in inspect.signature(each).parameters.items():
                yield name, str(parameter.annotation), str(each)


def test_every_key_of_text_is_declared() -> None:
    found = list(keys())
    assert {"save_path", "target_update_unit", "opponents"} <= {each[0] for each in found}
    undeclared = {
        f"{name} of {where}"
        for name, kind, where in found
        if (TEXT.search(PLAIN_MAPPING.sub("", kind)) or TELLING.search(name))
        and name not in {*KEYS, *PLAIN}
    }
    assert undeclared == set(), (
        "say in sb3_ext/config/effects.py what these keys can do, or here that it is nothing"
    )


HOSTILE: Mapping[Effect, tuple[str, ...]] = {
    Effect.CONNECT: ("ray://10.0.0.1:10001", "auto", "sqlite:///x"),
    Effect.IMPORT: ("evil:Code", "evil.Code", "os.system", "evil:resgym/HironakaHost-v0"),
    Effect.LOAD: ("evil.zip", "./evil.zip", "runs/evil.zip"),
    Effect.WRITE: ("/tmp/x", "../x", "a/../../x"),
    Effect.PREFIX: ("/tmp/x", "../x", "a/x"),
}


def test_each_declared_effect_is_refused_wherever_it_stands() -> None:
    cases = [(key, value) for key, effect in KEYS.items() for value in HOSTILE[effect]]
    cases += [(key, "evil:Code") for key in {*PLAIN, "anything"} - {"settings"}]
    for key, value in cases:
        for data in (
            {key: value},
            {"a": [{key: [value]}]},
            {"a": {f"b.{key}": {"choices": [value]}}},
            {"settings": [f"a.{key}={value}"]},
        ):
            with pytest.raises(ValueError, match="expected") as caught:
                judge(data, "file.yml")
            assert key in str(caught.value)
            assert "\n" not in str(caught.value)


def test_what_the_command_line_trusts(tmp_path: Path) -> None:
    file, other = tmp_path / "file.yml", tmp_path / "other.yml"
    for path in (file, other):
        path.write_text("address: auto\ncallback: evil.Code\n")
    with pytest.raises(ConfigError, match="address: got 'auto', which connects"):
        read_mapping(file)
    with command_line(True, file):
        assert read_mapping(file)["address"] == "auto"
        with pytest.raises(ConfigError, match="connects"):
            read_mapping(other)  # a file that the first one names
        for data in ({"player": "a.zip"}, {"run_dir": "/tmp"}):
            with pytest.raises(ValueError, match="expected"):
                judge(data, file)
    with command_line(False, file), pytest.raises(ConfigError, match="connects"):
        read_mapping(file)


@pytest.mark.parametrize(
    "data",
    [
        {"opponent": "choose_first", "hosts": {"random": 0.5, "safe(slack=2)": 0.5}},
        {"opponents": ["runs/host", "./checkpoint", "host.safetensors"]},
        {"callback": ["stable_baselines3.common.callbacks.CheckpointCallback"]},
        {"callback": [{"sb3_ext.callbacks.evaluation.RhoEvaluation": {"field": "a.b"}}]},
        {"policy": "MlpPolicy", "save_path": "kept/here", "device": "cuda:0", "starts": "a/b.txt"},
        {"env": "resgym/HironakaHost-v0", "learning_rate": "exp_1e-3_1e-8_0.996"},
    ],
)
def test_plain_values_have_no_effect(data: Any) -> None:
    assert list(effects_of(data)) == []


class Watch:
    """What Python does meanwhile that no file may ask for."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.seen is None:
            return
        if event == "open":
            path, mode, _ = arguments
            wrote = isinstance(mode, str) and not {*mode}.isdisjoint("wax+")
            heard = wrote and "__pycache__" not in str(path) and path != os.devnull
        elif event == "exec":  # "import" is silent about importlib.import_module
            heard = "evil" in arguments[0].co_filename
        else:
            heard = event in EVENTS
        if heard:
            self.seen.append(f"{event} {arguments}")

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        self.seen = seen = []
        try:
            yield seen
        finally:
            self.seen = None


EVENTS = {
    *("os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"),
    *("os.exec", "os.posix_spawn", "os.system", "os.truncate", "pickle.find_class"),
    *("shutil.rmtree", "socket.bind", "socket.connect", "socket.getaddrinfo", "subprocess.Popen"),
}
WATCH = Watch()


class Payload:
    def __reduce__(self) -> Any:
        return os.mkdir, ("ESCAPED",)


def leaves(data: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value; of a list the first and the last, whose entries are alike."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*place, key))
    elif isinstance(data, list):
        for number in {0, len(data) - 1} if data else ():
            yield from leaves(data[number], (*place, number))
    else:
        yield place


def changed(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    copied = copy.copy(data)
    copied[place[0]] = changed(data[place[0]], place[1:], value)
    return copied


def shipped(name: str) -> Any:
    return yaml.safe_load(find_config(name, shipped=True).read_text(encoding="utf-8"))


def places() -> dict[str, list[tuple[Any, ...]]]:
    """By shipped file, the places of values that no file before it has for the same reader."""
    seen: set[tuple[Any, ...]] = set()
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name in shipped_configs():
        reader = reader_of(name)
        found[name] = [each for each in leaves(shipped(name)) if (reader, *each) not in seen]
        seen |= {(reader, *each) for each in found[name]}
    return {name: new for name, new in found.items() if new}


PLACES = places()


@pytest.mark.parametrize("name", PLACES)
def test_no_value_of_a_configuration_has_an_effect(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value of each file that comes with the package, replaced by what its key could do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("evil.py").write_text("import os\nos.mkdir('ESCAPED')\nclass Code: pass\n")
    with zipfile.ZipFile("evil.zip", "w") as archive:
        archive.writestr("data", pickle.dumps(Payload()))
    data, path = shipped(name), Path(f"{Path(name).name}.yml")
    payloads = itertools.cycle(each for values in HOSTILE.values() for each in values)
    read, refusals = reader_of(name), []
    read(find_config(name, shipped=True))  # imports what it needs
    for place in PLACES[name]:
        key = next(each for each in reversed(place) if isinstance(each, str))
        declared = KEYS.get(key.rpartition(".")[2])
        for value in HOSTILE[declared] if declared else (next(payloads),):
            path.write_text(json.dumps(changed(data, place, value)), encoding="utf-8")
            with WATCH.watching() as seen:
                try:
                    read(path)
                except ValueError as error:
                    refusals.append(str(error))
            assert seen == [], (place, value)
    assert refusals or len(PLACES[name]) < 9
    assert "\n" not in "".join(refusals)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
        ["evil.py", "evil.zip", path.name]
    )


def test_the_watch_sees_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("evil.py").write_text("")
    with WATCH.watching() as seen:
        importlib.import_module("evil")
        Path("a").write_text("")
        Path("a").unlink()
        with suppress(OSError), socket.socket() as wire:
            wire.connect(("127.0.0.1", 9))
        pickle.loads(pickle.dumps(Payload()))
    sys.modules.pop("evil")
    heard = {line.partition(" ")[0] for line in seen}
    assert heard >= {"exec", "open", "os.remove", "socket.connect", "pickle.find_class"}


@pytest.mark.parametrize("key", sorted(key for key in KEYS if KEYS[key] is Effect.WRITE))
def test_a_path_is_inside_the_runs_folder(key: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "link").symlink_to(tmp_path)
    data = {"callback": [{"a.B": {key: "kept/x", "other": 1}}]}
    assert placed(data, run) == {"callback": [{"a.B": {key: str(run / "kept/x"), "other": 1}}]}
    with pytest.raises(ValueError, match=f"{key}: got 'link/x', which writes outside"):
        placed({"callback": [{"a.B": {key: "link/x"}}]}, run)
