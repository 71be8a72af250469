"""The teacher goes on teaching while a policy learns by reinforcement, and games seen in a mirror.

    teacher = Teacher(load_dataset("runs/data"), weight=0.1)
    model.learn(3_000_000, callback=[teacher, MirroredGames([2, 1, 0])])

Both are callbacks, so they can stand in a hyperparameter file under ``callback``, and take part in
the updates as `UpdateExtension`. What they draw depends on their seed and the number of the update
alone: a run that is resumed with the same callbacks goes on bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from sb3_ext.adapter.observations import to_device
from sb3_ext.callbacks.rho_evaluation import role_of
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.registry import unknown_word
from sb3_ext.ddqn import DDQN, UpdateExtension
from sb3_ext.studies.teach.dataset import load_dataset
from sb3_ext.studies.teach.examples import (
    axis_orders,
    digest,
    examples_of,
    observe,
    permute_observation,
    rename_axes,
    seeded_generator,
)
from sb3_ext.studies.teach.losses import RETURNS, teaching_loss
from sb3_ext.studies.teach.pretraining import check_data, observation_form

__all__ = ["MirroredGames", "Teacher"]


class _Extends(BaseCallback):
    """A callback that takes part in the updates while `learn` runs."""

    def __init__(self) -> None:
        super().__init__()
        self.extension: UpdateExtension | None = None

    def _make(self, model: DDQN) -> UpdateExtension:
        raise NotImplementedError

    def _on_training_start(self) -> None:
        if not isinstance(self.model, DDQN):
            raise TypeError(
                f"model: {type(self).__name__} works with DDQN, got {type(self.model).__name__}"
            )
        self._detach()  # an earlier call of learn may have ended with an error
        self.extension = self._make(self.model)
        self.model.extensions.append(self.extension)

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._detach()

    def _detach(self) -> None:
        if self.extension is not None:
            extensions = self.model.extensions  # type: ignore[attr-defined]
            extensions[:] = [each for each in extensions if each is not self.extension]
            self.extension = None


class Teacher(_Extends):
    """Adds the teaching loss on labelled positions to every update.

    The labelled moves are optimal against the worst opponent. Against known opponents others may
    be better, so with the weight the choice is made between proven play and the profit of
    knowing the opponent; where positions differ a network can have both.

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
        self.data = load_dataset(Path(data)) if isinstance(data, (str, os.PathLike)) else data
        part: Any = self.data.split("train")
        self._examples = examples_of(part)
        if families is not None:
            known = list(self.data.families)
            for name in families:
                if name not in known:
                    raise ValueError(f"families: {unknown_word('family', name, known)}")
            wanted = torch.tensor([name in families for name in known])[part.family]
            if not bool(wanted.any()):
                raise ValueError(f"families: there is no position of {list(families)!r}")
            self._examples = self._examples.select(wanted)
        self._digest = digest(self._examples)

    def _make(self, model: DDQN) -> UpdateExtension:
        check_data(self.data, model.policy, self.value_weight)
        return _TeachingTerm(self, self._examples)

    def _on_rollout_start(self) -> None:
        last = None if self.extension is None else self.extension.last  # type: ignore[attr-defined]
        if last is not None:
            self.logger.record("teach/choice", float(last.choice))
            self.logger.record("teach/value", float(last.value))

    def state_dict(self) -> dict[str, Any]:
        """What must be the same when the run goes on."""
        return {
            "augment": self.augment,
            "batch_size": self.batch_size,
            "data": self._digest,
            "reward": self.reward,
            "seed": self.seed,
            "temperature": float(self.temperature),
            "value_weight": float(self.value_weight),
            "weight": float(self.weight),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Accepts the state of a teacher of the same data and settings.

        Raises:
            ValueError: it was another one; the line names the difference.
        """
        for name, own in self.state_dict().items():
            if state[name] != own:
                raise ValueError(f"{name} was {state[name]!r:.40}, now it is {own!r:.40}")


class _TeachingTerm(UpdateExtension):
    def __init__(self, teacher: Teacher, examples: Any) -> None:
        self.teacher, self.examples = teacher, examples
        self.last: Any = None

    def extra_loss(self, model: Any) -> Tensor:
        """The weighted teaching loss of the positions of this update."""
        teacher = self.teacher
        source = seeded_generator(teacher.seed, model.num_updates)
        rows = torch.randint(len(self.examples), (teacher.batch_size,), generator=source)
        batch = self.examples.select(rows)
        if teacher.augment:
            batch = rename_axes(batch, source)
        rows_seen, scale = observation_form(model.policy)
        device = model.device
        terms = teaching_loss(
            model.q_net(to_device(observe(batch, rows_seen, scale), device)),
            batch.optimal.to(device),
            None if batch.coords is None else batch.coords.to(device),
            batch.value.to(device),
            seat=role_of(model.observation_space),
            reward=teacher.reward or "step",
            gamma=model.gamma,
            temperature=teacher.temperature,
            value_weight=teacher.value_weight,
        )
        self.last = terms
        return teacher.weight * terms.total


class MirroredGames(_Extends):
    """Renames the axes in every second transition of a batch: twice the experience for nothing.

    A renamed game is a game against renamed opponents, so the renaming must turn the mixture of
    opponents into itself: ``[2, 1, 0]`` exchanges ``choose_first`` and ``choose_last`` (which need
    equal shares) and leaves ``random`` as it is. Nobody can check that for any opponent; it is
    the caller who knows.
    """

    def __init__(self, order: Sequence[int]) -> None:
        """Prepares.

        Args:
            order: the new axis j is the old axis ``order[j]``; every axis once, not all in
                their places.

        Raises:
            ValueError: it is no such order.
        """
        super().__init__()
        numbers = list(order)
        if sorted(numbers) != list(range(len(numbers))) or numbers == sorted(numbers):
            raise ValueError(f"order must be another order of 0, 1, ..., got {order!r}")
        self.order = numbers

    def _make(self, model: DDQN) -> UpdateExtension:
        space: Any = model.observation_space
        points = space["points"] if role_of(space) == "agent" else space
        if points.shape[1] != len(self.order):
            raise ValueError(f"order must have {points.shape[1]} axes, got {self.order!r}")
        return _Mirror(self.order)


class _Mirror(UpdateExtension):
    def __init__(self, order: list[int]) -> None:
        orders = axis_orders(len(order))
        number = orders.axes.tolist().index(order)
        self.axes, self.moves = orders.axes[number], orders.actions[number]

    def change_batch(self, model: Any, batch: Any) -> Any:
        """The batch with every second row renamed."""
        host = role_of(model.observation_space) == "host"
        moves = (self.moves if host else self.axes).to(batch.actions.device)
        # The new action k is the old action moves[k]; a row holds an old one.
        renamed = moves.argsort()[batch.actions[::2]]
        actions = batch.actions.clone()
        actions[::2] = renamed
        changes: dict[str, Any] = {"actions": actions}
        for name in ("observations", "next_observations"):
            changes[name] = _every_second(getattr(batch, name), self.axes)
        legal = getattr(batch, "next_legal", None)
        if legal is not None:
            legal = legal.clone()
            legal[::2] = legal[::2][:, moves]
            changes["next_legal"] = legal
        return batch._replace(**changes)


def _every_second(observation: Any, axes: Tensor) -> Any:
    if isinstance(observation, Mapping):
        half = {name: value[::2] for name, value in observation.items()}
        renamed: Any = permute_observation(half, axes)
        result = {name: value.clone() for name, value in observation.items()}
        for name, value in renamed.items():
            result[name][::2] = value
        return result
    changed = observation.clone()
    changed[::2] = permute_observation(observation[::2], axes)
    return changed
