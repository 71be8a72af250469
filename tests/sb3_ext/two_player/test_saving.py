"""Going on after a save is going on as if nothing had happened."""

import warnings

import pytest

from sb3_ext.runs.checkpoint import CheckpointError
from sb3_ext.two_player import HostAgentTrainer
from sb3_ext.two_player.hironaka import ROLES
from tests.sb3_ext.helpers import equal, weights
from tests.sb3_ext.two_player.helpers import POOL, HostNet, difference, duel, plain, tiny, trainer

RMSPROP = {"name": "rmsprop", "arguments": {}}
SCHEDULED = (
    "roles.host.learning_rate={schedule: exponential, init: 1.0e-2, final: 1.0e-4, rate: 0.9}",
    "roles.agent.exploration_rate={schedule: linear, init: 1.0, final: 0.0, steps: 60,"
    " unit: transitions}",
    "roles.host.net_arch=[16, b]",
    "roles.host.algorithm_arguments={n_steps: 2}",
    "evaluation.every_steps=4",
)


def actor(name, policy, *less, **keys):
    """The role section of an on-policy algorithm, which may have fewer keys than PPO."""
    role = {**plain("ppo_host")["roles"]["host"], "algorithm": name, "policy": policy, **keys}
    return {key: role[key] for key in role if key not in less} | {"algorithm_arguments": {}}


VARIANTS = {
    "interleaved": lambda: tiny(
        *SCHEDULED, "roles.host.callbacks=[{callback: action_counts, every: {updates: 20}}]"
    ),
    "turns, each anew, fresh games": lambda: tiny(
        *SCHEDULED,
        "roles.host.rollout.reset_each_rollout=true",
        "training.updates={period: 4, agent: [0, 2], host: [2, 4], fresh: true}",
    ),
    "self-play": lambda: tiny(*SCHEDULED, *POOL, name="self_play"),
    "stock algorithms": lambda: tiny(
        "game.invalid_action=noop",
        *("roles.host.algorithm=dqn", "roles.host.policy=MlpPolicy"),
        *("roles.agent.algorithm=qrdqn", "roles.agent.policy=MultiInputPolicy"),
        *(f"roles.{role}.policy_arguments={{}}" for role in ROLES),
        *(f"roles.{role}.algorithm_arguments={{}}" for role in ROLES),
    ),
    "priorities, draws by value, one encoder": lambda: tiny(
        *SCHEDULED[:1],
        "roles.host.replay_buffer={name: prioritized, size: 1000, arguments: {beta: 0.5}}",
        "roles.host.policy_arguments={extractor: point_set}",
        "roles.host.algorithm_arguments={exploration_strategy: boltzmann, evaluation_rows: 1}",
        "roles.agent.policy_arguments={extractor: point_set, learning_rate_factors: {q_net: 0.5}}",
        "shared_encoder=true",
    ),
    "PPO in self-play": lambda: duel(
        *POOL, "roles.host.opponent=pool", self_play=plain("self_play")["self_play"]
    ),
    "A2C against PPO with masks": lambda: tiny(
        "roles.agent.rollout.reset_each_rollout=true",
        name="ppo_host",
        host=actor("a2c", "MlpPolicy", "batch_size", "n_epochs", "clip_range", optimizer=RMSPROP),
        agent=actor("ppo_mask", "MultiInputPolicy", batch_size=4, n_epochs=3),
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_training_goes_on_bit_for_bit(name, tmp_path):
    data = VARIANTS[name]()
    whole = HostAgentTrainer(data)
    before = {role: weights(learner) for role, learner in whole.roles.items()}
    whole.train(9)
    assert not any(equal(before[role], weights(whole.roles[role])) for role in before)
    first = HostAgentTrainer(data)
    first.train(5)
    first.save(tmp_path / "checkpoint-000000000005")
    first.train(2)  # what happens after the save must not matter
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing may be missing
        second = HostAgentTrainer.load(tmp_path / "checkpoint-000000000005")
    assert second.total_steps == 5
    second.train(4)
    assert difference(whole.state_dict(), second.state_dict()) == []
    assert whole.history[-1].values == second.history[-1].values
    assert whole.history[-1].actions == second.history[-1].actions


def test_given_networks_have_to_be_given_again(tmp_path):
    players = trainer(nets={"host": HostNet()})
    players.train(2)
    players.save(tmp_path / "one")
    with pytest.raises(CheckpointError, match=r"host\.policy"):
        HostAgentTrainer.load(tmp_path / "one")
    loaded = HostAgentTrainer.load(tmp_path / "one", nets={"host": HostNet()})
    assert loaded.evaluate_rho() == players.evaluate_rho()
