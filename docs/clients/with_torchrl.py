"""The environments with TorchRL; see docs/clients.md."""

from torchrl.envs import GymEnv
from torchrl.envs.utils import check_env_specs

env = GymEnv("resgym:resgym/HironakaHost-v0", opponent="random", categorical_action_encoding=True)
check_env_specs(env)
print(env.rollout(20, break_when_any_done=False)["next", "reward"].sum())
