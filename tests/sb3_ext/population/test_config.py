"""What a configuration may be; every error is one line that names the field."""

from __future__ import annotations

from typing import Any

import pytest

from sb3_ext.config.sections import ConfigError
from sb3_ext.population.config import PopulationConfig
from tests.sb3_ext.population.helpers import RATE, plain


@pytest.mark.parametrize("name", PopulationConfig.shipped())
def test_those_of_the_package_are_valid(name: str) -> None:
    config = PopulationConfig.read(name)
    assert config.name == name
    assert PopulationConfig.read(config.resolved()).base() == config.base()


def test_a_member_has_its_seed_and_its_values() -> None:
    config = PopulationConfig.read(plain())
    assert config.base().seed == 3
    member = config.base({RATE: 1e-05}, 4)  # 1e-05 would be a string in YAML 1.1
    assert member.seed == 7
    assert member.roles["host"].learning_rate == 1e-05
    assert config.base().roles["host"].learning_rate == 1e-3


RULE = {"factors": [2.0], "low": 0.1, "high": 1.0}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"members": 0}, "members must be at least 1, got 0"),
        ({"member": 3}, "unknown key 'member'"),
        ({"exploit": {"share": 0.6}}, "exploit.share must be at most 0.5, got 0.6"),
        ({"two_player": "smal"}, "two_player: config: there is no file 'smal'"),
        ({"settings": ["roles.host.gama=1"]}, "two_player: unknown key of roles.host 'gama'"),
        ({"two_player": "host_vs_choose_first"}, "roles.agent has to learn, it is choose_first"),
        ({"settings": ["collector.actors=2"]}, "collector.actors must be 0, members take turns"),
        ({"settings": ["roles.host.opponent=random"]}, "roles.host.opponent must be latest"),
        (
            {"explore": {"roles.host.gamma": {**RULE, "lov": 1.0}}},
            "unknown key of explore.roles.host.gamma 'lov'; did you mean 'low'?",
        ),
        ({"explore": {"seed": RULE}}, "explore.seed must be roles.<role>.<key>"),
        ({"explore": {"roles.host.net_arch": RULE}}, "explore.roles.host.net_arch must be"),
        ({"explore": {"roles.host.reward": RULE}}, "must be a number in two_player, got 'step'"),
        ({"explore": {"roles.host.nothing": RULE}}, "must be a number in two_player, got None"),
        ({"explore": {"roles.host.gamma": {**RULE, "high": 0.5}}}, "low <= value <= high must"),
        ({"explore": {"roles.host.gamma": {**RULE, "high": 1.5}}}, "gamma must be at most 1"),
    ],
)
def test_what_is_wrong_is_one_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        PopulationConfig.read(plain(**keys))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
