"""Transitions whose observations are stored once: about half the memory, the same samples.

As docs/ddqn.md says, what a transition reached is read from the following slot, and exceptions are
kept beside it in a queue. The bits of the two observations decide what is one. The newest
transition has no following slot yet: what it reached lies in one more slot at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from resgym.game.devices import check_memory
from sb3_ext.replay.transition_store import Layout, TransitionStore, check_fields, layout_bytes

# The queue is given room for at least this part of the slots before it is looked at again.
_SLACK = 64


class SharedObservationStore(TransitionStore):
    """T time slots of N rows; a field `observations` serves for `next_observations` too.

    The queue of exceptions is a ring of its own: transitions come and go in one order, and so do
    their exceptions. It has room for a share of all transitions and grows if that is too little,
    at most to one per transition. How full it is lies on the device and is read (one wait) only
    when so many transitions came that it could be full.

    The arguments are those of `TransitionStore`, and `final_share`, the room of the queue in parts
    of T N, in (0, 1].
    """

    def __init__(
        self,
        layout: Layout,
        num_slots: int,
        num_rows: int,
        device: torch.device,
        final_share: float,
    ) -> None:
        super().__init__(layout, num_slots, num_rows, device)
        self.shared = {k: v for k, v in layout.items() if k.startswith("observations")}
        self._place_type = torch.int32 if self.capacity < 2**31 else torch.int64
        kept = {k: v for k, v in layout.items() if not k.startswith("next_observations")}
        self.stored = {**kept, "reached_at": ((), self._place_type)}
        self.final_share = final_share
        self.room = max(1, math.ceil(final_share * self.capacity))
        self._newest = 0
        self._written = torch.zeros((), dtype=torch.int64, device=device)
        self._at_most = 0  # entries of the queue, as far as is known without looking

    @property
    def bytes_per_transition(self) -> int:
        """Memory of one transition and its share of the queue."""
        share = self.room / self.capacity
        return layout_bytes(self.stored) + math.ceil(share * layout_bytes(self.shared))

    @property
    def tensors(self) -> Layout:
        """As `TransitionStore.tensors`: one more slot, and the queue with a row nobody reads."""
        found = super().tensors
        for name, (shape, dtype) in self.shared.items():
            found[name] = ((self.num_slots + 1, self.num_rows, *shape), dtype)
            found[f"final_{name}"] = ((self.room + 1, *shape), dtype)
        return found

    def allocate(self) -> None:
        """As `TransitionStore.allocate`."""
        if not self.fields:
            super().allocate()
            self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._at_most = 0
        self._written.zero_()
        if self.fields:
            self.fields["reached_at"].fill_(-1)

    def move(self, device: torch.device) -> None:
        """As `TransitionStore.move`."""
        super().move(device)
        self._written = self._written.to(device)

    def place(self, name: str, slot: int) -> Tensor:
        """As `TransitionStore.place`; what transitions led to only of the newest ones."""
        if name.startswith("next_observations"):
            name, slot = name.removeprefix("next_"), self.num_slots
        return super().place(name, slot)

    def keep_reached(self, slot: int, differs: Tensor) -> None:
        """Keep what the newest transitions, in `slot`, led to in rows `[N]` that differ.

        Raises:
            ValueError: The queue has to grow, and the device has too little memory left.
        """
        if self.room < self.capacity and self._at_most + self.num_rows > self.room:
            written, live = self._look()
            slack = self.num_rows * max(1, self.num_slots // _SLACK)
            if live + slack > self.room:
                room = max(live + live // 4 + 2 * slack, math.ceil(1.25 * self.room))
                self._grow(min(room, self.capacity), written, live)
            self._at_most = live
        self._at_most += self.num_rows
        place = (self._written + differs.cumsum(0) - 1) % self.room
        # Rows without an exception write to a row that nobody reads, so that nothing depends on
        # how many there are, and no device has to be waited for.
        target = torch.where(differs, place, self.room)
        for name in self.shared:
            queue = self.fields[f"final_{name}"]
            queue.index_copy_(0, target, self.fields[name][self.num_slots])
        self.fields["reached_at"][slot] = torch.where(differs, place, -1).to(self._place_type)
        self._written += differs.sum()

    def put(self, slot: int, checked: Mapping[str, Tensor]) -> None:
        """As `TransitionStore.put`; the slot holds the newest transitions from then on."""
        super().put(slot, checked)
        self.fields["reached_at"][slot].fill_(-1)
        self._newest = slot

    def take(self, name: str, index: Tensor) -> Tensor:
        """As `TransitionStore.take`, `next_observations` too."""
        if not name.startswith("next_observations"):
            return super().take(name, index)
        source = name.removeprefix("next_")
        slot, row = index // self.num_rows, index % self.num_rows
        last = slot == self._newest
        following = torch.where(last, self.num_slots, (slot + 1) % self.num_slots)
        shown = super().take(source, following * self.num_rows + row)
        place = super().take("reached_at", index)
        kept = self.fields[f"final_{source}"].index_select(0, place.clamp(min=0))
        exception = (place >= 0).view(-1, *[1] * (shown.dim() - 1))
        return torch.where(exception, kept, shown)

    def filled(self, num_slots: int) -> dict[str, Tensor]:
        """What `fill` takes; the queue from its oldest entry on, so a copy of it. Waits once."""
        if not self.fields:
            return {}
        written, live = self._look()
        order, places = self._from_oldest(written, live)
        fields = super().filled(num_slots)
        fields["reached_at"] = places[:num_slots]
        for name in self.shared:
            fields[f"final_{name}"] = self.fields[f"final_{name}"].index_select(0, order)
            fields[f"newest_{name}"] = self.fields[name][self.num_slots]
        return fields

    def fill(self, fields: Mapping[str, Tensor], num_slots: int, newest: int) -> None:
        """As `TransitionStore.fill`."""
        if num_slots == 0:
            self.clear()
            return
        fields = self._without_needless_masks(fields)
        places = fields.get("reached_at", torch.empty(0))
        live = int((places >= 0).sum())
        need = self._slots(num_slots)
        for name, (shape, dtype) in self.shared.items():
            need[f"final_{name}"] = ((live, *shape), dtype)
            need[f"newest_{name}"] = ((self.num_rows, *shape), dtype)
        check_fields(fields, need)
        used = places[places >= 0].sort().values
        if not torch.equal(used, torch.arange(live, dtype=used.dtype, device=used.device)):
            raise ValueError(
                f"replay buffer field reached_at: got other places than 0 to {live - 1}, each once"
            )
        if live > self.room and not self.fields:
            self.room = live
        self.allocate()
        self.clear()
        if live > self.room:
            self._grow(live, 0, 0)
        for name in self.stored:
            self.fields[name][:num_slots].copy_(fields[name])
        for name in self.shared:
            self.fields[f"final_{name}"][:live].copy_(fields[f"final_{name}"])
            self.fields[name][self.num_slots].copy_(fields[f"newest_{name}"])
        self._written.fill_(live)
        self._at_most, self._newest = live, newest

    def _look(self) -> tuple[int, int]:
        """Entries written so far, and how many of them still belong to a transition. Waits."""
        live = (self.fields["reached_at"] >= 0).sum()
        written, count = torch.stack([self._written, live]).tolist()
        return int(written), int(count)

    def _from_oldest(self, written: int, live: int) -> tuple[Tensor, Tensor]:
        """Entries of the queue from the oldest on, and the places of transitions in that order."""
        oldest, places = written - live, self.fields["reached_at"]
        order = (torch.arange(live, device=self.device) + oldest) % self.room
        return order, torch.where(places >= 0, (places - oldest % self.room) % self.room, places)

    def _grow(self, room: int, written: int, live: int) -> None:
        size = layout_bytes(self.shared)
        ended = f"final_share: {live} of {self.capacity} transitions ended an episode"
        check_memory(f"{ended}, whose observations", room * size, size, self.device)
        order, places = self._from_oldest(written, live)
        grown = {}
        for name in (f"final_{each}" for each in self.shared):
            old = self.fields[name]
            grown[name] = old.new_empty((room + 1, *old.shape[1:]))
            grown[name][:live] = old.index_select(0, order)
        self.fields |= grown
        self.fields["reached_at"].copy_(places)
        self.room = room
        self._written.fill_(live)
