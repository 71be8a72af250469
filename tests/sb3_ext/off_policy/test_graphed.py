"""Captured updates, with a recorder in place of the CUDA graph where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from sb3_ext.off_policy.graphed import GraphedUpdate, addresses, graph_fault, prepare_optimizer
from tests.sb3_ext.ddqn.helpers import Recorder


class Batch(NamedTuple):
    x: Any
    y: Tensor
    none: None = None


def batch(number: float, size: int = 3) -> Batch:
    return Batch({"a": torch.full((size,), number)}, torch.ones(size, dtype=torch.int64))


class Adder:
    """An update that adds up what it sees, times a factor that a capture fixes."""

    def __init__(self) -> None:
        self.total, self.factor, self.seen = torch.zeros(()), 1.0, []

    def __call__(self, batch: Batch) -> Tensor:
        self.seen.append(batch.x["a"].data_ptr())
        self.total += self.factor * batch.x["a"].sum()
        return self.total.clone()

    def key(self) -> tuple[Any, ...]:
        return (self.factor, *addresses([self.total]))


def graphed(adder: Adder) -> GraphedUpdate:
    return GraphedUpdate(adder, adder.key, Recorder)


def test_every_batch_counts_once() -> None:
    adder = Adder()
    update = graphed(adder)
    totals = [float(update(batch(number))) for number in range(1, 9)]
    assert totals == [3.0 * sum(range(1, n + 1)) for n in range(1, 9)]
    assert update.num_captures == 1
    # The first ones as they are, the others from the memory that was captured.
    assert len(set(adder.seen[3:])) == 1


def test_the_captured_batch_is_a_copy() -> None:
    adder = Adder()
    update = graphed(adder)
    given = [batch(float(number)) for number in range(1, 7)]
    for each in given:
        update(each)
    assert [float(each.x["a"][0]) for each in given] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("change", ["number", "tensor", "shape"])
def test_what_a_capture_has_fixed_captures_anew(change: str) -> None:
    adder = Adder()
    update = graphed(adder)
    for _ in range(5):
        update(batch(1.0))
    size = 3
    if change == "number":
        adder.factor = 10.0
    elif change == "tensor":
        adder.total = torch.zeros(())
    else:
        size = 4
    before = float(adder.total)
    for _ in range(5):
        update(batch(1.0, size))
    assert update.num_captures == 2
    assert float(adder.total) == before + 5 * size * adder.factor


def test_an_update_that_cannot_be_captured() -> None:
    class Refuses(Recorder):
        def record(self, function: Callable[[], Tensor]) -> Tensor:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    adder = Adder()
    update = GraphedUpdate(adder, adder.key, Refuses)
    for _ in range(3):
        update(batch(1.0))
    with pytest.raises(RuntimeError, match="cuda_graphs: the update cannot be captured") as error:
        update(batch(1.0))
    assert "\n" not in str(error.value)
    assert float(adder.total) == 9.0


def test_an_optimiser_is_prepared_and_taken_back() -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([parameter], lr=0.5, fused=True)
    prepare_optimizer(optimizer, torch.device("cpu"), graphed=True)
    (group,) = optimizer.param_groups
    assert group["capturable"]
    assert isinstance(group["lr"], Tensor)
    prepare_optimizer(optimizer, torch.device("cpu"), graphed=False)
    assert not group["capturable"]
    assert group["lr"] == 0.5
    assert not isinstance(group["lr"], Tensor)


def test_what_cannot_be_captured() -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    adam, sgd = torch.optim.Adam([parameter]), torch.optim.SGD([parameter])
    assert "needs device='cuda'" in str(graph_fault(torch.device("cpu"), adam))
    assert "SGD cannot be captured" in str(graph_fault(torch.device("cuda"), sgd))
    assert graph_fault(torch.device("cuda"), adam) is None


def test_addresses_change_with_the_state_of_an_optimiser() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([parameter])
    parameter.square().sum().backward()
    optimizer.step()
    before = addresses([parameter], optimizer)
    optimizer.step()
    assert addresses([parameter], optimizer) == before
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.state[parameter]["exp_avg"] = optimizer.state[parameter]["exp_avg"].clone()
    assert addresses([parameter], optimizer) != before
