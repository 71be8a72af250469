"""Players by name, and everything that may be given as an opponent."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from resgym.game import GameSpec, RowRandom, random_starts
from resgym.players import (
    CallablePlayer,
    Player,
    ZeillingerHost,
    agent_names,
    host_names,
    make_agent,
    make_host,
    register_agent,
    register_host,
    registry,
    resolve_player,
)

SCRIPTED_HOSTS = {
    "all_coord",
    "random",
    "random_pair",
    "spivakovsky",
    "weak_spivakovsky",
    "zeillinger",
    "zeillinger_lex",
}
SCRIPTED_AGENTS = {"choose_first", "choose_last", "greedy_points", "random"}


@pytest.fixture(autouse=True)
def _forget_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = {role: dict(known) for role, known in registry._FACTORIES.items()}
    monkeypatch.setattr(registry, "_FACTORIES", copies)


def test_the_promised_names_exist() -> None:
    assert set(host_names()) >= SCRIPTED_HOSTS
    assert set(agent_names()) >= SCRIPTED_AGENTS
    assert host_names() == sorted(host_names())
    for name in SCRIPTED_HOSTS:
        assert make_host(name).role == "host"
    for name in SCRIPTED_AGENTS:
        assert make_agent(name).role == "agent"
    assert make_host("zeillinger") == ZeillingerHost()


def test_an_unknown_name_gets_the_nearest_valid_one() -> None:
    with pytest.raises(ValueError, match=r"host must be one of .*'zeilinger' \(did you mean 'zeil"):
        make_host("zeilinger")
    with pytest.raises(ValueError, match=r"agent must be one of .*, got 'qqq'$"):
        make_agent("qqq")
    with pytest.raises(TypeError, match=r"host must be a name, got 3 \(int\)"):
        make_host(3)  # type: ignore[arg-type]


def test_an_argument_that_a_player_does_not_take_is_refused() -> None:
    with pytest.raises(
        TypeError, match="host 'random' takes no argument 'depth', allowed are none"
    ):
        make_host("random", depth=3)
    with pytest.raises(TypeError, match=r"takes no argument 'sepc', allowed are \['spec'\]"):
        make_agent("greedy_points", sepc=GameSpec())


def test_registered_players_are_made_by_name() -> None:
    @register_host("always")
    class Always:
        role = "host"

        def __init__(self, action: int = 0) -> None:
            self.action = action

        def act(self, state: Any, coords: Any, rng: Any) -> torch.Tensor:
            return torch.full_like(state.count, self.action)

    assert Always(2).action == 2  # the decorator returns the class
    assert "always" in host_names()
    assert "always" not in agent_names()
    assert make_host("always", action=3).action == 3  # type: ignore[attr-defined]

    @register_agent("lowest")
    def lowest(**options: Any) -> Player:
        assert options == {"anything": 1}
        return make_agent("choose_first")

    assert make_agent("lowest", anything=1) == make_agent("choose_first")


def test_arguments_may_stand_behind_a_name() -> None:
    assert make_host("optimal(budget=7, objective='nodes')") == make_host(
        "optimal", budget=7, objective="nodes"
    )
    assert resolve_player("optimal(budget=7)", "agent") == make_agent("optimal", budget=7)
    assert make_host("all_coord()") == make_host("all_coord")
    for text in ("optimal(", "optimal(7)", "optimal(budget=x)", "optimal(budget=1)x", "optimal())"):
        with pytest.raises(ValueError, match=r"host must be a name or written like 'safe\(slack=1"):
            make_host(text)
    with pytest.raises(TypeError, match="host 'optimal' takes no argument 'speed'"):
        make_host("optimal(speed=1)")
    with pytest.raises(ValueError, match="did you mean 'optimal'"):
        resolve_player("optimum(budget=1)", "host")


def test_names_are_taken_once_and_readable() -> None:
    with pytest.raises(ValueError, match="name 'random' is already taken by another host"):
        register_host("random")
    with pytest.raises(ValueError, match="name 'optimal' is already taken by another agent"):
        register_agent("optimal")
    for name in ("", "a b", "a/b", "a.zip", "3d", None):
        with pytest.raises(ValueError, match="name must be letters, digits"):
            register_host(name)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="factory of host 'x' must be callable, got 3"):
        register_host("x")(3)  # type: ignore[type-var]


def test_a_factory_must_build_a_player_of_its_role() -> None:
    register_host("wrong_role")(lambda: make_agent("random"))
    register_host("no_player")(lambda: 3)  # type: ignore[arg-type, return-value]
    for name in ("wrong_role", "no_player"):
        with pytest.raises((TypeError, ValueError), match=f"the factory of host '{name}' must"):
            make_host(name)


def test_a_player_of_a_higher_layer_is_imported_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lazy = {"host": {"late": "resgym_late_players:Late"}, "agent": {}}
    monkeypatch.setattr(registry, "LAZY", lazy)
    assert "late" not in host_names()
    with pytest.raises(ValueError, match="host 'late' needs the module resgym_late_players, which"):
        make_host("late")
    module = ModuleType("resgym_late_players")
    module.Late = ZeillingerHost  # type: ignore[attr-defined]
    module.__spec__ = SimpleNamespace(name="resgym_late_players")  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "resgym_late_players", module)
    assert "late" in host_names()
    assert make_host("late") == ZeillingerHost()
    assert resolve_player("late", "host") == ZeillingerHost()


def test_opponents_by_name_object_and_function() -> None:
    assert resolve_player("zeillinger", "host") == ZeillingerHost()
    host = make_host("random")
    assert resolve_player(host, "host") is host
    function = resolve_player(lambda state, coords, rng: state.count * 0, "host")
    assert isinstance(function, CallablePlayer)
    state = random_starts(GameSpec(), RowRandom(torch.arange(3)))
    assert function.act(state, None, RowRandom(torch.arange(3))).tolist() == [0, 0, 0]


def test_a_named_player_that_wants_the_game_gets_it() -> None:
    spec = GameSpec(polytope="newton")
    player = resolve_player("greedy_points", "agent", spec)
    assert player.spec is spec  # type: ignore[attr-defined]
    assert resolve_player("choose_first", "agent", spec) == make_agent("choose_first")


def test_opponents_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="opponent must play the agent, got a player of the host"):
        resolve_player(make_host("random"), "agent")
    with pytest.raises(ValueError, match=r"opponent \(host\) must be one of .*did you mean 'zeill"):
        resolve_player("zeillingr", "host")
    with pytest.raises(ValueError, match=r"opponent \(agent\) must be one of .*got 'zeillinger'"):
        resolve_player("zeillinger", "agent")
    with pytest.raises(TypeError, match="opponent must be a name, a Player, a function"):
        resolve_player(3, "host")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="opponent must be a name, a Player, a function"):
        resolve_player(ZeillingerHost, "host")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="role must be 'host' or 'agent', got 'both'"):
        resolve_player("random", "both")  # type: ignore[arg-type]


def _install_loaders(monkeypatch: pytest.MonkeyPatch, **loaders: Any) -> None:
    entries = [
        SimpleNamespace(name=name, load=lambda load=load: load) for name, load in loaders.items()
    ]

    def entry_points(*, group: str) -> list[Any]:
        assert group == "resgym.player_loaders"
        return entries

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)


def test_saved_models_are_read_by_an_installed_loader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def not_mine(path: Path, role: str) -> Player:
        raise ValueError("no such format")

    asked = []

    def mine(path: Path, role: str) -> Player:
        asked.append((path, role))
        return make_host("all_coord")

    _install_loaders(monkeypatch, first=not_mine, second=mine)
    saved = tmp_path / "model.zip"
    saved.touch()
    for given in (saved, str(saved), tmp_path / "model"):
        assert resolve_player(given, "host") == make_host("all_coord")
    assert asked == [(saved, "host")] * 3
    monkeypatch.chdir(tmp_path)
    for given in ("model.zip", "./model"):
        assert resolve_player(given, "host") == make_host("all_coord")


def test_a_name_never_falls_through_to_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A misspelt name beside a file of that name opens nothing."""
    _install_loaders(monkeypatch, any=lambda path, role: pytest.fail("a file was opened"))
    monkeypatch.chdir(tmp_path)
    Path("zeilinger.zip").touch()
    Path("best.v2").mkdir()
    Path("zeillinger").mkdir()
    with pytest.raises(
        ValueError, match=r"did you mean 'zeillinger'\?\); the file is written '\./zeilinger\.zip'"
    ) as caught:
        resolve_player("zeilinger", "host")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"the file is written '\./best\.v2'"):
        resolve_player("best.v2", "host")
    assert resolve_player("zeillinger", "host") == make_host("zeillinger")


def test_models_that_cannot_be_read_say_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved = tmp_path / "model.zip"
    saved.touch()
    _install_loaders(monkeypatch)
    with pytest.raises(ValueError, match=r"there is no saved model at '.*absent\.zip'"):
        resolve_player(tmp_path / "absent.zip", "host")
    with pytest.raises(ValueError, match=r"there is no saved model at 'runs/absent'"):
        resolve_player("runs/absent", "host")
    with pytest.raises(ValueError, match="no installed package offers a loader"):
        resolve_player(saved, "host")

    def broken(path: Path, role: str) -> Player:
        raise ValueError("the file is damaged")

    _install_loaders(monkeypatch, one=broken)
    with pytest.raises(ValueError, match=r"cannot be loaded \(one: the file is damaged\)"):
        resolve_player(saved, "host")
    _install_loaders(monkeypatch, one=lambda path, role: 3)
    with pytest.raises(TypeError, match="the loader 'one' must give a Player, got 3"):
        resolve_player(saved, "host")
    _install_loaders(monkeypatch, one=lambda path, role: make_agent("random"))
    with pytest.raises(ValueError, match="the loader 'one' must play the host, got"):
        resolve_player(saved, "host")
