"""Configurations as earlier versions had them, byte for byte, in today's form."""

from __future__ import annotations

from pathlib import Path

import pytest

from sb3_ext.config.reading import read_mapping
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.attack.settings import AttackBudget
from sb3_ext.studies.convert import main
from sb3_ext.studies.teach.families import TeachConfig

EARLIER = Path(__file__).parent / "earlier"


@pytest.mark.parametrize(
    ("name", "kind", "refused", "told"),
    [
        ("attack", AttackBudget, "responder.lookahead_moves is missing", "lookahead_moves: 0"),
        ("teach", TeachConfig, "'largest'", "largest (8, 8, 12) is gone"),
    ],
)
def test_what_was_written_earlier_can_be_read(tmp_path, capsys, name, kind, refused, told):
    old, new = EARLIER / f"{name}.yml", tmp_path / "new.yml"
    with pytest.raises(ConfigError, match=refused):
        kind.read(old)
    assert main([str(old), str(new)]) == 0
    assert told in capsys.readouterr().out
    before, after = read_mapping(old), kind.read(new)
    if kind is AttackBudget:
        assert after.responder.lookahead_moves == 0
        before["responder"]["lookahead_moves"] = 0
        assert after == AttackBudget.read(before)
    else:
        for family in before["families"]:
            family.pop("largest", None)
        assert after == TeachConfig.read(before)
    again = tmp_path / "again.yml"
    assert main([str(new), str(again)]) == 0
    assert "nothing had to be changed" in capsys.readouterr().out
    assert again.read_text() == new.read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n", "must have one of the keys members, responder, families, model, roles"),
        ("families: []\n", "old.yml: "),
        ("[1]\n", "must hold a mapping"),
    ],
)
def test_what_cannot_be_converted(tmp_path, capsys, text, words):
    old, new = tmp_path / "old.yml", tmp_path / "new.yml"
    old.write_text(text)
    assert main([str(old), str(new)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not new.exists()
    assert main([str(tmp_path / "none.yml"), str(new)]) == 2
    assert capsys.readouterr().err.count("none.yml") == 1
    assert main([str(EARLIER / "attack.yml"), str(tmp_path / "none" / "new.yml")]) == 2
    assert "new must be in a folder that exists" in capsys.readouterr().err
    new.write_text("mine\n")
    assert main([str(EARLIER / "attack.yml"), str(new)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert new.read_text() == "mine\n"
