"""What a file may hold, plain YAML of a limited size, and what its values may do.

Four effects need the command line: an option with the same value, or ``--trust`` for a file named
there. Even a trusted file may not name pickles or a path outside its run.

`KEYS` declares every key of any schema that can have an effect; the readers of files call `judge`.
tests/sb3_ext/config/test_effects.py fails on every key of text that is neither in `KEYS` nor in its
own list of keys without an effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from resgym.trust import code_in, is_trusted, may_name, packaged, parse_expression, trust_words
from sb3_ext.config.checks import REFUSALS, one_line, shown
from sb3_ext.types import StrPath


class Effect(Enum):
    """The effect of a value, and what is expected instead."""

    CONNECT = "connects to an address; expected the option of the command line, or --trust"
    IMPORT = "imports code; expected a registered name, --import MODULE, or --trust"
    LOAD = (
        "loads a file that can run code; expected a name, a run's or checkpoint's folder, or the "
        "same path on the command line beside --trust"
    )
    WRITE = "writes outside the run's folder; expected a path inside it"
    PREFIX = "writes outside the run's folder; expected a name without a folder"


_DECLARED = {
    Effect.CONNECT: "address storage",
    Effect.IMPORT: """
activation_fn callback callback_after_eval callback_on_new_best env env_wrapper extractor
features_extractor_class gym_packages optimizer_class policy replay_buffer_class
rollout_buffer_class vec_env_wrapper
""",
    Effect.LOAD: """
agent agents host hosts init_from opponent opponents player student targets trained_agent
""",
    Effect.WRITE: """
best_model_save_path csv_file dir directory filename folder log_dir log_folder log_path monitor_dir
out output_folder path reward_log run_dir save_path tensorboard_log video_folder
""",
    Effect.PREFIX: "name_prefix",  # joined to a path, whose place it takes if it is absolute
}
KEYS: Mapping[str, Effect] = {
    key: effect for effect, keys in _DECLARED.items() for key in keys.split()
}
"""Keys whose values can have an effect, in every schema."""

PACKAGES = (
    "gymnasium.wrappers",
    "rl_zoo3.callbacks",
    "rl_zoo3.wrappers",
    "sb3_contrib",
    "sb3_ext",
    "stable_baselines3",
)
"""Where classes may come from that a configuration names with their module.

