"""The ids of the benchmark's tasks, and the returns that solve them."""

import gymnasium
import pytest
import torch

import resgym
from resgym.benchmark import TASKS, load, tasks
from resgym.players import ask_player, resolve_player
from tests.resgym.games import best_against_first

IDS = {
    "resgym/Worst5-v0": "worst-5",
    "resgym/Worst20-v0": "worst-20",
    "resgym/Axes4-v0": "axes4",
    "resgym/First20-v0": "first-20",
    "resgym/Answers20-v0": "answers-20",
}


def returns(env_id, player, games):
    """Mean return of a player in the games from the first positions, and of best play."""
    env = gymnasium.make(env_id)
    part, _, opponent, seat = TASKS[IDS[env_id]]
    data = load(part).select(torch.arange(games))
    starts, player, total = data.state.point_lists(), resolve_player(player, seat), 0.0
    for points in starts:
        env.reset(seed=0, options={"points": points})
        over = False
        while not over:
            game = env.unwrapped.games
            coords = game.coords if seat == "agent" else None
            action = ask_player(player, game.position, coords, resgym.RowRandom(torch.arange(1)))
            _, reward, terminated, truncated, _ = env.step(int(action))
            total += reward
            over = terminated or truncated
    best = data.value.tolist()
    if opponent == "choose_first":
        best = [resgym.solve(points, agent=opponent).value for points in starts]
    return total / games, sum(best) / games * (1 if seat == "agent" else -1)


@pytest.mark.parametrize("env_id", IDS)
def test_games_from_the_positions(env_id):
    part = TASKS[IDS[env_id]].part
    starts = {str(points) for points in load(part).state.point_lists()}
    env = gymnasium.make(env_id)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        assert str(env.unwrapped.games.position.point_lists()[0]) in starts
    over = False
    while not over:
        action = env.action_space.sample(info["action_mask"])
        _, reward, terminated, truncated, info = env.step(action)
        assert reward == (1 if TASKS[IDS[env_id]].seat == "agent" else -1)
        over = terminated or truncated
    envs = gymnasium.make_vec(env_id, num_envs=2, opponent="random")
    envs.reset(seed=0)
    assert env.spec.make().spec.reward_threshold == env.spec.reward_threshold


@pytest.mark.parametrize("env_id", IDS)
def test_the_threshold_is_95_percent_of_best_play(env_id):
    part, _, opponent, seat = TASKS[IDS[env_id]]
    threshold = gymnasium.spec(env_id).reward_threshold
    if opponent.startswith("optimal"):
        best = load(part).value.double().mean().item()
    else:
        (least, greatest) = tasks._optimum(part, opponent)
        assert least == greatest
        best = 1 / least
    share = threshold / best if seat == "agent" else -best / threshold
    assert 0.948 < share <= 0.95


@pytest.mark.parametrize("env_id", IDS)
def test_best_play_solves_it_and_a_weak_player_does_not(env_id):
    agent = "Answers" in env_id
    best = best_against_first if "First" in env_id else "optimal"
    # Of few positions the threshold is that share of what best play has there.
    mean, optimum = returns(env_id, "choose_first" if agent else "zeillinger", 8)
    assert mean < optimum * (0.95 if agent else 1 / 0.95)
    mean, optimum = returns(env_id, best, 8)
    assert mean > optimum - 1e-9  # the opponent does not see everything
