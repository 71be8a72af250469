"""What every test shares: one thread of arithmetic, and property tests that repeat themselves."""

import pytest
import torch
from hypothesis import settings

from resgym import trust
from resgym.players import agent_names, host_names

# Each worker has a core of its own; more threads would only wait for each other.
torch.set_num_threads(1)

# No deadline: the time of an example depends on what else the machine does.
settings.register_profile("resgym", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("resgym")


SHIPPED = {"host": host_names(), "agent": agent_names()}


@pytest.fixture
def shipped_players():
    """The names of each seat, before any test has added players."""
    return SHIPPED


@pytest.fixture(autouse=True)
def _modules_of_one_test(monkeypatch):
    """A test's modules are gone with its folder; actors of other tests must not look for them."""
    monkeypatch.setattr(trust, "_modules", {})
