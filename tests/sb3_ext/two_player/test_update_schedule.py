"""Which role is updated when."""

from __future__ import annotations

import pytest

from sb3_ext.two_player import read_config
from sb3_ext.two_player.update_schedule import (
    AlternatingPeriodic,
    Constant,
    ContiguousPeriodic,
    parse_updates,
)
from tests.sb3_ext.two_player.helpers import tiny

ROLES = ("host", "agent")


@pytest.mark.parametrize(
    ("schedule", "role", "due"),
    [
        (Constant(), "host", [0, 1, 2, 3, 4, 5, 6, 7]),
        (ContiguousPeriodic(4, 1, 3), "host", [1, 2, 5, 6]),
        (ContiguousPeriodic(1, 0, 1), "host", [0, 1, 2, 3, 4, 5, 6, 7]),
        (AlternatingPeriodic(4, 3, "agent"), "agent", [0, 1, 2, 4, 5, 6]),
        (AlternatingPeriodic(4, 3, "agent"), "host", [3, 7]),
    ],
)
def test_steps_in_which_a_role_is_due(schedule, role, due):
    assert [step for step in range(8) if schedule.is_due(role, step)] == due


@pytest.mark.parametrize(
    ("data", "host", "agent"),
    [
        ({"mode": "interleaved"}, Constant(), Constant()),
        (
            {"mode": "phases", "period": 4.0, "first_rounds": 1, "first": "host"},
            *[AlternatingPeriodic(4, 1, "host")] * 2,
        ),
        (
            {
                "mode": "custom",
                "host": {"schedule": "constant"},
                "agent": {"schedule": "contiguous_periodic", "period": 4, "start": 0, "stop": 2},
            },
            Constant(),
            ContiguousPeriodic(4, 0, 2),
        ),
    ],
)
def test_forms_of_the_configuration(data, host, agent):
    assert parse_updates(data, ROLES) == {"host": host, "agent": agent}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, "must be a mapping with the key mode"),
        ("interleaved", "must be a mapping"),
        ({"mode": "interleaved", "period": 2}, "unknown key 'period'"),
        ({"mode": "phases", "period": 4, "first_rounds": 4, "first": "host"}, "below period"),
        ({"mode": "phases", "period": 4, "first_rounds": 1, "first": "hosts"}, "mean 'host'"),
        (
            {"mode": "phases", "period": 4, "first": "host"},
            "missing a required argument: 'first_rounds'",
        ),
        ({"mode": "custom", "host": {"schedule": "constant"}}, "agent is missing"),
        ({"mode": "interleaved", "schedule": "constant"}, "unknown key 'schedule'"),
        (
            {"mode": "turns"},
            "unknown mode 'turns'; choices: alternating, custom, interleaved, phases",
        ),
        (
            {"mode": "custom", "host": 1, "agent": 1},
            "host: must be a mapping with the key schedule",
        ),
        (
            {"mode": "custom", "host": {"schedule": "weekly"}, "agent": {"schedule": "constant"}},
            "host: unknown update schedule 'weekly'",
        ),
    ],
)
def test_wrong_forms(data, expected):
    with pytest.raises((TypeError, ValueError), match=expected):
        parse_updates(data, ROLES)


@pytest.mark.parametrize("numbers", [(0, 0, 1), (4, 3, 3), (4, 0, 5), (4, -1, 2), (4, 0.5, 2)])
def test_contiguous_periodic_refuses_numbers_that_make_no_window(numbers):
    with pytest.raises(ValueError, match=r"period|start|stop"):
        ContiguousPeriodic(*numbers)


def test_team_change_of_self_play_is_a_schedule_of_phases():
    config = read_config(tiny("self_play.team_change=3", name="self_play"))
    schedule = config.update_schedules()["host"]
    assert schedule == AlternatingPeriodic(period=6, first_rounds=3, first="host")
