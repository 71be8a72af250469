"""SB3's and sb3-contrib's own algorithms learn through TensorVecEnv, unchanged.

The score is the reward per step over 200 episodes of the toy: -0.125 at random, 0.469 at random
among legal presses, at best 1. Measured with these seeds: 1.00, for RecurrentPPO 0.99.
"""

import pytest
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_maskable
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy

from sb3_ext.adapter import TensorVecEnv
from tests.fakes import ToyVectorEnv

Q_LEARNING = {
    **{"learning_starts": 256, "buffer_size": 20_000, "batch_size": 128, "train_freq": 1},
    **{"gradient_steps": 4, "target_update_interval": 256, "exploration_fraction": 0.5},
}
PROXIMAL = {"n_steps": 16, "batch_size": 256, "n_epochs": 4}
# Algorithm, arguments, arguments of the policy, learning rate, transitions.
CASES = {
    "DQN": (DQN, Q_LEARNING, {}, 3e-3, 3_000),
    "QRDQN": (QRDQN, Q_LEARNING, {"n_quantiles": 10}, 3e-3, 3_000),
    "PPO": (PPO, PROXIMAL, {}, 1e-2, 7_000),
    "A2C": (A2C, {"n_steps": 4}, {}, 1e-2, 12_000),
    "MaskablePPO": (MaskablePPO, PROXIMAL, {}, 1e-2, 7_000),
    "RecurrentPPO": (RecurrentPPO, PROXIMAL, {"lstm_hidden_size": 16}, 1e-2, 6_000),
}
DICTIONARIES = ("QRDQN", "A2C", "MaskablePPO")


@pytest.mark.learning
@pytest.mark.parametrize("name", CASES)
def test_it_is_learned(name):
    """The untrained model is a control."""
    algorithm, arguments, layers, rate, transitions = CASES[name]
    shown = name in DICTIONARIES
    masked = name == "MaskablePPO"
    recurrent = name == "RecurrentPPO"

    def make_env():
        # Only the algorithm that knows the masks can keep to the legal actions.
        illegal = "error" if masked else "penalty"
        return TensorVecEnv(ToyVectorEnv(64, shown, illegal=illegal))

    def score():
        env = make_env()
        env.seed(99)
        evaluate = evaluate_maskable if masked else evaluate_policy
        returns, lengths = evaluate(model, env, 200, return_episode_rewards=True)
        return sum(returns) / sum(lengths)

    policy = ("MultiInput" if shown else "Mlp") + ("LstmPolicy" if recurrent else "Policy")
    kwargs = {"net_arch": [64], **layers}
    given = {"learning_rate": rate, "gamma": 0.5, "seed": 1, **arguments}
    model = algorithm(policy, make_env(), policy_kwargs=kwargs, **given)
    assert score() < (0.6 if masked else 0.3)
    model.learn(transitions)
    assert score() > (0.7 if recurrent else 0.85)
