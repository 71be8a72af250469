"""Trains a host with `model.learn()` and measures it."""

import gymnasium

import resgym
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.ddqn import DDQN


def main(timesteps: int = 256_000) -> float:
    games = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=256, opponent="choose_first")
    model = DDQN(
        "HostPolicy",
        games,
        learning_rate="lin_2e-3",
        n_steps=3,
        gamma=0.9,
        gradient_steps=2,
        seed=0,
    )
    model.learn(timesteps)
    print("trained   ", result := resgym.rho(player_of(model), "choose_first", games=2_000))
    print("zeillinger", resgym.rho("zeillinger", "choose_first", games=2_000))
    return result.rho


if __name__ == "__main__":
    main()
