"""Vector environments of torch tensors as environments of stable-baselines3."""

from sb3_ext.adapter.seam import reached_observation
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv

__all__ = ["TensorVecEnv", "reached_observation"]
