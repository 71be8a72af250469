"""DQN in one file, as CleanRL writes it, and a row of the scoreboard.

cd examples
python cleanrl_dqn.py
resgym scoreboard add cleanrl_dqn --import cleanrl_dqn --task worst-20 --track play --steps 500000
resgym scoreboard check scoreboard.json --import cleanrl_dqn
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import resgym
from resgym import benchmark, functional

FILE = Path("cleanrl_dqn.safetensors")


@dataclass
class Args:
    total_timesteps: int = 500_000
    task: str = "worst-20"
    opponents: tuple[str, ...] = ("random", "choose_first", "choose_last", "greedy_points")
    num_envs: int = 64
    learning_rate: float = 1e-3
    buffer_size: int = 100_000
    gamma: float = 0.97
    target_network_frequency: int = 200  # iterations; each steps all environments once
    batch_size: int = 256
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5
    learning_starts: int = 5_000
    seed: int = 0


def q_network(points: int = 20, axes: int = 3, actions: int = 4) -> nn.Module:
    """From observed points [N, P, D] to the values of the sets, [N, A]."""
    layers = nn.Linear(points * axes, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU()
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(128, actions))


def train(args: Args) -> nn.Module:
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    envs = benchmark.make(args.task, args.num_envs, opponent=list(args.opponents), reward="step")
    q, target = q_network(), q_network()
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=args.learning_rate)
    rows = args.buffer_size // args.num_envs
    buffer: list[tuple[Tensor, ...]] = []
    obs, _ = envs.reset(seed=args.seed)
    iterations = args.total_timesteps // args.num_envs
    for step in range(iterations):
        progress = min(1.0, step / (args.exploration_fraction * iterations))
        epsilon = args.start_e + progress * (args.end_e - args.start_e)
        with torch.no_grad():
            greedy = q(obs).argmax(1)
        explored = torch.rand(args.num_envs) < epsilon
        actions = torch.where(explored, torch.randint(4, (args.num_envs,)), greedy)
        next_obs, rewards, terminations, truncations, infos = envs.step(actions)
        # Of games that ended, `next_obs` is already the start of the next one.
        ended = (terminations | truncations)[:, None, None]
        final = next_obs if not bool(ended.any()) else infos["final_obs"].where(ended, next_obs)
        row = obs.clone(), actions, rewards, final.clone(), terminations.float()
        if len(buffer) < rows:
            buffer.append(row)
        else:
            buffer[step % rows] = row
        obs = next_obs
        if len(buffer) * args.num_envs < args.learning_starts:
            continue
        some = random.choices(buffer, k=max(1, args.batch_size // args.num_envs))
        b_obs, b_actions, b_rewards, b_next, b_ended = map(torch.cat, zip(*some, strict=True))
        with torch.no_grad():
            td_target = b_rewards + args.gamma * (1 - b_ended) * target(b_next).amax(1)
        old = q(b_obs).gather(1, b_actions[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(old, td_target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.target_network_frequency == 0:
            target.load_state_dict(q.state_dict())
    return q


@resgym.register_host("cleanrl_dqn")
class CleanHost:
    """The host of the file that `main` wrote."""

    role: Literal["host"] = "host"
    name = "cleanrl_dqn"

    def __init__(self) -> None:
        self.network = q_network()
        self.network.load_state_dict(load_file(FILE))

    def act(self, state: resgym.GameState, coords: Tensor | None, rng: resgym.RowRandom) -> Tensor:
        with torch.no_grad():
            seen = functional.observe(state)  # the network wants 20 rows, absent ones -1
            padded = nn.functional.pad(seen, (0, 0, 0, 20 - seen.shape[1]), value=-1.0)
            return self.network(padded).argmax(1)


def main(**changes: object) -> None:
    save_file(train(Args(**changes)).state_dict(), FILE)  # type: ignore[arg-type]
    print(benchmark.evaluate("cleanrl_dqn", Args.task))


if __name__ == "__main__":
    main()
