"""A batched environment of one's own, learned by DDQN and PPO."""

import gymnasium
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from stable_baselines3 import PPO

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN


class Walk(VectorEnv):
    """N walkers on 0..7 that should reach 7 within 20 steps."""

    device = torch.device("cpu")

    def __init__(self, num_envs):
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs = num_envs
        self.single_observation_space = gymnasium.spaces.Box(0, 1, (1,))
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        self.place, self.steps = torch.zeros(self.num_envs), torch.zeros(self.num_envs)
        return self.place[:, None] / 7, {}

    def step(self, actions):
        self.place, self.steps = (self.place + 2 * actions - 1).clamp(0, 7), self.steps + 1
        terminated = self.place == 7
        ended = terminated | (self.steps >= 20)
        info = {}
        if ended.any():  # before the restart
            info = {"final_obs": self.place[:, None] / 7, "_final_obs": ended, "_episode": ended}
            info["episode"] = {"r": -self.steps, "l": self.steps.long()}  # return and length
            self.place, self.steps = self.place * ~ended, self.steps * ~ended
        reward = torch.full((self.num_envs,), -1.0)
        return self.place[:, None] / 7, reward, terminated, ended & ~terminated, info


def main(timesteps: int = 30_000) -> int:
    model = DDQN(
        "MlpPolicy",
        TensorVecEnv(Walk(64)),
        learning_starts=1_000,
        learning_rate=2e-3,
        target_update_interval=50,
        gamma=0.9,
        seed=0,
    )
    model.learn(timesteps)
    PPO("MlpPolicy", TensorVecEnv(Walk(64)), n_steps=16, batch_size=256).learn(1_024)
    action, _ = model.predict(torch.tensor([[0.5]]).numpy(), deterministic=True)
    print("in the middle the policy goes", ["left", "right"][int(action[0])])
    return int(action[0])


if __name__ == "__main__":
    main()
