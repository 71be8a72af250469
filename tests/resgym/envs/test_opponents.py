"""Who answers: one player, one per row, replaced while playing."""

from __future__ import annotations

import pytest
import torch

from resgym.envs import AlternatingPlayers, HironakaVectorEnv
from resgym.game.rng import Stream
from resgym.players import MixedPlayer, make_agent, make_host, register_host
from tests.resgym.envs.helpers import (
    AGENT,
    HOST,
    MODES,
    SHORT,
    act_random,
    array,
    make_vec,
    row_bytes,
)
from tests.resgym.game import splitmix

pytestmark = pytest.mark.usefixtures("on_every_backend")

MANY = {
    HOST: ["random", "choose_first", "greedy_points", "choose_last", "choose_first"],
    AGENT: ["random", "zeillinger", "random_pair", "all_coord", "zeillinger"],
}


def trace(env, steps: int = 30, seed: int = 21) -> list[list[tuple]]:
    """Per row: everything seen. Actions depend on row and time, and on what is legal."""
    observation, _ = env.reset(seed=seed)
    rows = [[row_bytes(observation, row)] for row in range(env.num_envs)]
    for time in range(steps):
        actions = act_random(env, time)
        observation, reward, terminated, truncated, _ = env.step(actions)
        for row, seen in enumerate(rows):
            seen.append(
                (
                    row_bytes(observation, row),
                    int(array(actions)[row]),
                    float(reward[row]),
                    bool(terminated[row]),
                    bool(truncated[row]),
                )
            )
    return rows


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_one_opponent_per_row_equals_separate_environments(env_id, mode):
    names = MANY[env_id]
    options = {"autoreset_mode": mode, **SHORT}
    separate = {name: trace(make_vec(env_id, 5, opponent=name, **options)) for name in set(names)}
    mixed = trace(make_vec(env_id, 5, opponent=names, **options))
    for row, name in enumerate(names):
        assert mixed[row] == separate[name][row]
    # It makes a difference who answers.
    assert separate[names[0]][1] != separate[names[1]][1]


@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_a_sequence_with_an_assignment(env_id):
    names = MANY[env_id][:3]
    assignment = [2, 0, 1, 1, 2]
    separate = {name: trace(make_vec(env_id, 5, opponent=name, **SHORT)) for name in names}
    for given in (assignment, tuple(assignment), torch.tensor(assignment)):
        env = make_vec(env_id, 5, **SHORT)
        env.set_opponent(names, given)
        mixed = trace(env)
        for row, number in enumerate(assignment):
            assert mixed[row] == separate[names[number]][row]


@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_a_mixed_player_is_the_same_as_a_sequence(env_id):
    make = make_agent if env_id == HOST else make_host
    names = MANY[env_id]
    mixed = MixedPlayer([make(name) for name in names], range(5))
    expected = trace(make_vec(env_id, 5, opponent=names, **SHORT))
    assert trace(make_vec(env_id, 5, opponent=mixed, **SHORT)) == expected
    # A mixture as one of several: every row of the batch keeps its own part of it.
    assert trace(make_vec(env_id, 5, opponent=[mixed] * 5, **SHORT)) == expected
    first = make(names[0])
    both = trace(make_vec(env_id, 5, opponent=[mixed, mixed, first, mixed, first], **SHORT))
    alone = trace(make_vec(env_id, 5, opponent=first, **SHORT))
    assert both == [alone[row] if row in (2, 4) else expected[row] for row in range(5)]


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_games_are_dealt_out_in_turn(env_id, mode):
    """Row i of N in its episode e is game i + N e, and meets number i + N e modulo 3."""
    names = MANY[env_id][:2] + MANY[env_id][3:4]
    make = make_agent if env_id == HOST else make_host
    asked = []

    def recording(name):
        player = make(name)

        def act(state, coords, rng):
            asked.append((name, rng.key.tolist()))
            return player.act(state, coords, rng)

        return act

    options = {"autoreset_mode": mode, **SHORT}
    env = make_vec(env_id, 4, opponent=[recording(name) for name in names], **options)
    env.reset(seed=[50, 51, 52, 53])
    for time in range(40):
        env.step(act_random(env, time))
    # The random numbers that a player was given tell which game it was asked in.
    stream = Stream.AGENT if env_id == HOST else Stream.HOST
    games = {
        splitmix.signed(splitmix.step_key(50 + row, episode, step, stream)): (row, episode)
        for row in range(4)
        for episode in range(45)
        for step in range(16)
    }
    met = set()
    for name, keys in asked:
        for row, episode in map(games.__getitem__, keys):
            assert name == names[(row + 4 * episode) % 3]
            met.add((row, episode))
    # Several games of every row were seen, so its opponents changed.
    assert all((row, 2) in met for row in range(4))


