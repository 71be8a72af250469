"""The shipped configurations of three to five axes come near the optimum; noise does not."""

import pytest
import torch
import yaml
from gymnasium import make_vec

import resgym
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.config.sections import find_config
from sb3_ext.ddqn import DDQN
from sb3_ext.schedules.schedules import parse_schedule

HOST = "resgym/HironakaHost-v0"


class OfOthers(DDQN):
    """Learns the targets of other transitions of the batch: as many, as large, and noise."""

    def compute_target(self, batch):
        target = super().compute_target(batch)
        order = torch.Generator().manual_seed(self.num_updates)
        return target[torch.randperm(len(target), generator=order)]


def learned(algorithm, axes, parts=1, seed=0):
    """The share of the optimum on 2,000 starts after a training of a part of its length."""
    section = yaml.safe_load(find_config(f"ddqn/axes{axes}").read_text())[HOST]
    games = make_vec(HOST, num_envs=section.pop("n_envs"), **section.pop("env_kwargs"))
    transitions = section.pop("n_timesteps") // parts
    for name in ("learning_rate", "exploration_rate"):
        section[name] = parse_schedule({**section[name], "steps": section[name]["steps"] // parts})
    model = algorithm(section.pop("policy"), TensorVecEnv(games), seed=seed, **section)
    model.learn(transitions)
    result = resgym.rho(
        player_of(model), "choose_first", games=2_000, seed=1, dimension=axes, optimum=True
    )
    return result.share[0]


@pytest.mark.long
@pytest.mark.learning
@pytest.mark.parametrize(("axes", "least"), [(3, 0.98), (4, 0.95), (5, 0.95)])
def test_hosts_come_near_the_optimum(axes, least):
    assert learned(DDQN, axes, seed=1) > least


@pytest.mark.long
@pytest.mark.learning
def test_noise_teaches_nothing():
    assert learned(OfOthers, 4, parts=3) < 0.3
