"""The public contract checks, tried on environments and players that break one clause each."""

import pytest
from gymnasium.vector import AutoresetMode

from resgym.envs import HironakaVectorEnv
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
    class Live(ToyVectorEnv):
        """Returns the same tensor every time, written to by each step."""

        def step(self, actions):
            observation, *rest = super().step(actions)
            if not hasattr(self, "buffer"):
                self.buffer = observation.clone()
            self.buffer.copy_(observation)
            return (self.buffer, *rest)

    with pytest.raises(ContractError, match="was overwritten"):
        check_vector_env(Live, steps=40)

    class Shared(ToyVectorEnv):
        """The final observation is the next one, not a copy of the last."""

        def step(self, actions):
            observation, *rest, info = super().step(actions)
            if "final_obs" in info:
                info["final_obs"] = observation
            return (observation, *rest, info)

    with pytest.raises(ContractError, match="shares memory"):
        check_vector_env(Shared, steps=40)
