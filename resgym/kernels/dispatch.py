"""Choose and try the implementation of a step by name and device: see ``docs/layers.md``.

The backends are named in texts, and imported when they are chosen.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache, partialmethod
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from resgym.game.episode import Backend
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, check_choice
from resgym.game.stepping import Ask, EpisodeState, Games, StepPlan
from resgym.trust import packaged

_CLASSES = {
    "torch": "resgym.game.episode:Backend",
    "numba": "resgym.kernels.cpu.backend:NumbaBackend",
    "triton": "resgym.cuda.backend:TritonBackend",
}

BACKENDS = ("auto", *_CLASSES)

# Of a trial: games, steps, and bits by which coordinates become larger half-way.
GAMES, STEPS, WIDER = 40, 12, 40

PATIENCE = 3.0
"""Seconds that a process spends in the reference before it compiles, which takes about twice."""


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
                if problem:
                    message = f"backend 'auto' is 'torch': {self.name!r} does not work on {device}"
                    warnings.warn(f"{message}: {problem}", RuntimeWarning, stacklevel=3)
                self._players[kind] = Backend() if problem else self._fast
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
    ask = _lowest_answer if plan.opponent is None else ask
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


def _lowest_answer(
    games: EpisodeState, coords: Tensor | None, rng: RowRandom, rows: Tensor | None
) -> Tensor:
    """Answer with the lowest axis, or the first set."""
    chosen = games.counts * 0 if coords is None else coords.to(torch.uint8).argmax(1)
    return chosen if rows is None else chosen[rows]


@cache
def _load(name: str) -> Any:
    """Return a backend, or the reason why there is none."""
    try:
        return packaged(_CLASSES[name])()
    except Exception as error:  # not there, or it refuses to work, say with this NumPy
        return f"{type(error).__name__}: {error}".splitlines()[0]


class Patient(Backend):
    """The compiled backend if its machine code is on disk, otherwise the reference.

    After `PATIENCE` seconds in the reference it compiles; the results are the same bit for bit. So
    short programs never wait for a compiler.
    """

    name = "numba"

    def __init__(self, compiled: Any, ready: set[str]) -> None:
        self._compiled = compiled
        self._ready = ready
        self._seconds_left = PATIENCE

    def _play(self, operation: str, *arguments: Any) -> Any:
        if self._seconds_left <= 0 or operation in self._ready:
            return getattr(self._compiled, operation)(*arguments)
        begin = perf_counter()
        result = getattr(_load("torch"), operation)(*arguments)
        self._seconds_left -= perf_counter() - begin
        return result

    step: Any = partialmethod(_play, "step")
    start: Any = partialmethod(_play, "start")
    move: Any = partialmethod(_play, "move")


@cache
def _automatic(name: str) -> Any:
    """Return a backend that is there, as `auto` takes it."""
    found = _load(name)
    if name == "triton":
        return Checked(found)
    if name == "numba" and (ready := found.operations_on_disk()) != {*found.compiled}:
        return Patient(found, ready)
    return found


@cache
def _warn(message: str) -> None:
    """Warn once per process about each reason why 'auto' is not the fastest backend."""
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def resolve_backend(name: str, device: torch.device, spec: GameSpec) -> Backend:
    """Return the backend of a name.

    ``auto`` takes the fastest backend for the device, as `Patient` on the CPU until it is compiled,
    as `Checked` on a GPU. If that one cannot play the game here, it warns once, and takes the
    reference.

    Raises:
        ValueError: unknown name, or a named backend that is not installed or does not fit the
            device or the game.
    """
    check_choice("backend", name, BACKENDS)
    fastest = {"cpu": "numba", "cuda": "triton"}.get(device.type, "torch")
    wanted = fastest if name == "auto" else name
    problem = _problem(wanted, device, spec)
    if problem:
        if name != "auto":
            raise ValueError(f"backend {name!r} {problem}")
        _warn(f"backend 'auto' is 'torch': {wanted!r} {problem}")
        wanted = "torch"
    backend: Backend = (_automatic if name == "auto" else _load)(wanted)
    return backend


def _problem(name: str, device: torch.device, spec: GameSpec) -> str | None:
    """Why a backend cannot play a game on a device, or None."""
    found = _load(name)
    if isinstance(found, str):
        needed, extra = ("numba", "fast") if name == "numba" else ("Triton", "gpu")
        return f"needs {needed} (pip install 'resgym[{extra}]'): {found}"
    if found.device_types and device.type not in found.device_types:
        return f"runs on {found.device_types[0]}, got device {str(device)!r}"
    if spec.max_num_points > found.max_num_points:
        return f"plays max_num_points up to {found.max_num_points}, got {spec.max_num_points}"
    return None
