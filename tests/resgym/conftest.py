"""What tests of the environments and of the backends run over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from resgym.game.spec import GameSpec
from resgym.kernels import Backend
from tests.resgym.backends import NAMES, get
from tests.resgym.envs import helpers


@pytest.fixture(params=NAMES)
def on_every_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Environments made by `helpers.make_vec` play on each backend in turn."""
    get(request.param, GameSpec())  # skips where the machine has none
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(helpers.DEFAULTS, "backend", request.param)
        yield request.param


@pytest.fixture
def only_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test in which a fused backend leaves a step to the reference."""
    reference = Backend.step

    def guarded(self: Backend, *arguments: Any) -> Any:
        assert self.name == "torch", "a step was not fused"
        return reference(self, *arguments)

    monkeypatch.setattr(Backend, "step", guarded)
