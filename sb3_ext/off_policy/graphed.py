"""An update captured as a CUDA graph, so that a device gets it as one piece of work.

An update of small networks is some hundred kernels of a few microseconds; starting them one after
the other takes longer than running them. A graph starts all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

__all__ = [
    "CudaGraph",
    "Graph",
    "GraphedUpdate",
    "addresses",
    "graph_fault",
    "prepare_optimizer",
]

_WARMUPS = 3
"""Updates made without a graph before one is captured, as PyTorch asks for."""


class Graph(Protocol):
    """Something that records what a function does on the device and does it again."""

    def warm_up(self, function: Callable[[], Tensor]) -> Tensor:
        """Call the function where it will be recorded; returns what it gives."""

    def record(self, function: Callable[[], Tensor]) -> Tensor:
        """Note what the function would do, without doing it; returns where its result will be."""

    def replay(self) -> None:
        """Do it, on the same memory."""


class CudaGraph:
    """`Graph` by `torch.cuda.CUDAGraph`.

    Args:
        device: Where the update runs.
    """

    def __init__(self, device: torch.device) -> None:
        self._graph = torch.cuda.CUDAGraph()
        self._stream = torch.cuda.Stream(device)

    def warm_up(self, function: Callable[[], Tensor]) -> Tensor:
        """See `Graph`. On another stream than the default one, which cannot be captured."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            result = function()
        current.wait_stream(self._stream)
        return result

    def record(self, function: Callable[[], Tensor]) -> Tensor:
        """See `Graph`."""
        with torch.cuda.graph(self._graph, stream=self._stream):
            return function()

    def replay(self) -> None:
        """See `Graph`."""
        self._graph.replay()


class GraphedUpdate:
    """Calls an update a few times as it is, then captures it, then replays it.

    The graph reads and writes fixed memory. Each batch is copied into the batch that was captured;
    whatever else it depends on is named by `key`, and with another key, or other shapes, it is
    captured anew. So a loaded optimiser or another discount is never ignored.

    Args:
        update: Makes an update on a batch and returns what it measured: no look at a value, no
            shape that depends on one.
        key: Everything but the batch that a captured update has fixed: numbers, and the addresses
            of all tensors that it reads or writes.
        make_graph: A new `Graph`.

    Attributes:
        num_captures: How often it was captured.
    """

    def __init__(
        self,
        update: Callable[[Any], Tensor],
        key: Callable[[], Hashable],
        make_graph: Callable[[], Graph],
    ) -> None:
        self._update, self._key, self._make_graph = update, key, make_graph
        self._made_for: Hashable = None
        self._graph: Graph | None = None
        self._warmups = 0
        self._inputs: list[Tensor] = []
        self._result: Tensor | None = None
        self.num_captures = 0

    def __call__(self, batch: Any) -> Tensor:
        """Make one update.

        Args:
            batch: A named tuple of tensors, dictionaries of tensors, and None.

        Returns:
            What `update` returns; the next call may overwrite it.

        Raises:
            RuntimeError: The update cannot be captured, because it looks at a value.
        """
        given = _tensors(batch)
        made_for = (tuple((each.shape, each.dtype) for each in given), self._key())
        if made_for != self._made_for:
            self._made_for, self._warmups, self._result = made_for, 0, None
            self._graph = self._make_graph()
        assert self._graph is not None
        if self._result is None:
            if self._warmups < _WARMUPS:
                self._warmups += 1
                return self._graph.warm_up(lambda: self._update(batch))
            self._capture(batch)
        else:
            torch._foreach_copy_(self._inputs, given)
        self._graph.replay()
        assert self._result is not None
        return self._result

    def _capture(self, batch: Any) -> None:
        assert self._graph is not None
        held = _copied(batch)
        try:
            self._result = self._graph.record(lambda: self._update(held))
        except RuntimeError as error:
            raise RuntimeError(
                "cuda_graphs: the update cannot be captured, set cuda_graphs=False"
                f" ({str(error).splitlines()[0]})"
            ) from error
        self._inputs = _tensors(held)
        self.num_captures += 1


def prepare_optimizer(optimizer: Optimizer, device: torch.device, graphed: bool) -> None:
    """Let an optimiser be captured, or take that back.

    Captured, the learning rate is a tensor on the device, to be filled in before each update.

    Args:
        optimizer: Each of its groups is changed.
        device: Where the parameters live.
        graphed: Whether it shall be captured.
    """
    for group in optimizer.param_groups:
        if "capturable" in group:
            group["capturable"] = graphed
        if graphed and not isinstance(group["lr"], Tensor):
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
        elif not graphed and isinstance(group["lr"], Tensor):
            group["lr"] = float(group["lr"])


def graph_fault(device: torch.device, optimizer: Optimizer) -> str | None:
    """Why updates cannot be captured, or None."""
    if device.type != "cuda":
        return f"it needs device='cuda', the model is on {str(device)!r}"
    if any("capturable" not in group for group in optimizer.param_groups):
        return f"{type(optimizer).__name__} cannot be captured, Adam and AdamW can"
    return None


def addresses(*groups: Any) -> tuple[int, ...]:
    """Where tensors are: of lists of tensors, and of the states of optimisers."""
    found: list[int] = []
    for group in groups:
        if isinstance(group, Optimizer):
            group = [
                value
                for state in group.state.values()
                for value in state.values()
                if isinstance(value, Tensor)
            ] + [each["lr"] for each in group.param_groups if isinstance(each["lr"], Tensor)]
        found += [each.data_ptr() for each in group]
    return tuple(found)


def _tensors(tree: Any) -> list[Tensor]:
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, Mapping):
        return [leaf for value in tree.values() for leaf in _tensors(value)]
    if isinstance(tree, tuple):
        return [leaf for value in tree for leaf in _tensors(value)]
    return []


def _copied(tree: Any) -> Any:
    if isinstance(tree, Tensor):
        return tree.clone()
    if isinstance(tree, Mapping):
        return {key: _copied(value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return type(tree)(*(_copied(value) for value in tree))
    return tree
