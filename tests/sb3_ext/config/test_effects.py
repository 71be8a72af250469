"""Names for classes; every key of a schema is declared by what its values can do, or refused."""

import importlib
import inspect
import pkgutil
import re
from contextlib import suppress
from functools import partial

import gymnasium
import pytest
from gymnasium.envs.registration import load_env_creator
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper

from resgym.lazy import Lazy
from resgym.trust import command_line
from sb3_ext.callbacks import CALLBACKS
from sb3_ext.checkpoints.policy_description import POLICIES
from sb3_ext.config.checks import ConfigError, Registry
from sb3_ext.config.effects import KEYS, PACKAGES, Effect, effects_of, judge
from sb3_ext.config.sections import Section, read_mapping
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.networks.extractors import EXTRACTORS

PLAIN = set(
    """
action_mask_fn activation algo algorithm approximate autoreset_mode backend best channels_order
categorical_distance_func
command compile_networks condition config data device dict_time_key direction ent_coef
exploration_strategy explore families field file filter_keys fingerprint first game
goal_selection_strategy info_keywords invalid_action key learner learning_rate_factors log loss
mask_source max_resource min_resource mode name net_arch norm_obs_keys objective obs_key
observation output padding_type params polytope precision reduction render_key render_mode
reset_keywords reward role rule schedule scripted settings starts stats_key
supported_action_spaces target_entropy task target_update_unit train_freq unit value vec_env warmup
""".split(),  # noqa: SIM905
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


def modules():
    """Every module from which a configuration may name a class."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        yield module
        for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}."):
            # It needs a package that is not installed.
            with suppress(ImportError, gymnasium.error.DependencyNotInstalled):
                yield importlib.import_module(each.name)


def below(kind):
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def keys():
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
    called |= {table[name] for table in tables for name in table}
    for each in {*called, *envs, Monitor}:
        with suppress(ValueError):  # it is written in C, and has no signature
            for name, parameter in inspect.signature(each).parameters.items():
                yield name, str(parameter.annotation), str(each)


def test_every_key_of_text_is_declared():
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


HOSTILE = {
    Effect.CONNECT: ("ray://10.0.0.1:10001", "auto", "sqlite:///x"),
    Effect.IMPORT: ("evil:Code", "evil.Code", "os.system", "evil:resgym/HironakaHost-v0"),
    Effect.LOAD: ("evil.zip", "./evil"),
    Effect.WRITE: ("/tmp/x", "../x", "a/../../x"),
    Effect.PREFIX: ("/tmp/x", "../x", "a/x"),
}


def test_each_declared_effect_is_refused_wherever_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.zip").touch()
    cases = [(key, value) for key, effect in KEYS.items() for value in HOSTILE[effect]]
    cases += [(key, "evil:Code") for key in (*PLAIN, "anything")]
    for key, value in cases:
        for data in (
            {key: value},
            {"a": [{key: [value]}]},
            {"a": {f"b.{key}": {"choices": [value]}}},
        ):
            with pytest.raises(ValueError, match="expected") as caught:
                judge(data, "file.yml")
            assert key in str(caught.value)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("safe(fallback='x/evil.zip')", "fallback"),
        ("safe(agents=['random', 'x/evil.zip'])", r"agents\[1\]"),
        ("safe(fallback='safe(fallback=\"x/evil.zip\")')", "fallback.fallback"),
        ("safe(save_path='/etc/x')", "save_path"),
    ],
)
def test_arguments_inside_a_text_are_judged(text, field):
    for data in ({"opponent": text}, {"hosts": {text: 0.5}}):
        with pytest.raises(ValueError, match=rf"\.{field}: got .*expected"):
            judge(data, "file.yml")


def test_what_the_command_line_trusts(tmp_path):
    file = tmp_path / "file.yml"
    other = tmp_path / "other.yml"
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
        {"opponent": "choose_first", "hosts": {"random": 0.5, "safe(budget=9)": 0.5}},
        {"opponents": ["runs/host", "./checkpoint", "host.safetensors"]},
        {"callback": ["stable_baselines3.common.callbacks.CheckpointCallback"]},
        {"callback": [{"sb3_ext.callbacks.evaluation.RhoEvaluation": {"field": "a.b"}}]},
        {"policy": "MlpPolicy", "save_path": "kept/here", "device": "cuda:0", "starts": "a/b.txt"},
        {"env": "resgym/HironakaHost-v0", "learning_rate": "exp_1e-3_1e-8_0.996"},
    ],
)
def test_plain_values_have_no_effect(data):
    assert list(effects_of(data)) == []


def test_a_registry():
    shapes = Registry("shape")
    shapes.register("circle", "a circle")
    assert shapes.register("square")("a square") == shapes.resolve("square") == "a square"
    assert shapes.register("circle", "a circle") == "a circle"
    assert list(shapes) == ["circle", "square"]
    assert shapes.name_of("a circle") == "circle"
    for call, name, said in (
        (shapes.resolve, "Sqare", "unknown shape 'Sqare'; did you mean 'square'.*choices: circle"),
        (shapes.resolve, "xyz", "unknown shape 'xyz'; choices: circle, square$"),
        (shapes.resolve, 3, "shape must be one of the names circle, square, got 3"),
        (shapes.name_of, "a line", "is not a registered shape"),
        (partial(shapes.register, "circle"), "another", "registered already"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            call(name)


@pytest.mark.parametrize(
    ("registry", "later"),
    [
        (ALGORITHMS, {"minimax"}),
        (CALLBACKS, {"other_size", "worst_case_positions"}),
        (EXTRACTORS, {"any_size"}),
        (POLICIES, {"AgentPolicy", "CnnPolicy", "HostPolicy", "PointsPolicy", "QPolicy"}),
    ],
)
def test_what_is_imported_later_has_its_name_from_the_beginning(registry, later):
    """So no other order of imports changes a table, and nobody else takes the name."""
    assert {name for name, entry in registry.items() if isinstance(entry, Lazy)} == later
    for name in registry:
        assert registry.resolve(registry.name_of(registry[name])) is registry[name]
    for name in later:
        with pytest.raises(ValueError, match="is registered already; take another name"):
            registry.register(name, int)
