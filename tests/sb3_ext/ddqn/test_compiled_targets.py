"""The compiled functions of `targets` against the operations beside them, bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sb3_ext.ddqn import targets
from sb3_ext.networks import compiled

pytest.importorskip("numba")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan, 1e30, 1e-40]


def both(call: Callable[[], Any]) -> tuple[Any, Any]:
    """What a call gives compiled, and by operations; fails if it was not compiled."""
    used = []

    def seen(name: str) -> Any:
        used.append(compiled.compiled_module(name))
        return used[-1]

    with pytest.MonkeyPatch.context() as local:
        local.setattr(targets, "compiled_module", seen)
        quick = call()
        assert used
        assert None not in used
        local.setattr(targets, "compiled_module", lambda name: None)
        return quick, call()


def bits(x: Tensor) -> list[int]:
    """NaNs count as one."""
    x = torch.where(x.isnan(), math.nan, x) if x.is_floating_point() else x
    return x.flatten().view(torch.int32 if x.dtype == torch.float32 else x.dtype).tolist()


def numbers(source: np.random.Generator, *shape: int, special: bool) -> Tensor:
    x = source.normal(size=shape) * 2.0
    if special:
        x = np.where(source.random(shape) < 0.2, source.choice(SPECIAL, shape), x)
    # Few values in one row, so that there are ties.
    x = np.where(source.random(shape) < 0.3, np.round(x), x)
    return torch.from_numpy(x.astype(np.float32))


cases = given(
    st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 12), st.booleans(), st.booleans()
)


@cases
@settings(deadline=None, max_examples=60)
def test_choices(seed: int, rows: int, actions: int, masked: bool, special: bool) -> None:
    source = np.random.default_rng(seed)
    values = numbers(source, rows, actions, special=special)
    legal = torch.from_numpy(source.random((rows, actions)) < 0.6) if masked else None
    epsilon = float(source.choice([0.0, 0.1, 0.5, 1.0]))
    quick, plain = both(
        lambda: targets.epsilon_greedy(values, legal, epsilon, torch.Generator().manual_seed(seed))
    )
    assert quick.dtype == torch.int64
    assert quick.tolist() == plain.tolist()


@cases
@settings(deadline=None, max_examples=60)
def test_targets(seed: int, rows: int, actions: int, masked: bool, special: bool) -> None:
    source = np.random.default_rng(seed)
    values = numbers(source, rows, actions, special=special)
    online = numbers(source, rows, actions, special=special) if seed % 2 else None
    legal = torch.from_numpy(source.random((rows, actions)) < 0.5) if masked else None
    rewards = numbers(source, rows, 1, special=False)[:, 0]
    dones = torch.from_numpy((source.random(rows) < 0.3).astype(np.float32))
    discounts: Any = 0.97
    if seed % 3:
        discounts = torch.from_numpy(source.random(rows).astype(np.float32))
    quick, plain = both(
        lambda: targets.bootstrap_target(rewards, dones, discounts, values, legal, online)
    )
    assert bits(quick) == bits(plain)


@cases
@settings(deadline=None, max_examples=60)
def test_huber_and_measures(
    seed: int, rows: int, actions: int, weighted: bool, special: bool
) -> None:
    source = np.random.default_rng(seed)
    values = numbers(source, rows, actions, special=special)
    target = numbers(source, rows, 1, special=special)[:, 0]
    chosen = torch.from_numpy(source.integers(0, actions, (rows, 1)))

    def terms() -> tuple[Tensor, ...]:
        given = values.clone().requires_grad_()
        loss, predicted = targets.huber_terms(given, chosen, target)
        whole = 2.0 * loss + (predicted.square().sum() if weighted else 0.0)
        (gradient,) = torch.autograd.grad(whole, given)
        return (
            loss.detach(),
            predicted.detach(),
            gradient,
            targets.measures(predicted.detach(), target),
        )

    quick, plain = both(terms)
    assert bits(quick[1]) == bits(plain[1])
    for mine, theirs in zip(quick, plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_huber_by_hand() -> None:
    values = torch.tensor([[0.0, 2.0], [5.0, 1.0]], requires_grad=True)
    chosen, target = torch.tensor([[1], [0]]), torch.tensor([1.5, 8.0])
    for loss, predicted in both(lambda: targets.huber_terms(values, chosen, target)):
        assert predicted.tolist() == [2.0, 5.0]
        assert loss.item() == (0.5 * 0.5**2 + (3.0 - 0.5)) / 2
        (gradient,) = torch.autograd.grad(loss, values)
        assert gradient.tolist() == [[0.0, 0.25], [-0.5, 0.0]]
    for measured in both(lambda: targets.measures(torch.tensor([2.0, 5.0]), target)):
        assert measured.tolist() == [3.5, 4.75, 1.75, 3.0]


def test_an_action_that_is_not_there_is_an_error() -> None:
    for wrong in (-1, 3):
        with pytest.raises(IndexError, match=r"actions must be in 0\.\.2"):
            targets.huber_terms(torch.zeros(2, 3), torch.tensor([[0], [wrong]]), torch.zeros(2))


def test_a_coin_of_exactly_epsilon_is_no_exploration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epsilon is rounded to float32 in both, and the comparison is strict."""
    coins = torch.tensor([0.1, math.nextafter(0.1, 0)], dtype=torch.float64).float()
    below = torch.nextafter(torch.tensor(0.1), torch.tensor(0.0))
    noise = torch.stack([torch.stack([coins[0], below]), torch.tensor([0.9, 0.9])], 1)
    noise = torch.cat([noise, torch.tensor([[0.1], [0.1]])], 1)
    monkeypatch.setattr(targets.torch, "rand", lambda *_, **__: noise)
    values = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    quick, plain = both(lambda: targets.epsilon_greedy(values, None, 0.1, torch.Generator()))
    assert quick.tolist() == plain.tolist() == [1, 0]