def test_one_row_meets_all_of_a_mixture():
    """What single environments and evaluations with few rows need."""
    asked = []

    def numbered(number):
        def act(state, coords, rng):
            asked.append(number)
            return coords.to(torch.uint8).argmax(1)

        return act

    env = make_vec(HOST, 1, opponent=[numbered(number) for number in range(3)], **SHORT)
    env.reset(seed=3)
    order = []
    for _ in range(60):
        before = int(env.games.episode[0])
        env.step([3])
        order.append((before, asked[-1]))
    assert {number for _, number in order} == {0, 1, 2}
    assert all(number == episode % 3 for episode, number in order)


def test_players_that_are_equal_are_asked_once():
    calls = []

    class Counting:
        role = "agent"

        def act(self, state, coords, rng):
            calls.append(state.num_games)
            return coords.to(torch.uint8).argmax(1)

    player = Counting()
    env = make_vec(HOST, 4, opponent=[player, "random", player, player])
    env.reset(seed=0)
    env.step([0, 0, 0, 0])
    assert calls == [3]
    assert len(env.opponents) == 2
    assert env.opponents[0] is player


def test_a_new_opponent_answers_from_the_next_move_on():
    env = make_vec(HOST, 3, opponent="choose_first", scale_observation=False)
    points = [(4, 0, 1), (0, 3, 0)]
    env.reset(seed=0, options={"points": points})
    env.set_opponent("choose_last")
    assert type(env.opponents[0]) is type(make_agent("choose_last"))
    observation, *_ = env.step([0, 0, 0])
    # {x, y} answered by y: (4, 4, 1) and (0, 3, 0), where the second covers the first.
    assert env.games.episode.tolist() == [1, 1, 1]
    # At the agent's seat the set that was named before stays the one to answer.
    env = make_vec(AGENT, 3, opponent="all_coord")
    observation, _ = env.reset(seed=0)
    env.set_opponent(lambda state, coords, rng: state.count * 0)
    assert env.action_masks().tolist() == [[True] * 3] * 3
    observation, *_ = env.step([0, 1, 2])
    assert observation["coords"].tolist() == [[1, 1, 0]] * 3


def test_a_refused_opponent_leaves_the_old_one():
    env = make_vec(HOST, 3, opponent="choose_first")
    expected = trace(make_vec(HOST, 3, opponent="choose_first"))
    cases = [
        ("nobody", None, ValueError, "opponent"),
        (7, None, TypeError, "opponent must be a name"),
        (make_host("random"), None, ValueError, "opponent must play the agent"),
        ([], None, ValueError, "opponent must be at least one player, got none"),
        ({}, None, ValueError, "opponent must be at least one player, got none"),
        ([], [0, 0, 0], ValueError, "opponent must be at least one player, got none"),
        (["random", "nobody"], None, ValueError, "opponent .*'nobody'"),
        ({"random": 1, "nobody": 1}, None, ValueError, "opponent .*'nobody'"),
        ({"random": 0}, None, ValueError, "the weight of 'random' must be above 0"),
        ({"random": float("nan")}, None, ValueError, "the weight of 'random' must be above 0"),
        ({"random": "1"}, None, TypeError, "the weight of 'random' must be a number, got '1'"),
        ({"random": True}, None, TypeError, "the weight of 'random' must be a number"),
        ({"random": 1}, [0, 0, 0], ValueError, "assignment needs a sequence of opponents"),
        (["random", 5, "random"], None, TypeError, "opponent must be a name"),
        (["random"], [0, 0], ValueError, r"assignment must have shape \(3,\), got \(2,\)"),
        (["random"], [0, 1, 0], ValueError, r"assignment must be in 0\.\.0 .*, got 1$"),
        (["random"], [0, -1, 0], ValueError, r"assignment must be in 0\.\.0 .*, got -1$"),
        (["random"], [0.0, 0.0, 0.0], TypeError, "assignment must be integers"),
        ("random", [0, 0, 0], ValueError, "assignment needs a sequence of opponents"),
    ]
    for opponent, assignment, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            env.set_opponent(opponent, assignment)
        assert "\n" not in str(caught.value)
    assert trace(env) == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("invalid_action", ["noop", "penalty", "terminate"])
