"""Players that remember or draw have no exact values: every function that promises some refuses."""

import itertools
from functools import partial

import pytest
import torch

import resgym
from resgym.benchmark import evaluate
from resgym.game.spec import GameSpec
from resgym.measure.optimum import optimum
from resgym.measure.rho import rho, rho_starts
from resgym.players import RecurrentPlayer, ask_exactly, make_host, resolve_player
from resgym.solver.responses import worst_cases

SPEC = GameSpec(max_num_points=5, max_value=5)
STARTS = rho_starts(SPEC, 4)


def in_turn(observation, memory, begins):
    """The first, the second, the third action in turn."""
    turn = torch.zeros(len(begins), 1) if memory is None else memory.masked_fill(begins[:, None], 0)
    actions = 3 if isinstance(observation, dict) else 4
    return torch.nn.functional.one_hot(turn[:, 0].long() % 3, actions).float(), turn + 1


def remembers(role):
    return RecurrentPlayer(role, in_turn, (20, 3))


def made_of(coins):
    """A player whose answers depend on what it gets from here whenever it is asked."""

    def act(state, coords, rng):
        coin = next(coins)
        if coords is None:
            return torch.full_like(state.count, coin)
        return coords.long().argmax(1) if coin else 2 - coords.flip(1).long().argmax(1)

    return act


def draws(role):
    generator = torch.Generator()
    generator.manual_seed(1)
    coins = (int(torch.randint(2, (), generator=generator)) for _ in itertools.count())
    return made_of(coins)


def draws_late(role):
    """Draws in positions of two points only, as a player of known openings does."""
    coins = made_of(itertools.cycle([0, 1]))

    def act(state, coords, rng):
        fixed = made_of(iter([0]))(state, coords, rng)
        return torch.where(state.count == 2, coins(state, coords, rng), fixed)

    return act


def named(role):
    return "random"


KINDS = [remembers, draws, draws_late, named]
TASKS = {"host": "moves-20", "agent": "answers-20"}
DOORS = {
    "solve": lambda role, player: resgym.solve("A5", **{role: player}, time_limit=20),
    "worst case": lambda role, player: worst_cases(
        resolve_player(player, role), STARTS, SPEC, 30, 1000
    ),
    "exploitability": lambda role, player: resgym.exploitability(player, 4, role=role, spec=SPEC),
    "scoreboard": lambda role, player: evaluate(player, "worst-5"),
    "regrets": lambda role, player: evaluate(player, TASKS[role]),
    "tree": lambda role, player: resgym.resolution_tree("A5", player),
    "compare": lambda role, player: resgym.resolution_tree("A5").compare(player),
    "safe": lambda role, player: make_host("safe", agents=resolve_player(player, role)).act(
        STARTS, None, None
    ),
}
ROLES = {"scoreboard": ["host"], "tree": ["host"], "compare": ["host"], "safe": ["agent"]}
# How they draw is known, they are not asked there, or every position is one of its own.
TAKEN = {"tree": [named], "compare": [named], "safe": [draws_late, named], "regrets": KINDS[1:]}
CASES = [
    (door, kind, role)
    for door in DOORS
    for kind in KINDS
    if kind not in TAKEN.get(door, [])
    for role in ROLES.get(door, ["host", "agent"])
]


@pytest.mark.parametrize(("door", "kind", "role"), CASES)
def test_no_exact_value_of_a_player_that_remembers_or_draws(door, kind, role):
    why = "remembers moves" if kind is remembers else "draws random numbers or remembers moves"
    with pytest.raises(
        ValueError, match=f"{role} must be deterministic and without memory, got '.*', which {why}"
    ):
        DOORS[door](role, kind(role))


@pytest.mark.parametrize("kind", KINDS)
def test_no_optimum_against_an_agent_that_remembers_or_draws(kind):
    agent = resolve_player(kind("agent"), "agent")
    assert optimum(agent, STARTS, SPEC, 50) is None
    assert rho("zeillinger", agent, games=2, optimum=True).optimum is None


def test_the_seed_of_a_tree_decides_what_its_host_draws():
    tree = partial(resgym.resolution_tree, "E8", "random_pair", max_depth=5)
    one, again, other = (tree(seed=seed).to_dict()["charts"] for seed in (0, 0, 1))
    assert one == again != other


def test_others_are_asked_in_full():
    """Batches larger than the part that is asked again."""
    starts = rho_starts(SPEC, 700)
    host = make_host("zeillinger")
    assert torch.equal(ask_exactly(host, starts, None), host.act(starts, None, None))
