"""The host that comes with the package."""

from __future__ import annotations

import pytest
import torch
from safetensors import safe_open

import resgym
from resgym.game.rng import RowRandom
from resgym.game.state import state_from_points
from resgym.players import check_player, make_host
from sb3_ext.studies.teach import shipped
from sb3_ext.studies.teach.cli import main
from sb3_ext.studies.teach.measures import worst_case_depths
from sb3_ext.studies.teach.ship import write_shipped
from sb3_ext.studies.teach.shipped import ROBUST, SHIPPED, RobustHost, TaughtHost
from tests.sb3_ext.studies.teach.test_pretraining import make_model

LEAST = {
    "A1": 1, "A2": 3, "A3": 2, "A4": 4, "A5": 3, "A6": 5, "A7": 4, "A8": 6,
    "D4": 4, "D5": 5, "D6": 5, "D7": 6, "D8": 6, "E6": 6, "E7": 6, "E8": 7,
}  # fmt: skip


def test_it_resolves_the_sixteen_singularities_in_the_least_depth():
    """The optima are those that `resgym.solve` proves; Zeillinger's host is the control."""
    starts = [[tuple(p) for p in resgym.singularity(name)] for name in LEAST]
    assert tuple(LEAST) == resgym.singularity_names()
    assert worst_case_depths(make_host("taught"), starts) == list(LEAST.values())
    assert worst_case_depths(make_host("zeillinger_lex"), starts) != list(LEAST.values())


def test_it_keeps_the_contract():
    check_player(make_host("taught"), num_games=24)


def test_in_other_dimensions_zeillinger_answers():
    state = state_from_points([[(3, 0, 1, 0), (0, 2, 0, 4)]], resgym.GameSpec(dimension=4))
    rng = RowRandom(torch.zeros(1, dtype=torch.int64))
    expected = make_host("zeillinger").act(state, None, rng)
    assert torch.equal(TaughtHost().act(state, None, rng), expected)


def test_more_points_than_it_was_made_for():
    points = [(40 - p, p, (7 * p) % 41) for p in range(41)]
    state = state_from_points([points], resgym.GameSpec(max_num_points=64))
    answer = TaughtHost().act(state, None, RowRandom(torch.zeros(1, dtype=torch.int64)))
    assert 0 <= int(answer) < 4


def test_the_file_is_small():
    assert SHIPPED.stat().st_size < 300_000


def test_a_model_is_written_and_read_back(tmp_path):
    model = make_model()
    file = tmp_path / "host.safetensors"
    write_shipped(model.policy, file, {"from": "a test"})
    policy = shipped._policy.__wrapped__(torch.device("cpu"), file)
    observation = torch.rand(5, 20, 3)
    assert torch.equal(policy.q_net(observation), model.q_net(observation))
    file.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="missing or damaged"):
        shipped._policy.__wrapped__(torch.device("cpu"), file)
    with pytest.raises(ValueError, match="a host's in three axes"):
        write_shipped(make_model("agent").policy, tmp_path / "agent.safetensors")
    assert [p.name for p in tmp_path.iterdir()] == ["host.safetensors"]


def test_the_command_writes_a_saved_host(tmp_path, capsys):
    model = make_model()
    model.save(tmp_path / "model.zip")
    file = tmp_path / "host.safetensors"
    assert main(["ship", str(tmp_path / "model.zip"), "--out", str(file)]) == 0
    assert f"{file.stat().st_size:,} bytes" in capsys.readouterr().out
    policy = shipped._policy.__wrapped__(torch.device("cpu"), file)
    observation = torch.rand(5, 20, 3)
    assert torch.equal(policy.q_net(observation), model.q_net(observation))
    with safe_open(file, "pt") as content:
        assert content.metadata()["made by"].startswith("python -m sb3_ext.teach ship")
    before = file.read_bytes()
    make_model("agent").save(tmp_path / "agent.zip")
    for model_given, out, words in (
        ("model.zip", tmp_path / "host.pt", "out must end in one of .safetensors"),
        (
            "model.zip",
            tmp_path / "none" / "host.safetensors",
            "must be in a folder that exists",
        ),
        ("agent.zip", file, "a host's in three axes"),
        ("nothing.zip", file, "nothing.zip"),
    ):
        assert main(["ship", str(tmp_path / model_given), "--out", str(out)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
    assert file.read_bytes() == before


# ------------------------------------------------------------------------------------- robust


def test_the_robust_host_keeps_the_singularities():
    """At most one move above the least depth; Zeillinger's host is the control."""
    starts = [[tuple(p) for p in resgym.singularity(name)] for name in LEAST]

    def deepest(host):
        depths = worst_case_depths(make_host(host), starts)
        return max(depth - least for depth, least in zip(depths, LEAST.values(), strict=True))

    assert deepest("robust") <= 1
    assert deepest("zeillinger_lex") > 1


def test_the_robust_host_holds_against_three_agents():
    """Against all of them, with room for the luck of 2,000 starts; others fail somewhere."""
    goals = {"choose_first": 0.143, "choose_last": 0.143, "random": 0.212}

    def reached(host):
        return [resgym.rho(host, agent, games=2000).rho > goal for agent, goal in goals.items()]

    assert reached("robust") == [True] * 3
    for other in ("taught", "zeillinger"):
        assert reached(other)[:2] == [False] * 2


def test_the_robust_host_keeps_the_contract():
    check_player(make_host("robust"), num_games=24)
    four = state_from_points([[(3, 0, 1, 0), (0, 2, 0, 4)]], resgym.GameSpec(dimension=4))
    rng = RowRandom(torch.zeros(1, dtype=torch.int64))
    expected = make_host("zeillinger").act(four, None, rng)
    assert torch.equal(RobustHost().act(four, None, rng), expected)


def test_the_robust_host_with_other_numbers_of_rows():
    """Few rows and many show the same game; more points than it knows are Zeillinger's."""
    many = [(40 - p, p, (7 * p) % 41) for p in range(41)]
    few = [(3, 0, 1), (0, 2, 5), (1, 1, 4)]
    rng = RowRandom(torch.zeros(2, dtype=torch.int64))
    wide = state_from_points([many, few], resgym.GameSpec(max_num_points=64))
    narrow = state_from_points([few, few], resgym.GameSpec(max_num_points=3))
    answers = RobustHost().act(wide, None, rng)
    assert int(wide.count[0]) > 20
    assert answers[0] == make_host("zeillinger").act(wide, None, rng)[0]
    assert answers[1] == RobustHost().act(narrow, None, rng)[0]


def test_a_half_as_long_file(tmp_path):
    model = make_model()
    write_shipped(model.policy, tmp_path / "whole.safetensors")
    write_shipped(model.policy, tmp_path / "half.safetensors", half=True)
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.7 * sizes[1]
    policy = shipped._policy.__wrapped__(torch.device("cpu"), tmp_path / "half.safetensors")
    observation = torch.rand(5, 20, 3)
    torch.testing.assert_close(
        policy.q_net(observation), model.q_net(observation), atol=2e-2, rtol=2e-2
    )
    assert ROBUST.stat().st_size < 500_000
