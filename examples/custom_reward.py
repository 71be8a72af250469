"""A reward of one's own: the host is paid for every point it removes, minus a price per move."""

import gymnasium
import torch

import resgym


@resgym.register_reward("points_minus_time")
def points_minus_time(transition: resgym.Transition) -> torch.Tensor:
    """Gets N moves at once; returns the host's reward, float32 [N]. The agent gets the negative."""
    removed = transition.before.count - transition.after.count
    return removed.to(torch.float32) - 0.5


def main(steps: int = 50) -> float:
    games = gymnasium.make_vec(
        "resgym/HironakaHost-v0", num_envs=8, opponent="random", reward="points_minus_time"
    )
    games.reset(seed=0)
    total = torch.zeros(8)
    for _ in range(steps):
        _, reward, _, _, _ = games.step(games.action_space.sample())
        total += reward
    print(f"mean reward of a random host: {total.mean() / steps:.3f} per move")
    return float(total.mean() / steps)


if __name__ == "__main__":
    main()
