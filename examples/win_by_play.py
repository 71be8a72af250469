"""Trains values by play alone, with minimax targets from all answers of the agent.

A run this short teaches an agent; `configs/play/quick.yml` trains a host that wins.
"""

from typing import Any

import gymnasium

import resgym
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.minimax import MinimaxDQN, ValueAgent, WorstCasePositions


def main(timesteps: int = 6_400) -> float:
    sizes: dict[str, Any] = {"max_num_points": 4, "max_value": 3}
    env = gymnasium.make_vec(
        "resgym/HironakaHost-v0",
        num_envs=64,
        opponent="random",
        scale_observation=False,  # positions must be exact
        reposition=True,
        **sizes,
    )
    model = MinimaxDQN(
        "HostPolicy",
        TensorVecEnv(env),
        seed=0,
        gamma=0.98,
        batch_size=64,
        learning_starts=640,
        buffer_size=10_000,
        tau=0.05,
        target_update_interval=1,
        policy_kwargs={"extractor": "point_set", "sort_axes": [0, 1, 2], "net_arch": [64]},
    )
    model.learn(timesteps, callback=WorstCasePositions({"updates": 20}, starts=10))
    agent = ValueAgent(model.q_net, "learned")  # the same values play the agent's seat
    print(result := resgym.rho("zeillinger", agent, games=500, **sizes))
    return result.rho


if __name__ == "__main__":
    main()
