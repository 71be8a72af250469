"""The environments with RLlib; see docs/clients.md."""

import ray
from ray.rllib.algorithms.ppo import PPOConfig

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
settings = PPOConfig().environment("resgym:resgym/HironakaHostFlat-v0")
sizes = {"train_batch_size_per_learner": 64, "minibatch_size": 32, "num_epochs": 1}
learner = settings.env_runners(num_env_runners=0).training(**sizes).build_algo()
print(learner.train()["env_runners"]["num_env_steps_sampled_lifetime"])
learner.stop()
ray.shutdown()
