"""What tests of the environments run over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from resgym.game.spec import GameSpec
from tests.resgym.backends import NAMES, get
from tests.resgym.envs import helpers


@pytest.fixture(params=NAMES)
def on_every_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Environments made by `helpers.make_vec` play on each backend in turn."""
    get(request.param, GameSpec())  # skips where the machine has none
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(helpers.DEFAULTS, "backend", request.param)
        yield request.param
