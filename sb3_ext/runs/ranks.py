"""Processes that learn one network together: the ranks of torchrun, by `torch.distributed`.

Each plays games of its own into a replay buffer of its own. Every update takes the mean of their
gradients, so that weights and optimisers stay the same everywhere. See docs/cluster.md.
"""

from __future__ import annotations

import hashlib
import os
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

TIMEOUT = timedelta(minutes=10)
"""How long a rank waits for the others, of which one may be evaluating or writing."""

CONNECT_SECONDS = 10.0
"""How long torchrun may take to answer: it is there before its ranks are."""

TOLD = (AssertionError, FloatingPointError, OSError, TypeError, ValueError)
"""Errors that ranks tell each other. Any other ends its rank, which the others notice."""


class Ranks:
    """The processes that learn together, seen by one of them; one alone is the first of one.

    All of them have to call the same methods in the same order.

    Args:
        rank: Number of this process, 0 to size - 1. The first one writes what a run leaves.
        size: How many there are.
        launcher: Process that started this one and that it must not survive, None: no such.
    """

    def __init__(self, rank: int = 0, size: int = 1, launcher: int | None = None) -> None:
        self.rank, self.size, self._launcher = rank, size, launcher
        self._setting_up, self._refused = True, False
        self._silence = ExitStack()

    @property
    def deserted(self) -> bool:
        """Whether the process that started this one has ended."""
        return self._launcher is not None and os.getppid() != self._launcher

    def seed(self, seed: int | None) -> int | None:
        """A seed for this rank's own random numbers; the first one's is the seed itself."""
        if self.rank == 0 or seed is None:
            return seed
        return int(np.random.SeedSequence([seed, self.rank]).generate_state(1)[0])

    def share(self, name: str, number: int) -> int:
        """What is left of a number for each rank; ValueError if they cannot have equal shares."""
        if number % self.size:
            raise ValueError(
                f"{name}: must be a multiple of the number of ranks, {self.size}, got {number}"
            )
        return number // self.size

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by the mean of those that the ranks have."""
        if self.size == 1:
            return
        gradients = [each.grad for each in parameters if each.grad is not None]
        together = torch.cat([gradient.flatten() for gradient in gradients])
        self._call(distributed.all_reduce, together)
        parts = together.div_(self.size).split([gradient.numel() for gradient in gradients])
        means = [part.view_as(each) for part, each in zip(parts, gradients, strict=True)]
        torch._foreach_copy_(gradients, means)

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors with those of the first rank."""
        for tensor in tensors if self.size > 1 else ():
            self._call(distributed.broadcast, tensor, 0)

    def any(self, wish: bool) -> bool:
        """Whether any rank wishes it."""
        if self.size == 1:
            return wish
        wishes = torch.tensor(float(wish))
        self._call(distributed.all_reduce, wishes)
        return bool(wishes)

    def exchange(self, value: Any = None, error: Exception | None = None) -> list[Any]:
        """What every rank gave, in order; an error that one of them gave is raised in all."""
        if error is not None and self.size == 1:
            raise error
        kind = next((n for n, kind in enumerate(TOLD) if isinstance(error, kind)), None)
        answers: list[Any] = [(value, None, "")]
        if self.size > 1:
            answers *= self.size
            text = "" if error is None else str(error)
            self._call(distributed.all_gather_object, answers, (value, kind, text))
        for rank, (_, kind, text) in enumerate(answers):
            if kind is not None:
                self._refused = True
                raise error or TOLD[kind](f"rank {rank}: {text}")
        return [value for value, *_ in answers]

    @contextmanager
    def together(self) -> Iterator[None]:
        """All ranks go on after the block, or none of them: an error in one is raised in all."""
        try:
            yield
        except TOLD as error:
            self.exchange(error=error)
            raise
        self.exchange()

    def check_same(self, tensors: Iterable[Tensor]) -> None:
        """Raises a FloatingPointError if tensors differ from those of the first rank by a bit."""
        if self.size == 1:
            return
        digest = hashlib.sha256()
        for tensor in tensors:
            digest.update(tensor.detach().cpu().numpy().tobytes())
        first, *others = self.exchange(digest.hexdigest())
        for rank, other in enumerate(others, 1):
            if other != first:
                raise FloatingPointError(
                    f"the weights of rank {rank} are no longer those of rank 0: all ranks need"
                    " processors of one kind, and updates that are the same"
                )

    def ready(self) -> None:
        """Ends the time in which an error of one rank is an error of all, told by the first."""
        self.exchange()
        self._setting_up = False
        self._silence.close()

    def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            function(*arguments)
        except RuntimeError as error:
            raise ConnectionError(
                f"rank {self.rank}: another rank has ended, or did not answer for"
                f" {TIMEOUT.total_seconds():g} s"
            ) from error

    @contextmanager
    def _session(self) -> Iterator[Ranks]:
        """The first rank alone prints and warns; until all are `ready` it tells the errors too."""
        with open(os.devnull, "w") as nowhere, ExitStack() as stack, self._silence:
            if self.rank > 0:
                stack.enter_context(redirect_stdout(nowhere))
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                self._silence.enter_context(redirect_stderr(nowhere))
            try:
                yield self
            except TOLD as error:
                if self._setting_up and not self._refused:
                    with suppress(*TOLD):
                        self.exchange(error=error)
                if self._setting_up and self.rank > 0:
                    raise SystemExit(2) from None
                raise


