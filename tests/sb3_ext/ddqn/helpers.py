"""Models and environments for the tests of DDQN, and what counts as equal."""

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.buffers import TensorReplayBufferSamples
from tests.fakes import ToyVectorEnv


class MaskedToy(ToyVectorEnv):
    """The toy with its legal buttons in the observation, under the name that DDQN looks for.

    The environment's own `action_masks` is taken away, so that nothing else can tell.
    """

    action_masks = property()  # reading it raises AttributeError

    def __init__(self, num_envs=4, **kwargs):
        super().__init__(num_envs, dict_obs=True, **kwargs)
        entries = dict(self.single_observation_space.spaces)
        entries["action_mask"] = entries.pop("legal")
        self.single_observation_space = spaces.Dict(entries)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def _observe(self):
        observation = super()._observe()
        observation["action_mask"] = observation.pop("legal")
        return observation


def make_model(env=None, policy=None, **arguments):
    """A small, quick DDQN; `env` defaults to 8 rows of the toy."""
    env = TensorVecEnv(ToyVectorEnv(8)) if env is None else env
    is_dict = isinstance(env.observation_space, spaces.Dict)
    defaults = {
        "batch_size": 32,
        "buffer_size": 4_000,
        "learning_starts": 64,
        "seed": 0,
        "device": "cpu",
        "log_interval_seconds": None,
        "policy_kwargs": {"net_arch": [32]},
    }
    policy = policy or ("MultiInputPolicy" if is_dict else "MlpPolicy")
    return DDQN(policy, env, **{**defaults, **arguments})


def weights(model):
    """A copy of all weights, online and target."""
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


def equal(first, second):
    """Whether two states are equal bit for bit, types included."""
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(equal(first[k], second[k]) for k in first)
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)


class FixedBatches:
    """In place of a replay buffer: gives the same batches in the same order."""

    def __init__(self, batches):
        self.batches = list(batches)

    def sample(self, batch_size, env=None):
        return self.batches.pop(0)

    def check_finite(self, *fields):
        """They are."""


def random_batch(seed, size=16, inputs=9, actions=4, masked=False):
    source = torch.Generator().manual_seed(seed)
    legal = torch.rand((size, actions), generator=source) < 0.4
    legal[0] = False
    return TensorReplayBufferSamples(
        observations=torch.randn((size, inputs), generator=source),
        actions=torch.randint(actions, (size, 1), generator=source),
        next_observations=torch.randn((size, inputs), generator=source),
        dones=(torch.rand((size, 1), generator=source) < 0.3).float(),
        rewards=3.0 * torch.randn((size, 1), generator=source),
        discounts=None,
        next_legal=legal if masked else None,
    )
