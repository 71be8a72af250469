"""Configurations say everything, and errors are one line that names the field."""

from pathlib import Path

import pytest
import yaml

from sb3_ext.two_player import read_config, shipped_configs
from sb3_ext.two_player.config import smoke_version


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_configurations_are_valid_and_come_back_equal(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("host.zip").touch()  # a model that somebody saved; no key or name is its path
    config = read_config(name)
    assert config.name == name
    for each in (config, smoke_version(config)):
        assert read_config(each.to_dict()) == each
        assert read_config(yaml.safe_load(yaml.safe_dump(each.to_dict()))) == each
