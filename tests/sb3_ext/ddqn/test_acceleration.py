"""Captured updates and compiled networks against the eager update."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from sb3_ext.ddqn import DDQN, arguments, update
from sb3_ext.off_policy import graphed
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from tests.sb3_ext.ddqn.helpers import Recorder, make_model, same, weights

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


class SixNumbers(Recorder):
    more = 0  # errors of single transitions

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.result = torch.full((len(update.MEASURED) + self.more,), torch.nan)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the CPU could capture: the same calls, with a recorder for the graph."""
    for module in (arguments, update):
        monkeypatch.setattr(module, "graph_fault", lambda device, optimizer: None)
    monkeypatch.setattr(update, "CudaGraph", SixNumbers)


def trained(updates: int = 40, **options: Any) -> DDQN:
    model = make_model(target_update_interval=7, gradient_steps=2, **options)
    model.learn(64 + 4 * updates)
    return model


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    "options",
    [
        *({}, {"n_steps": 3}, {"double_q": False}, {"dueling": True}),
        {"replay_buffer_class": PrioritizedReplayBuffer},
    ],
)
def test_a_captured_run_is_the_eager_run(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SixNumbers, "more", 32 if "replay_buffer_class" in options else 0)
    eager, captured = trained(**options), trained(cuda_graphs=True, **options)
    assert captured._graphed is not None
    assert captured._graphed.num_captures == 1
    assert captured._n_updates == eager._n_updates > 20
    # Adam with a learning rate in a tensor rounds in another order.
    for name, value in weights(eager).items():
        torch.testing.assert_close(weights(captured)[name], value, atol=1e-5, rtol=1e-4)
    assert not same(weights(captured), weights(make_model(**options))), "nothing was learnt"


@pytest.mark.usefixtures("recorded")
def test_the_rate_of_a_schedule_reaches_a_captured_update() -> None:
    model = trained(learning_rate=1e-3, cuda_graphs=True)
    (group,) = model.policy.optimizer.param_groups
    assert isinstance(group["lr"], torch.Tensor)
    before, address = weights(model), group["lr"].data_ptr()
    model.lr_schedule = lambda progress: 0.0
    model.train(5, 32)
    assert group["lr"].data_ptr() == address
    assert all(
        torch.equal(value, before[name])
        for name, value in weights(model).items()
        if name.startswith("q_net.")
    ), "the update did not see the new rate"
    assert model._graphed is not None
    assert model._graphed.num_captures == 1


@pytest.mark.usefixtures("recorded")
def test_a_changed_discount_is_not_ignored() -> None:
    model = trained(cuda_graphs=True)
    model.gamma = 0.1
    model.train(6, 32)
    assert model._graphed is not None
    assert model._graphed.num_captures == 2


def test_captured_updates_are_refused_on_a_cpu() -> None:
    with pytest.raises(ValueError, match=r"cuda_graphs: got True, but it needs device='cuda'") as e:
        make_model(cuda_graphs=True)
    assert "\n" not in str(e.value)


@pytest.mark.usefixtures("recorded")
def test_a_captured_model_goes_on_without_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved where there is CUDA, loaded where there is none."""
    model = trained(cuda_graphs=True)
    model.save(tmp_path / "model")
    monkeypatch.undo()
    loaded = DDQN.load(tmp_path / "model", env=model.env, device="cpu")
    assert same(weights(loaded), weights(model))
    before = loaded._n_updates
    with pytest.warns(RuntimeWarning, match="cuda_graphs: not used, it needs device='cuda'"):
        loaded.learn(200, reset_num_timesteps=False)
    assert loaded._n_updates > before
    assert isinstance(loaded.policy.optimizer.param_groups[0]["lr"], float)


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("/nonexistent/compiler",))
    update.compile_fault.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"compile_networks: .*there is none that works") as e:
            make_model(compile_networks=True)
        assert "\n" not in str(e.value)
        model = make_model()
        model.compile_networks = True  # as if it had been loaded
        with pytest.warns(RuntimeWarning, match="compile_networks: not used"):
            model.learn(100)
        assert model._n_updates > 0
    finally:
        update.compile_fault.cache_clear()


@pytest.mark.long
def test_compiled_networks_learn_the_same_and_compile_once() -> None:
    """No compilation after the first updates, counted by PyTorch."""
    if update.compile_fault("cpu") is not None:
        pytest.skip("no compiler")
    from torch._dynamo.utils import counters

    eager = trained()
    torch._dynamo.reset()
    counters.clear()
    model = make_model(target_update_interval=7, gradient_steps=2, compile_networks=True)
    model.learn(80)
    after_warm_up = dict(counters["stats"])
    assert after_warm_up["unique_graphs"] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(64 + 4 * 40 - model.num_timesteps, reset_num_timesteps=False)
    assert counters["stats"]["unique_graphs"] == after_warm_up["unique_graphs"]
    assert model._n_updates == eager._n_updates
    for name, value in weights(eager).items():
        torch.testing.assert_close(weights(model)[name], value, atol=1e-5, rtol=1e-4)


@CUDA
def test_a_captured_run_is_the_eager_run_on_cuda() -> None:
    eager, captured = trained(device="cuda"), trained(device="cuda", cuda_graphs=True)
    assert captured._graphed is not None
    assert captured._graphed.num_captures == 1
    for name, value in weights(eager).items():
        torch.testing.assert_close(weights(captured)[name], value, atol=1e-4, rtol=1e-3)


@CUDA
@pytest.mark.parametrize("cuda_graphs", [False, True])
def test_an_update_never_waits_for_the_device(cuda_graphs: bool) -> None:
    model = trained(device="cuda", cuda_graphs=cuda_graphs)
    torch.cuda.set_sync_debug_mode("error")
    try:
        model.train(5, 32)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_the_fused_step_is_the_default() -> None:
    assert make_model().policy.optimizer.param_groups[0]["fused"] is True
    assert graphed.graph_fault(torch.device("cuda"), make_model().policy.optimizer) is None
