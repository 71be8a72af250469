"""Players by name, everything that may be given as an opponent, and who of a mixture plays."""

import importlib.metadata
from collections import namedtuple
from copy import deepcopy
from pathlib import Path

import pytest
import torch

from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec
from resgym.players import (
    agent_names,
    host_names,
    make_agent,
    make_host,
    make_mixture,
    registry,
    resolve_player,
)
from resgym.players.registry import register_agent, register_host


@pytest.fixture(autouse=True)
def _forget_registrations(monkeypatch):
    monkeypatch.setattr(registry, "PLAYERS", deepcopy(registry.PLAYERS))


def test_registered_players_are_made_by_name():
    @register_host("always")
    class Always:
        role = "host"

        def __init__(self, action=0):
            self.action = action

        def act(self, state, coords, rng):
            return torch.full_like(state.count, self.action)

    assert Always(2).action == 2  # the decorator returns the class
    assert ("always" in host_names(), "always" in agent_names()) == (True, False)
    assert make_host("always", action=3).action == 3

    @register_agent("lowest")
    def lowest(**options):
        assert options == {"anything": 1}
        return make_agent("choose_first")

    assert make_agent("lowest", anything=1) == make_agent("choose_first")
    register_host("wrong_role")(lambda: make_agent("random"))
    register_host("no_player")(lambda: 3)
    for name in ("wrong_role", "no_player"):
        with pytest.raises((TypeError, ValueError), match=f"the factory of host '{name}' must"):
            make_host(name)


def test_arguments_may_stand_behind_a_name():
    written = make_host("optimal(budget=7, objective='nodes')")
    assert written == make_host("optimal", budget=7, objective="nodes")
    assert resolve_player("optimal(budget=7)", "agent") == make_agent("optimal", budget=7)
    assert make_host("all_coord()") == make_host("all_coord")


def test_opponents_by_object_function_and_game():
    host, spec = make_host("random"), GameSpec(polytope="newton")
    assert resolve_player(host, "host") is host
    function = resolve_player(lambda state, coords, rng: state.count * 0, "host")
    state = random_starts(GameSpec(), RowRandom(torch.arange(3)))
    assert function.act(state, None, RowRandom(torch.arange(3))).tolist() == [0, 0, 0]
    player = resolve_player("greedy_points", "agent", spec)
    assert player.spec is spec


def _install_loaders(monkeypatch, *loaders):
    entry = namedtuple("EntryPoint", "name load")
    found = [entry(f"{n}", lambda load=load: load) for n, load in enumerate(loaders)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: found)


def test_saved_models_are_read_by_an_installed_loader(monkeypatch, tmp_path):
    def not_mine(path, role):
        raise ValueError("no such format")

    asked = []

    def mine(path, role):
        asked.append((path, role))
        return make_host("all_coord")

    _install_loaders(monkeypatch, not_mine, mine)
    saved = tmp_path / "model.zip"
    saved.touch()
    monkeypatch.chdir(tmp_path)
    for given in (saved, str(saved), tmp_path / "model", "model.zip", "./model"):
        assert resolve_player(given, "host") == make_host("all_coord")
    assert asked[:3] == [(saved, "host")] * 3


def test_a_name_never_falls_through_to_a_file(monkeypatch, tmp_path):
    """A misspelt name beside a file of that name opens nothing."""
    _install_loaders(monkeypatch, lambda path, role: pytest.fail("a file was opened"))
    monkeypatch.chdir(tmp_path)
    Path("zeilinger.zip").touch()
    Path("best.v2").mkdir()
    Path("zeillinger").mkdir()
    with pytest.raises(ValueError, match=r"'zeillinger'\?\); write '.*zeilinger' for"):
        resolve_player("zeilinger", "host")
    with pytest.raises(ValueError, match="must be one of"):
        resolve_player("best.v2", "host")
    assert resolve_player("zeillinger", "host") == make_host("zeillinger")


@pytest.mark.parametrize("rows", [1, 16])
def test_every_run_of_games_has_the_shares_of_a_mixture(rows):
    weights = {"random": 3, "choose_first": 2.0, "choose_last": 1}
    mixture = make_mixture(weights, "agent")
    assert mixture.shares == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    games = torch.cat([mixture.seats(torch.full((rows,), k)) for k in range(1024 // rows)])
    for begin in range(0, 700, 50):
        found = games[begin : begin + 64].bincount(minlength=3)
        assert ((found - 64 * torch.tensor(mixture.shares)).abs() < 4).all()
    # Far out too: the product passes 2^63 many times.
    late = mixture.seats(torch.full((4000,), 10**9)).bincount(minlength=3) / 4000
    assert late.tolist() == pytest.approx(mixture.shares, abs=0.01)
