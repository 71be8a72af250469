"""Processes that train one network together: the ranks of torchrun, by `torch.distributed`.

Each rank plays its own games into its own replay buffer. Every update uses the mean of all
gradients, so weights and optimisers stay equal. See docs/cluster.md.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from sb3_ext.config.checks import one_line

TIMEOUT = timedelta(minutes=10)
"""How long a rank waits for the others; one may be evaluating or writing."""


class Ranks:
    """The processes that learn together, seen by one of them; one alone is the first of one.

    All of them have to call the same methods in the same order.

    Args:
        rank: Number of this process, 0 to size - 1. The first one writes what a run leaves.
        size: How many there are.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

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
        distributed.all_reduce(together)
        parts = together.div_(self.size).split([gradient.numel() for gradient in gradients])
        means = [part.view_as(each) for part, each in zip(parts, gradients, strict=True)]
        torch._foreach_copy_(gradients, means)

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors with those of the first rank."""
        for tensor in tensors if self.size > 1 else ():
            distributed.broadcast(tensor, 0)

    def any(self, wish: bool) -> bool:
        """Whether any rank wishes it."""
        if self.size == 1:
            return wish
        wishes = torch.tensor(float(wish))
        distributed.all_reduce(wishes)
        return bool(wishes)

    def exchange(self, value: Any = None) -> list[Any]:
        """What every rank gave, in order."""
        values = [value] * self.size
        if self.size > 1:
            distributed.all_gather_object(values, value)
        return values

    @contextmanager
    def together(self) -> Iterator[None]:
        """All ranks continue after the block, or none: what one cannot write is an error in all."""
        failed: OSError | None = None
        try:
            yield
        except OSError as error:
            failed = error
        for rank, text in enumerate(self.exchange(failed and one_line(failed))):
            if text is not None:
                raise failed or OSError(f"rank {rank}: {text}")

    def check_same(self, tensors: Iterable[Tensor]) -> None:
        """Raises a FloatingPointError if tensors differ from those of the first rank by a bit."""
        if self.size == 1:
            return
        digest = hashlib.sha256()
        for tensor in tensors:
            digest.update(tensor.detach().cpu().numpy().tobytes())
        if len({*self.exchange(digest.hexdigest())}) > 1:
            raise FloatingPointError(
                "the ranks no longer have the same weights: all of them need processors of one "
                "kind, and updates that are the same"
            )


ALONE = Ranks()
"""One process alone: it averages nothing and waits for no other."""


def ranks_of(model: Any) -> Ranks:
    """Return the ranks of a model of any algorithm."""
    return getattr(model, "ranks", ALONE)


@contextmanager
def torchrun() -> Iterator[Ranks]:
    """The ranks that torchrun has started, connected while the block lasts; without it `ALONE`.

    The first one alone prints and warns.

    Raises:
        ValueError: The variables of the environment that torchrun sets are incomplete or wrong, or
            the others cannot be reached.
        ConnectionError: Another rank has ended.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield ALONE
        return
    try:
        ranks = Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        distributed.init_process_group(backend, timeout=TIMEOUT)
    except KeyError as error:
        raise ValueError(f"{error} is not set, but WORLD_SIZE is; start with torchrun") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"cannot join the other ranks: {one_line(error)}") from error
    try:
        with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
            if ranks.rank == 0:
                yield ranks
            else:
                warnings.simplefilter("ignore")
                with redirect_stdout(nowhere):
                    yield ranks
    except RuntimeError as error:  # so says torch.distributed
        raise ConnectionError(
            f"rank {ranks.rank}: another rank has ended: {one_line(error)}"
        ) from error
    with suppress(RuntimeError):  # none lets go of connections that another still uses
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
    number, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if number >= there:
        raise ValueError(f"device: local rank {number} has no GPU, there are {there}")
    torch.cuda.set_device(number)
    return f"cuda:{number}"
