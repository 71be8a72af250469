"""A replay buffer whose transitions are tensors that stay on one device.

It takes the place of SB3's `ReplayBuffer`, `DictReplayBuffer` and `NStepReplayBuffer` (2.9.2) in
any off-policy algorithm, and adds a tensor door (`add_batch`) that never waits for the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from resgym.game.devices import available_bytes, format_bytes
from sb3_ext.adapter.observations import Observation, to_device
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.replay.samples import (
    TensorReplayBufferSamples,
    batch_seed,
    check_seed,
    checked_counters,
    n_step_return,
    normalize_observation,
    normalize_reward,
)
from sb3_ext.replay.shared_observations import SharedObservationStore
from sb3_ext.replay.transition_store import TransitionStore, named_entries, transition_layout
from sb3_ext.replay.writers import RowRanges

_COUNTERS = ("n_envs", "pos", "full", "seed", "num_batches_drawn", "optimize_memory_usage")


class TensorReplayBuffer(ReplayBuffer):
    """Ring of transitions `[T, N, ...]` on a device: T time slots for N parallel rows.

    As in SB3 the argument `buffer_size` counts transitions, held as T = buffer_size // n_envs slots
    (at least one) of N = n_envs, and the *attribute* `buffer_size` and `size()` count slots.

    Nothing is allocated before the first transition arrives (or `allocate()`), so a model that is
    loaded to play costs no memory.

    Sampling is uniform with replacement. The generator is the buffer's own, reseeded for every
    batch from (seed, number of batches drawn so far), so two integers are the whole random state.

    n-step windows stop at the end of an episode, at the newest slot, and where an observation does
    not follow from the stored one before it (the environments were reset from outside). A truncated
    episode is bootstrapped from its final observation, a terminated one not at all.

    Args:
        buffer_size: Capacity in transitions, >= 1.
        observation_space: Of one row: a box, a discrete one, or a flat dictionary of them.
        action_space: Of one row.
        device: Where transitions are kept and samples returned.
        n_envs: Rows N that are added at a time.
        optimize_memory_usage: Store every observation once (`sb3_ext.replay.shared_observations`):
            about half the memory, the same samples, final observations included.
        handle_timeout_termination: True: a truncation is no termination. False: it is one.
        n_steps: Longest window of the n-step return, >= 1.
        gamma: Discount of one step, in [0, 1]. Required for n_steps > 1; without it `discounts`
            of the samples is None and SB3's algorithms use their own gamma.
        final_share: With `optimize_memory_usage`: room for final observations at first, in parts of
            the capacity, in (0, 1]; one over the mean length of an episode is needed.
        store_next_legal: Keep a `[T, N, A]` mask of the actions legal at the next observation.
        seed: Seed of the sampling, see `set_seed`.

    Raises:
        ValueError: An argument is out of its range.
    """

    _store: TransitionStore

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
        final_share: float = 0.25,
        store_next_legal: bool = False,
        seed: int = 0,
    ) -> None:
        buffer_size = check_count("buffer_size", buffer_size)
        n_envs = check_count("n_envs", n_envs)
        self.n_steps = check_count("n_steps", n_steps)
        self.final_share = check_number("final_share", final_share, 0.0, 1.0, above=True)
        if gamma is not None:
            gamma = check_number("gamma", gamma, 0.0, 1.0)
        elif n_steps > 1:
            raise ValueError(f"gamma: got None, n_steps={n_steps} needs a number in [0, 1]")
        if store_next_legal and not isinstance(action_space, spaces.Discrete):
            raise ValueError(
                f"store_next_legal: got True for {action_space}, allowed only for Discrete actions"
            )
        self._generator: torch.Generator | None = None
        # ReplayBuffer's own constructor allocates the numpy arrays that this class replaces.
        super(ReplayBuffer, self).__init__(
            buffer_size, observation_space, action_space, device, n_envs=n_envs
        )
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = bool(optimize_memory_usage)
        self.handle_timeout_termination = handle_timeout_termination
        self.gamma = gamma
        self.store_next_legal = store_next_legal
        self._make_store()
        self.set_seed(seed)

    @property  # type: ignore[override]
    def device(self) -> torch.device:
        """Where transitions are kept and samples returned; assigning it moves what is stored."""
        return self._device

    @device.setter
    def device(self, device: torch.device | str) -> None:
        self._device = get_device(device)
        self._generator = None
        if hasattr(self, "_store"):
            self._move()

    @property
    def num_transitions(self) -> int:
        """Transitions that can be sampled now."""
        return int(self.size()) * self.n_envs

    @property
    def bytes_per_transition(self) -> int:
        """Memory of one transition."""
        return self._store.bytes_per_transition

    def memory_bytes(self) -> int:
        """Memory of the full buffer, whether allocated yet or not."""
        return self._store.total_bytes

    @property
    def is_allocated(self) -> bool:
        """Whether the memory was reserved already."""
        return bool(self._store.fields)

    def memory_estimate(self) -> str:
        """One line: how much memory the full buffer takes, and how much there is."""
        available = available_bytes(self._device)
        there = "" if available is None else f", {format_bytes(available)} available"
        return (
            f"Replay buffer: {self._store.capacity:,} transitions of {self.bytes_per_transition:,}"
            f" bytes, {format_bytes(self.memory_bytes())} on {self._device}{there}"
        )

    def reset(self) -> None:
        """Forget all transitions; the memory stays reserved."""
        super().reset()
        self._store.clear()
        self._row_ranges.clear()

    def allocate(self) -> None:
        """Reserve the memory now, or raise ValueError if there is too little; again is harmless."""
        self._store.allocate()

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
        first_row: int = 0,
        steps: int | None = None,
    ) -> None:
        """Store one transition of every row. Copies its arguments; never waits for the device.

        Several writers can fill one buffer, each M consecutive rows: pass M for N below. A slot is
        stored, and can be sampled, when the transitions of all rows have come; those of a writer
        that is ahead wait until then and are no part of what is saved.

        Args:
            obs: Observations acted on, `[N, ...]` or a dictionary of such.
            next_obs: Observations reached; for rows that ended, the final one of the episode (see
                `sb3_ext.adapter.reached_observation`).
            actions: `[N]` or `[N, action_dim]`.
            rewards: `[N]`.
            terminated: `[N]` bool.
            truncated: `[N]` bool.
            next_legal: `[N, A]` bool, actions legal at `next_obs`; exactly with `store_next_legal`.
            first_row: Number of the writer's first row.
            steps: T, if all arguments have one axis more in front, of T transitions of every row,
                stored as by T calls; by one copy a field without n-step returns or sharing.

        Raises:
            ValueError: A shape does not fit the spaces, `next_legal` is missing or not expected,
                the rows are not there or belong in part to another writer, or the buffer does not
                fit into memory. Nothing is stored then.
        """
        if (next_legal is not None) != self.store_next_legal:
            given = "none" if next_legal is None else "a mask"
            raise ValueError(
                f"next_legal: got {given}, the buffer has store_next_legal={self.store_next_legal}"
            )
        if not self.handle_timeout_termination:
            terminated = terminated | truncated
        entries = {
            **named_entries("observations", obs),
            **named_entries("next_observations", next_obs),
            "actions": actions,
            "rewards": rewards,
            "terminated": terminated,
            "ended": terminated | truncated,
        }
        if next_legal is not None:
            entries["next_legal"] = next_legal
        whole = self.n_steps == 1 and not self.optimize_memory_usage
        if steps is None:
            self._add_one(entries, first_row)
        elif whole and (first_row, *terminated.shape[1:]) == (0, self.n_envs):
            self._put_steps(self._store.checked(entries, steps, self.n_envs), steps)
            self._row_ranges.clear()
            self.full = self.full or self.pos + steps >= self.buffer_size
            self.pos = (self.pos + steps) % self.buffer_size
        else:
            for step in range(steps):
                self._add_one({name: value[step] for name, value in entries.items()}, first_row)

    def _add_one(self, entries: dict[str, Tensor], first_row: int) -> None:
        rows = min(len(entries["ended"]), self.n_envs)
        entries = self._store.checked(entries, rows)
        if rows == self.n_envs and first_row == 0:
            self._row_ranges.clear()
        else:
            entries = self._row_ranges.add(first_row, entries)
            if not entries:
                return
        if (self.n_steps > 1 or self.optimize_memory_usage) and self.num_transitions > 0:
            newest = (self.pos - 1) % self.buffer_size
            differs = self._store.not_following(newest, entries)
            self._store.keep_reached(newest, differs)
            if self.n_steps > 1:
                self._store.fields["ended"][newest].logical_or_(differs)
        self._put(entries)
        self.pos = (self.pos + 1) % self.buffer_size
        self.full = self.full or self.pos == 0

    def add(
        self,
        obs: np.ndarray | dict[str, np.ndarray],
        next_obs: np.ndarray | dict[str, np.ndarray],
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
        next_legal: np.ndarray | None = None,
    ) -> None:
        """Store one transition of every row, as SB3's algorithms do (see `ReplayBuffer.add`)."""
        timeout = np.array([bool(info.get("TimeLimit.truncated")) for info in infos], dtype=bool)
        ended = np.asarray(done, dtype=bool).reshape(self.n_envs)
        values = (obs, next_obs, action, reward, ended & ~timeout, ended & timeout)
        legal = None if next_legal is None else torch.as_tensor(next_legal, dtype=torch.bool)
        tensors = (to_device(value, torch.device("cpu")) for value in values)
        self.add_batch(*tensors, next_legal=legal)  # type: ignore[misc]

    def set_seed(self, seed: int) -> None:
        """Start the sampling sequence of a seed, 0 <= seed < 2**63, at its first batch."""
        self.seed = check_seed(seed)
        self.num_batches_drawn = 0

    def sample(  # type: ignore[override]
        self, batch_size: int, env: VecNormalize | None = None
    ) -> TensorReplayBufferSamples:
        """Draw transitions with replacement, on `device`; `env` normalises them."""
        batch_size = check_count("batch_size", batch_size)
        if self.num_transitions == 0:
            raise ValueError("sample: the buffer is empty, add transitions first")
        if self._generator is None:
            self._generator = torch.Generator(device=self._device)
        self._generator.manual_seed(batch_seed(self.seed, self.num_batches_drawn))
        self.num_batches_drawn += 1
        return self._get_samples(self._draw(batch_size, self._generator), env)

    def _draw(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Flat indices of the transitions of a batch, `[B]` int64 on `device`."""
        shape = (batch_size,)
        return torch.randint(self.num_transitions, shape, generator=generator, device=self._device)

    def _get_samples(  # type: ignore[override]
        self, batch_inds: Tensor, env: VecNormalize | None = None
    ) -> TensorReplayBufferSamples:
        """Transitions by flat index slot * N + row, `[B]` int64 on `device`."""
        last = batch_inds
        if self.n_steps == 1:
            returns = normalize_reward(self._store.take("rewards", batch_inds), env)
            discounts = None if self.gamma is None else torch.full_like(returns, self.gamma)
        else:
            slot, row = batch_inds // self.n_envs, batch_inds % self.n_envs
            step = torch.arange(self.n_steps, device=slot.device)
            window = (slot[:, None] + step) % self.buffer_size * self.n_envs + row[:, None]
            returns, discounts, length = n_step_return(
                normalize_reward(self._store.take("rewards", window.view(-1)), env).view_as(window),
                self._store.take("ended", window.view(-1)).view_as(window),
                newer=(self.pos - 1 - slot) % self.buffer_size,
                gamma=1.0 if self.gamma is None else self.gamma,
            )
            last = window.gather(1, length[:, None] - 1)[:, 0]
        actions = self._store.take("actions", batch_inds)
        return TensorReplayBufferSamples(
            observations=self._observation("observations", batch_inds, env),
            actions=actions if actions.is_floating_point() else actions.long(),
            next_observations=self._observation("next_observations", last, env),
            dones=self._store.take("terminated", last).float()[:, None],
            rewards=returns[:, None],
            discounts=None if discounts is None else discounts[:, None],
            next_legal=self._store.take("next_legal", last) if self.store_next_legal else None,
        )

    def check_finite(self, *fields: str) -> None:
        """Raises FloatingPointError if what the environment gave was not finite. Waits.

        Args:
            fields: ``rewards``, ``observations`` and so on; by default all that hold numbers.
        """
        self._store.check_finite(self.size(), fields)

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, int | bool]]:
        """The stored transitions and the counters, random state included.

        Returns:
            Tensors `[slots in use, N, ...]` by field, views of the buffer; and plain numbers. With
            `optimize_memory_usage` also `final_observations` `[M, ...]` and `newest_observations`
            `[N, ...]`.
        """
        return self._filled(), self._counters()

    def _counters(self) -> dict[str, int | bool]:
        return {"num_slots": self.buffer_size, **{name: getattr(self, name) for name in _COUNTERS}}

    def load_state_dict(
        self, tensors: Mapping[str, Tensor], counters: Mapping[str, int | bool]
    ) -> None:
        """Continue from `state_dict()`; ValueError, and unchanged, if a size or dtype differs."""
        pos, full, seed, drawn = checked_counters(counters, self._counters())
        self._fill(tensors, self.buffer_size if full else pos, (pos - 1) % self.buffer_size)
        self.pos, self.full = pos, full
        self.set_seed(seed)
        self.num_batches_drawn = drawn

    def __getstate__(self) -> dict[str, Any]:
        # Only the slots in use, as arrays, so that a machine without this device can load them.
        state = {name: None if name[0] == "_" else value for name, value in vars(self).items()}
        state["_arrays"] = {name: value.cpu().numpy() for name, value in self._filled().items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.pop("_arrays")
        self.__dict__.update(state)
        self._device = torch.device("cpu")
        self._make_store()
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self._fill(tensors, self.size(), (self.pos - 1) % self.buffer_size)

    # What a buffer that knows more of its transitions adds to.

    def _move(self) -> None:
        self._store.move(self._device)

    def _put(self, entries: Mapping[str, Tensor]) -> None:
        self._store.put(self.pos, entries)

    def _put_steps(self, entries: Mapping[str, Tensor], steps: int) -> None:
        self._store.put_steps(self.pos, entries)

    def _filled(self) -> dict[str, Tensor]:
        return self._store.filled(self.size())

    def _fill(self, tensors: Mapping[str, Tensor], num_slots: int, newest: int) -> None:
        self._store.fill(tensors, num_slots, newest)

    def _make_store(self) -> None:
        layout = transition_layout(self.observation_space, self.action_space, self.store_next_legal)
        arguments = (layout, self.buffer_size, self.n_envs, self._device)
        if self.optimize_memory_usage:
            self._store = SharedObservationStore(*arguments, self.final_share)
        else:
            self._store = TransitionStore(*arguments)
        self._row_ranges = RowRanges(self.n_envs)

    def _observation(self, name: str, index: Tensor, env: VecNormalize | None) -> Observation:
        space, take = self.observation_space, self._store.take
        if isinstance(space, spaces.Dict):
            return normalize_observation({k: take(f"{name}.{k}", index) for k in space}, env)
        return normalize_observation(take(name, index), env)
