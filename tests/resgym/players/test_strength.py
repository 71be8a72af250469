"""Winning strategies win: facts about whole games."""

from __future__ import annotations

import pytest
import torch

from resgym.game import GameSpec, RowRandom, host_action_table, move, random_starts
from resgym.players import agent_names, make_agent, make_host

NUM_GAMES = 64
SCRIPTED_AGENTS = [name for name in agent_names() if name != "optimal"]


def _unfinished_after(host_name: str, agent_name: str, dimension: int, moves: int) -> int:
    """Number of unfinished games; games whose coordinates leave the bound count as unfinished."""
    spec = GameSpec(dimension=dimension, max_num_points=8, max_value=6)
    rng = RowRandom(torch.arange(NUM_GAMES))
    state = random_starts(spec, rng.split(0))
    host, agent = make_host(host_name), make_agent(agent_name)
    table = host_action_table(dimension)
    for step in range(moves):
        now = rng.split(1 + step)
        coords = table[host.act(state, None, now.split(0))]
        state, _ = move(state, coords, agent.act(state, coords, now.split(1)), spec)
    return int((~state.finished()).sum())


@pytest.mark.parametrize("agent", SCRIPTED_AGENTS)
@pytest.mark.parametrize("host", ["zeillinger", "zeillinger_lex", "spivakovsky"])
def test_winning_hosts_beat_every_agent(host: str, agent: str) -> None:
    assert _unfinished_after(host, agent, dimension=3, moves=150) == 0


def test_a_host_without_a_strategy_does_not() -> None:
    # Control for the test above: these games are not over by themselves.
    assert _unfinished_after("all_coord", "choose_first", dimension=3, moves=150) > NUM_GAMES // 2


def test_greedy_points_prolongs_games() -> None:
    moves = {"greedy_points": 0, "random": 0}
    for name in moves:
        moves[name] = sum(_unfinished_after("random", name, 3, after) for after in (2, 5, 9))
    assert moves["greedy_points"] > 1.5 * moves["random"]
