"""What a backend is: the reference, and the base of the fused ones."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from resgym.game import episode
from resgym.game.episode import Kernels
from resgym.game.rng import RowRandom
from resgym.game.rules import check_startable
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state, where_state
from resgym.game.stepping import Ask, Games, ResetResult, StepPlan, StepResult

__all__ = ["Backend", "FusedBackend"]


class Backend(Kernels):
    """The torch reference: a step and a start put together from single operations.

    Attributes:
        name: what `resgym.kernels.resolve_backend` is asked for, never ``auto``.
    """

    name = "torch"

    def step(self, plan: StepPlan, games: Games, actions: Tensor, ask: Ask) -> StepResult:
        """Plays one action int64 [N] in every row; see `resgym.game.episode.step`."""
        return episode.step(plan, games.tensors(), actions, ask, self)

    def start(
        self,
        plan: StepPlan,
        games: Games,
        mask: Tensor,
        ask: Ask,
        given: GameState | None = None,
    ) -> ResetResult:
        """Starts episodes in the rows of ``mask``; see `resgym.game.episode.start`."""
        return episode.start(plan, games.tensors(), mask, ask, given, self)

    def host_actions(self, name: str, state: GameState, rng: RowRandom) -> Tensor | None:
        """What a scripted host chooses, int64 [N], where it is compiled; else None."""
        return None


class FusedBackend(Backend):
    """Base of backends that play a step in one pass; the rest is left to the reference.

    The reference plays with their own single operations: Newton polytopes, rewards that are
    functions, and the opponents that a backend neither knows nor asks.
    """

    agents: tuple[str, ...]
    """Agents that play inside a pass; kernels take the index."""

    hosts: tuple[str, ...]
    """Hosts, likewise."""

    @classmethod
    def opponent_number(cls, plan: StepPlan) -> int | None:
        """The index of a plan's opponent, 0 for both seats; None: who has to be asked."""
        if plan.seat == "both":
            return 0
        others = cls.agents if plan.seat == "host" else cls.hosts
        return others.index(plan.opponent) if plan.opponent in others else None

    @staticmethod
    def fits(plan: StepPlan) -> bool:
        """Whether the moves and the reward of a plan can be played in a pass."""
        return plan.spec.polytope == "dominance" and isinstance(plan.reward, str)

    # The single operations: kernels keep minimal points, the reference finds vertices of them.

    def _moved(
        self, state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
    ) -> tuple[GameState, Tensor, Tensor]:
        """As `move` for dominance; also bool [N], which games moved."""
        raise NotImplementedError

    def _drawn(self, spec: GameSpec, rng: RowRandom) -> GameState:
        """As `random_starts` for dominance."""
        raise NotImplementedError

    def move(
        self, state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
    ) -> tuple[GameState, Tensor]:
        """As `resgym.game.rules.move`."""
        after, moved, overflow = self._moved(state, coords.to(torch.bool), axis, _plain(spec))
        if spec.polytope == "newton":
            after = where_state(moved, _vertices(after, spec), state)
        return after, overflow

    def random_starts(self, spec: GameSpec, rng: RowRandom) -> GameState:
        """As `resgym.game.rules.random_starts`."""
        check_startable(spec)
        state = self._drawn(_plain(spec), rng)
        # A position of several minimal points has several vertices: no start is finished after all.
        return _vertices(state, spec) if spec.polytope == "newton" else state


def _plain(spec: GameSpec) -> GameSpec:
    """The game whose minimal points `_vertices` takes up."""
    if spec.polytope == "dominance":
        return spec
    return replace(spec, polytope="dominance", reposition=False)


def _vertices(state: GameState, spec: GameSpec) -> GameState:
    """The vertices among minimal points, by the reference."""
    return canonical_state(state.points.permute(2, 1, 0).contiguous(), state.count, spec)
