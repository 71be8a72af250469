"""Teaches a network the moves that the solver proved to be best, in rounds.

Each round solves new positions (in later rounds from games of the player so far), and learns from
all. The folder is a player, and a start for ``train --init-from``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.utils import update_learning_rate
from torch.nn.utils import clip_grad_norm_

from resgym.benchmark.solved import Solved, joined, solve
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.checkpoints.models import (
    check_finite,
    load_optimizer_state,
    network_description,
)
from sb3_ext.cluster.connection import spreading
from sb3_ext.config.checks import ConfigError, errors_named
from sb3_ext.config.sections import find_config
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.mlp import seat_of
from sb3_ext.runs.driver import Job, Pulse, Run, Used, beat, drive
from sb3_ext.runs.files import write_json
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.teach.losses import model_losses
from sb3_ext.teach.positions import TeachConfig, draw
from sb3_ext.train.config_files import section_of
from sb3_ext.types import Metrics, StateDict

PIECE = 1024
"""Positions solved with one table, and lost at most when the command is killed."""


class Teach(Job[TeachConfig]):
    """Solve positions and teach them to a player, round by round."""

    name = "teach"
    about = __doc__ or ""
    examples = """\
examples:
  python -m sb3_ext.teach --config host --out runs/host
  python -m sb3_ext.teach --config small --set updates=0 --out runs/data    only solve positions
  python -m sb3_ext.teach --config agent --actors 8                         labels on a cluster