@pytest.mark.parametrize(
    "given",
    [
        torch.zeros(3, 4, dtype=torch.float64),
        torch.zeros(4, 3).t(),
        torch.zeros(3, 8)[:, ::2],
        torch.zeros(3, 4, device="meta"),
    ],
)
def test_other_tensors_take_the_operations(given: Tensor) -> None:
    assert targets._compiled_for(torch.zeros(3, 4)) is not None
    assert targets._compiled_for(torch.zeros(3, 4), None, given) is None


def test_what_does_not_fit_is_left_to_the_operations() -> None:
    """They broadcast or raise; compiled code would read and write beside its arrays."""
    values, source = torch.zeros(64, 3), torch.Generator()
    only_first = torch.tensor([[True, False, False]])
    for mask in (only_first, only_first[0]):
        assert targets.epsilon_greedy(values, mask, 1.0, source).tolist() == [0] * 64
    with pytest.raises(RuntimeError):
        targets.epsilon_greedy(values, torch.ones(63, 3, dtype=torch.bool), 1.0, source)
    ones = torch.ones(64)
    assert (
        targets.bootstrap_target(ones, ones * 0, ones[:1] * 0.5, values + 2).tolist() == [2.0] * 64
    )
    for wrong in (
        lambda: targets.bootstrap_target(ones[:63], ones, 0.9, values),
        lambda: targets.bootstrap_target(ones, ones, 0.9, values, torch.ones(64, 2).bool()),
        lambda: targets.bootstrap_target(ones, ones, 0.9, values, None, values[:9]),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            wrong()


@pytest.mark.parametrize("error", [ImportError, OSError])
def test_a_numba_that_cannot_be_loaded_is_no_numba(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(name: str) -> Any:
        raise error("no library")

    monkeypatch.setattr(compiled, "import_module", failing)
    assert compiled.compiled_module.__wrapped__("sb3_ext.ddqn.compiled_targets") is None
