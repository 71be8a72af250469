"""Imitation beside reinforcement: the cross-entropy of solver labels added to every update.

    teacher = Teacher(load_dataset("runs/data"), weight=0.1)
    model.learn(3_000_000, callback=teacher)

It is a callback, so it can stand in a hyperparameter file under ``callback``. What it draws depends
on its seed and the number of the update alone: a run that is resumed with the same teacher goes on
bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.registry import unknown_word
from sb3_ext.ddqn import DDQN, UpdateExtension
from sb3_ext.studies.teach.dataset import load_dataset
from sb3_ext.studies.teach.examples import checked, digest, rename_axes, seeded_generator
from sb3_ext.studies.teach.losses import RETURNS, TeachingLoss
from sb3_ext.studies.teach.pretraining import check_data, difference, imitation_loss


class Teacher(BaseCallback, UpdateExtension):
    """Adds the imitation loss on labelled positions to every update.

    The labelled moves are optimal against the worst opponent. Against known opponents others may
    be better, so the weight trades proven play for exploiting the known opponents; where their
    positions differ, a network can do both.

    Logs ``teach/choice`` and ``teach/value`` of the last update at every log.
    """

    def __init__(
        self,
        data: Any,
        weight: float = 0.1,
        *,
        batch_size: int = 128,
        temperature: float = 0.2,
        value_weight: float = 0.0,
        augment: bool = True,
        seed: int = 0,
        families: Sequence[str] | None = None,
        reward: str | None = None,
    ) -> None:
        """Prepares; nothing is taught yet.

        Args:
            data: a dataset of the policy's seat, or its folder. The training part is used.
            weight: the teaching loss is multiplied by it, above 0.
            batch_size: positions in every update, drawn with replacement.
            temperature: see `choice_loss`. Values are numbers of moves under the reward
                ``step``: at 0.2 an optimal move that is a tenth of a move ahead has odds of 1.6.
            value_weight: see `teaching_loss`; the values of a policy that learns against weaker
                opponents are not those of the teacher, hence 0.
            augment: rename the axes of every position at random.
            seed: of the positions and the renaming.
            families: those of the dataset's families that are taught, None for all. Positions as
                they are met against known opponents are where the teacher is in the way.
            reward: the environment's, see `RETURNS`; needed only with ``value_weight``.

        Raises:
            TypeError, ValueError: a setting of another type or out of its range, or no dataset.
        """
        super().__init__()
        self.weight = check_number("weight", weight, low=0, above=True)
        self.batch_size = check_count("batch_size", batch_size)
        self.temperature = check_number("temperature", temperature, low=0, above=True)
        self.value_weight = check_number("value_weight", value_weight, low=0)
        if not isinstance(augment, bool):
            raise TypeError(f"augment must be true or false, got {augment!r}")
        self.augment = augment
        self.seed = check_count("seed", seed, low=0)
        if self.value_weight and reward not in RETURNS:
            raise ValueError(
                f"reward must be one of {', '.join(RETURNS)} with value_weight, got {reward!r}"
            )
        self.reward = reward
        self.data = load_dataset(data) if isinstance(data, (str, os.PathLike)) else data
        self._examples = checked(self.data.split("train"))
        if families is not None:
            known = list(self.data.families)
            for name in families:
                if name not in known:
                    raise ValueError(f"families: {unknown_word('family', name, known)}")
            wanted = torch.tensor([name in families for name in known])[self._examples.family]
            if not bool(wanted.any()):
                raise ValueError(f"families: there is no position of {list(families)!r}")
            self._examples = self._examples.select(wanted)
        self._digest = digest(self._examples)
        self._last: TeachingLoss | None = None

    def _on_training_start(self) -> None:
        if not isinstance(self.model, DDQN):
            raise TypeError(f"model: Teacher works with DDQN, got {type(self.model).__name__}")
        check_data(self.data, self.model.policy, self.value_weight)
        self._on_training_end()  # an earlier call of learn may have ended with an error
        self.model.extensions.append(self)

    def _on_training_end(self) -> None:
        extensions = self.model.extensions  # type: ignore[attr-defined]
        extensions[:] = [each for each in extensions if each is not self]

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._last is not None:
            self.logger.record("teach/choice", float(self._last.choice))
            self.logger.record("teach/value", float(self._last.value))

    def extra_loss(self, model: Any) -> Tensor:
        """The weighted loss of the positions of this update."""
        source = seeded_generator(self.seed, model.num_updates)
        rows = torch.randint(len(self._examples), (self.batch_size,), generator=source)
        batch = self._examples.select(rows)
        if self.augment:
            batch = rename_axes(batch, source)
        self._last = imitation_loss(
            model, batch, self.reward or "step", self.temperature, self.value_weight
        )
        return self.weight * self._last.total

    def state_dict(self) -> dict[str, Any]:
        """What must be the same when the run goes on."""
        names = ("augment", "batch_size", "reward", "seed", "temperature", "value_weight", "weight")
        return {"data": self._digest, **{name: getattr(self, name) for name in names}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Accepts the state of a teacher of the same data and settings.

        Raises:
            ValueError: it was another one; the line names the difference.
        """
        if other := difference(state, self.state_dict()):
            raise ValueError(other)
