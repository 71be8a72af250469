"""What tests of the environments and of the backends run over."""

import pytest

from resgym.game.episode import Backend
from resgym.game.spec import GameSpec
from tests.resgym.backends import NAMES, get
from tests.resgym.envs import helpers


@pytest.fixture(params=NAMES)
def on_every_backend(request):
    """Environments made by `helpers.make_vec` play on each backend in turn."""
    get(request.param, GameSpec())  # skips where the machine has none
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(helpers.DEFAULTS, "backend", request.param)
        yield request.param


@pytest.fixture
def only_fused(monkeypatch):
    """Fails a test in which a fused backend leaves a step to the reference."""
    reference = Backend.step

    def guarded(self, *arguments):
        assert self.name == "torch", "a step was not fused"
        return reference(self, *arguments)

    monkeypatch.setattr(Backend, "step", guarded)