Importing one of these does nothing else; `rl_zoo3.benchmark` would be run by its import.
"""


def judge(data: Any, file: StrPath) -> None:
    """Refuse values with an effect; a file that the command line trusts may connect and import.

    Args:
        data: the file's content, plain data.
        file: its path, which the caller names in the message.

    Raises:
        ValueError: one line with the field, what was given and what is expected.
    """
    trusted = is_trusted(file)
    if trusted:
        trust_words(code_in(data))
    allowed = (Effect.CONNECT, Effect.IMPORT) if trusted else ()
    for field, value, effect in effects_of(data):
        if effect not in allowed:
            raise ValueError(f"{field or 'value'}: got {shown(value)}, which {effect.value}")


def effects_of(
    data: Any, field: str = "", effect: Effect | None = None
) -> Iterator[tuple[str, str, Effect]]:
    """Every value of plain data that has an effect: its field, itself, and which."""
    if isinstance(data, str):
        yield from _effects_of_text(data, field, effect)
    elif isinstance(data, Mapping):
        for key, value in data.items():
            name = str(key)
            # A key may be a name itself: of a class above its arguments, or of a player.
            yield from _effects_of_text(name, field, effect)
            # What stands below a class are its arguments, which name no classes by themselves.
            of_class = effect is Effect.IMPORT and name != "choices"
            inner = KEYS.get(name.rpartition(".")[2], None if of_class else effect)
            yield from effects_of(value, f"{field}.{name}".lstrip("."), inner)
    elif isinstance(data, (frozenset, list, set, tuple)):
        for place, value in enumerate(data):
            yield from effects_of(value, f"{field}[{place}]", effect)


def _effects_of_text(
    text: str, field: str, effect: Effect | None
) -> Iterator[tuple[str, str, Effect]]:
    found = _effect_of(text, effect)
    if found is not None:
        yield field, text, found
    with suppress(ValueError):
        yield from effects_of(parse_expression(text)[1], field, effect)


def _effect_of(value: str, declared: Effect | None) -> Effect | None:
    """The effect of a text, in a key that declares one or in any other."""
    if code := [*code_in(value)]:  # module:Class, wherever a registry may be asked for it
        return None if all(map(may_name, code)) else Effect.IMPORT
    match declared:
        case Effect.IMPORT:
            acts = ":" in value or ("." in value and not _is_known(value))
        case Effect.LOAD:
            acts = _may_hold_pickles(value)
        case Effect.PREFIX:
            acts = os.path.basename(value) != value
        case Effect.WRITE:
            acts = os.path.isabs(value) or ".." in Path(value).parts
        case _:
            acts = declared is Effect.CONNECT
    return declared if acts else None


def _is_known(dotted: str) -> bool:
    """Whether a dotted name is a class that a file may name without trust."""
    if may_name(":".join(dotted.rsplit(".", 1))):
        return True
    try:
        known_class(dotted)
    except ValueError:
        return False
    return True


def known_class(dotted: str) -> type:
    """The callback, wrapper, policy, extractor or buffer of `PACKAGES` with this dotted name."""
    import gymnasium
    from stable_baselines3.common.buffers import BaseBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.policies import BasePolicy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import VecEnvWrapper

    kinds = BaseBuffer | BaseCallback | BaseFeaturesExtractor | BasePolicy | VecEnvWrapper
    module, _, name = dotted.rpartition(".")
    found: Any = None
    with suppress(AttributeError, ImportError):
        found = packaged(f"{module}:{name}", PACKAGES) if name else None
    # Modules also hold what they import: the class itself has to be of these packages.
    if not (
        isinstance(found, type)
        and issubclass(found, kinds | gymnasium.Wrapper)
        and any(f"{found.__module__}.".startswith(f"{each}.") for each in PACKAGES)
    ):
        raise ValueError(
            f"{shown(dotted)} is not a callback, wrapper, policy, extractor or buffer of "
            f"{', '.join(PACKAGES)}"
        )
    return found


def _may_hold_pickles(value: str) -> bool:
    """Whether a player's name is the path of a file other than a checkpoint without pickles.

    Without a separator it is a name, whatever files there are (`resgym.players.resolve_player`).
    """
    path = Path(value)
    if path.suffix == ".zip":
        return True
    if os.path.basename(value) == value:
        return False
    return os.path.isfile(f"{value}.zip") or (
        os.path.isfile(path) and path.suffix != ".safetensors"
    )


def confine_paths(data: Any, folder: Path, field: str = "", effect: Effect | None = None) -> Any:
    """Copy plain data, and make the paths of `Effect.WRITE` absolute, below a run's folder.

    Args:
        data: plain data. All texts in the value of a key with the effect are paths, as in `judge`.
        folder: the run's folder; relative paths begin there.
        field: where the data stand, for messages.
        effect: the effect of the key above the data.

    Raises:
        ValueError: a path leaves the folder, links resolved.
    """
    if isinstance(data, Mapping):
        return {
            key: confine_paths(
                value, folder, f"{field}.{key}".lstrip("."), KEYS.get(str(key), effect)
            )
            for key, value in data.items()
        }
    if isinstance(data, list):
        return [
            confine_paths(value, folder, f"{field}[{index}]", effect)
            for index, value in enumerate(data)
        ]
    if effect is not Effect.WRITE or not isinstance(data, str):
        return data
    root = folder.resolve()
    path = (root / data).resolve()
    if not path.is_relative_to(root):
        raise ValueError(f"{field}: got {shown(data)}, which {Effect.WRITE.value}")
    return str(path)


MAX_BYTES = 2**17
MAX_DEPTH = 40
"""Lists and mappings inside each other."""
MAX_VALUES = 10_000
"""Keys and values, those that anchors repeat counted each time."""

_TOO_DEEP = f"more than {MAX_DEPTH} lists and mappings inside each other"
_TAG = "tag:yaml.org,2002:"
_PLAIN = (None, *(_TAG + kind for kind in ("null", "bool", "int", "float", "str", "seq", "map")))


class _Loader(yaml.SafeLoader):
    """The safe loader, for less: plain data, each key once, of a bounded size."""

    yaml_constructors = {  # noqa: RUF012  as PyYAML has it
        tag: make for tag, make in yaml.SafeLoader.yaml_constructors.items() if tag in _PLAIN
    }
    # A date and a lone = are text.
    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [each for each in tags if each[0] not in (_TAG + "timestamp", _TAG + "value")]
        for first, tags in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.sizes: dict[yaml.Node, int] = {}

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        """The scanner is far ahead of the composer, and slow on many brackets."""
        if self.flow_level > MAX_DEPTH:
            self._refuse(_TOO_DEEP, self.get_mark())
        super().fetch_flow_collection_start(TokenClass)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Counts as it goes, so that a refusal comes before the work."""
        event = self.peek_event()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(_TOO_DEEP, event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent) and node not in self.sizes:
            self._refuse(
                f"the alias {event.anchor!r} stands inside of what it repeats", event.start_mark
            )
        if not isinstance(event, yaml.AliasEvent):
            inside = [] if isinstance(node, yaml.ScalarNode) else node.value
            if isinstance(node, yaml.MappingNode):
                inside = [each for pair in inside for each in pair]
            self.sizes[node] = 1 + sum(self.sizes[each] for each in inside)
        if max(self.sizes[node], len(self.sizes)) > MAX_VALUES:
            self._refuse(f"more than {MAX_VALUES} keys and values", event.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Composed before `<<` is resolved, whose keys may be set again."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = (key.tag, key.value if isinstance(key, yaml.ScalarNode) else id(key))
            if name in seen and key.tag != _TAG + "merge":
                self._refuse(f"the key {key.value!r} stands twice in one mapping", key.start_mark)
            seen.add(name)
        return node

    def _refuse(self, problem: str, where: Any) -> None:
        raise yaml.composer.ComposerError(None, None, problem, where)


def parse_yaml(text: str) -> Any:
    """Read a text as plain data; nothing in it is evaluated.

    Raises:
        ValueError: the text is not YAML, not plain, too large, or repeats a key.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} characters")
    try:
        return yaml.load(text, Loader=_Loader)  # type: ignore[arg-type]  # a safe one
    except (yaml.YAMLError, *REFUSALS) as error:  # PyYAML fails in many ways on text of other tags
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        why = one_line(str(getattr(error, "problem", None) or error)[:200])
        raise ValueError(f"not readable as plain YAML{where}: {why}") from None
