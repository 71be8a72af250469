"""A replay buffer whose transitions are tensors that stay on one device.

It replaces SB3's buffers (2.9.2) in any off-policy algorithm, but not `HerReplayBuffer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.preprocessing import get_action_dim, get_obs_shape
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from resgym.game.devices import check_memory
from sb3_ext.adapter.seam import Observation, each_entry, entries_of, owned, to_arrays, to_device
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.replay.samples import TensorReplayBufferSamples, example_of, layout_of, shaped
from sb3_ext.types import Info, StateDict


def _as_array(name: str) -> Any:
    def array(buffer: TensorReplayBuffer) -> Any:
        buffer.allocate()
        return each_entry(lambda x: to_arrays(x[: buffer.size()]), buffer._fields[name])

    return property(array)


class TensorReplayBuffer(ReplayBuffer):
    """Ring of transitions `[T, N, ...]` on a device: T time slots for N parallel rows.

    The argument `buffer_size` counts transitions, held as T = buffer_size // n_envs slots (at least
    one) of N = n_envs, and the *attribute* `buffer_size` and `size()` count slots, as in SB3.

    Nothing is allocated before the first transition arrives (or `allocate()`). Sampling is uniform
    with replacement, from a generator on the CPU: the same batches are drawn on every device.

    n-step windows stop at the end of an episode, at the newest slot, and where `cut` was called. A
    truncated episode is bootstrapped from its final observation, a terminated one not at all.

    SB3's attributes `observations`, `next_observations`, `actions` and `rewards` are arrays
    `[size(), N, ...]`, which share the memory of a buffer on the CPU; `dones` and `timeouts` are
    copies, and a `cut` counts as a timeout.

    Args:
        buffer_size: Capacity in transitions, >= 1.
        observation_space: Space of one row: a box, a discrete one, or a flat dictionary of them.
        action_space: Space of one row.
        device: Device of the transitions and of samples.
        n_envs: Number of parallel rows N.
        handle_timeout_termination: As in SB3; False treats a truncation as a termination.
        n_steps: Longest window of the n-step return, >= 1.
        gamma: Discount of one step, in [0, 1]. Required for n_steps > 1; without it `discounts`
            of the samples is None and SB3's algorithms use their own gamma.
        store_next_legal: Keep a mask `[T, N, A]` of the actions legal at the next observation.
        seed: Seed of the sampling, see `set_seed`.
    """

    handle_timeout_termination = True  # also in files of older versions
    optimize_memory_usage = False

    observations, next_observations = _as_array("observations"), _as_array("next_observations")
    actions, rewards = _as_array("actions"), _as_array("rewards")

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        n_steps: int = 1,
        gamma: float | None = None,
        store_next_legal: bool = False,
        seed: int = 0,
    ) -> None:
        buffer_size = check_count("buffer_size", buffer_size)
        self.n_steps = check_count("n_steps", n_steps)
        self.gamma = gamma
        if n_steps > 1:
            check_number("gamma", gamma, 0.0, 1.0)
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage: got True; expected False, or SB3's ReplayBuffer"
            )
        # ReplayBuffer's own constructor allocates numpy arrays.
        super(ReplayBuffer, self).__init__(
            buffer_size, observation_space, action_space, device, n_envs=n_envs
        )
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.store_next_legal = store_next_legal
        self.handle_timeout_termination = handle_timeout_termination
        # One transition of one row: shapes, dtypes and sizes of everything come from here.
        entries = getattr(observation_space, "spaces", observation_space)
        shown = each_entry(lambda space: example_of(get_obs_shape(space), space), entries)
        action = example_of(get_action_dim(action_space), action_space)
        flag = torch.empty((), dtype=torch.bool)
        self._example: dict[str, Observation] = {
            "observations": shown,
            "actions": action.float() if action.dtype == torch.float64 else action,
            "rewards": torch.empty(()),
            "next_observations": shown,
            "terminated": flag,
            "ended": flag,
        }
        if store_next_legal:
            actions = int(action_space.n)  # type: ignore[attr-defined]
            self._example["next_legal"] = torch.empty(actions, dtype=torch.bool)
        self._fields: dict[str, Any] = {}
        self.set_seed(seed)

    @property  # type: ignore[override]
    def device(self) -> torch.device:
        """Device of transitions and samples; assigning it moves the transitions."""
        return self._device

    @device.setter
    def device(self, device: torch.device | str) -> None:
        state = self.state_dict() if hasattr(self, "_fields") else None
        self._device = get_device(device)
        self._fields = {}
        if state is not None:
            self.load_state_dict(state)

    @property
    def num_transitions(self) -> int:
        """Transitions that can be sampled now."""
        return self.size() * self.n_envs

    @property
    def bytes_per_transition(self) -> int:
        """Memory of one transition."""
        return sum(x.nbytes for each in self._example.values() for x in entries_of(each).values())

    @property
    def dones(self) -> np.ndarray:  # type: ignore[override]
        """1 where an episode ended, `[size(), N]` float32."""
        return _as_array("ended").fget(self).astype(np.float32)  # type: ignore[no-any-return]

    @property
    def timeouts(self) -> np.ndarray:  # type: ignore[override]
        """1 where an episode ended without termination, `[size(), N]` float32."""
        return self.dones - _as_array("terminated").fget(self)  # type: ignore[no-any-return]

    def memory_bytes(self) -> int:
        """Memory of the full buffer, whether allocated yet or not."""
        return self.buffer_size * self.n_envs * self.bytes_per_transition

    def allocate(self) -> None:
        """Reserve the memory now, if it was not; ValueError if there is too little."""
        if self._fields:
            return
        slots = self.buffer_size
        rows = self.n_envs
        size = self.bytes_per_transition
        what = f"buffer_size: {slots * rows} transitions of {size} bytes"
        check_memory(what, self.memory_bytes(), size, self._device)

        # Not zeros: pages that were never written cost nothing, so a long buffer fills gradually.
        self._fields = {
            name: each_entry(lambda x: x.new_empty((slots, rows, *x.shape), device=self._device), e)
            for name, e in self._example.items()
        }

    def add_batch(
        self,
        obs: Observation,
        next_obs: Observation,
        actions: Tensor,
        rewards: Tensor,
        terminated: Tensor,
        truncated: Tensor,
        next_legal: Tensor | None = None,
        *,
        steps: int | None = None,
    ) -> None:
        """Store one transition of every row. Copies its arguments; never waits for the device.

        Args:
            obs: Observations acted on, `[N, ...]` or a dictionary of such.
            next_obs: Observations reached; for rows that ended, the final one of the episode (see
                `sb3_ext.adapter.reached_observation`).
            actions: `[N]`, `[N, action_dim]`, or in the shape of the space.
            rewards: `[N]`.
            terminated: `[N]` bool.
            truncated: `[N]` bool.
            next_legal: `[N, A]` bool, actions legal at `next_obs`; exactly with `store_next_legal`.
            steps: S, if all arguments have one more leading axis, of S transitions of every row.

        Raises:
            ValueError: A shape does not fit the spaces, `next_legal` is missing or not expected, or
                the buffer does not fit into memory. Nothing is stored then.
        """
        ended = terminated | truncated
        terminated = terminated if self.handle_timeout_termination else ended
        shape = self.action_space.shape or ()
        if len(shape) > 1 and actions.shape[-len(shape) :] == shape:
            actions = actions.flatten(-len(shape))
        if self.store_next_legal != (next_legal is not None):
            raise ValueError(f"next_legal: store_next_legal is {self.store_next_legal}")
        lead = (self.n_envs,) if steps is None else (steps, self.n_envs)
        values = (obs, actions, rewards, next_obs, terminated, ended, next_legal)
        given = {
            name: each_entry(partial(shaped, name, lead), self._example[name], value)
            for name, value in zip(self._example, values, strict=False)
            if value is not None
        }
        self.allocate()
        done, steps = 0, steps or 1
        while done < steps:  # up to the end of the ring, and on from its beginning
            slots = slice(self.pos, min(self.pos + steps - done, self.buffer_size))
            size = slots.stop - slots.start
            self._put(slots, given, slice(done, done + size))
            done += size
            self.pos = slots.stop % self.buffer_size
            self.full = self.full or self.pos == 0

    def _put(self, slots: slice, given: Mapping[str, Any], steps: slice) -> None:
        def copy(field: Tensor, value: Tensor) -> None:
            field[slots].copy_(value[steps], non_blocking=True)

        for name, value in given.items():
            each_entry(copy, self._fields[name], value)

    def add(
        self,
        obs: np.ndarray | dict[str, np.ndarray],
        next_obs: np.ndarray | dict[str, np.ndarray],
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[Info],
    ) -> None:
        """Store one transition of every row, as SB3's algorithms do (see `ReplayBuffer.add`)."""
        timeout = np.array([bool(info.get("TimeLimit.truncated")) for info in infos], dtype=bool)
        ended = np.asarray(done, dtype=bool).reshape(self.n_envs)
        values = (obs, next_obs, action, reward, ended & ~timeout, ended & timeout)
        tensors = [to_device(value, torch.device("cpu")) for value in values]
        if self.n_steps > 1 and self.num_transitions:
            self._cut_where_reset(tensors[0])
        self.add_batch(*tensors)

    def _cut_where_reset(self, obs: Observation) -> None:
        """End the windows of rows that do not continue from where they were.

        SB3's algorithms reset the environment at a second `learn` without a word to the buffer.
        """
        last = (self.pos - 1) % self.buffer_size
        for key, field in entries_of(self._fields["next_observations"]).items():
            reached, shown = field[last], entries_of(obs)[key]
            shown = shaped("obs", (self.n_envs,), reached[0], shown)[0].to(reached)
            self._fields["ended"][last] |= (shown != reached).flatten(1).any(dim=1)

    def cut(self) -> None:
        """End all windows at the newest transitions: the next ones belong to other games."""
        if self.num_transitions:
            self._fields["ended"][(self.pos - 1) % self.buffer_size] = True

    def set_seed(self, seed: int) -> None:
        """Start the sampling sequence of a seed at its first batch."""
        self._random = torch.Generator().manual_seed(seed)
        self.num_batches_drawn = 0

    def sample(  # type: ignore[override]
        self, batch_size: int, env: VecNormalize | None = None
    ) -> TensorReplayBufferSamples:
        """Draw transitions with replacement, on `device`; `env` normalises them."""
        if not self.num_transitions:
            raise ValueError("sample: the buffer is empty, add transitions first")
        self.num_batches_drawn += 1
        return self._get_samples(self._draw(batch_size), env)

    def _draw(self, batch_size: int) -> Tensor:
        """Flat indices of the transitions of a batch, `[B]` int64 on `device`."""
        index = torch.randint(self.num_transitions, (batch_size,), generator=self._random)
        return index.to(self._device, non_blocking=True)

    def _take(self, name: str, index: Tensor) -> Any:
        return each_entry(lambda x: x.flatten(0, 1).index_select(0, index), self._fields[name])

    def _get_samples(  # type: ignore[override]
        self, batch_inds: Tensor, env: VecNormalize | None = None
    ) -> TensorReplayBufferSamples:
        """Transitions by flat index slot * N + row, `[B]` int64 on `device`."""
        if self.n_steps > 1:
            returns, last, discounts = self._windows(batch_inds, env)
        else:
            returns, last, discounts = self._rewards(batch_inds, env), batch_inds, None
            if self.gamma is not None:
                discounts = torch.full_like(returns, self.gamma)
        actions = self._take("actions", batch_inds)
        return TensorReplayBufferSamples(
            observations=self._observation("observations", batch_inds, env),
            actions=actions if actions.is_floating_point() else actions.long(),
            next_observations=self._observation("next_observations", last, env),
            dones=self._take("terminated", last).float()[:, None],
            rewards=returns[:, None],
            discounts=None if discounts is None else discounts[:, None],
            next_legal=self._take("next_legal", last) if self.store_next_legal else None,
        )

    def _windows(
        self, first: Tensor, env: VecNormalize | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns, last transitions and discounts of the windows that begin at `[B]` indices."""
        assert self.gamma is not None
        slot = first // self.n_envs
        row = first % self.n_envs
        step = torch.arange(self.n_steps, device=first.device)
        window = (slot[:, None] + step) % self.buffer_size * self.n_envs + row[:, None]
        ended = self._take("ended", window.flatten()).view_as(window)
        newer = (self.pos - 1 - slot) % self.buffer_size
        # The transition that ends an episode is still taken, the one after it is not.
        taken = (ended.cumsum(dim=1) - ended.long() == 0) & (step <= newer[:, None])
        length = taken.sum(dim=1)
        rewards = self._rewards(window.flatten(), env).view_as(window)
        rewards = torch.where(taken, rewards * torch.pow(self.gamma, step.float()), 0.0)
        last = window.gather(1, length[:, None] - 1)[:, 0]
        return rewards.sum(dim=1), last, torch.pow(self.gamma, length.float())

    def _rewards(self, index: Tensor, env: VecNormalize | None) -> Tensor:
        rewards = self._take("rewards", index)
        if env is None:
            return rewards
        return torch.from_numpy(env.normalize_reward(rewards.cpu().numpy())).to(self._device)

    def _observation(self, name: str, index: Tensor, env: VecNormalize | None) -> Any:
        observations = self._take(name, index)
        if env is None:
            return observations
        return to_device(env.normalize_obs(to_arrays(observations)), self._device)

    def check_finite(self, field: str = "") -> None:
        """Raises FloatingPointError if what the environment gave, or a field, is not finite."""
        for name, values in self._used().items():
            for value in entries_of(values).values() if name.startswith(field) else ():
                if value.is_floating_point() and not value.isfinite().all():
                    raise FloatingPointError(
                        f"{name}: the environment returned NaN or an infinity, which is now in"
                        " the replay buffer; fix it and resume from the last checkpoint"
                    )

    def _used(self) -> dict[str, Any]:
        used = self.size()
        return {k: each_entry(lambda x: x[:used], v) for k, v in self._fields.items() if used}

    def state_dict(self) -> StateDict:
        """The transitions `[slots in use, N, ...]`, views of the buffer, counters and generator."""
        counters = ("n_envs", "pos", "full", "num_batches_drawn")
        return {
            "num_slots": self.buffer_size,
            **{name: getattr(self, name) for name in counters},
            "random": self._random.get_state(),
            "fields": self._used(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from `state_dict()`; ValueError if a size or dtype differs."""
        pos, full, fields = state["pos"], bool(state["full"]), state["fields"]
        slots = self.buffer_size if full else pos
        lead = (slots, self.n_envs)
        need = layout_of(lead, self._example if slots else {})
        given = layout_of((), fields)
        if (state["num_slots"], given) != (self.buffer_size, need):
            raise ValueError(
                f"replay buffer: got {state['num_slots']} slots, {given}, need "
                f"{self.buffer_size}, {need}"
            )
        self._random.set_state(state["random"].cpu())
        if slots:
            self.allocate()
        for name, value in fields.items():
            each_entry(lambda field, x: field[:slots].copy_(x), self._fields[name], value)
        self.pos, self.full, self.num_batches_drawn = pos, full, state["num_batches_drawn"]

    def __getstate__(self) -> StateDict:
        # Only the slots in use, on the CPU, so that a machine without this device can load them.
        kept = {name: None if name[0] == "_" else value for name, value in vars(self).items()}
        saved = owned(self.state_dict(), "cpu")
        return kept | {"_example": self._example, "_fields": {}, "_saved": saved}

    def __setstate__(self, state: StateDict) -> None:
        saved = state.pop("_saved")
        vars(self).update(state, _device=torch.device("cpu"), _random=torch.Generator())
        self.load_state_dict(saved)
