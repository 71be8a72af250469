"""The weights that actors play with: each version is put into the object store once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor


class PublishedWeights:
    """Versions of the weights of one network that are still in use.

    Args:
        ray: The module, connected.
        like: Weights of the network, whose names and shapes all versions must have.

    Attributes:
        newest: Number of the version published last, -1 before the first.
    """

    def __init__(self, ray: Any, like: Mapping[str, Tensor]) -> None:
        self._ray = ray
        self._shapes = {name: tuple(value.shape) for name, value in like.items()}
        self._references: dict[int, Any] = {}
        self.newest = -1

    def put(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Publish weights; ValueError if they are those of another network."""
        shapes = {name: tuple(value.shape) for name, value in weights.items()}
        for name in shapes.keys() | self._shapes.keys():
            given, need = shapes.get(name), self._shapes.get(name)
            if given != need:
                raise ValueError(f"weights: {name} has the shape {given}, need {need}")
        if version not in self._references:
            arrays = {name: value.detach().cpu().numpy() for name, value in weights.items()}
            self._references[version] = self._ray.put(arrays)
        self.newest = version

    def __getitem__(self, version: int) -> Any:
        """Ray's reference to a version."""
        return self._references[version]

    def keep(self, versions: Collection[int]) -> None:
        """Forget all versions but these and the newest."""
        kept = {*versions, self.newest}
        self._references = {n: each for n, each in self._references.items() if n in kept}

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """All versions in use, by number, the newest last."""
        numbers = sorted(self._references)
        arrays = zip(numbers, self._ray.get([self[n] for n in numbers]), strict=True)
        return {
            str(n): {name: torch.tensor(value) for name, value in each.items()}
            for n, each in arrays
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Publish them again."""
        for number in sorted(state, key=int):
            self.put(int(number), state[number])
