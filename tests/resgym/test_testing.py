"""The public contract checks, tried on environments and players that break one clause each."""

import pytest
from gymnasium.vector import AutoresetMode

from resgym.envs.environments import HironakaVectorEnv
from resgym.testing import ContractError, check_vector_env
from tests.fakes import ToyVectorEnv
from tests.resgym.fakes import BROKEN, Right


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_an_environment_that_keeps_the_contract_passes(mode):
    check_vector_env(lambda n: Right(n, mode), steps=40)
    with pytest.raises(ContractError, match="no episode ended within 1 steps"):
        check_vector_env(lambda n: HironakaVectorEnv(n, autoreset_mode=mode), steps=1)


@pytest.mark.parametrize("what", BROKEN)
def test_every_clause_is_checked(what):
    mode, make, message = BROKEN[what]
    with pytest.raises(ContractError, match=message) as caught:
        check_vector_env(lambda n: make(n, mode), steps=40)
    assert "\n" not in str(caught.value)


def test_clauses_that_tensors_can_break():
    def broken(change):
        """The toy with other results of its steps."""
        step = lambda env, actions: change(ToyVectorEnv.step(env, actions))  # noqa: E731
        return type("Broken", (ToyVectorEnv,), {"step": step})

    buffer = {}

    def live(results):
        observation, *rest = results
        shown = buffer.setdefault(observation.shape, observation.clone())
        return (shown.copy_(observation), *rest)  # the same tensor every time

    def shared(results):
        observation, *rest, info = results
        if "final_obs" in info:
            info["final_obs"] = observation  # not a copy of the last
        return (observation, *rest, info)

    for change, message in ((live, "was overwritten"), (shared, "shares memory")):
        with pytest.raises(ContractError, match=message):
            check_vector_env(broken(change), steps=40)
