"""Trains a host with `model.learn()` and measures it."""

import gymnasium

import resgym
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.ddqn import DDQN


def main(timesteps: int = 200_000) -> float:
    games = gymnasium.make_vec(
        "resgym/HironakaHost-v0", num_envs=128, opponent="choose_first", reward="step"
    )
    model = DDQN(
        "HostPolicy",
        TensorVecEnv(games),
        learning_rate=5e-4,
        exploration_rate="lin_0.5_0.02_1000",
        learning_starts=5_000,
        batch_size=512,
        gamma=0.97,
        gradient_steps=2,
        target_update_interval=200,
        policy_kwargs={"extractor": "point_set", "net_arch": [128]},
        seed=0,
    )
    model.learn(timesteps)
    print("trained   ", result := resgym.rho(player_of(model), "choose_first", games=2_000))
    print("zeillinger", resgym.rho("zeillinger", "choose_first", games=2_000))
    return result.rho


if __name__ == "__main__":
    main()
