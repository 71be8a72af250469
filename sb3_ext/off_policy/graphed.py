"""An update captured as a CUDA graph, so that a device gets it as one piece of work.

An update of small networks is some hundred kernels of a few microseconds; starting them one after
the other takes longer than running them. A graph starts all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves, tree_map_only

_WARMUPS = 3
"""Updates made without a graph before one is captured, as PyTorch asks for."""


class CudaGraph:
    """Records what a function does on a CUDA device, and does it again on the same memory."""

    def __init__(self, device: torch.device) -> None:
        self._graph = torch.cuda.CUDAGraph()
        self._stream = torch.cuda.Stream(device)

    def warm_up(self, function: Callable[[], Tensor]) -> Tensor:
        """Call the function on another stream than the default one, which cannot be captured."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            result = function()
        current.wait_stream(self._stream)
        return result

    def record(self, function: Callable[[], Tensor]) -> Tensor:
        """Note what the function would do; returns where its result will be."""
        with torch.cuda.graph(self._graph, stream=self._stream):
            return function()

    def replay(self) -> None:
        """Do it."""
        self._graph.replay()


class GraphedUpdate:
    """Calls an update a few times as it is, then captures it, then replays it.

    Each batch is copied into the batch that was captured. With another key, or other shapes, the
    update is captured anew, so a loaded optimiser or another discount is never ignored.

    Args:
        update: Makes an update on a batch and returns what it measured, looking at no value.
        key: Everything but the batch that a captured update has fixed: numbers, and the addresses
            of all tensors that it reads or writes.
        make_graph: A new `CudaGraph`, or what has its methods.

    Attributes:
        num_captures: How often it was captured.
    """

    def __init__(
        self,
        update: Callable[[Any], Tensor],
        key: Callable[[], Hashable],
        make_graph: Callable[[], Any],
    ) -> None:
        self._update, self._key, self._make_graph = update, key, make_graph
        self._made_for: Any = None
        self._graph: Any = None
        self._warmups = 0
        self._inputs: list[Tensor] = []
        self._result: Any = None
        self.num_captures = 0

    def __call__(self, batch: Any) -> Tensor:
        """Make one update on a named tuple of tensors, dictionaries of tensors, and None.

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
        if self._result is None:
            if self._warmups < _WARMUPS:
                self._warmups += 1
                return self._graph.warm_up(lambda: self._update(batch))
            self._result = self._capture(batch)
        else:
            torch._foreach_copy_(self._inputs, given)
        self._graph.replay()
        return self._result  # type: ignore[no-any-return]

    def _capture(self, batch: Any) -> Tensor:
        held = tree_map_only(Tensor, Tensor.clone, batch)
        try:
            result: Tensor = self._graph.record(lambda: self._update(held))
        except RuntimeError as error:
            raise RuntimeError(
                "cuda_graphs: the update cannot be captured, set cuda_graphs=False"
                f" ({str(error).splitlines()[0]})"
            ) from error
        self._inputs = _tensors(held)
        self.num_captures += 1
        return result


def prepare_optimizer(optimizer: Optimizer, device: torch.device, graphed: bool) -> None:
    """Let an optimiser be captured, or take that back.

    Captured, the learning rate is a tensor on the device, to be filled in before each update.
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


def addresses(tensors: Iterable[Tensor], *optimizers: Optimizer) -> tuple[int, ...]:
    """Where tensors are, those that optimisers hold included."""
    held: list[Any] = [*tensors]
    for optimizer in optimizers:
        held += [value for state in optimizer.state.values() for value in state.values()]
        held += [group["lr"] for group in optimizer.param_groups]
    return tuple(each.data_ptr() for each in held if isinstance(each, Tensor))


def _tensors(batch: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(batch) if isinstance(leaf, Tensor)]
