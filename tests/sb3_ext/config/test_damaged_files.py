"""Configurations are plain data; a damaged one is read, or refused in one line."""

import random
import re
from pathlib import Path

import pytest
import rl_zoo3

from sb3_ext.attack.config import AttackConfig
from sb3_ext.config.sections import apply_settings, find_config, read_mapping
from sb3_ext.ddqn import algorithms
from sb3_ext.teach.positions import TeachConfig
from sb3_ext.train.config_files import check_hyperparameters, section_of
from sb3_ext.two_player.config import TrainerConfig
from tests.fakes import BOMB

VALUES = (
    *("!!bool foo", "!!timestamp foo", "!!int foo", "!!int ''", "!!binary /", "!!set {a}"),
    *("!!python/name:os.system", "2001-13-45", "2001-01-01", "=", "<<", "0x", "1:70", "~", "''"),
    *("9" * 5000, "9" * 400, "-" + "9" * 30, "1e308", "1.0e+308", "1.0e+400", ".nan", "-.inf"),
    *("[" * 2000, "{a: " * 500, "&a [*a]", "&a {b: *a}", "{<<: [1]}", "{<<: &a {<<: *a}}", BOMB),
    *("null", "true", "abc", "-1", "0", "1", "0.5", "1.5", "1e-4", "'1'", "1000000000000", "[]"),
    *("[0]", "[1, 1]", "[abc]", "[null]", "[1000000000]", "[{repeat: 1000000000, net_arch: [1]}]"),
    *("{}", "{a: 1}", "{1: 2}", "{null: 1}", "{[a]: 1}", "{? {a: b}}", "lin_1", "exp_nan_1_2"),
    *("{schedule: linear}", "{schedule: [x]}", "{mode: windows, period: 1.0e+300}", "os.nope"),
    *("\x07", "\t", "%YAML", "- -", "'", '"', "*none", "&", "? ", ": ", "|", "{", "]", "\ud7ff"),
)


def read_algorithm(path):
    for name in read_mapping(path):
        _, section = section_of(path, name)
        check_hyperparameters(section, ALGORITHMS.get(path.stem, ALGORITHMS["minimax"]), str(name))


ALGORITHMS = {**rl_zoo3.ALGOS, **algorithms.ALGORITHMS}
READERS = {
    "attack/": AttackConfig.read,
    "taught/": read_algorithm,
    "teach/": TeachConfig.read,
    "two_player/": TrainerConfig.read,
    "": read_algorithm,
}


def reader_of(name):
    return next(reader for start, reader in READERS.items() if re.match(start, name))


def damaged(text, draw):
    """The text with one to three changes."""
    for _ in range(draw.randint(1, 3)):
        lines = text.splitlines(keepends=True) or ["\n"]
        place = draw.randrange(len(lines))
        kind = draw.random()
        if kind < 0.6:  # another value
            values = list(re.finditer(r"(?<=[:,\[] )[^\s,{}\[\]]+", text))
            if values:
                at = draw.choice(values)
                text = text[: at.start()] + draw.choice(VALUES) + text[at.end() :]
        elif kind < 0.7:  # another key
            word = draw.choice(("bogus", "1", "null", "seed", "[a]"))
            lines[place] = re.sub(r"\w+(?=:)", word, lines[place], count=1)
            text = "".join(lines)
        elif kind < 0.8:
            text = "".join(lines[:place] + lines[place + 1 :])
        elif kind < 0.9:
            text = "".join(lines[: place + 1] + lines[place:])
        else:
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(VALUES) + text[at + draw.randint(0, 20) :]
    return text


def outcome(name, text, path):
    """What reading says: nothing, or the line that refuses."""
    path.write_text(text, encoding="utf-8")
    try:
        reader_of(name)(path)
    except ValueError as error:
        return str(error)
    return ""


CONFIGS = find_config("ddqn").parent
NAMES = [str(path.relative_to(CONFIGS))[:-4] for path in CONFIGS.rglob("*.yml")]


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_read_or_refused_in_one_line(name, tmp_path):
    draw = random.Random(name)
    text = find_config(name, shipped=True).read_text(encoding="utf-8")
    path = tmp_path / f"{Path(name).name}.yml"
    assert outcome(name, text, path) == ""
    refusals = [outcome(name, damaged(text, draw), path) for _ in range(20)]
    assert sum(map(bool, refusals)) > 5
    for line in refusals:
        assert "\n" not in line
        assert len(line) < 2000
    assert list(tmp_path.iterdir()) == [path]


def write(tmp_path, text):
    path = tmp_path / "some.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_plain_data_and_merged_mappings(tmp_path):
    text = """
    default: &default {seed: 1, sizes: {a: 1}}
    first: &first
      <<: *default
      seed: 2
    second:
      <<: *first
      seed: 3
      sizes: {a: 1, b: 1}
    third: {<<: [*first, *default], 1: one, "1": text}
    dates are text: [&date {day: 2001-01-01}, *date, =]
    """
    first = {"seed": 2, "sizes": {"a": 1}}
    found = read_mapping(write(tmp_path, text))
    assert found == {
        "default": {"seed": 1, "sizes": {"a": 1}},
        "first": first,
        "second": {"seed": 3, "sizes": {"a": 1, "b": 1}},
        "third": {**first, 1: "one", "1": "text"},
        "dates are text": [{"day": "2001-01-01"}, {"day": "2001-01-01"}, "="],
    }
    # A setting changes one place of what is repeated.
    assert apply_settings(found, ["default.sizes.a=2"])["first"] == first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "at line 3: the key 'a' stands twice"),
        ("x:\n  - {seed: 0, seed: 0}\n", "at line 2: the key 'seed' stands twice"),
        ("a: [1\n", "not readable as plain YAML at line 2"),
        ("a: !!python/object/apply:os.getcwd []\n", "not readable as plain YAML at line 1"),
        ("a: \x07\n", "not readable as plain YAML"),
        ("a: !!bool foo\n", "not readable as plain YAML"),
        ("a: !!int ''\n", "not readable as plain YAML"),
        ("a: !!timestamp foo\n", "could not determine a constructor for the tag"),
        (f"a: {'9' * 5000}\n", "not readable as plain YAML"),
        (f"a: {'[' * 2000}\n", "more than 40 lists and mappings inside each other"),
        ("a: &a [*a]\n", "the alias 'a' stands inside of what it repeats"),
        ("a: &a {<<: *a}\n", "the alias 'a' stands inside of what it repeats"),
        (BOMB, "more than 10000 keys and values"),
        ("- 1\n" * 20_000, "more than 10000 keys and values"),
        ("#" * 2**17 + "\n", "more than 131072 characters"),
        ("- 1\n", "must hold a mapping, got list"),
    ],
)
def test_what_is_refused_is_one_line(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=words) as caught:
        read_mapping(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