ALONE = Ranks()
"""Who learns alone: nothing is averaged, and nobody is waited for."""


def ranks_of(model: Any) -> Ranks:
    """Those that a model of any algorithm learns with."""
    return getattr(model, "ranks", ALONE)


@contextmanager
def torchrun() -> Iterator[Ranks]:
    """The ranks that torchrun has started, connected while the block lasts; without it `ALONE`.

    Until `Ranks.ready`, which `learn` calls when training starts, an error of one rank is raised in
    the first one, and the others end with code 2 without a word.

    Raises:
        ValueError: The variables of the environment that torchrun sets are incomplete or wrong, or
            the others cannot be reached.
    """
    size = _number("WORLD_SIZE", 1, 1)
    if size == 1:
        yield ALONE
        return
    rank = _number("RANK", 0, None, size - 1)
    for name in ("LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise ValueError(f"{name}: is not set, but WORLD_SIZE is {size}; start with torchrun")
    launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            # PyTorch would wait for a torchrun that has died as long as for a rank that is late.
            place = (os.environ["MASTER_ADDR"], _number("MASTER_PORT", 1, None, 2**16 - 1))
            socket.create_connection(place, CONNECT_SECONDS).close()
        distributed.init_process_group(backend, timeout=TIMEOUT)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"rank {rank} of {size}: cannot join the others: {error}") from error
    with Ranks(rank, size, launcher)._session() as ranks:
        yield ranks
        with suppress(*TOLD, RuntimeError):  # none lets go of connections that another still uses
            distributed.barrier()
    distributed.destroy_process_group()


def local_device(device: str) -> str:
    """The device of this rank: of several GPUs of a machine each rank takes its own.

    Raises:
        ValueError: One GPU is named for all, or there are fewer than ranks on this machine.
    """
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return device
    if device not in ("auto", "cuda"):
        raise ValueError(f"device: must be auto, cpu or cuda with several ranks, got {device}")
    number, there = _number("LOCAL_RANK", 0, None), torch.cuda.device_count()
    if number >= there:
        raise ValueError(f"device: local rank {number} has no GPU, there are {there}")
    torch.cuda.set_device(number)
    return f"cuda:{number}"


def _number(name: str, low: int, default: int | None, high: int = 2**20) -> int:
    """A whole number from the environment, `low` to `high`; ValueError if it is another thing."""
    text = os.environ.get(name, "") or str(default)
    if text.isdecimal() and low <= int(text) <= high:
        return int(text)
    raise ValueError(
        f"{name}: must be a whole number from {low} to {high}, as torchrun sets it, got {text!r}"
    )
