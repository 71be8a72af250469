"""The smoke pipeline passes for what works, and names the stage for what is broken."""

import numpy as np
import pytest
import torch

from sb3_ext.ddqn import DDQN
from sb3_ext.testing import smoke_pipeline

HOST, AGENT, BOTH = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0", "resgym/Hironaka-v0"


@pytest.mark.parametrize(
    ("env_id", "algo", "legal"),
    [
        (HOST, "ppo_mask", True),
        (BOTH, "ddqn", True),
        (AGENT, "dqn", False),
        ("CartPole-v1", "ppo", False),
    ],
)
def test_what_works_passes(env_id, algo, legal):
    report = smoke_pipeline(env_id, algo)
    assert report.legal_checked == legal
    assert report.updates > 0
    assert report.transitions >= 384


def test_arguments_reach_environment_and_model():
    report = smoke_pipeline(
        HOST, "ddqn", env_kwargs={"dimension": 4}, n_envs=4, n_timesteps=200, gradient_steps=3
    )
    # 4 transitions a step; learning starts after 64, so 34 of the 50 steps are followed by updates.
    assert (report.transitions, report.updates) == (200, 34 * 3)


class LoadsOtherWeights(DDQN):
    @classmethod
    def load(cls, *args, **kwargs):
        model = super().load(*args, **kwargs)
        with torch.no_grad():
            next(iter(model.q_net.parameters())).add_(1e-3)
        return model


class LoadsAnotherRule(DDQN):
    """The weights are the right ones, but a loaded model answers differently."""

    inverted = False

    @classmethod
    def load(cls, *args, **kwargs):
        model = super().load(*args, **kwargs)
        model.inverted = True
        return model

    def predict(self, *args, action_masks=None, **kwargs):
        actions, state = super().predict(*args, action_masks=action_masks, **kwargs)
        return (int(self.action_space.n) - 1 - actions if self.inverted else actions), state


class PlaysIllegally(DDQN):
    def predict(self, *args, action_masks=None, **kwargs):
        return np.asarray(action_masks).argmin(axis=1), None


class BecomesNaN(DDQN):
    def train(self, gradient_steps, batch_size=256):
        with torch.no_grad():
            next(iter(self.q_net.parameters())).fill_(torch.nan)


class CannotSave(DDQN):
    def save(self, *args, **kwargs):
        raise OSError("no space\nleft")


@pytest.mark.parametrize(
    ("fake", "stage", "more"),
    [
        (LoadsOtherWeights, "load", {}),
        (LoadsAnotherRule, "predict", {}),
        (PlaysIllegally, "legal", {}),
        (BecomesNaN, "update", {}),
        (CannotSave, "save", {}),
        (DDQN, "environment", {"env_kwargs": {"dimension": 0}}),
        (DDQN, "model", {"batch_size": 0}),
    ],
)
def test_what_is_broken_is_found(fake, stage, more):
    with pytest.raises(AssertionError, match=rf"^{stage}: {fake.__name__} on .*$"):
        smoke_pipeline(AGENT, fake, **more)
