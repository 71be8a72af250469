"""The environments with PettingZoo; see docs/clients.md."""

from resgym import hironaka_v0

env = hironaka_v0.env()
env.reset(seed=0)
for seat in env.agent_iter(max_iter=20):
    observation, reward, terminated, truncated, info = env.last()
    over = terminated or truncated
    env.step(None if over else env.action_space(seat).sample(observation["action_mask"]))
print(seat, reward)
