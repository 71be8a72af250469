"""The two-player trainer on another game: both pick a row of PAYOFF, and win from the other's."""

import torch
from gymnasium import spaces, vector

from sb3_ext.two_player import GAMES, Game, HostAgentTrainer, read_config

PAYOFF = torch.tensor([[0.0, 2.0, -1.0], [-2.0, 0.0, -1.0], [1.0, 1.0, 0.0]])  # 2 is safe


class MatrixEnv(vector.VectorEnv):
    metadata = {"autoreset_mode": vector.AutoresetMode.SAME_STEP}  # noqa: RUF012
    single_observation_space, single_action_space = spaces.Box(0.0, 1.0, (1,)), spaces.Discrete(3)

    def set_opponent(self, player) -> None:
        self.opponent = player

    def reset(self, *, seed=None, options=None):
        return torch.ones(self.num_envs, 1), {}  # there is nothing to see

    def step(self, actions):
        seen, ended = torch.ones(self.num_envs, 1), torch.ones(self.num_envs, dtype=torch.bool)
        reward = PAYOFF[torch.as_tensor(actions), self.opponent(seen)]
        return seen, reward, ended, ~ended, {"final_obs": seen, "_final_obs": ended}


@GAMES.register("matrix")
class MatrixGame(Game):
    roles = ("left", "right")

    def make_env(self, role, num_envs, reward=None, device="cpu"):
        env = MatrixEnv()
        env.num_envs = num_envs
        return env


def main(steps: int = 400) -> dict[str, list[int]]:
    data = read_config("small").to_dict()
    role = data["roles"]["host"] | {"policy": "MlpPolicy", "net_arch": [16], "gamma": 0.0}
    data |= {"game": {"name": "matrix"}, "roles": {"left": role, "right": role}}
    data["training"]["players"] = ["left", "right"]
    data["evaluation"]["opponents"] = {"left": [], "right": []}
    trainer = HostAgentTrainer(data)
    print(trainer.train(steps))
    return {name: trainer.count_actions(name) for name in trainer.roles}


if __name__ == "__main__":
    main()
