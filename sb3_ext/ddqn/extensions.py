"""What can be added to every update of deep Q-learning without another loop."""

from __future__ import annotations

from typing import Any

from torch import Tensor

__all__ = ["UpdateExtension"]


class UpdateExtension:
    """Takes part in every update; put objects of subclasses into ``model.extensions``.

    An update calls `change_batch` of every extension, in turn, before the loss and `extra_loss` of
    every one after it. Both may draw random numbers, but a run that is resumed has to draw the
    same ones: take them from a generator that is seeded by the number of the update,
    ``model.num_updates``, which counts the finished ones. Models are saved without extensions.

    A captured update (`cuda_graphs`) would repeat the first extra loss for ever, so DDQN refuses
    the two together.
    """

    def change_batch(self, model: Any, batch: Any) -> Any:
        """The batch to learn from in place of the one that was sampled.

        Args:
            model: the learner.
            batch: what the replay buffer gave, of B transitions; its tensors may be shared and
                must not be written to.
        """
        return batch

    def extra_loss(self, model: Any) -> Tensor | None:
        """A scalar with gradients that is added to the loss, or None."""
        return None
