"""The backend of Triton kernels: a step is one launch, without a wait for the device.

Importing this module needs Triton. With ``TRITON_INTERPRET=1`` in the environment before the first
import of Triton, its interpreter runs the kernels on the CPU: slow, for tests.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from triton import knobs

from resgym.cuda.kernels import HOSTS, step_games
from resgym.game.spec import GameSpec
from resgym.game.stepping import (
    AUTORESET_MODES,
    EpisodeState,
    Games,
    RefusedStep,
    StepPlan,
    StepResult,
)
from resgym.kernels.backend import STARTING, FusedBackend, Numbers, set_numbers

_SAME_STEP = AUTORESET_MODES.index("SAME_STEP")

INTERPRETED = bool(knobs.runtime.interpret)
"""Whether the kernels of this process run in the interpreter."""

_LANES = 32


def sizes(num_points: int, dimension: int) -> dict[str, int]:
    """The constants of `step_games` that tell its sizes: G games of a program, R rows of each.

    Nothing is tried out, so a launch may be captured in a CUDA graph. A lane holds two points of up
    to five axes, or one of more, which keeps them in registers.
    """
    rows = 1 << (num_points - 1).bit_length()
    points = _LANES * (2 if dimension <= 5 else 1)
    return {"P": num_points, "D": dimension, "G": max(1, points // rows), "R": rows}


def flags_of(tensor: Tensor) -> Tensor:
    """A tensor of booleans as bytes, without a copy."""
    return tensor.contiguous().view(torch.uint8)


@lru_cache(maxsize=256)
def _constants(spec: GameSpec, rules: tuple[int, ...]) -> dict[str, Any]:
    """The constants of `step_games`, by `Numbers.rules`."""
    names = ("SEAT", "OPPONENT", "REWARD", "ON_ILLEGAL", "MODE")
    return {
        **dict(zip(names, rules, strict=False)),
        "RESTARTS": bool(rules[5]),
        "SCALE": bool(rules[7]),
        "REPOSITION": spec.reposition,
        **sizes(spec.max_num_points, spec.dimension),
    }


@lru_cache(maxsize=64)
def _sets(dimension: int, host: str | None, device: torch.device) -> Tensor:
    """int64 [A]: see `set_numbers`."""
    return torch.tensor(set_numbers(dimension, host), device=device)


class TritonBackend(FusedBackend):
    """One launch a step, around the answers of opponents that have to be asked."""

    name = "triton"
    device_types = ("cuda", "cpu") if INTERPRETED else ("cuda",)
    max_num_points = 64  # each is a bit of one word
    hosts = HOSTS

    def _pass(
        self,
        plan: StepPlan,
        numbers: Numbers,
        games: Games,
        actions: Tensor,
        answers: Tensor | None = None,
    ) -> StepResult:
        """Waits for the device only if the step may be refused, in which case one value is read.

        What is seen of ended episodes and their statistics are always there.
        """
        chosen = actions.contiguous()
        given = chosen if answers is None else answers.contiguous()
        state = games.tensors()
        num_games, _, dimension = shape = state.points.shape
        device = state.points.device
        both, rules = plan.seat == "both", numbers.rules
        constants = _constants(plan.spec, rules)
        shows_final = constants["RESTARTS"] and constants["MODE"] == _SAME_STEP
        empty = partial(torch.empty, device=device)
        points = empty(shape, dtype=torch.int64)
        coords = empty(num_games, dimension, dtype=torch.bool)
        integers = empty(6, num_games, dtype=torch.int64)
        floats = empty(3, num_games)
        flags = empty(6, num_games, dtype=torch.bool)
        rewards = empty(num_games, 2) if both else floats
        seen = empty(shape)
        seen_coords = empty(num_games, dimension, dtype=torch.int8)
        final, final_coords = seen, seen_coords
        if shows_final:
            final, final_coords = torch.empty_like(seen), torch.empty_like(seen_coords)
        table = _sets(dimension, plan.opponent if plan.seat == "agent" else None, device)
        fields = state[:-1]  # all but the rule
        old = [flags_of(each) if each.dtype == torch.bool else each.contiguous() for each in fields]
        program = step_games[(-(-num_games // constants["G"]),)]
        # Triton launches on the current device, which need not be that of the tensors. One warp, so
        # that no reduction waits for another.
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            program(
                chosen, given, table, *old, points, flags_of(coords), integers, floats,
                flags_of(flags), rewards, seen, seen_coords, final, final_coords, num_games,
                len(table), rules[6], *numbers.starts[:3], **constants, num_warps=1,
            )  # fmt: skip
        count, half_moves, episode, key, lengths, final_lengths = integers.unbind()
        returns, reward, final_returns = floats.unbind()
        waiting, terminated, truncated, overflow, ended, refused = flags.unbind()
        after = EpisodeState(
            points, count, coords, half_moves, state.seed, episode, key, returns, lengths, waiting
        )
        refuses = plan.invalid_action == "error" or plan.autoreset_mode == "DISABLED"
        if refuses and rules[4] != STARTING and refused.any():
            raise RefusedStep
        return StepResult(
            after, seen, seen_coords, reward, rewards if both else None, terminated, truncated,
            overflow, ended, final if shows_final else None, final_coords if shows_final else None,
            final_returns, final_lengths,
        )  # fmt: skip
