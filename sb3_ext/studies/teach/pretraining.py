"""Supervised pretraining: a policy learns the optimal moves of labelled positions.

    model = DDQN("HostPolicy", env, policy_kwargs={"extractor": "point_pairs"})
    data = load_dataset("runs/data")
    Pretraining(model, data, TeachingSettings(updates=20_000)).run("runs/taught")
    model.learn(100_000)          # goes on by reinforcement, from the taught networks

Everything random is a function of the seed and of the number of the epoch or update, so that a run
that was interrupted goes on bit for bit on the CPU, from nothing but that number.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.utils import update_learning_rate
from torch import Tensor, nn

from sb3_ext.adapter.observations import to_device
from sb3_ext.callbacks.rho_evaluation import player_of, seat_of
from sb3_ext.checkpoints.checkpoint import (
    CheckpointError,
    checkpoint_name,
    list_checkpoints,
    read_checkpoint,
    save_checkpoint,
)
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.checkpoints.model_state import load_policy_weights, network_description
from sb3_ext.checkpoints.training_state import load_optimizer_state, optimizer_state
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.files import write_json
from sb3_ext.runs.folder import going_on_without
from sb3_ext.studies.teach.examples import (
    Examples,
    checked,
    digest,
    observe,
    rename_axes,
    seeded_generator,
)
from sb3_ext.studies.teach.losses import RETURNS, TeachingLoss, teaching_loss
from sb3_ext.studies.teach.measures import optimal_choices
from sb3_ext.studies.teach.settings import TeachingSettings

# Purposes of random numbers, mixed into the seed.
_SPLIT, _ORDER, _AXES = 0, 1, 2


@lru_cache(maxsize=1)
def _shuffled(rows: int, *words: int) -> Tensor:
    """The numbers below ``rows`` in an order that the words decide."""
    return torch.randperm(rows, generator=seeded_generator(*words))


def check_data(data: Any, policy: Any, value_weight: float) -> None:
    """Whether a policy can be taught by a dataset.

    Raises:
        ValueError: the data are for the other seat or other sizes, or their values are no numbers
            of moves and ``value_weight`` is not 0.
    """
    seat, points = seat_of(policy)
    if data.seat != seat:
        raise ValueError(f"data: is labelled for the {data.seat}, the policy is a {seat}")
    rows, dimension = points.shape
    if data.dimension != dimension:
        raise ValueError(f"data: has dimension {data.dimension}, the policy plays {dimension}")
    if data.max_num_points > rows:
        raise ValueError(
            f"data: has positions of up to {data.max_num_points} points, the policy observes "
            f"{rows} (max_num_points)"
        )
    if value_weight and data.objective != "depth":
        raise ValueError(
            f"value_weight: must be 0 for values in {data.objective}, which are no numbers of "
            f"moves, got {value_weight}"
        )


def imitation_loss(
    model: DDQN, batch: Examples, reward: str, temperature: float, value_weight: float
) -> TeachingLoss:
    """The loss of a model's online network on positions of its seat; see `teaching_loss`."""
    policy, device = model.policy, model.device
    seat, points = seat_of(policy)
    observed = observe(batch, points.shape[0], scale=float(points.high.max()) <= 1.0)
    return teaching_loss(
        policy.q_net(to_device(observed, device)),
        batch.optimal.to(device),
        None if batch.coords is None else batch.coords.to(device),
        batch.value.to(device),
        seat=seat,
        reward=reward,
        gamma=model.gamma,
        temperature=temperature,
        value_weight=value_weight,
    )


