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


def counts(role):
    return made_of(itertools.cycle([0, 1]))


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


DOORS = {
    "solve": lambda role, player: resgym.solve("A5", **{role: player}, time_limit=20),
    "worst case": lambda role, player: worst_cases(
        resolve_player(player, role), STARTS, SPEC, 30, 1000
    ),
    "exploitability": lambda role, player: resgym.exploitability(player, 4, role=role, spec=SPEC),
}
KINDS = [remembers, counts, draws, draws_late, named]


@pytest.mark.parametrize("role", ["host", "agent"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
def test_no_exact_value_of_a_player_that_remembers_or_draws(door, kind, role):
    with pytest.raises(ValueError, match=f"{role} must be deterministic and without memory, got"):
        DOORS[door](role, kind(role))


@pytest.mark.parametrize("kind", KINDS)
def test_the_scoreboard_and_safe_hosts_refuse_them(kind):
    with pytest.raises(ValueError, match="host must be deterministic and without memory, got"):
        evaluate(kind("host"), "worst-5")
    if kind not in (draws_late, named):  # they are not asked there, or how they draw is known
        agent = resolve_player(kind("agent"), "agent")
        with pytest.raises(ValueError, match="agent must be deterministic and without memory, got"):
            make_host("safe", agents=agent).act(STARTS, None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_no_optimum_against_an_agent_that_remembers_or_draws(kind):
    agent = resolve_player(kind("agent"), "agent")
    assert optimum(agent, STARTS, SPEC, 50) is None
    assert rho("zeillinger", agent, games=2, optimum=True).optimum is None


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_no_tree_of_a_host_that_remembers_or_draws_on_its_own(kind):
    with pytest.raises(ValueError, match="host must be deterministic and without memory, got"):
        resgym.resolution_tree("A5", kind("host"))
    with pytest.raises(ValueError, match="host must be deterministic and without memory, got"):
        resgym.resolution_tree("A5").compare(kind("host"))


def test_the_seed_of_a_tree_decides_what_its_host_draws():
    tree = partial(resgym.resolution_tree, "E8", "random_pair", max_depth=5)
    one, again, other = (tree(seed=seed).to_dict()["charts"] for seed in (0, 0, 1))
    assert one == again != other


@pytest.mark.parametrize("task", ["moves-20", "answers-20"])
def test_regrets_are_those_of_positions_so_nothing_may_be_remembered(task):
    role = "host" if task == "moves-20" else "agent"
    with pytest.raises(ValueError, match=r"must be deterministic and without memory, .*remembers"):
        evaluate(remembers(role), task)


def test_others_are_asked_in_full():
    """Batches larger than the part that is asked again."""
    starts = rho_starts(SPEC, 700)
    host = make_host("zeillinger")
    assert torch.equal(ask_exactly(host, starts, None), host.act(starts, None, None))
