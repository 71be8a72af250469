"""Libraries that are no requirement of ours, on the environments; skipped where they are not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.resgym.envs.helpers import AGENT, HOST, IDS, SHORT, make_vec

FLAT = ("resgym/HironakaHostFlat-v0", "resgym/HironakaAgentFlat-v0")


@pytest.mark.parametrize("mode", ["SAME_STEP", "DISABLED"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_torchrl_finds_the_same_entries_whatever_its_first_game_was(env_id, mode):
    pytest.importorskip("torchrl", reason="needs TorchRL, which is no requirement")
    from torchrl.envs import GymWrapper
    from torchrl.envs.utils import check_env_specs

    found = []
    for seed in range(4):
        keywords: dict[str, Any] = {**SHORT, "invalid_action": "noop", "autoreset_mode": mode}
        keywords |= {"output": "numpy", "full_info": True, "episode_statistics": False}
        env = GymWrapper(make_vec(env_id, 3, **keywords))
        env.set_seed(seed)
        if mode == "DISABLED":  # else it has asked already
            env = env.auto_register_info_dict()
        played = env.rollout(25, break_when_any_done=False)
        check_env_specs(env)
        assert played["next", "done"].any()
        found.append(sorted(played["next"].keys()))
    assert found == [found[0]] * 4
    assert {"action_mask", "overflow"} <= set(found[0])


@pytest.mark.parametrize("env_id", IDS)
def test_torchrl_registers_the_info_of_a_single_environment(env_id):
    pytest.importorskip("torchrl", reason="needs TorchRL, which is no requirement")
    from torchrl.envs import GymEnv
    from torchrl.envs.utils import check_env_specs

    env = GymEnv(env_id, categorical_action_encoding=True, invalid_action="noop")
    env.auto_register_info_dict()
    check_env_specs(env)
    assert {"action_mask", "overflow"} <= set(env.rollout(3).keys())
