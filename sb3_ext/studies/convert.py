"""``python -m sb3_ext.convert OLD NEW``: configurations of earlier versions in today's form.

Readers know today's form alone, in which every key has to be there. What changed is said here, a
function for each change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from resgym.cli import OneLineParser
from resgym.files import output_file
from resgym.players.trust import add_trust, trusting
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.config.reading import ConfigFile, read_mapping
from sb3_ext.config.sections import ConfigError, errors_of
from sb3_ext.population.config import PopulationConfig
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED
from sb3_ext.studies.attack.settings import AttackBudget
from sb3_ext.studies.teach.families import TeachConfig
from sb3_ext.studies.text.config import TextConfig
from sb3_ext.two_player.config import TrainerConfig

# What a kind of file has that no other has.
_KINDS: Mapping[str, type[ConfigFile]] = {
    "members": PopulationConfig,
    "responder": AttackBudget,
    "families": TeachConfig,
    "model": TextConfig,
    "roles": TrainerConfig,
}


def _without_lookahead(data: dict[str, Any]) -> str | None:
    """Responders of the attack did not look ahead at first."""
    responder = data.get("responder")
    if not isinstance(responder, dict) or "lookahead_moves" in responder:
        return None
    responder["lookahead_moves"] = 0
    return "responder.lookahead_moves: 0, as it was when there was no such key"


def _with_largest(data: dict[str, Any]) -> str | None:
    """Families of positions once left out those with a coordinate above a bound."""
    families = data.get("families")
    found = [
        family.pop("largest")
        for family in (families if isinstance(families, list) else ())
        if isinstance(family, dict) and "largest" in family
    ]
    if not found:
        return None
    bounds = ", ".join(map(str, found))
    return f"families: largest ({bounds}) is gone, positions of any coordinates are taken"


CONVERSIONS: Sequence[Callable[[dict[str, Any]], str | None]] = (_without_lookahead, _with_largest)
"""The changes, the oldest first: each makes plain data those of the next version, in place, and
returns what it did, or None if there was nothing to do."""


def converted(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A configuration in today's form, and what was done to it.

    Raises:
        ConfigError: it is of no known kind, or not valid for another reason than its age.
    """
    kind = next((each for key, each in _KINDS.items() if key in data), None)
    if kind is None:
        raise ConfigError(f"must have one of the keys {', '.join(_KINDS)}, by which it is known")
    new = copy.deepcopy(dict(data))
    done = [text for change in CONVERSIONS if (text := change(new)) is not None]
    kind.read(new)
    return new, done


@command("convert", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Converts as the command line says; returns the exit code, see `command`."""
    parser = OneLineParser(
        prog="python -m sb3_ext.convert",
        description="Writes a configuration of an earlier version in today's form: budgets of the "
        "attack, families of teach, and those of two_player, population, text. Comments are lost.",
        epilog="example: python -m sb3_ext.convert old/points5.yml points5.yml",
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="YAML file, which is left as it is")
    parser.add_argument("new", type=Path, metavar="NEW", help="file to write")
    add_trust(parser)
    args = parser.parse_args(arguments)
    if output_file(args.new, (".yml", ".yaml"), "new").exists():
        raise ConfigError(f"new: {args.new} is there already; take another name")
    old = read_mapping(args.old)
    with trusting(args.trust), errors_of(str(args.old), ValueError):
        data, done = converted(old)
    write_text_durably(args.new, yaml.safe_dump(data, sort_keys=False))
    print("\n".join([*(done or ["nothing had to be changed"]), f"written to {args.new}"]))
    return 0
