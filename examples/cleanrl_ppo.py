"""PPO in one file, as CleanRL writes it, with masks of legal actions and all data in tensors."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import resgym
from resgym import functional


@dataclass
class Args:
    seat: Any = "host"  # or agent, with a host as the opponent
    opponent: str = "choose_first"
    total_timesteps: int = 300_000
    learning_rate: float = 2e-3
    num_envs: int = 128
    num_steps: int = 16
    gamma: float = 0.97
    gae_lambda: float = 0.9
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_range: tuple[float, float] = (0.8, 1.2)
    ent_coef: float = 0.003
    seed: int = 0


class Agent(nn.Module):
    """Actor and critic; also a player of its seat, which takes the best legal action."""

    def __init__(self, envs: resgym.HironakaVectorEnv) -> None:
        super().__init__()
        self.role, self.dimension = envs.seat, envs.plan.spec.dimension
        self.sets = self.dimension if envs.seat == "agent" else 0  # the host's set, seen first
        net = nn.Linear(3 * self.dimension, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()
        self.point_net = nn.Sequential(*net)
        size, actions = 128 + self.sets, envs.plan.num_actions
        self.actor = nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, actions))
        self.critic = nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Categorical, Tensor]:
        coords, points = obs.tensor_split([self.sets], 1)
        points = points.unflatten(1, (-1, self.dimension))
        points = points[:, : int((points[..., 0] >= 0).sum(1).max())]  # absent ones come last
        alive = points[..., :1] >= 0
        # Shifted to the axes and scaled, which changes no game, and once more as logarithms.
        x = torch.where(alive, points - torch.where(alive, points, 2.0).amin(1, keepdim=True), 0.0)
        x = x / x.amax((1, 2), keepdim=True).clamp(min=1e-9)
        encoded = self.point_net(torch.cat([x, (x + 1e-3).log() / 7 + 1, (x == 0).float()], 2))
        encoded = encoded * alive  # 0 is the least value of others, too
        features = torch.cat([encoded.amax(1), encoded.sum(1) / alive.sum(1), coords], 1)
        # Not -inf: the entropy multiplies logits by probabilities, and 0 * -inf is NaN.
        logits = self.actor(features).masked_fill(~masks, -1e8)
        return Categorical(logits=logits), self.critic(features)[:, 0]

    def act(self, state: resgym.GameState, coords: Tensor | None, rng: resgym.RowRandom) -> Tensor:
        points = functional.observe(state).flatten(1)
        obs = points if coords is None else torch.cat([coords.float(), points], 1)
        with torch.no_grad():
            return self(obs, torch.tensor([True]) if coords is None else coords)[0].logits.argmax(1)


def train(args: Args) -> Agent:
    torch.manual_seed(args.seed)
    made: Any = {"opponent": args.opponent, "reward": "step", "observation": "flat"}
    envs = resgym.HironakaVectorEnv(args.num_envs, seat=args.seat, **made)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    obs, _ = envs.reset(seed=args.seed)
    for left in torch.linspace(1, 0, args.total_timesteps // (args.num_envs * args.num_steps)):
        optimizer.param_groups[0]["lr"] = args.learning_rate * float(left)
        rows: list[tuple[Tensor, ...]] = []
        for _ in range(args.num_steps):
            masks = envs.action_masks()
            with torch.no_grad():
                policy, value = agent(obs, masks)
                action = policy.sample()
                next_obs, reward, terminated, truncated, infos = envs.step(action)
                if truncated.any():  # these games were cut: their last position has a value
                    reward = reward + args.gamma * truncated * agent(infos["final_obs"], masks)[1]
            ended = (terminated | truncated).float()
            rows.append((obs, masks, action, policy.log_prob(action), reward, ended, value))
            obs = next_obs
        *batch, rewards, ends, values = map(torch.stack, zip(*rows, strict=True))
        advantages, last = torch.zeros_like(rewards), torch.zeros(args.num_envs)
        next_value = agent(obs, envs.action_masks())[1].detach()
        for t in reversed(range(args.num_steps)):
            delta = rewards[t] + args.gamma * next_value * (1 - ends[t]) - values[t]
            advantages[t] = last = delta + args.gamma * args.gae_lambda * (1 - ends[t]) * last
            next_value = values[t]
        batch = [part.flatten(0, 1) for part in (*batch, advantages, advantages + values)]
        for index in (torch.randperm(len(batch[0])) for _ in range(args.update_epochs)):
            for some in index.chunk(args.num_minibatches):
                b_obs, b_masks, b_actions, b_logprobs, b_adv, b_returns = (p[some] for p in batch)
                policy, value = agent(b_obs, b_masks)
                ratio = (policy.log_prob(b_actions) - b_logprobs).exp()
                b_adv = (b_adv - b_adv.mean()) / (b_adv.std() + 1e-8)
                pg_loss = -torch.min(ratio * b_adv, ratio.clamp(*args.clip_range) * b_adv).mean()
                v_loss = (value - b_returns).square().mean()
                loss = pg_loss + 0.25 * v_loss - args.ent_coef * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return agent


def main(**changes: Any) -> resgym.RhoResult:
    args = Args(**changes)
    agent = train(args)
    pair = (agent, args.opponent) if args.seat == "host" else (args.opponent, agent)
    return resgym.rho(*pair, games=1000, optimum=args.seat == "host")


if __name__ == "__main__":
    print(main())
