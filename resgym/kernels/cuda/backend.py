"""The backend of Triton kernels: a step is one launch, without a wait for the device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game.stepping import (
    AUTORESET_MODES,
    EpisodeState,
    Games,
    RefusedStep,
    ResetResult,
    StepPlan,
    StepResult,
)
from resgym.kernels.backend import ASKED, FusedBackend, set_numbers
from resgym.kernels.cuda.grids import cut, drawn_axes, flags_of, launch
from resgym.kernels.cuda.kernels import (
    HOSTS,
    STARTING,
    step_games,
)

_SAME_STEP = AUTORESET_MODES.index("SAME_STEP")


class _Numbers(NamedTuple):
    """What a plan comes to: constants of `step_games`, and its last numbers."""

    step: dict[str, Any]
    start: dict[str, Any]
    numbers: tuple[int, int, int, int]
    plays: bool


@lru_cache(maxsize=256)
def _numbers(plan: StepPlan) -> _Numbers | None:
    """The plan as numbers, or None for what no kernel plays."""
    indices = TritonBackend.indices(plan)
    if indices is None:
        return None
    plays = indices[1] != ASKED
    spec, starts = plan.spec, plan.start_spec
    step = {
        **dict(zip(("SEAT", "OPPONENT", "REWARD", "ON_ILLEGAL", "MODE"), indices, strict=True)),
        # Hosts who are asked name their sets after the pass, and restarts wait for them.
        "RESTARTS": plan.autoreset_mode != "DISABLED" and (plays or plan.seat == "host"),
        "SCALE": plan.scale_observation,
        "REPOSITION": spec.reposition,
        "AXES": cut(spec.max_num_points, spec.dimension).axes,
        # Of the game, not of the starts: a curriculum shall not compile anew.
        "DRAWN_AXES": drawn_axes(spec),
    }
    drawn = (starts.max_num_points, starts.max_value + 1, starts.start_attempts)
    return _Numbers(
        step=step,
        # Neither rewards nor illegal actions there: one binary for all of them.
        start={**step, "REWARD": 0, "ON_ILLEGAL": 0, "MODE": STARTING, "RESTARTS": True},
        numbers=(plan.step_limit, *drawn),
        plays=plays,
    )


@lru_cache(maxsize=64)
def _sets(dimension: int, host: str | None, device: torch.device) -> Tensor:
    """int64 [A]: see `set_numbers`."""
    return torch.tensor(set_numbers(dimension, host), device=device)


def _launched(
    plan: StepPlan,
    numbers: _Numbers,
    games: Games,
    given: Tensor,
    answers: Tensor,
    constants: dict[str, Any],
) -> tuple[StepResult, Tensor]:
    """A pass over all games, and bool [N], which of them refuse it.

    ``given`` are actions int64 [N], or bytes [N] that mark the games to start; ``answers`` are read
    only if agents were asked.
    """
    state = games.tensors()
    num_games, _, dimension = shape = state.points.shape
    device = state.points.device
    both, shows_final = plan.seat == "both", constants["RESTARTS"]
    shows_final = shows_final and constants["MODE"] == _SAME_STEP
    points = torch.empty(shape, dtype=torch.int64, device=device)
    coords = torch.empty(num_games, dimension, dtype=torch.bool, device=device)
    integers = torch.empty(6, num_games, dtype=torch.int64, device=device)
    floats = torch.empty(3, num_games, device=device)
    flags = torch.empty(6, num_games, dtype=torch.bool, device=device)
    rewards = torch.empty(num_games, 2, device=device) if both else floats
    seen = torch.empty(shape, device=device)
    seen_coords = torch.empty(num_games, dimension, dtype=torch.int8, device=device)
    final, final_coords = seen, seen_coords
    if shows_final:
        final, final_coords = torch.empty_like(seen), torch.empty_like(seen_coords)
    table = _sets(dimension, plan.opponent if plan.seat == "agent" else None, device)
    fields = state[:-1]  # all but the rule
    old = [flags_of(each) if each.dtype == torch.bool else each.contiguous() for each in fields]
    launch(
        step_games, num_games, plan.spec, device, given, answers, table, *old, points,
        flags_of(coords), integers, floats, flags_of(flags), rewards, seen, seen_coords, final,
        final_coords,
        num_games, len(table), *numbers.numbers, **constants,
    )  # fmt: skip
    count, half_moves, episode, key, lengths, final_lengths = integers.unbind()
    returns, reward, final_returns = floats.unbind()
    waiting, terminated, truncated, overflow, ended, refused = flags.unbind()
    result = StepResult(
        games=EpisodeState(
            points, count, coords, half_moves, state.seed, episode, key, returns, lengths, waiting
        ),
        points=seen,
        coords=seen_coords,
        reward=reward,
        rewards=rewards if both else None,
        terminated=terminated,
        truncated=truncated,
        overflow=overflow,
        ended=ended,
        final_points=final if shows_final else None,
        final_coords=final_coords if shows_final else None,
        episode_returns=final_returns,
        episode_lengths=final_lengths,
    )
    return result, refused


class TritonBackend(FusedBackend):
    """One launch a step, around the answers of opponents that have to be asked."""

    name = "triton"
    hosts = HOSTS

    def _numbers(self, plan: StepPlan) -> _Numbers | None:
        return _numbers(plan)

    def _pass(
        self,
        plan: StepPlan,
        numbers: _Numbers,
        games: Games,
        actions: Tensor,
        answers: Tensor | None,
    ) -> StepResult:
        """Waits for the device only if the step may be refused, in which case one value is read.

        What is seen of ended episodes and their statistics are always there.
        """
        chosen = actions.contiguous()
        given = chosen if answers is None else answers.contiguous()
        result, refused = _launched(plan, numbers, games, chosen, given, numbers.step)
        if plan.may_refuse and bool(refused.any()):
            raise RefusedStep
        return result

    def _starts(self, plan: StepPlan, numbers: _Numbers, games: Games, mask: Tensor) -> ResetResult:
        marks = flags_of(mask)
        result, _ = _launched(plan, numbers, games, marks, marks, numbers.start)
        return ResetResult(result.games, result.points, result.coords)
