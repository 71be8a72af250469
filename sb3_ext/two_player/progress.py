"""A progress bar that is only there if tqdm is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["ProgressBar", "progress_bar"]


class ProgressBar:
    """Steps on a bar of tqdm, with the newest measure beside it.

    Args:
        bar: the bar, or None for nothing at all.
    """

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar

    def update(self, steps: int = 1) -> None:
        """So many steps more."""
        if self._bar is not None:
            self._bar.update(steps)

    def show(self, values: Mapping[str, float]) -> None:
        """Show the first value."""
        if self._bar is not None:
            name, value = next(iter(values.items()))
            self._bar.set_postfix({name: f"{value:.4f}"})


@contextmanager
def progress_bar(
    steps: int, wanted: bool, done: int = 0, unit: str = "step"
) -> Iterator[ProgressBar]:
    """A bar for so many steps, closed at the end.

    Args:
        steps: the whole length.
        wanted: False: nothing is shown.
        done: steps made before.
        unit: what a step is called.
    """
    if not wanted:
        yield ProgressBar()
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield ProgressBar()
        return
    with tqdm(total=steps, initial=done, unit=unit, dynamic_ncols=True) as bar:
        yield ProgressBar(bar)
