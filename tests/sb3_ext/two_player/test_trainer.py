"""Opponents, networks, rewards, measurements and copies."""

import pickle

import pytest
import torch

from resgym.players import make_agent
from sb3_ext.two_player import HostAgentTrainer
from tests.sb3_ext.helpers import equal, weights
from tests.sb3_ext.two_player.helpers import HostNet, tiny, trainer


def env_of(players, role):
    return players.roles[role].env.venv.unwrapped


def test_each_role_meets_the_other_as_it_is_now_without_exploring():
    players = trainer("roles.host.exploration_rate=1.0")
    assert env_of(players, "host").opponents == [players.players["agent"]]
    assert env_of(players, "agent").opponents == [players.players["host"]]
    network = players.roles["host"].policy.q_net
    with torch.no_grad():  # from the next move on it chooses the first set
        for value in network.parameters():
            value.zero_()
        network.q_net[-1].bias[0] = 1.0
    players.collect_rollout("agent")
    seen = players.roles["agent"].model.replay_buffer.state_dict()["fields"]["observations"]
    assert seen["coords"][1:3].flatten(0, 1).unique(dim=0).tolist() == [[1, 1, 0]]
    players.collect_rollout("host", games=40)
    actions = players.roles["host"].model.replay_buffer.state_dict()["fields"]["actions"][:30]
    assert len(actions.unique()) == 4


def test_a_scripted_player_takes_the_place_of_a_role():
    players = HostAgentTrainer(tiny("training.players=[agent]", host={"player": "zeillinger"}))
    assert list(players.roles) == ["agent"]
    evaluation = players.train(2)
    assert players.roles["agent"].updates == 2
    assert next(iter(evaluation.values)) == "host-agent"
    with pytest.raises(ValueError, match="unknown role that learns"):
        players.freeze("host")


def test_b16_replaced_networks_get_a_target_and_an_optimiser_of_their_own():
    players = trainer()
    players.train(2)
    torch.manual_seed(0)
    network = HostNet()
    players.replace_nets(host=network)
    learner = players.roles["host"]
    model = learner.model
    assert model.q_net.q_net is network
    assert equal(dict(model.q_net.state_dict()), dict(model.q_net_target.state_dict()))
    assert model.q_net is not model.q_net_target
    owned = {
        id(each) for group in learner.policy.optimizer.param_groups for each in group["params"]
    }
    assert owned == {id(each) for each in network.parameters()}
    assert learner.policy.optimizer.state_dict()["state"] == {}
    before = weights(learner)
    players.train(4)
    for part in ("q_net", "q_net_target"):
        name = f"{part}.q_net.layers.1.weight"
        assert not torch.equal(before[name], weights(learner)[name])
    assert learner.updates == 6


def test_a_network_that_does_not_fit_changes_nothing():
    players = trainer()
    before = players.roles["host"].policy.q_net
    with pytest.raises(
        ValueError, match=r"network: got values \(2, 5\) for N = 2; expected \[N, 4\]"
    ):
        players.replace_nets(host=HostNet(5))
    assert players.roles["host"].policy.q_net is before
    players.train(1)


def test_replaced_reward_is_paid_and_old_experience_is_dropped():
    players = trainer()
    players.collect_rollout("host", games=8)

    def two(transition):
        return torch.full_like(transition.finished, 2.0, dtype=torch.float32)

    players.replace_reward("host", two)
    learner = players.roles["host"]
    assert not learner.buffer.size()
    players.train(1)
    rewards = learner.model.replay_buffer.state_dict()["fields"]["rewards"]
    assert torch.equal(rewards[: learner.model.replay_buffer.size()].unique(), torch.tensor([2.0]))
    with pytest.raises(ValueError, match="or of a module imported before, got 'gold'"):
        players.replace_reward("host", "gold")


