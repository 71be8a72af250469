"""Learning on the toy: a threshold, the baseline it was set from, and controls that must fail."""

import pytest

from sb3_ext.adapter import TensorVecEnv
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import MaskedToy, make_model

pytestmark = pytest.mark.learning

# Mean reward per step of greedy play; a perfect player has 1, random legal play 0.43. Trained as
# below, seeds 0 and 1 gave 1.0 in every variant, and 0.45 to 0.64 untrained.
THRESHOLD = 0.95


def score(model, environment=ToyVectorEnv):
    env = TensorVecEnv(environment(256, horizon=4))
    env.seed(1234)
    observation = env.reset()
    total = 0.0
    for _ in range(20):
        masks = env.action_masks() if env.has_attr("action_masks") else None
        actions, _ = model.predict(observation, deterministic=True, action_masks=masks)
        observation, rewards, _, _ = env.step(actions)
        total += float(rewards.mean())
    return total / 20


def trained(environment=ToyVectorEnv, seed=0, **arguments):
    settings = {
        "learning_rate": 4e-3,
        "exploration_rate": "lin_1.0_0.1_100",
        "gamma": 0.8,
        "target_update_interval": 25,
        "batch_size": 64,
        "buffer_size": 20_000,
    }
    env = TensorVecEnv(environment(32, horizon=4))
    return make_model(env, seed=seed, **{**settings, **arguments}).learn(6_400)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"environment": MaskedToy},
        {"double_q": False, "dueling": True},
        {"n_steps": 3, "loss": "mse"},
        {"replay_ratio": 2.0, "autocast": True, "tau": 0.05, "target_update_interval": 1},
        {"exploration_strategy": "boltzmann", "exploration_rate": "lin_1.0_0.05_100"},
    ],
    ids=str,
)
def test_learns_the_toy(arguments):
    assert score(trained(**arguments), arguments.get("environment", ToyVectorEnv)) > THRESHOLD


def test_control_that_cannot_learn_stays_below():
    assert score(trained(learning_rate=0.0)) < 0.75
