"""Configuration files are plain YAML of a limited size; see docs/configuration.md."""

from __future__ import annotations

from typing import Any

import yaml

from sb3_ext.config.arguments import REFUSALS

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
        event: Any = self.peek_event()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(_TOO_DEEP, event.start_mark)
        node: Any = super().compose_node(parent, index)
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

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Whole numbers have to fit."""
        value = super().construct_object(node, deep)
        if isinstance(value, int) and abs(value) >= 2**63:
            self._refuse("a whole number of more than 63 bits", node.start_mark)
        return value

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
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        why = " ".join(str(problem or error)[:200].split())
        raise ValueError(f"not readable as plain YAML{where}: {why}") from None
