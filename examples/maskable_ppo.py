"""Trains an agent with sb3-contrib's MaskablePPO: the host's set is the mask."""

import gymnasium
from sb3_contrib import MaskablePPO

import resgym
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.evaluation import player_of


def main(timesteps: int = 200_000) -> float:
    games = gymnasium.make_vec(
        "resgym/HironakaAgent-v0", num_envs=64, opponent="zeillinger", reward="step"
    )
    model = MaskablePPO(
        "MultiInputPolicy",
        TensorVecEnv(games),
        n_steps=64,
        batch_size=512,
        gamma=0.97,
        seed=0,
    )
    model.learn(timesteps)
    # An agent is good if it keeps the host's rho low.
    print("trained     ", result := resgym.rho("zeillinger", player_of(model), games=2_000))
    print("choose_first", resgym.rho("zeillinger", "choose_first", games=2_000))
    return result.rho


if __name__ == "__main__":
    main()
