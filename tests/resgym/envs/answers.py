"""A player whose answers can be spoiled, environments against it, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from resgym.players import make_agent, make_host
from tests.resgym.envs.helpers import AGENT, HOST, act_random, make_vec, same

NUM_ENVS = 4
DIMENSION = 6
SEATS = {HOST: "agent", AGENT: "host"}
SIZE = {"host": 2**DIMENSION - DIMENSION - 1, "agent": DIMENSION}


class Spoiled:
    """A legal player that gives another answer whenever ``spoil`` is set."""

    name = "spoiled"

    def __init__(self, role: str) -> None:
        self.role = role
        self.legal = make_host("random") if role == "host" else make_agent("random")
        self.spoiled = 0
        self.spoil: Callable[[Tensor, Tensor | None], Any] | None = None

    def act(self, state: Any, coords: Tensor | None, rng: Any) -> Any:
        answer = self.legal.act(state, coords, rng)
        if self.spoil is None:
            return answer
        self.spoiled += 1
        return self.spoil(answer, coords)


def make(env_id: str, player: Any, **arguments: Any) -> Any:
    return make_vec(
        env_id, NUM_ENVS, opponent=player,
        **{
            "dimension": DIMENSION, "max_num_points": 6, "max_value": 5, "max_episode_steps": 5,
            **arguments,
        },
    )  # fmt: skip


def error_of(attempt: Callable[[], Any]) -> Exception | None:
    """What kind of refusal an attempt meets; any other error is passed on."""
    try:
        attempt()
    except (TypeError, ValueError) as error:
        return error
    return None


def one_line(error: BaseException) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    return text


def step_both(envs: tuple[Any, Any], time: int) -> None:
    """One step of both, or a reset of the rows that have ended, with equal results."""
    ended = envs[0].games.ended
    if envs[0].autoreset_mode.name == "DISABLED" and bool(ended.any()):
        seen = [env.reset(options={"reset_mask": ended})[0] for env in envs]
        assert same(*seen)
        return
    assert same(*(env.step(act_random(env, time)) for env in envs))