def test_b23_measurements_repeat_and_do_not_touch_training():
    quiet = trainer()
    busy = trainer()
    assert quiet.evaluate_rho() == busy.evaluate_rho()

    def measure(each):
        each.evaluate_rho()
        each.count_actions("host")

    quiet.train(4)
    busy.train(4, callback=measure)
    assert equal(weights(quiet.roles["host"]), weights(busy.roles["host"]))
    state = torch.get_rng_state()
    assert busy.evaluate_rho() == busy.evaluate_rho()
    assert torch.equal(state, torch.get_rng_state())
    assert trainer("evaluation.seed=9").evaluate_rho() != trainer().evaluate_rho()


def test_b25_actions_are_counted_also_where_no_game_is_finished():
    players = trainer("evaluation.max_moves=1", "evaluation.action_games=30")
    for role, actions in (("host", 4), ("agent", 3)):
        counts = players.count_actions(role)
        assert (len(counts), sum(counts)) == (actions, 30)


def test_an_evaluation_measures_pairs_actions_and_the_best_version():
    players = trainer("evaluation.opponents={host: [random, choose_first], agent: [all_coord]}")
    first = players.evaluate()
    names = ["host-agent", "host-random", "host-choose_first", "all_coord-agent"]
    assert list(first.values) == names
    assert first.scores["host"] == min(
        first.values["host-random"], first.values["host-choose_first"]
    )
    assert first.scores["agent"] == first.values["all_coord-agent"]
    assert first.improved == ["host", "agent"]
    assert players.evaluate().improved == []  # the same players are not better
    players.best_scores = {"host": 0.0, "agent": 0.0}  # for the agent, less is better
    assert players.evaluate().improved == ["host"]


def test_copies_play_the_same_for_the_same_and_learn_apart():
    players = trainer(nets={"host": HostNet()}, rewards={"host": "survival"})
    players.train(3)
    choose_first = make_agent("choose_first")
    players.set_opponent("host", choose_first)
    players.freeze("agent")
    duplicate = players.copy()
    assert duplicate.evaluate_rho() == players.evaluate_rho()
    assert duplicate.total_steps == 0
    assert not duplicate.roles["host"].buffer.size()
    assert env_of(duplicate, "host").reward == "survival"
    assert env_of(duplicate, "host").opponents == [choose_first]
    assert duplicate.roles["agent"].frozen
    before = weights(players.roles["host"])
    pickle.loads(pickle.dumps(players)).train(1, players="host")
    duplicate.train(2)
    assert equal(before, weights(players.roles["host"]))
    assert not equal(before, weights(duplicate.roles["host"]))


def test_b15_nan_stops_training_and_names_the_role_and_is_never_saved(tmp_path):
    players = trainer("logging.every_steps=2")
    players.train(2)
    with torch.no_grad():
        next(players.roles["agent"].policy.q_net.parameters())[0, 0] = torch.inf
    with pytest.raises(FloatingPointError, match=r"roles\.agent: .*NaN"):
        players.save(tmp_path / "one")
    assert not (tmp_path / "one").exists()
    with pytest.raises(FloatingPointError, match=r"roles\.agent: .*NaN"):
        players.train(10)
    assert players.total_steps < 6


def test_metrics_of_both_roles_and_of_their_layers():
    players = trainer("logging.layers=true", "logging.every_steps=2")
    players.train(3)
    metrics = players.log_metrics()
    for role in ("host", "agent"):
        assert metrics[f"{role}/updates"] == 3
        assert metrics[f"{role}/loss"] >= 0
        assert metrics[f"{role}/exploration_rate"] == 0.5
        layers = [key for key in metrics if key.startswith(f"{role}/layers/")]
        assert len(layers) == 16  # two layers, weight and bias, value and gradient, mean and std
        assert not any("_target" in key for key in layers)
    assert metrics["time/update_seconds"] > 0


def test_b39_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    players = trainer("logging.every_steps=1", "logging.tensorboard=true")
    players.train(3)
    assert list(tmp_path.iterdir()) == []
