"""What callbacks written for stable-baselines3 look up in their `locals`, converted on demand.

SB3's callbacks expect numpy arrays and a list with one dictionary per row. Making them in every
step would cost more than the step; here they are made when a callback looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from sb3_ext.off_policy.collector import ParallelStep


class LazyArray:
    """A tensor that is seen as a numpy array; on another device it is copied at the first look."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._array: np.ndarray | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._array is None:
            self._array = self.tensor.detach().cpu().numpy()
        array = self._array if dtype is None else self._array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle ask before the object is complete
            raise AttributeError(name)
        return getattr(self.__array__(), name)

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, index: Any) -> Any:
        return self.__array__()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__array__())


class LazyInfos(Sequence[dict[str, Any]]):
    """The list of info dictionaries of one parallel step, with the entries that SB3 reads.

    A row that ended has `episode` (`r` its return, `l` its length), `terminal_observation` and
    `TimeLimit.truncated`; the dictionaries of the others are empty.
    """

    def __init__(self, step: ParallelStep) -> None:
        self._step = step
        self._rows: list[dict[str, Any]] | None = None

    def _build(self) -> list[dict[str, Any]]:
        if self._rows is None:
            step = self._step
            terminated, truncated = step.terminated.cpu().numpy(), step.truncated.cpu().numpy()
            self._rows = [{} for _ in terminated]
            for row in (terminated | truncated).nonzero()[0].tolist():
                self._rows[row] = {
                    "TimeLimit.truncated": bool(truncated[row] and not terminated[row]),
                    "terminal_observation": _row_of(step.next_observations, row),
                }
                if step.episode is not None:
                    sums = {key: step.episode[key][row].item() for key in ("r", "l")}
                    self._rows[row]["episode"] = sums
        return self._rows

    def __len__(self) -> int:
        return len(self._step.terminated)

    def __getitem__(self, index: Any) -> Any:
        return self._build()[index]


def _row_of(observation: Any, row: int) -> Any:
    if isinstance(observation, dict):
        return {key: value[row].cpu().numpy() for key, value in observation.items()}
    return observation[row].cpu().numpy()