class Pretraining:
    """Teaches the networks of a `DDQN` model, from the training part of a dataset.

    A part of the training positions is kept back; the update that chooses best on them is the
    result; the target network holds it meanwhile. The optimiser is of the policy's kind, but
    another one.

    Args:
        model: the learner, with the environment that it will play in (for its sizes). Its
            ``gamma`` decides what returns the values stand for.
        data: what `load_dataset` gives; see `check_data` and `checked` for what is refused.
        settings: how.
        reward: the environment's reward, one of `RETURNS`.

    Attributes:
        update: updates made.
        history: one dict per measurement: update, seconds, loss, choice, value, accuracy.
        best: update and accuracy of the best measurement, None before the first.
    """

    def __init__(
        self, model: DDQN, data: Any, settings: TeachingSettings, reward: str = "step"
    ) -> None:
        self.model, self.policy = model, model.policy
        self.settings, self.reward = settings, reward
        self._player = player_of(model)
        # One of its own: the model's may follow the learning rate of its reinforcement learning.
        self.optimizer = self.policy.optimizer_class(  # type: ignore[call-arg]
            self.policy.q_net.parameters(), lr=settings.rate(0), **self.policy.optimizer_kwargs
        )
        check_data(data, self.policy, settings.value_weight)
        if settings.value_weight and reward not in RETURNS:
            raise ValueError(
                f"value_weight: must be 0 for the reward {reward!r}; the return of a game is "
                f"known for {', '.join(RETURNS)}"
            )
        examples = checked(data.split("train"))
        self._digest = digest(examples)
        order = _shuffled(len(examples), settings.seed, _SPLIT, 0)
        kept = max(1, round(len(examples) * settings.validation_fraction))
        if kept >= len(examples):
            raise ValueError(f"data: {len(examples)} training positions are too few")
        self.validation = examples.select(order[:kept].sort().values)
        self.train = examples.select(order[kept:].sort().values)
        self.update = 0
        self.seconds = 0.0
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None
        self._sums = torch.zeros(3)
        self._stopped = self._checkpoint_requested = False

    def request_stop(self) -> None:
        """Makes `run` write a checkpoint and return after the update in progress."""
        self._stopped = True

    def request_checkpoint(self) -> None:
        """Makes `run` write a checkpoint after the update in progress."""
        self._checkpoint_requested = True

    @property
    def finished(self) -> bool:
        """Whether all updates are made or patience has run out."""
        patience, best = self.settings.patience, self.best
        if self.update >= self.settings.updates or patience is None or best is None:
            return self.update >= self.settings.updates
        return sum(entry["update"] > best["update"] for entry in self.history) >= patience

    def run(
        self,
        run_dir: str | os.PathLike[str] | None = None,
        report: Callable[[dict[str, Any]], None] | None = None,
        tick: Callable[[], None] | None = None,
    ) -> bool:
        """Trains until all updates are made, patience has run out, or a stop was requested.

        A model that is finished holds the best networks, in the target network too; one that was
        stopped is of no use until `run` goes on.

        Args:
            run_dir: folder for checkpoints and ``history.json``; None writes nothing.
            report: called with every measurement.
            tick: called after every update.

        Returns:
            Whether it is finished.

        Raises:
            FloatingPointError: the loss became NaN or infinite; checkpoints stay as they were.
            OSError: something could not be written.
        """
        folder = None if run_dir is None else Path(run_dir)
        began = time.perf_counter() - self.seconds
        settings = self.settings
        while not self.finished and not self._stopped:
            self._one_update()
            self.seconds = time.perf_counter() - began
            if tick is not None:
                tick()
            last = self.update == settings.updates
            if last or self.update % settings.evaluation_updates == 0:
                measured = self._measure()
                if report is not None:
                    report(measured)
            every = settings.checkpoint_updates
            due = every and self.update % every == 0 and not last
            if folder is not None and (due or self._checkpoint_requested):
                self._checkpoint_requested = False
                with going_on_without("checkpoint", folder):
                    self.save(folder)
        if folder is not None:
            self.save(folder)
        if self.finished:
            self.take_best()
        return self.finished

    def take_best(self) -> None:
        """The networks become those of the best measurement, if there was one."""
        if self.best is not None:
            self.policy.q_net.load_state_dict(self.policy.q_net_target.state_dict())
        self.policy.set_training_mode(False)

    def _one_update(self) -> None:
        settings, policy = self.settings, self.policy
        update_learning_rate(self.optimizer, settings.rate(self.update))
        policy.set_training_mode(True)
        terms = imitation_loss(
            self.model, self._batch(), self.reward, settings.temperature, settings.value_weight
        )
        self.optimizer.zero_grad()
        terms.total.backward()
        nn.utils.clip_grad_norm_(policy.q_net.parameters(), settings.max_grad_norm or torch.inf)
        self.optimizer.step()
        self._sums += torch.stack([each.detach().cpu() for each in terms])
        self.update += 1

    def _batch(self) -> Examples:
        """The positions of the next update; every epoch has an order of its own."""
        size = min(self.settings.batch_size, len(self.train))
        per_epoch = len(self.train) // size
        epoch, number = divmod(self.update, per_epoch)
        order = _shuffled(len(self.train), self.settings.seed, _ORDER, epoch)
        batch = self.train.select(order[number * size : (number + 1) * size])
        if self.settings.augment:
            batch = rename_axes(batch, seeded_generator(self.settings.seed, _AXES, self.update))
        return batch

    def _measure(self) -> dict[str, Any]:
        updates = self.update - (self.history[-1]["update"] if self.history else 0)
        total, choice, value = (self._sums / updates).tolist()
        if not math.isfinite(total):
            raise FloatingPointError(
                f"loss: is {total} after {self.update} updates; lower learning_rate or "
                "max_grad_norm"
            )
        self._sums.zero_()
        accuracy = float(optimal_choices(self._player, self.validation).double().mean())
        measured = {
            "update": self.update,
            "seconds": round(self.seconds, 3),
            "loss": total,
            "choice": choice,
            "value": value,
            "accuracy": accuracy,
        }
        self.history.append(measured)
        if self.best is None or accuracy > self.best["accuracy"]:
            self.best = measured
            self.policy.q_net_target.load_state_dict(self.policy.q_net.state_dict())
        return measured

    def save(self, run_dir: str | os.PathLike[str]) -> Path:
        """Writes a checkpoint named after the updates, and ``history.json``.

        Its networks, which `init_from` and `load_player` read, are the best so far (before the
        first measurement, the present ones); what training needs to go on is beside them.
        """
        policy = self.policy
        best = (policy.q_net if self.best is None else policy.q_net_target).state_dict()
        nets = ("q_net", "q_net_target")
        state = {
            "network": network_description(policy),
            "policy": {f"{net}.{name}": w for net in nets for name, w in best.items()},
            "optimizer": optimizer_state(self.optimizer),
            "teaching": {
                **self._identity(),
                "best": self.best,
                "history": self.history,
                "seconds": self.seconds,
                "sums": self._sums,
                "update": self.update,
                "weights": dict(policy.q_net.state_dict()),
            },
        }
        folder = Path(run_dir)
        path = save_checkpoint(folder / checkpoint_name(self.update), state, keep_last=2)
        write_json(folder / "history.json", self.history)
        return path

    def resume(self, run_dir: str | os.PathLike[str]) -> Path | None:
        """Goes on from the newest valid checkpoint of a folder; returns it, or None without one.

        Raises:
            CheckpointError: it belongs to other data, settings or networks, or to no teaching.
        """
        if not list_checkpoints(run_dir):
            return None
        path, state = read_checkpoint(run_dir)
        if "teaching" not in state:
            raise CheckpointError(f"{path}: parts: 'teaching' is missing; this run was not taught")
        saved = state["teaching"]
        if other := difference(saved, self._identity()):
            raise CheckpointError(f"{path}: teaching/{other}")
        load_policy_weights(self.policy, state["policy"], f"{path}: policy")
        load_policy_weights(self.policy.q_net, saved["weights"], f"{path}: teaching/weights")
        with errors_named(f"{path}: optimizer"):
            load_optimizer_state(self.optimizer, state["optimizer"])
        self.update, self.seconds = saved["update"], saved["seconds"]
        self.best, self.history, self._sums = saved["best"], saved["history"], saved["sums"]
        return path

    def _identity(self) -> dict[str, Any]:
        """What must be the same when a run goes on."""
        return {
            "data": self._digest,
            "reward": self.reward,
            "gamma": float(self.model.gamma),
            "settings": json.loads(json.dumps(self.settings.to_dict())),
        }


def difference(saved: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Where a record of what must stay the same differs first; empty if it does not."""
    for name, value in own.items():
        before = saved.get(name)
        if before != value and isinstance(before, dict) and isinstance(value, dict):
            return f"{name}: {difference(before, value)}"
        if before != value:
            return f"{name} was {before!r:.80}, now it is {value!r:.80}"
    return ""
