"""Mean gradients that are all but zero; steps without what PyTorch does around them."""

from __future__ import annotations

import pytest
import torch

from sb3_ext.networks import optimizers
from sb3_ext.networks.optimizers import OPTIMIZERS, forget_tiny_moments, step_plainly

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


def run(forget: bool, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and their mean gradients: one entry has a gradient always, one only at first."""
    weights = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
    optimizer = torch.optim.Adam([weights], lr=1e-3)
    for step in range(1, steps + 1):
        weights.grad = torch.tensor([0.5, 1e-3 if step < 10 else 0.0])
        optimizer.step()
        if forget and step % 100 == 0:
            forget_tiny_moments(optimizer)
    return weights.detach(), optimizer.state[weights]["exp_avg"]


def test_no_mean_becomes_subnormal_and_no_weight_changes() -> None:
    for steps in (700, 790, 800, 850, 900):
        weights, mean = run(forget=True, steps=steps)
        plain, plain_mean = run(forget=False, steps=steps)
        assert torch.equal(weights, plain)
        assert mean[0] == plain_mean[0]
        assert mean[1] == 0 or mean[1] >= SMALLEST_NORMAL
    assert 0 < plain_mean[1] < SMALLEST_NORMAL  # what would be there otherwise


def test_no_square_becomes_subnormal_and_no_weight_changes() -> None:
    """Squares shrink more slowly than means: here they begin where 70,000 updates bring them."""
    found = []
    for forget in (True, False):
        weights = torch.nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))
        optimizer = torch.optim.Adam([weights], lr=1e-3)
        weights.grad = torch.tensor([0.5, 0.0, 0.0])
        optimizer.step()
        state = optimizer.state[weights]
        state["exp_avg_sq"][1:] = 1.5e-37
        for step in range(1, 3001):
            # The third unit comes back to life in the end.
            weights.grad = torch.tensor([0.5, 0.0, 1e-3 if step > 2990 else 0.0])
            optimizer.step()
            if forget and step % 100 == 0:
                forget_tiny_moments(optimizer)
            smallest = float(state["exp_avg_sq"][1])
            assert not forget or smallest == 0 or smallest >= SMALLEST_NORMAL
        found.append(weights.detach().clone())
        if not forget:
            assert 0 < smallest < SMALLEST_NORMAL  # what would be there otherwise
    assert torch.equal(*found)


@pytest.mark.parametrize("name", ["adamw", "rmsprop", "sgd"])
def test_every_optimizer_may_be_asked(name: str) -> None:
    weights = torch.nn.Parameter(torch.ones(2))
    optimizer = OPTIMIZERS.resolve(name)([weights], lr=0.1)
    forget_tiny_moments(optimizer)
    weights.grad = torch.ones(2)
    optimizer.step()
    forget_tiny_moments(optimizer)
    assert bool((weights < 1).all())


def two_of(name: str, **arguments: object) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """Two optimisers of equal weights and gradients."""
    made = []
    for _ in range(2):
        source = torch.Generator().manual_seed(0)
        weights = [
            torch.nn.Parameter(torch.randn(shape, generator=source)) for shape in ((5, 3), (3,))
        ]
        made.append(OPTIMIZERS.resolve(name)(weights, **arguments))  # type: ignore[arg-type]
    return made[0], made[1]


def weights_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def run_both(
    plain: torch.optim.Optimizer, ours: torch.optim.Optimizer, steps: int = 20
) -> list[bool]:
    """Makes equal steps with both; returns which of ours were one operation."""
    found = []
    for step in range(steps):
        for optimizer in (plain, ours):
            source = torch.Generator().manual_seed(step)
            for each in weights_of(optimizer):
                each.grad = torch.randn(each.shape, generator=source)
        found.append(optimizers._is_one_operation(ours))
        plain.step()
        step_plainly(ours)
    for first, second in zip(weights_of(plain), weights_of(ours), strict=True):
        assert torch.equal(first, second)
        for name, value in plain.state[first].items():
            assert torch.equal(value, ours.state[second][name]), name
    return found


@pytest.mark.parametrize("name", ["adam", "adamw"])
@pytest.mark.parametrize("more", [{}, {"weight_decay": 0.1}, {"maximize": True, "eps": 1e-3}])
def test_a_plain_step_has_the_bits_of_a_step(name: str, more: dict[str, object]) -> None:
    found = run_both(*two_of(name, lr=0.01, betas=(0.8, 0.99), fused=True, **more))
    assert found == [False] + [True] * 19


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("adam", {"fused": False}),
        ("adam", {"fused": True, "amsgrad": True}),
        ("adam", {"fused": True, "lr": torch.tensor(0.01)}),
        ("rmsprop", {}),
        ("sgd", {"momentum": 0.9}),
    ],
)
def test_every_other_step_is_the_optimizers_own(name: str, arguments: dict[str, object]) -> None:
    assert not any(run_both(*two_of(name, **{"lr": 0.01, **arguments})))


def test_hooks_are_called_and_replaced_steps_too() -> None:
    plain, ours = two_of("adam", lr=0.01, fused=True)
    calls: list[str] = []

    def falling(optimizer: torch.optim.Optimizer, *_: object) -> None:
        optimizer.param_groups[0]["lr"] *= 0.5

    for optimizer in (plain, ours):
        optimizer.register_step_pre_hook(falling)
    ours.register_step_post_hook(lambda *_: calls.append("after"))
    assert any(run_both(plain, ours, 8))
    assert plain.param_groups[0]["lr"] == ours.param_groups[0]["lr"] == 0.01 / 2**8
    assert calls == ["after"] * 8
    ours.step = lambda: calls.append("replaced")  # type: ignore[assignment]
    step_plainly(ours)
    assert calls[-1] == "replaced"


def test_a_weight_without_a_gradient_is_left_alone() -> None:
    _, ours = two_of("adam", lr=0.01, fused=True)
    for each in weights_of(ours):
        each.grad = torch.ones_like(each)
    step_plainly(ours)
    first, second = weights_of(ours)
    kept = first.detach().clone()
    first.grad = None
    before = second.detach().clone()
    step_plainly(ours)
    assert torch.equal(first, kept)
    assert not torch.equal(second, before)
