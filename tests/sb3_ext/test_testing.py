"""The smoke pipeline passes for what works, and names the stage for what is broken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.testing import STAGES, SmokeError, smoke_pipeline
from tests.fakes import ToyVectorEnv

HOST, AGENT, BOTH = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0", "resgym/Hironaka-v0"


@pytest.mark.parametrize(("env_id", "algo"), [(HOST, "ppo_mask"), (AGENT, "ddqn"), (BOTH, "ddqn")])
def test_masked_algorithms_pass(env_id: str, algo: str) -> None:
    report = smoke_pipeline(env_id, algo)
    assert report.legal_checked
    assert report.updates > 0
    assert report.transitions >= 384
    assert report.observations == 8 * 8
    assert tuple(report.stages) == STAGES
    assert 0 < report.seconds < 60
    assert env_id in str(report)


@pytest.mark.parametrize("algo", ["dqn", "ppo"])
def test_stock_algorithms_pass_without_masks(algo: str) -> None:
    report = smoke_pipeline(AGENT, algo)
    assert not report.legal_checked
    assert "not compared with a mask" in str(report)


def test_arguments_reach_environment_and_model() -> None:
    report = smoke_pipeline(
        HOST, "ddqn", env_kwargs={"dimension": 4}, n_envs=4, n_timesteps=200, gradient_steps=3
    )
    # 4 transitions a step; learning starts after 64, so 34 of the 50 steps are followed by updates.
    assert report.transitions == 200
    assert report.updates == 34 * 3


class LoadsOtherWeights(DDQN):
    @classmethod
    def load(cls, *args: Any, **kwargs: Any) -> Any:
        model = super().load(*args, **kwargs)
        with torch.no_grad():
            next(iter(model.q_net.parameters())).add_(1e-3)
        return model


class LoadsAnotherRule(DDQN):
    """The weights are the right ones, but a loaded model answers differently."""

    inverted = False

    @classmethod
    def load(cls, *args: Any, **kwargs: Any) -> Any:
        model = super().load(*args, **kwargs)
        model.inverted = True
        return model

    def predict(self, *args: Any, action_masks: Any = None, **kwargs: Any) -> Any:
        actions, state = super().predict(*args, action_masks=action_masks, **kwargs)
        return (int(self.action_space.n) - 1 - actions if self.inverted else actions), state


class PlaysIllegally(DDQN):
    def predict(self, *args: Any, action_masks: Any = None, **kwargs: Any) -> Any:
        return np.asarray(action_masks).argmin(axis=1), None


class BecomesNaN(DDQN):
    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        with torch.no_grad():
            next(iter(self.q_net.parameters())).fill_(torch.nan)


class CannotSave(DDQN):
    def save(self, *args: Any, **kwargs: Any) -> None:
        raise OSError("no space\nleft")


@pytest.mark.parametrize(
    ("fake", "stage", "message"),
    [
        (LoadsOtherWeights, "load", "are not those that were saved"),
        (LoadsAnotherRule, "predict", "the loaded model predicts other actions in"),
        (PlaysIllegally, "legal", "rows without exploration, the first one"),
        (BecomesNaN, "update", "is NaN or infinite"),
        (CannotSave, "save", "OSError: no space left"),
    ],
)
def test_broken_models_are_found(fake: type[DDQN], stage: str, message: str) -> None:
    with pytest.raises(SmokeError, match=rf"^stage {stage}, {fake.__name__} on ") as caught:
        smoke_pipeline(AGENT, fake)
    assert caught.value.stage == stage
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


class LosesARow(ToyVectorEnv):
    """A broken environment: its rewards have one row too few."""

    def step(self, actions: Any) -> Any:
        observation, reward, *rest = super().step(actions)
        return observation, reward[:-1], *rest


def broken_games() -> TensorVecEnv:
    return TensorVecEnv(LosesARow(4))


def test_failures_of_other_stages_are_named() -> None:
    with pytest.raises(SmokeError, match="stage learn, DDQN on broken_games: "):
        smoke_pipeline(broken_games)
    with pytest.raises(SmokeError, match=r"stage environment, DDQN on resgym/HironakaHost-v0: .*"):
        smoke_pipeline(HOST, env_kwargs={"dimension": 0})
    with pytest.raises(SmokeError, match=r"stage model, DDQN on .*batch_size"):
        smoke_pipeline(HOST, batch_size=0)
    with pytest.raises(SmokeError, match="stage learn, ObservedMaskPPO on CartPole-v1"):
        smoke_pipeline("CartPole-v1", "ppo_mask")


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"unknown algorithm 'dddqn'; did you mean 'ddqn'\?"):
        smoke_pipeline(HOST, "dddqn")
    with pytest.raises(TypeError, match=r"algo: got .*, need a name or a class"):
        smoke_pipeline(HOST, spaces.Dict)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_envs"):
        smoke_pipeline(HOST, n_envs=0)
    with pytest.raises(ValueError, match="n_timesteps"):
        smoke_pipeline(HOST, n_timesteps=-1)
