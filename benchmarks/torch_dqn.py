"""DQN in one plain PyTorch loop, in the manner of CleanRL's: a peer to be measured against.

Observations and rewards are numpy arrays, as environments give them; the replay buffer is a ring of
tensors, and nothing is logged.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn


class Loop:
    """`learn` as of stable-baselines3's ``DQN``, to the extent that it is measured.

    Args:
        env: a vector environment with numpy results that restarts ended games within the step and
            has what they led to in ``info["final_obs"]``.
        target_steps: transitions from one copy of the network to the next.
    """

    def __init__(
        self, env: Any, *, net_arch: list[int], batch: int, capacity: int, exploration: float,
        gamma: float = 0.99, learning_rate: float = 1e-4, target_steps: int = 10_000,
    ) -> None:  # fmt: skip
        torch.manual_seed(0)
        self.env, self.n_envs = env, env.num_envs
        self.batch, self.gamma, self.exploration_rate = batch, gamma, exploration
        self.target_every = max(target_steps // self.n_envs, 1)
        self.num_actions = int(env.single_action_space.n)
        widths = [int(np.prod(env.single_observation_space.shape)), *net_arch]
        layers: list[nn.Module] = [nn.Flatten()]
        for inner, outer in pairwise(widths):
            layers += [nn.Linear(inner, outer), nn.ReLU()]
        self.q_net = nn.Sequential(*layers, nn.Linear(widths[-1], self.num_actions))
        self.target = copy.deepcopy(self.q_net)
        self.optimizer = torch.optim.Adam(self.q_net.parameters(), learning_rate)
        self.rows = max(capacity // self.n_envs, 1)
        shape = (self.rows, self.n_envs)
        self.states = torch.zeros(*shape, *env.single_observation_space.shape)
        self.next_states = torch.zeros_like(self.states)
        self.actions = torch.zeros(shape, dtype=torch.int64)
        self.rewards, self.terminated = torch.zeros(shape), torch.zeros(shape)
        self.observation = torch.from_numpy(env.reset(seed=0)[0])
        self.rng = np.random.default_rng(0)
        self.num_timesteps = self._n_updates = 0

    def learn(self, transitions: int, **_: Any) -> None:
        for _step in range(transitions // self.n_envs):
            self.collect()
            self.update()

    def collect(self) -> None:
        """One move in every game, stored."""
        with torch.no_grad():
            actions = self.q_net(self.observation).argmax(1).numpy()
        explore = self.rng.random(self.n_envs) < self.exploration_rate
        actions[explore] = self.rng.integers(self.num_actions, size=explore.sum())
        after, reward, terminated, _truncated, info = self.env.step(actions)
        at = self.num_timesteps // self.n_envs % self.rows
        self.states[at], self.actions[at] = self.observation, torch.from_numpy(actions)
        self.next_states[at] = torch.from_numpy(after)
        if "final_obs" in info:
            ended = info["_final_obs"]
            self.next_states[at, ended] = torch.from_numpy(info["final_obs"][ended])
        self.rewards[at], self.terminated[at] = map(torch.from_numpy, (reward, terminated))
        self.observation = torch.from_numpy(after)
        self.num_timesteps += self.n_envs

    def update(self) -> None:
        """One update from transitions drawn uniformly."""
        stored = min(self.num_timesteps // self.n_envs, self.rows) * self.n_envs
        drawn = torch.from_numpy(self.rng.integers(stored, size=self.batch))
        fields = (self.states, self.next_states, self.actions, self.rewards, self.terminated)
        states, next_states, actions, rewards, terminated = (
            each.flatten(0, 1)[drawn] for each in fields
        )
        with torch.no_grad():
            best = self.target(next_states).amax(1)
            wanted = rewards + self.gamma * (1 - terminated) * best
        found = self.q_net(states).gather(1, actions[:, None])[:, 0]
        self.optimizer.zero_grad()
        nn.functional.mse_loss(found, wanted).backward()
        self.optimizer.step()
        self._n_updates += 1
        if self._n_updates % self.target_every == 0:
            self.target.load_state_dict(self.q_net.state_dict())
