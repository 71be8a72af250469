"""Small environments that tests drive instead of real games.

`ToyVectorEnv` has everything a learner can get wrong: legal moves that change every step, rows that
end at different times, ends by termination and by truncation, and box or dictionary observations.
"""

from itertools import pairwise
from operator import is_not
from typing import ClassVar

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from resgym.game.rng import mix64

TOY_ID = "tests/Toy-v0"
_STREAM_LENGTH, _STREAM_END, _STREAM_TARGET, _STREAM_LEGAL = range(4)


class ToyVectorEnv(VectorEnv):
    """Press the button that the observation names, among the legal ones.

    The named one of A buttons is legal, each other with probability 1/2. The reward is +1 for the
    named one, 0 for another legal one and -1 for an illegal one (`ValueError` with
    `illegal="error"`). Episodes last a random number of steps, uniform on 1..horizon; half of them
    are truncated. A perfect player scores 1 per step, the best that ignores the observation 1/A.

    Observations, N rows: a box `[N, 2 A + 1]` float32 (the named button as one-hot, the legal mask,
    steps so far / horizon), or a dictionary of the same, `target`, `legal` (int8) and `progress`.
    Row i after `reset(seed=s)` is the game of row 0 after `reset(seed=s + i)`, on every device.
    """

    def __init__(
        self,
        num_envs=4,
        dict_obs=False,
        horizon=8,
        device="cpu",
        num_actions=4,
        illegal="penalty",
        render_mode=None,
        max_episode_steps=None,
    ):
        self.num_envs = num_envs
        self.dict_obs = dict_obs
        self.horizon = horizon if max_episode_steps is None else max_episode_steps
        self.device = torch.device(device)
        self.num_actions = num_actions
        self.illegal = illegal
        self.render_mode = render_mode
        self.metadata = {**ToyEnv.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = _observation_space(num_actions, dict_obs)
        self.single_action_space = spaces.Discrete(num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seed = torch.zeros(num_envs, dtype=torch.int64, device=self.device)
        self._episode = self._step = self._length = self._seed
        self._return = torch.zeros(num_envs, dtype=torch.float32, device=self.device)
        self._hashed = self._hashes = None
        self.reset_calls = []

    def reset(self, *, seed=None, options=None):
        """`options={"length": k}` fixes the number of steps."""
        self.reset_calls.append((seed, options))
        if seed is not None:
            row_seeds = [seed + row for row in range(self.num_envs)] if np.isscalar(seed) else seed
            self._seed = torch.as_tensor(row_seeds, dtype=torch.int64, device=self.device)
            self._episode = torch.zeros_like(self._seed)
        else:
            self._episode = self._episode + 1
        self._step = torch.zeros_like(self._seed)
        self._return = torch.zeros_like(self._return)
        self._length = self._draw_length()
        if options and "length" in options:
            self._length = torch.full_like(self._length, options["length"])
        return self._observe(), {}

    def step(self, actions):
        action = torch.as_tensor(actions, device=self.device).long()
        if action.shape != (self.num_envs,):
            raise ValueError(f"actions: got shape {tuple(action.shape)}, need ({self.num_envs},)")
        legal, target = self._legal_and_target()
        pressed_legal = legal.gather(1, action[:, None])[:, 0]
        if self.illegal == "error" and not bool(pressed_legal.all()):
            raise ValueError(f"actions: illegal press in rows {(~pressed_legal).nonzero()[:, 0]}")
        reward = torch.where(pressed_legal, (action == target).float(), -1.0)
        self._step = self._step + 1
        self._return = self._return + reward
        ended = self._step >= self._length
        by_time = self._hash(_STREAM_END) % 2 == 1
        if self.device.type == "cpu" and not bool(ended.any()):
            return self._observe(), reward, ended, ended.clone(), {}
        info = {
            "final_obs": self._observe(),
            "_final_obs": ended,
            "episode": {"r": self._return.clone(), "l": self._step.clone()},
            "_episode": ended.clone(),
        }
        self._episode = self._episode + ended
        self._step = torch.where(ended, 0, self._step)
        self._return = torch.where(ended, 0.0, self._return)
        self._length = torch.where(ended, self._draw_length(), self._length)
        return self._observe(), reward, ended & ~by_time, ended & by_time, info

    def action_masks(self):
        """Legal buttons of the current observation, `[N, A]` bool, True = legal."""
        return self._legal_and_target()[0]

    def state_dict(self):
        names = ("_seed", "_episode", "_step", "_length", "_return")
        return {name[1:]: getattr(self, name).clone() for name in names}

    def load_state_dict(self, state):
        for name, value in state.items():
            setattr(self, "_" + name, value.clone().to(self.device))

    def _hash(self, stream):
        """Of one stream; those of all are made at once, and kept until the state is another."""
        state = self._seed, self._episode, self._step
        if self._hashed is None or any(map(is_not, state, self._hashed)):
            streams = torch.arange(4, device=self.device)[:, None]
            word = mix64(self._seed * 4 + streams + 1)
            word = mix64(word + self._episode)
            step = self._step * (streams >= _STREAM_TARGET)  # the others are the same in all steps
            self._hashes, self._hashed = mix64(word + step) & (2**31 - 1), state
        return self._hashes[stream]

    def _draw_length(self):
        return 1 + self._hash(_STREAM_LENGTH) % self.horizon

    def _legal_and_target(self):
        target = self._hash(_STREAM_TARGET) % self.num_actions
        button = torch.arange(self.num_actions, device=self.device)
        coin = self._hash(_STREAM_LEGAL)[:, None] >> button
        return (coin % 2 == 1) | (button == target[:, None]), target

    def _observe(self):
        legal, target = self._legal_and_target()
        named = (target[:, None] == torch.arange(self.num_actions, device=self.device)).float()
        progress = (self._step.float() / self.horizon)[:, None]
        if self.dict_obs:
            return {"legal": legal.to(torch.int8), "progress": progress, "target": named}
        return torch.cat([named, legal.float(), progress], dim=1)


class MaskedToy(ToyVectorEnv):
    """The toy with its legal buttons in the observation, under the name that DDQN looks for.

    The environment's own `action_masks` is taken away, so that nothing else can tell.
    """

    action_masks = property()  # reading it raises AttributeError

    def __init__(self, num_envs=4, **kwargs):
        super().__init__(num_envs, dict_obs=True, **kwargs)
        entries = dict(self.single_observation_space.spaces)
        entries["action_mask"] = entries.pop("legal")
        self.single_observation_space = spaces.Dict(entries)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def _observe(self):
        observation = super()._observe()
        observation["action_mask"] = observation.pop("legal")
        return observation


class ToyEnv(gymnasium.Env):
    """One row of `ToyVectorEnv` as a single numpy environment without autoreset."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 7}

    def __init__(self, render_mode=None, **kwargs):
        self.render_mode = render_mode
        self._rows = ToyVectorEnv(num_envs=1, render_mode=render_mode, **kwargs)
        self.observation_space = self._rows.single_observation_space
        self.action_space = self._rows.single_action_space
        self._started = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        running = int(self._rows._step[0]) > 0
        if not self._started or seed is not None or options or running:
            observation, _ = self._rows.reset(seed=seed, options=options)
        else:  # the rows have already started the next episode themselves
            observation = self._rows._observe()
        self._started = True
        return _first_row(observation), {}

    def step(self, action):
        observation, reward, terminated, truncated, info = self._rows.step(np.array([action]))
        ended = bool(terminated[0] | truncated[0])
        seen = info["final_obs"] if ended else observation
        return _first_row(seen), float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def action_masks(self):
        return self._rows.action_masks()[0].numpy()


def register_toy():
    """Register the toy with Gymnasium (once) and return its id."""
    if TOY_ID not in gymnasium.registry:
        gymnasium.register(TOY_ID, entry_point=ToyEnv, vector_entry_point=ToyVectorEnv)
    return TOY_ID


def forbid_waiting(monkeypatch):
    """From here on, asking a tensor for its value, which stops an accelerator, is an error."""

    def waits(*_, **__):
        raise AssertionError("the device was waited for")

    for name in ("cpu", "numpy", "tolist", "item", "__bool__", "__int__", "__float__", "nonzero"):
        monkeypatch.setattr(Tensor, name, waits)


def _observation_space(num_actions, dict_obs):
    if not dict_obs:
        return spaces.Box(0.0, 1.0, (2 * num_actions + 1,), np.float32)
    return spaces.Dict(
        legal=spaces.MultiBinary(num_actions),
        progress=spaces.Box(0.0, 1.0, (1,), np.float32),
        target=spaces.Box(0.0, 1.0, (num_actions,), np.float32),
    )


def _first_row(observation):
    if isinstance(observation, dict):
        return {key: value[0].numpy() for key, value in observation.items()}
    return observation[0].numpy()


_REPEATED = (
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise("abcdefghi")
)
BOMB = f"{{a: &a [x, x, x, x, x, x, x, x, x], {', '.join(_REPEATED)}}}"