def test_an_opponent_is_never_asked_to_choose_from_nothing(mode, invalid_action):
    """Also where no set was named: after an illegal action, and while a row restarts."""
    asked = []

    def agent(state, coords, rng):
        asked.append(coords.sum(1).min().item())
        return coords.to(torch.uint8).argmax(1)

    options = {"autoreset_mode": mode, "invalid_action": invalid_action, **SHORT}
    env = make_vec(HOST, 4, opponent=agent, **options)
    env.reset(seed=0)
    for time in range(30):
        actions = act_random(env, time)
        actions[time % 4] = 99 if time % 3 == 0 else actions[time % 4]
        *_, terminated, truncated, _ = env.step(actions)
        if mode == "DISABLED" and bool((terminated | truncated).any()):
            env.reset(options={"reset_mask": terminated | truncated})
    assert len(asked) == 30
    assert min(asked) >= 2


@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_an_opponent_that_fails_leaves_no_trace(env_id):
    fail = []
    name = "choose_last" if env_id == HOST else "zeillinger"
    player = (make_agent if env_id == HOST else make_host)(name)

    def moody(state, coords, rng):
        if fail:
            raise fail.pop()
        return player.act(state, coords, rng)

    expected = trace(make_vec(env_id, 3, opponent=name, **SHORT))
    env = make_vec(env_id, 3, opponent=moody, **SHORT)
    assert trace(env) == expected
    observation, _ = env.reset(seed=21)
    rows = [[row_bytes(observation, row)] for row in range(3)]
    for time in range(30):
        actions = act_random(env, time)
        for error in (RuntimeError("no answer"), KeyboardInterrupt()):
            fail.append(error)
            with pytest.raises(type(error)):
                env.step(actions)
        observation, *rest, _ = env.step(actions)
        for row, seen in enumerate(rows):
            seen.append(
                (row_bytes(observation, row), int(actions[row]), *(x[row].item() for x in rest))
            )
    assert rows == expected
    if env_id == AGENT:
        fail.append(RuntimeError("no answer"))
        before = [field.tolist() for field in env.games[:-1]]  # all but the rule
        with pytest.raises(RuntimeError, match="no answer"):
            env.reset(seed=1)
        assert [field.tolist() for field in env.games[:-1]] == before


def test_a_reward_function_that_fails_leaves_no_trace():
    broken = []

    def reward(move):
        return move.axis if not broken else move.axis[: broken.pop()]

    env, other = (make_vec(HOST, 3, reward=reward, **SHORT) for _ in range(2))
    env.reset(seed=2)
    broken.append(1)
    with pytest.raises(ValueError, match=r"^reward must return a tensor \[3\], got \(1,\)$"):
        env.step([0, 1, 2])
    other.reset(seed=2)
    for time in range(20):
        first, *rest, _ = env.step(act_random(env, time))
        second, *rest_2, _ = other.step(act_random(other, time))
        assert torch.equal(first, second)
        assert all(torch.equal(a, b) for a, b in zip(rest, rest_2, strict=True))


def test_the_opponent_plays_the_variant_of_the_game():
    """A named player with a spec argument gets that of the environment."""
    env = make_vec(HOST, 2, opponent="greedy_points", max_num_points=7, reposition=True)
    assert env.opponents[0].spec == env.plan.spec
    env.set_opponent(["greedy_points", "random"])
    assert env.opponents[0].spec == env.plan.spec


def test_a_registered_player_answers(on_every_backend):
    name = f"everything_on_{on_every_backend}"

    @register_host(name)
    class Everything:
        role = "host"

        def act(self, state, coords, rng):
            return torch.full_like(state.count, 3)

    observation, _ = make_vec(AGENT, 2, opponent=name).reset(seed=0)
    assert observation["coords"].tolist() == [[1, 1, 1]] * 2


def test_the_name_of_an_environment_says_who_sits_where():
    env = make_vec(HOST, 2, opponent=["choose_first", "random"])
    assert repr(env) == (
        "HironakaVectorEnv(resgym/HironakaHost-v0, num_envs=2, seat=host, "
        "opponent=choose_first, random)"
    )
    env = AlternatingPlayers(HironakaVectorEnv(2), "agent", "zeillinger")
    assert repr(env) == "AlternatingPlayers(num_envs=2, seat=agent, opponent=zeillinger)"
