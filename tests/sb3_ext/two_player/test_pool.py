"""The opponent pool: snapshots, draws, who plays whom, ratings."""

from collections import Counter
from copy import deepcopy

import pytest
import torch

from sb3_ext.adapter.seam import restart_episodes
from sb3_ext.runs.checkpoint import CheckpointError, save_checkpoint
from sb3_ext.two_player import HostAgentTrainer
from sb3_ext.two_player.pool import ELO_K
from tests.sb3_ext.two_player.helpers import POOL, HostNet, tiny


def pooled(*settings):
    return HostAgentTrainer(tiny(*POOL, *settings, name="self_play"))


def test_snapshots_are_named_by_version_and_only_the_window_is_kept():
    players = pooled()
    evaluation = players.train(9)
    assert players.log_metrics()["elo/host"] == evaluation.ratings["host"]
    for role in ("host", "agent"):
        assert [each.version for each in players.pool.snapshots[role]] == [4, 6, 8]
        weights = players.pool.snapshots[role][0].weights
        assert not any("_target." in name for name in weights)
        live = players.roles[role].policy.state_dict()
        assert not any(value is live[name] for name, value in weights.items())


@pytest.mark.parametrize(("ratio", "newest", "drawn"), [(0.5, 2, 2), (1.0, 4, 0)])
def test_rows_are_split_by_the_ratio(ratio, newest, drawn):
    players = pooled(f"self_play.play_against_latest_model_ratio={ratio}")
    players.train(3)
    env = players.roles["host"].env.venv.unwrapped
    answered = Counter()

    def counted(act, is_newest):
        def counting(state, coords, rng):
            answered[is_newest] += state.num_games
            return act(state, coords, rng)

        return counting

    for player in env.opponents:
        player.act = counted(player.act, player is players.players["agent"])
    env.step(torch.zeros(env.num_envs, dtype=torch.int64))
    assert (answered[True], answered[False]) == (newest, drawn)


def test_opponents_are_drawn_uniformly_from_the_window():
    players = pooled("self_play.swap_steps=1000")
    players.train(7)
    pool = players.pool
    counts = Counter()
    pool.game.match = lambda *_: 0.0  # the agents win
    for _ in range(200):
        pool.swap()
        counts[pool.in_play["agent"].version] += 1
    assert set(counts) == {2, 4, 6}
    assert min(counts.values()) > 45
    assert min(each.rating for each in pool.snapshots["agent"]) > 1200 + ELO_K


def test_an_earlier_opponent_plays_its_own_weights():
    players = pooled("self_play.play_against_latest_model_ratio=0.0")
    players.train(1)
    snapshot = players.pool.snapshots["host"][0]
    with torch.no_grad():  # a version that always names the last set
        for name in snapshot.weights:
            snapshot.weights[name] = torch.zeros_like(snapshot.weights[name])
        last = max(name for name in snapshot.weights if name.endswith("bias"))
        snapshot.weights[last][3] = 1.0
    players.pool.swap()
    restart_episodes(players.roles["agent"].model)
    coords = players.roles["agent"].model._last_obs["coords"]
    assert coords.all()


def widen(snapshot):
    snapshot["weights"] = dict.fromkeys(snapshot["weights"], torch.ones(99))


@pytest.fixture(scope="module")
def trained():
    """The state of players that have trained for two steps."""
    players = pooled()
    players.train(2)
    return players.state_dict()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda pool: pool["ratings"].update(host=None),
        lambda pool: pool["snapshots"]["host"][0].update(rating=[1]),
        lambda pool: widen(pool["snapshots"]["host"][0]),
        lambda pool: pool["snapshots"].update(host=[3]),
    ],
)
def test_a_state_of_a_wrong_form_is_refused_when_it_is_taken_up(spoil, trained, tmp_path):
    state = deepcopy(trained)
    spoil(state["pool"])
    save_checkpoint(tmp_path / "a", state)
    with pytest.raises(CheckpointError):
        HostAgentTrainer.load(tmp_path / "a")


def test_ratings_settle_where_the_expected_score_is_the_result():
    pool = pooled().pool
    pool.game.match = lambda pair, games: 0.7
    pool.save()
    assert pool.ratings["host"] == pytest.approx(1200 + ELO_K * 0.2)
    for _ in range(300):
        pool.save()
    assert sum(pool.ratings.values()) == pytest.approx(2400)
    difference = pool.ratings["host"] - pool.ratings["agent"]
    assert 1 / (1 + 10 ** (-difference / 400)) == pytest.approx(0.7, abs=1e-3)


def test_match_score_of_the_resolution_game():
    """The mean of E / (E + L): one half for chance, more for a faster host."""
    game = pooled().game
    chance = {role: game.named_player(role, "random") for role in ("host", "agent")}
    assert game.match(chance, 200) == pytest.approx(0.5)
    strong = {**chance, "host": game.named_player("host", "zeillinger")}
    assert game.match(strong, 200) > 0.5


def test_replaced_networks_empty_the_pool_of_their_role():
    players = pooled()
    players.train(3)
    players.replace_nets(host=HostNet())
    assert len(players.pool.snapshots["host"]) == 0
    assert players.roles["agent"].env.venv.unwrapped.opponents == [players.players["host"]]
    players.train(4)
    assert "q_net.q_net.layers.1.weight" in players.pool.snapshots["host"][-1].weights


def test_a_host_in_self_play_learns_from_its_worst_case_and_goes_on_with_it():
    walk = "{callback: worst_case_positions, every: {updates: 2}, starts: 3, max_moves: 5}"
    players, again = (pooled(f"roles.host.callbacks=[{walk}]") for _ in range(2))
    players.train(5)
    again.load_state_dict(players.state_dict())
    found, kept = (each.roles["host"].callback.callbacks[0].positions for each in (players, again))
    assert len(found) > 3
    assert torch.equal(found, kept)
