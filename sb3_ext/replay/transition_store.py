"""Named tensors `[T, N, ...]` in one place: the memory below a replay buffer."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim, get_obs_shape
from torch import Tensor

from resgym.game.devices import check_memory
from sb3_ext.adapter.observations import entries_of

Layout = dict[str, tuple[tuple[int, ...], torch.dtype]]


class TransitionStore:
    """T time slots of N rows, one tensor `[T, N, *shape]` per named field.

    Args:
        layout: Shape and dtype of one transition, per field.
        num_slots: T, at least 1.
        num_rows: N, at least 1.
        device: Where the tensors are made; nothing is made before `allocate`.
    """

    def __init__(self, layout: Layout, num_slots: int, num_rows: int, device: torch.device) -> None:
        self.layout = layout
        self.stored = layout
        self.num_slots = num_slots
        self.num_rows = num_rows
        self.device = device
        self.fields: dict[str, Tensor] = {}

    @property
    def bytes_per_transition(self) -> int:
        """Memory of one transition."""
        return layout_bytes(self.stored)

    @property
    def tensors(self) -> Layout:
        """Whole shape and dtype of everything that is allocated, by name."""
        return self._slots(self.num_slots)

    @property
    def total_bytes(self) -> int:
        """Memory of the full store."""
        return layout_bytes(self.tensors)

    @property
    def capacity(self) -> int:
        """Transitions that fit, T N."""
        return self.num_slots * self.num_rows

    def allocate(self) -> None:
        """Make the tensors once; ValueError if the device has too little memory left."""
        if self.fields:
            return
        size = self.bytes_per_transition
        what = f"buffer_size: {self.capacity} transitions of {size} bytes"
        check_memory(what, self.total_bytes, size, self.device)
        # Not zeros: pages that were never written cost nothing, so a long buffer fills gradually.
        self.fields = {
            name: torch.empty(shape, dtype=dtype, device=self.device)
            for name, (shape, dtype) in self.tensors.items()
        }

    def clear(self) -> None:
        """Forget everything."""

    def move(self, device: torch.device) -> None:
        """Keep the tensors on another device."""
        self.device = device
        self.fields = {name: value.to(device) for name, value in self.fields.items()}

    def checked(self, entries: Mapping[str, Tensor], *lead: int) -> dict[str, Tensor]:
        """Transitions `[*lead, ...]` with the shapes of the layout, else a ValueError."""
        if entries.keys() != self.layout.keys():
            raise ValueError(f"transition: got {sorted(entries)}, need {sorted(self.layout)}")
        return {name: self._shaped(name, value, lead) for name, value in entries.items()}

    def place(self, name: str, slot: int) -> Tensor:
        """Where a field of the transitions of a slot is kept, `[N, *shape]`."""
        return self.fields[name][slot]

    def not_following(self, slot: int, checked: Mapping[str, Tensor]) -> Tensor:
        """Rows `[N]` bool whose observation is not the one that a slot's transition reached."""
        differs = torch.zeros(self.num_rows, dtype=torch.bool, device=self.device)
        for name, value in checked.items():
            if name.startswith("observations"):
                reached = self.place("next_" + name, slot)
                seen = value.to(reached.device, reached.dtype)
                differs |= (_bits(seen) != _bits(reached)).flatten(1).any(dim=1)
        return differs

    def keep_reached(self, slot: int, differs: Tensor) -> None:
        """Called with `not_following` before the next transition is put; all is kept here."""

    def put(self, slot: int, checked: Mapping[str, Tensor]) -> None:
        """Copy what `checked` returned into a slot, cast to the fields' dtypes."""
        self.allocate()
        for name, value in checked.items():
            self.place(name, slot).copy_(value, non_blocking=True)

    def put_steps(self, slot: int, checked: Mapping[str, Tensor]) -> None:
        """Copy transitions `[T, N, ...]` into the slots from this one on, around the ring."""
        self.allocate()
        for name, value in checked.items():
            first = slot
            ends = tuple(range(self.num_slots - slot, len(value), self.num_slots))
            for part in value.tensor_split(ends):
                self.fields[name][first : first + len(part)].copy_(part, non_blocking=True)
                first = 0

    def take(self, name: str, index: Tensor) -> Tensor:
        """Read a field by flat index slot * N + row: `[B]` int64 gives `[B, *shape]`."""
        return self.fields[name].flatten(0, 1).index_select(0, index)

    def filled(self, num_slots: int) -> dict[str, Tensor]:
        """Views of the first slots of every field; empty before `allocate`."""
        return {name: value[:num_slots] for name, value in self.fields.items()}

    def check_finite(self, num_slots: int, fields: Collection[str]) -> None:
        """FloatingPointError if a field, of those named or of all, is not finite. Waits."""
        for name, value in self.filled(num_slots).items():
            wanted = not fields or name.split(".")[0] in fields
            if wanted and value.is_floating_point() and not bool(value.isfinite().all()):
                raise FloatingPointError(
                    f"{name}: the environment gave NaN or an infinite number, which is now in the "
                    "replay buffer; mend the environment and go back to the last checkpoint"
                )

    def fill(self, fields: Mapping[str, Tensor], num_slots: int, newest: int) -> None:
        """Copy fields as `filled` gave them into the first slots; `newest` was put last.

        Raises:
            ValueError: A field is missing, unknown, or of another shape or dtype.
        """
        if num_slots == 0:
            return
        fields = self._without_needless_masks(fields)
        check_fields(fields, self._slots(num_slots))
        self.allocate()
        for name, value in fields.items():
            self.fields[name][:num_slots].copy_(value)

    def _without_needless_masks(self, fields: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The fields without a mask that is not kept here, if it forbids nothing."""
        masks = fields.get("next_legal")
        if masks is None or "next_legal" in self.layout or not bool(masks.all()):
            return fields
        return {name: value for name, value in fields.items() if name != "next_legal"}

    def _slots(self, num_slots: int) -> Layout:
        """Whole shape and dtype of so many slots of every field."""
        whole = (num_slots, self.num_rows)
        return {name: ((*whole, *shape), dtype) for name, (shape, dtype) in self.stored.items()}

    def _shaped(self, name: str, value: Tensor, lead: tuple[int, ...]) -> Tensor:
        need = (*lead, *self.layout[name][0])
        if value.shape == need:
            return value
        given = tuple(value.shape)
        # SB3 passes [N] where a space has the shape [N, 1], and the other way round.
        axes = len(lead)
        if given[:axes] == lead and _without_ones(given[axes:]) == _without_ones(need[axes:]):
            return value.reshape(need)
        raise ValueError(f"{name}: got shape {given}, need {need}")


def named_entries(name: str, observation: Any) -> dict[str, Any]:
    """The fields of an observation: one of that name, or for every entry one, `name.entry`."""
    entries = entries_of(observation).items()
    return {f"{name}.{key}" if key else name: value for key, value in entries}


def transition_layout(
    observation_space: spaces.Space, action_space: spaces.Space, next_legal: bool
) -> Layout:
    """The fields of a transition: shapes and dtypes as the spaces have them.

    Fields are `observations`, `next_observations` (for a dictionary space one field per entry,
    `observations.key`), `actions`, `rewards`, `terminated`, `ended` and, if asked for,
    `next_legal`. Discrete actions are kept in the smallest integers that hold them.

    Raises:
        ValueError: A dtype that PyTorch does not have.
    """
    entries: Any = observation_space
    if isinstance(observation_space, spaces.Dict):
        entries = dict(observation_space)
    layout: Layout = {}
    for name in ("observations", "next_observations"):
        for field, space in named_entries(name, entries).items():
            layout[field] = (get_obs_shape(space), _dtype(space))  # type: ignore[assignment]
    layout["actions"] = ((get_action_dim(action_space),), _action_dtype(action_space))
    layout["rewards"] = ((), torch.float32)
    layout["terminated"] = layout["ended"] = ((), torch.bool)
    if next_legal and isinstance(action_space, spaces.Discrete):
        layout["next_legal"] = ((int(action_space.n),), torch.bool)
    return layout


def check_fields(fields: Mapping[str, Tensor], need: Layout) -> None:
    """Raises ValueError if saved fields have other names, shapes or dtypes."""
    if fields.keys() != need.keys():
        raise ValueError(f"replay buffer: got {sorted(fields)}, need {sorted(need)}")
    for name, (shape, dtype) in need.items():
        value = fields[name]
        if tuple(value.shape) != shape or value.dtype != dtype:
            given = f"{tuple(value.shape)} {value.dtype}"
            raise ValueError(f"replay buffer field {name}: got shape {given}, need {shape} {dtype}")


def layout_bytes(layout: Layout) -> int:
    """Memory of one entry of every field."""
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in layout.values())


def _bits(value: Tensor) -> Tensor:
    """Floats as integers of the same bits: -0.0 is not 0.0 then, and a NaN is itself."""
    if not value.is_floating_point():
        return value
    return value.view({8: torch.int64, 4: torch.int32, 2: torch.int16}[value.dtype.itemsize])


def _dtype(space: spaces.Space) -> torch.dtype:
    if space.dtype is None:
        raise ValueError(f"space: got {space}, need one with a dtype (Box, Discrete, ...)")
    try:
        return torch.from_numpy(np.zeros(0, dtype=space.dtype)).dtype
    except TypeError as error:
        raise ValueError(f"space: got dtype {space.dtype}, which PyTorch does not have") from error


def _action_dtype(space: spaces.Space) -> torch.dtype:
    if isinstance(space, spaces.Discrete):
        largest = int(space.start) + int(space.n) - 1
        for dtype in (torch.int8, torch.int16, torch.int32):
            if largest <= torch.iinfo(dtype).max:
                return dtype
    dtype = _dtype(space)
    return torch.float32 if dtype == torch.float64 else dtype


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


def reserve_memory(model: Any) -> None:
    """Reserves the replay buffer of a model now; ValueError if there is too little memory."""
    allocate = getattr(getattr(model, "replay_buffer", None), "allocate", None)
    if allocate is not None:
        allocate()