"""
    Config = TeachConfig
    file = ("--config", "host")
    shared = (*Job.shared, "--actors")
    rules = ("max_updates", "max_seconds", "until")
    metrics = ("teach/right", "teach/choice", "teach/value")

    def __init__(self, config: TeachConfig, run: Run) -> None:
        super().__init__(config, run)
        self.model = _learner(config)
        rows = seat_of(self.model)[1].shape[0]
        families = [family for each in config.rounds for family in each]
        if (most := max(family.most(config.dimension)[1] for family in families)) > rows:
            raise ConfigError(f"rounds: got {most} points; expected at most {rows}")
        policy: Any = self.model.policy
        # One of its own: the model's may follow the learning rate of its reinforcement learning.
        self.optimizer = policy.optimizer_class(
            policy.q_net.parameters(), lr=self._rate(0), **policy.optimizer_kwargs
        )
        self.update = 0
        self.history: list[Metrics] = []
        self._sums = torch.zeros(3)  # choice, value, updates
        self.data: list[Solved] = []

    @property
    def state(self) -> StateDict:
        """The network, whose target is brought up to date, the optimizer and the progress."""
        policy = self.model.policy
        policy.q_net_target.load_state_dict(policy.q_net.state_dict())
        return {
            "network": network_description(policy),
            "policy": dict(policy.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "teach": {"history": self.history, "sums": self._sums, "update": self.update},
        }

    @state.setter
    def state(self, parts: StateDict) -> None:
        self.model.policy.load_state_dict(parts["policy"])
        load_optimizer_state(self.optimizer, parts["optimizer"])
        progress = parts["teach"]
        self.update = progress["update"]
        self._sums = progress["sums"]
        self.history = progress["history"]

    def run(self, pulse: Pulse) -> None:
        """Make the positions of each round that are missing, and learn from all so far."""
        config = self.config
        for number in range(len(config.rounds) if config.updates else 1):
            self.data.append(self._round(number, lambda: beat(pulse, Used(self.update))))
            data = joined(self.data)
            learnt = data.select(data.split > 0)
            measured = data.select(data.split == 0)
            self.run_of.say(f"{len(learnt)} positions to learn from, {len(measured)} to measure")
            end = config.updates * (number + 1)
            while self.update < end:
                self._learn(learnt)
                due = self.update % config.every == 0 or self.update == end
                found: dict[str, Any] = self._measure(measured) if due else {}
                if not pulse(Used(self.update), **found):
                    return

    def _rate(self, update: int) -> float:
        schedule = parse_schedule(self.config.learning_rate, "learning_rate")
        whole = max(self.config.updates, 1)
        return schedule(update % whole / whole if schedule.unit == "progress" else update % whole)

    def _learn(self, data: Solved) -> None:
        config = self.config
        policy = self.model.policy
        update_learning_rate(self.optimizer, self._rate(self.update))
        policy.set_training_mode(True)
        batch = data.drawn(config.batch_size, (config.seed, self.update), config.seat)
        choice, value = model_losses(self.model, batch, config.temperature)
        loss = choice + config.value_weight * value if config.value_weight else choice
        self.optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(policy.q_net.parameters(), config.max_grad_norm)
        self.optimizer.step()
        policy.set_training_mode(False)
        self._sums += torch.stack([choice.detach(), value.detach(), torch.ones_like(value)]).cpu()
        self.update += 1

    def _measure(self, data: Solved) -> Metrics:
        """Return the share of best moves in solved positions, and mean losses since the last call.

        The share is 0 without positions.
        """
        check_finite(self.model)
        choice, value = (self._sums[:2] / self._sums[2]).tolist()
        self._sums = torch.zeros(3)
        regret = data.asked(self.config.seat).chosen(player_of(self.model))
        right = float((regret == 0).double().mean()) if len(data) else 0.0
        metrics = {"teach/right": right, "teach/choice": choice, "teach/value": value}
        self.history.append({"update": self.update, **metrics})
        self.run_of.say(f"update {self.update}: {metrics}")
        return metrics

    def _round(self, number: int, check: Callable[[], None]) -> Solved:
        """Reads the positions of a round, or makes them first."""
        name = f"solved-{number}"
        with TemporaryDirectory() as place:
            file = Path(self.run_of.folder or place, f"{name}.npz")
            if not file.exists():
                drawn = draw(self.config, number, player_of(self.model), check)
                self.run_of.say(f"{name}: {len(drawn)} positions to be solved")
                self._solve(drawn, file, check)
            return Solved.load(file)

    def _solve(self, drawn: Solved, file: Path, check: Callable[[], None]) -> None:
        """Solve positions in pieces, so that a run that is killed keeps them, and join them."""
        folder = file.with_suffix("")
        rows = torch.arange(len(drawn)).split(PIECE)
        pieces = [folder / f"{number:05d}.npz" for number in range(len(rows))]
        missing = [pair for pair in zip(pieces, rows, strict=True) if not pair[0].exists()]
        with spreading(vars(self.run_of.given).get("actors", 0), check) as spread:
            exact = self.config.seat == "agent"  # asked about every set, not about the best alone
            work = partial(solve, self.config.objective, self.config.budget, exact)
            results = spread(work, (drawn.select(index) for _, index in missing))
            for (piece, _), solved in zip(missing, results, strict=True):
                solved.save(piece)
        joined([Solved.load(piece) for piece in pieces]).save(file)
        shutil.rmtree(folder)

    def report(self) -> str:
        """Writes ``results.json``."""
        if self.run_of.folder:
            found = {"updates": self.update, "history": self.history}
            write_json(self.run_of.folder / "results.json", found)
        lines = [f"{self.update} updates on {sum(map(len, self.data))} solved positions"]
        if self.history:
            right = f"{100 * self.history[-1]['teach/right']:.2f} %"
            lines.append(f"best moves in positions that were not taught: {right}")
        return "\n".join(lines)


def _learner(config: TeachConfig) -> DDQN:
    """A DDQN with fresh networks, from a file in rl_zoo3's form."""
    env_id = f"resgym/Hironaka{config.seat.title()}-v0"
    _, section = section_of(find_config(config.algorithm, field="algorithm"), env_id)
    with errors_named("algorithm"):
        game = {**section["env_kwargs"], "dimension": config.dimension}
        model = DDQN(
            section["policy"],
            gymnasium.make_vec(env_id, vectorization_mode="vector_entry_point", **game),
            gamma=section["gamma"],
            policy_kwargs=section["policy_kwargs"],
            buffer_size=1,
            seed=config.seed,
            device=section.get("device", "cpu"),
        )
    if config.value_weight and (config.objective != "depth" or game["reward"] != "step"):
        raise ConfigError(
            f"value_weight: got {config.value_weight}; expected 0, or the objective depth and in "
            f"{config.algorithm} the reward step: values are numbers of moves"
        )
    return model


main = partial(drive, Teach)
