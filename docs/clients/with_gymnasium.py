"""Gymnasium's vector wrappers, the outermost last (`RecordVideo` since 1.2); docs/clients.md."""

import gymnasium
from gymnasium.wrappers import vector

import resgym  # registers the environments

envs = gymnasium.make_vec(
    "resgym/HironakaHost-v0",
    num_envs=4,
    output="numpy",
    autoreset_mode="NextStep",
    episode_statistics=False,  # the wrapper counts
    render_mode="rgb_array",
)
envs = vector.RecordEpisodeStatistics(envs)
envs = vector.NormalizeObservation(envs)
envs = vector.RecordVideo(envs, "videos", episode_trigger=lambda episode: episode == 0)
envs = vector.DictInfoToList(envs)
observations, infos = envs.reset(seed=0)
while not any("episode" in info for info in infos):
    observations, *_, infos = envs.step(envs.action_space.sample())
print(resgym.__version__, [info.get("episode") for info in infos])
envs.close()
