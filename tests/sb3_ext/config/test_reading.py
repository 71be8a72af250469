"""Configuration files are plain data, with every key once."""

import pytest

from sb3_ext.config.sections import read_mapping
from tests.fakes import BOMB


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
    assert read_mapping(write(tmp_path, text)) == {
        "default": {"seed": 1, "sizes": {"a": 1}},
        "first": first,
        "second": {"seed": 3, "sizes": {"a": 1, "b": 1}},
        "third": {**first, 1: "one", "1": "text"},
        "dates are text": [{"day": "2001-01-01"}, {"day": "2001-01-01"}, "="],
    }


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


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "bytes.yml").write_bytes(b"\xff\xfe\x00")
    for name in ("none.yml", ".", "a" * 5000, "bytes.yml"):
        with pytest.raises(ValueError, match="cannot be read"):
            read_mapping(tmp_path / name)
