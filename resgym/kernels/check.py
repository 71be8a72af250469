"""A trial whether a fast backend plays as the reference does."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partialmethod
from typing import Any

import torch
from torch import Tensor

from resgym.game.episode import Backend
from resgym.game.rng import RowRandom
from resgym.game.stepping import Ask, EpisodeState, Games, StepPlan

GAMES, STEPS, WIDER = 40, 12, 40


class Checked(Backend):
    """A fast backend, tried first on each kind of step; the reference where it fails.

    A trial cannot prove that kernels are right. It finds kernels that do not compile here, or are
    wrong in the first steps.
    """

    def __init__(self, fast: Backend) -> None:
        self.name, self._fast = fast.name, fast
        self._players: dict[Any, Backend] = {}

    def _play(
        self, operation: str, plan: StepPlan, games: Games, rows: Tensor, ask: Ask, *given: Any
    ) -> Any:
        player, device = self._fast, rows.device
        if isinstance(plan.reward, str):  # functions are left to the reference anyway
            kind = plan.spec, plan.seat, plan.opponent, plan.reward, plan.autoreset_mode, device
            if kind not in self._players:
                problem = fault(self._fast, plan, ask, device)
                if problem is not None:
                    message = f"backend 'auto' is 'torch': {self.name!r} does not work on {device}"
                    warnings.warn(f"{message}: {problem}", RuntimeWarning, stacklevel=3)
                self._players[kind] = self._fast if problem is None else Backend()
            player = self._players[kind]
        return getattr(player, operation)(plan, games, rows, ask, *given)

    step: Any = partialmethod(_play, "step")
    start: Any = partialmethod(_play, "start")


def fault(backend: Backend, plan: StepPlan, ask: Ask, device: torch.device) -> str | None:
    """Return how a backend's games of a plan differ from those of the reference, or None.

    The games are small, with illegal actions, ends and restarts; half-way the coordinates become
    large. An opponent that must be asked is replaced by a simple one.
    """
    plan = replace(plan, invalid_action="noop", max_episode_steps=5, starts=None)
    if plan.autoreset_mode == "DISABLED":
        plan = replace(plan, autoreset_mode="NEXT_STEP")
    ask = _first if plan.opponent is None else ask
    row = torch.arange(GAMES, device=device)
    games: Games = EpisodeState.empty(GAMES, plan.spec, device)._replace(seed=row)
    try:
        played: Any = [each.start(plan, games, row >= 0, ask) for each in (backend, Backend())]
        for step in range(STEPS):
            # Where data are not read, a row may have ended for all that is known.
            results = [[*each[1:-1], *each.games.tensors()[:-1]] for each in played]
            if not all(map(_same, *results)):
                return f"its results are wrong after {step} steps"
            state = played[1].games.tensors()
            if step == STEPS // 2:
                small = (state.points >= 0) & (state.points.amax((1, 2), True) < 2**18)
                wide = torch.where(small, state.points << WIDER, state.points)
                state = state._replace(points=wide)
            actions = (row * 5 + step) % (plan.num_actions + 1)
            # From the same games, but for the memory.
            own = EpisodeState._make((*map(torch.clone, state[:-1]), state.rule))
            fast = backend.step(plan, own, actions, ask)
            played = [fast, Backend().step(plan, state, actions, ask)]
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def _same(found: Any, wanted: Any) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return torch.equal(torch.as_tensor(found), torch.as_tensor(wanted))


def _first(
    games: EpisodeState, coords: Tensor | None, rng: RowRandom, rows: Tensor | None
) -> Tensor:
    """Answer with the lowest axis, or the first set."""
    chosen = games.counts * 0 if coords is None else coords.to(torch.uint8).argmax(1)
    return chosen if rows is None else chosen[rows]
